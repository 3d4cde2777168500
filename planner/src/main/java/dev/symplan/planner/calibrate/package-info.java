/** Targets fitted to measured points. */
@NullMarked
package dev.symplan.planner.calibrate;

import org.jspecify.annotations.NullMarked;
