/** The entry to the compiler. */
@NullMarked
package dev.symplan.planner;

import org.jspecify.annotations.NullMarked;
