/** Checks of what plans are lowered to, over random programs. */
@NullMarked
package dev.symplan.codegen;

import org.jspecify.annotations.NullMarked;
