/**
 * Analyses of a graph before and between the passes: aliases, windows, constraints.
 *
 * <p>Adjacent ops that go by elements, or by rows, become one step ({@link Fusion}). Values that
 * only they read have no memory. If a run of ops would hold more at once than its ops one by one,
 * it is cut.
 *
 * <p>An op without a rule may leave its arguments and results as views of each other ({@link
 * Families}). If its schema leaves open what it does, no collective and no other such op crosses
 * it. The verifier has its own model of this.
 */
@NullMarked
package dev.symplan.planner.pass.analysis;

import org.jspecify.annotations.NullMarked;
