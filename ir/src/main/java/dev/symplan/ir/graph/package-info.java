/** Graphs of ops on SSA values, and the programs that ranks run. */
@NullMarked
package dev.symplan.ir.graph;

import org.jspecify.annotations.NullMarked;
