/** The check of a finished plan; shares no code with the passes. */
@NullMarked
package dev.symplan.planner.verify;

import org.jspecify.annotations.NullMarked;
