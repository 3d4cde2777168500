/** Models of the variants, made of their transfers, which spin checks exhaustively. */
@NullMarked
package dev.symplan.codegen.model;

import org.jspecify.annotations.NullMarked;
