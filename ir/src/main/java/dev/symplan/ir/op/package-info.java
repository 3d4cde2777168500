/** Operators: schemas, the registry, and the rules that give result types and aliases. */
@NullMarked
package dev.symplan.ir.op;

import org.jspecify.annotations.NullMarked;
