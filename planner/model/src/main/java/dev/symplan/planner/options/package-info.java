/** The options of the compiler. */
@NullMarked
package dev.symplan.planner.options;

import org.jspecify.annotations.NullMarked;
