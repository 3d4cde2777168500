/** The check of a finished plan, which shares no code with the passes. */
@NullMarked
package dev.symplan.planner.verify;

import org.jspecify.annotations.NullMarked;
