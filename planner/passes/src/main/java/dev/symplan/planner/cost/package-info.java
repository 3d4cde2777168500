/** Predicted times of transfers and kernels. */
@NullMarked
package dev.symplan.planner.cost;

import org.jspecify.annotations.NullMarked;
