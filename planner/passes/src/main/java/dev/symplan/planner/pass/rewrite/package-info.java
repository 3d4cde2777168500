/**
 * Passes that rewrite graphs: normal form, collectives without copies around them, merged
 * collectives, products in pieces.
 */
@NullMarked
package dev.symplan.planner.pass.rewrite;

import org.jspecify.annotations.NullMarked;
