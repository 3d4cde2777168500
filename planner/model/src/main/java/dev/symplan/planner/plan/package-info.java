/** The plan as immutable values: where each tensor is, in which steps, and why. */
@NullMarked
package dev.symplan.planner.plan;

import org.jspecify.annotations.NullMarked;
