/**
 * What machines can do: variants of collectives, what each needs, and the costs that targets state.
 */
@NullMarked
package dev.symplan.planner.machine;

import org.jspecify.annotations.NullMarked;
