/** What the caller of the compiler decides. */
@NullMarked
package dev.symplan.planner.options;

import org.jspecify.annotations.NullMarked;
