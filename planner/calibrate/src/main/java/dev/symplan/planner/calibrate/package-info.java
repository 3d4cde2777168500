/** Programs that are measured, the points that come of it, and targets fitted to them. */
@NullMarked
package dev.symplan.planner.calibrate;

import org.jspecify.annotations.NullMarked;
