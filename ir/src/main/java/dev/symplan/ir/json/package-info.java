/** JSON whose values know where they stand, so that a complaint can point there. */
@NullMarked
package dev.symplan.ir.json;

import org.jspecify.annotations.NullMarked;
