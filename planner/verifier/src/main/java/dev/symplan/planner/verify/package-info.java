/**
 * The check of a finished plan, which shares no code with the passes.
 *
 * <p>The package has more than thirty classes because each rule is a class. They share the model of
 * a plan and its run, which are visible only here.
 */
@NullMarked
package dev.symplan.planner.verify;

import org.jspecify.annotations.NullMarked;
