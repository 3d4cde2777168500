/**
 * Passes that rewrite graphs: normal form, collectives without copies around them, merged
 * collectives, products in pieces.
 *
 * <p>A rewrite of collectives is a {@code Rewriter}: one class decides, from its findings in one
 * graph, and another class makes the graphs. The package has more than fifty classes because they
 * share the code that copies graphs and emits ops, which is visible only here.
 */
@NullMarked
package dev.symplan.planner.pass.rewrite;

import org.jspecify.annotations.NullMarked;
