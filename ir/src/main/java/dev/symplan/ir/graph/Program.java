package dev.symplan.ir.graph;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Notes;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.op.OpDef;

/**
 * The contents of a graph file.
 *
 * <p>Graphs of one name with disjoint rank lists are the per-rank versions of one program.
 *
 * @param declarations the ops that the file declares itself
 * @param endNotes comments after the last graph
 * @param headNotes comments at the file's first line, each group and each declaration, in this
 *     order; may end early
 */
public record Program(
    ImmutableList<ProcessGroup> groups,
    ImmutableList<OpDef> declarations,
    ImmutableList<Graph> graphs,
    Notes endNotes,
    ImmutableList<Notes> headNotes) {

  /** A program without comments at its head. */
  public Program(
      ImmutableList<ProcessGroup> groups,
      ImmutableList<OpDef> declarations,
      ImmutableList<Graph> graphs,
      Notes endNotes) {
    this(groups, declarations, graphs, endNotes, ImmutableList.of());
  }
}
