/** What is where, in which step, and why: the plan as immutable values. */
@NullMarked
package dev.symplan.planner.plan;

import org.jspecify.annotations.NullMarked;
