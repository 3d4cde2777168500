/**
 * Passes that rewrite graphs: normal form, collectives without copies around them, merged
 * collectives, products in pieces.
 *
 * <p>A rewrite of collectives is a {@code Rewriter}: one class decides, with what it finds in one
 * graph, and another one makes the graphs. The package has about forty classes because these share
 * how graphs are copied and ops are emitted, which nothing else sees.
 */
@NullMarked
package dev.symplan.planner.pass.rewrite;

import org.jspecify.annotations.NullMarked;
