package dev.symplan.planner.pass.analysis;

import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.joint.ProgramGraph;
import java.util.BitSet;

/** The setup of a program, which a session runs once: see {@link ProgramGraph}. */
public final class Setup {
  private Setup() {}

  /**
   * {@return the storages that the setup makes and a graph reads} Each run reads them, so nothing
   * else may ever be in their memory.
   */
  public static BitSet kept(Graph graph, Aliases aliases) {
    var kept = new BitSet();
    int end = aliases.setupEnd();
    if (end < 0) {
      return kept;
    }
    for (var op : graph.ops().subList(end, graph.ops().size())) {
      for (var value : op.operands()) {
        int storage = aliases.id(value);
        if (storage >= 0
            && aliases.storage(storage).def() >= 0
            && aliases.storage(storage).def() < end) {
          kept.set(storage);
        }
      }
    }
    return kept;
  }
}
