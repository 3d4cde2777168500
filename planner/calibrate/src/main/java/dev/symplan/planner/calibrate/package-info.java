/** Programs to measure, the points measured, and targets fitted to these points. */
@NullMarked
package dev.symplan.planner.calibrate;

import org.jspecify.annotations.NullMarked;
