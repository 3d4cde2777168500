package dev.symplan.planner.pass.select;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.op.OpDef;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.analysis.ExternalOutputs;
import dev.symplan.planner.pass.analysis.GraphCopier;
import dev.symplan.planner.pass.analysis.OperandConstraints.OperandConstraint;
import dev.symplan.planner.pass.analysis.RankGraph;
import dev.symplan.planner.pass.analysis.SpaceChoice;
import dev.symplan.planner.pass.select.Select.Selection;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.ArgDecision;
import dev.symplan.planner.plan.ArgDecision.Realization;
import dev.symplan.planner.plan.ArgDecision.Reason;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;

/**
 * StorageMerges storages: what a chosen variant uses must be symmetric, so the op that owns the
 * storage writes it there; where that cannot be, a copy is put in.
 */
public final class Realize {
  private static final OpDef STAGE = BuiltinOps.registry().get("symplan::stage");

  /**
   * A graph with its copies, and the memory of each of its storages.
   *
   * @param arenas by storage; symmetric and external ones are final, {@code LOCAL} ones may still
   *     fill holes of the symmetric arena
   * @param given by storage, whether it holds the caller's data before the program
   * @param pinned by storage, whether it must hold them after the program, too
   * @param args for each collective, how each operand, then each result, is realized
   */
  public record Realized(
      Graph graph,
      Aliases aliases,
      ImmutableList<Collective> collectives,
      ArenaKind[] arenas,
      boolean[] given,
      boolean[] pinned,
      ExternalOutputs externalOutputs,
      ImmutableList<ImmutableList<ArgDecision>> args) {}

  private final RankGraph source;
  private final ImmutableList<Selection> selections;
  private final SpaceChoice spaces;
  private final GraphCopier rewriter;
  private final List<ImmutableList<ArgDecision>> decisions = new ArrayList<>();

  private Realize(RankGraph source, ImmutableList<Selection> selections, SpaceChoice spaces) {
    this.source = source;
    this.selections = selections;
    this.spaces = spaces;
    this.rewriter = new GraphCopier(source.graph(), spaces::inputType);
  }

  public static Realized run(
      RankGraph source, ImmutableList<Selection> selections, SpaceChoice spaces) {
    return new Realize(source, selections, spaces).realize();
  }

  private Realized realize() {
    int k = 0;
    var ops = source.graph().ops();
    // Results that must be symmetric though their storage was to be an output of the caller's.
    var leavesOutput = new boolean[source.aliases().count()];
    for (int i = 0; i < ops.size(); i++) {
      if (k < source.collectives().size() && source.collectives().get(k).index() == i) {
        connect(k, leavesOutput);
        k++;
      } else {
        rewriter.keep(ops.get(i));
      }
    }
    var graph = rewriter.finish(outputs(leavesOutput));
    return place(graph);
  }

  /** Copies the collective, with staged operands, and writes down what was done. */
  private void connect(int k, boolean[] leavesOutput) {
    var collective = source.collectives().get(k);
    var selection = selections.get(k);
    var args = ImmutableList.<ArgDecision>builder();
    var op = collective.op();
    // By value: a coalesced collective may send the same one twice.
    var originals = new LinkedHashMap<Value, Value>();
    var operands = source.slots().operands(k);
    for (int i = 0; i < operands.size(); i++) {
      var slot = operands.get(i);
      boolean differs = selection.differs().get(i);
      boolean staged =
          Select.mustStage(slot, selection.variant(), collective.kind(), false, differs);
      if (staged && !originals.containsKey(slot.value())) {
        var before = rewriter.now(slot.value());
        var type = stagedType(collective, i);
        var copy =
            rewriter.insert(
                STAGE,
                ImmutableList.of(new Arg.Ref(before)),
                slot.value().name() + "_staged",
                type,
                op.span());
        rewriter.replace(slot.value(), copy);
        originals.put(slot.value(), before);
      }
      args.add(decide(slot, staged, differs && !slot.always(), false, k));
    }
    for (var slot : source.slots().results(k)) {
      boolean staged = Select.mustStage(slot, selection.variant(), collective.kind(), true, false);
      if (staged) {
        leavesOutput[source.aliases().id(slot.value())] = true;
      }
      args.add(decide(slot, staged, false, true, k));
    }
    rewriter.keep(op);
    originals.forEach(rewriter::replace);
    decisions.add(args.build());
  }

  /**
   * A copy lies as the collective moves it: as the result does, or in rows one behind the other.
   */
  private static TensorType stagedType(Collective collective, int index) {
    var operand = collective.operands().get(index).tensor();
    var type =
        switch (collective.kind()) {
          case ALL_REDUCE, BROADCAST ->
              operand.withStrides(collective.results().get(index).tensor().strides());
          case ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, CUSTOM -> operand.contiguous();
        };
    return type.withSpace(MemorySpace.ANY);
  }

