/** The plan as immutable values: what is where, in which step, and why. */
@NullMarked
package dev.symplan.planner.plan;

import org.jspecify.annotations.NullMarked;
