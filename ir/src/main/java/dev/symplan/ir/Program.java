package dev.symplan.ir;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.op.OpDef;

/**
 * What a graph file holds.
 *
 * <p>Graphs of one name with disjoint rank lists are the per-rank versions of one program.
 *
 * @param declarations the ops that the file declares itself
 * @param endNotes comments behind the last graph
 */
public record Program(
    ImmutableList<ProcessGroup> groups,
    ImmutableList<OpDef> declarations,
    ImmutableList<Graph> graphs,
    Notes endNotes) {}