  private ArgDecision decide(
      OperandConstraint slot, boolean staged, boolean differs, boolean result, int k) {
    var variant = selections.get(k).variant();
    var kind = source.collectives().get(k).kind();
    boolean needed = Select.isSymmetric(variant, kind, result);
    Realization realization;
    Reason reason;
    if (staged) {
      realization = Realization.STAGED;
      reason = differs && slot.free() ? Reason.RANKS_DIFFER : slot.reason();
    } else if (needed) {
      realization = Realization.ZERO_COPY;
      reason = slot.reason();
    } else {
      realization = Realization.NOT_NEEDED;
      reason = Reason.VARIANT_READS_ANYWHERE;
    }
    return new ArgDecision(
        result,
        slot.value().name(),
        realization,
        reason,
        slot.cause(),
        slot.value().tensor().bytes());
  }

  /**
   * Outputs in memory of the caller's that nothing can write directly get a copy, and so do those
   * that an op may have moved.
   */
  private ImmutableList<Arg> outputs(boolean[] leavesOutput) {
    var outputs = ImmutableList.<Arg>builder();
    var aliases = source.aliases();
    var given = source.graph().outputs();
    for (int i = 0; i < given.size(); i++) {
      var output = rewriter.now(given.get(i));
      if (given.get(i) instanceof Arg.Ref(Value value)
          && value.isTensor()
          && output instanceof Arg.Ref(Value now)) {
        int storage = aliases.id(value);
        boolean direct =
            source.externalOutputs().isExternal(i)
                ? source.externalOutputs().outputOf(storage) == i && !leavesOutput[storage]
                : ExternalOutputs.isPlaceKnown(aliases, value);
        if (!direct) {
          output =
              new Arg.Ref(
                  rewriter.insert(
                      STAGE,
                      ImmutableList.of(new Arg.Ref(now)),
                      value.name() + "_out",
                      value.tensor().contiguous(),
                      value.span()));
        }
      }
      outputs.add(output);
    }
    return outputs.build();
  }

  private Realized place(Graph graph) {
    var aliases = Aliases.of(graph);
    var collectives = Collective.allOf(graph.ops());
    var arenas = new ArenaKind[aliases.count()];
    var given = new boolean[aliases.count()];
    var pinned = new boolean[aliases.count()];
    Arrays.fill(arenas, ArenaKind.LOCAL);
    var placed = placeOutputs(graph, aliases, arenas);
    for (int k = 0; k < collectives.size(); k++) {
      var variant = selections.get(k).variant();
      var kind = collectives.get(k).kind();
      if (Select.isSymmetric(variant, kind, false)) {
        collectives.get(k).operands().forEach(v -> arenas[aliases.id(v)] = ArenaKind.SYMMETRIC);
      }
      if (Select.isSymmetric(variant, kind, true)) {
        collectives.get(k).results().forEach(v -> arenas[aliases.id(v)] = ArenaKind.SYMMETRIC);
      }
    }
    for (var input : graph.inputs()) {
      if (input.isTensor()) {
        int storage = aliases.id(input);
        given[storage] = true;
        pinned[storage] = spaces.input(input) != MemorySpace.DONATED;
        arenas[storage] =
            switch (spaces.input(input)) {
              case SYMMETRIC -> ArenaKind.SYMMETRIC;
              case LOCAL -> ArenaKind.LOCAL;
              case DONATED ->
                  arenas[storage] == ArenaKind.SYMMETRIC ? ArenaKind.SYMMETRIC : ArenaKind.LOCAL;
              case EXTERNAL -> ArenaKind.EXTERNAL_INPUT;
              case ANY ->
                  arenas[storage] == ArenaKind.SYMMETRIC
                      ? ArenaKind.SYMMETRIC
                      : ArenaKind.EXTERNAL_INPUT;
            };
      }
    }
    return new Realized(
        graph,
        aliases,
        collectives,
        arenas,
        given,
        pinned,
        placed,
        ImmutableList.copyOf(decisions));
  }

  private ExternalOutputs placeOutputs(Graph graph, Aliases aliases, ArenaKind[] arenas) {
    var direct = ExternalOutputs.of(aliases, source.externalOutputs()::isExternal);
    for (int storage = 0; storage < aliases.count(); storage++) {
      if (direct.isDirect(storage)) {
        arenas[storage] = ArenaKind.EXTERNAL_OUTPUT;
      }
    }
    for (int i = 0; i < graph.outputs().size(); i++) {
      if (source.graph().outputs().get(i) instanceof Arg.Ref(Value value)
          && value.isTensor()
          && spaces.output(i) == MemorySpace.SYMMETRIC
          && graph.outputs().get(i) instanceof Arg.Ref(Value now)
          && !aliases.of(now).isInput()) {
        arenas[aliases.id(now)] = ArenaKind.SYMMETRIC;
      }
    }
    return direct;
  }
}
