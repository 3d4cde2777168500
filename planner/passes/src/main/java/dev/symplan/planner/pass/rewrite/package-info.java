/** Passes that rewrite graphs: normal form, merged collectives, products in pieces. */
@NullMarked
package dev.symplan.planner.pass.rewrite;

import org.jspecify.annotations.NullMarked;
