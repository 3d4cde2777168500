/**
 * What is known of a graph before and between the passes: aliases, windows, constraints.
 *
 * <p>Ops that go by elements, or by rows, and stand next to each other become one step ({@link
 * Fusion}). What only they read has no memory. A run of ops that would hold more at once than its
 * ops one by one is cut.
 *
 * <p>An op without a rule may leave its arguments and results as views of each other ({@link
 * Families}). If its schema leaves open what it does, no collective and no other such op crosses
 * it. The verifier has its own view of the same.
 */
@NullMarked
package dev.symplan.planner.pass.analysis;

import org.jspecify.annotations.NullMarked;
