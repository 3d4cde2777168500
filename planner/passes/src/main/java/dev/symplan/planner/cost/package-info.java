/** What transfers and kernels are predicted to take. */
@NullMarked
package dev.symplan.planner.cost;

import org.jspecify.annotations.NullMarked;
