package dev.symplan.planner.pass.select;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.graph.Graph;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.ArgDecision;

/**
 * A graph with the copies that its variants need, and the memory of each of its storages.
 *
 * @param variants by collective
 * @param arenas by storage; symmetric and external ones are final, {@code LOCAL} ones may still
 *     fill holes of the symmetric arena
 * @param args by collective, how each operand, then each result, is realized
 */
public record Realized(
    Analyses analyses,
    ImmutableList<Variant> variants,
    ImmutableList<ArenaKind> arenas,
    ImmutableList<ImmutableList<ArgDecision>> args) {

  public Graph graph() {
    return analyses.graph();
  }

  public Aliases aliases() {
    return analyses.aliases();
  }

  public ImmutableList<Collective> collectives() {
    return analyses.collectives();
  }

  /** {@return the row of a collective's variant} */
  public VariantSpec spec(int collective) {
    return VariantSpec.of(collectives().get(collective).kind(), variants.get(collective));
  }

  /** {@return the memory of a storage} */
  public ArenaKind arena(int storage) {
    return arenas.get(storage);
  }

  /** {@return whether a storage holds the caller's data before the program} */
  public boolean isGiven(int storage) {
    return aliases().storage(storage).isInput();
  }

  /** {@return whether a storage must still hold the caller's data after the program} */
  public boolean isPinned(int storage) {
    var owner = aliases().storage(storage);
    return owner.isInput() && analyses.spaces().input(owner.value()) != MemorySpace.DONATED;
  }
}
