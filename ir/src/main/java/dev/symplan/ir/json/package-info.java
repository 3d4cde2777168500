/** JSON whose values know their location, so that errors can point to it. */
@NullMarked
package dev.symplan.ir.json;

import org.jspecify.annotations.NullMarked;
