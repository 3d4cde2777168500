package dev.symplan.planner.pass.select;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.joint.ProgramGraph;
import dev.symplan.ir.op.OpDef;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.analysis.ExternalOutputs;
import dev.symplan.planner.pass.analysis.GraphCopier;
import dev.symplan.planner.pass.analysis.OperandConstraints.OperandConstraint;
import dev.symplan.planner.pass.analysis.SpaceChoice;
import dev.symplan.planner.pass.order.CopyWindows;
import dev.symplan.planner.pass.select.Select.Selection;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.ArgDecision;
import dev.symplan.planner.plan.ArgDecision.Realization;
import dev.symplan.planner.plan.ArgDecision.Reason;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Puts what the selected variants use into symmetric memory: the op that owns the storage writes it
 * there; where that cannot be, a copy is inserted.
 */
final class Realize {
  private static final OpDef STAGE = BuiltinOps.registry().get("symplan::stage");

  private final Analyses source;
  private final ImmutableList<Selection> selections;
  private final CostModel costs;
  private final SpaceChoice spaces;
  private final GraphCopier copier;
  private final List<ImmutableList<ArgDecision>> decisions = new ArrayList<>();

  private Realize(Analyses source, ImmutableList<Selection> selections, CostModel costs) {
    this.source = source;
    this.costs = costs;
    this.selections = selections;
    this.spaces = source.spaces();
    this.copier = new GraphCopier(source.graph(), spaces::inputType);
  }

  static Realized run(Analyses source, ImmutableList<Selection> selections, CostModel costs) {
    return new Realize(source, selections, costs).realize();
  }

  private Realized realize() {
    int k = 0;
    var ops = source.graph().ops();
    // Results that must be symmetric though their storage was to be an output of the caller.
    var leavesOutput = new boolean[source.aliases().count()];
    var outputs = new ArrayList<Arg>();
    for (int i = 0; i < ops.size(); i++) {
      if (ProgramGraph.isBorder(ops.get(i))) {
        give(Math.toIntExact(ops.get(i).call().integer("outputs")), leavesOutput, outputs);
      }
      if (k < source.collectives().size() && source.collectives().get(k).index() == i) {
        connect(k, leavesOutput);
        k++;
      } else {
        copier.keep(ops.get(i));
      }
    }
    give(source.graph().outputs().size(), leavesOutput, outputs);
    var connected = source.of(copier.finish(ImmutableList.copyOf(outputs)));
    return place(connected.of(CopyWindows.made(connected, costs)));
  }

  /** Copies the collective, with staged operands, and writes down what was done. */
  private void connect(int k, boolean[] leavesOutput) {
    var collective = source.collectives().get(k);
    var selection = selections.get(k);
    var args = ImmutableList.<ArgDecision>builder();
    var sent = new ArrayList<Value>();
    var operands = source.constraints().operands(k);
    for (int i = 0; i < operands.size(); i++) {
      var slot = operands.get(i);
      boolean differs = selection.differs().get(i);
      boolean staged =
          Select.mustStage(slot, selection.variant(), collective.kind(), false, differs);
      // Even of what is sent twice: another rank may send two values there, and has two copies.
      sent.add(staged ? stage(collective, i) : copier.now(slot.value()));
      args.add(decide(slot, staged, differs && !slot.always(), false, k));
    }
    for (var slot : source.constraints().results(k)) {
      boolean staged = Select.mustStage(slot, selection.variant(), collective.kind(), true, false);
      if (staged) {
        leavesOutput[source.aliases().id(slot.value())] = true;
      }
      args.add(decide(slot, staged, false, true, k));
    }
    var op = collective.op();
    copier.emit(op, op.def(), collective.argsWith(copier.now(op.args()), sent));
    decisions.add(args.build());
  }

  private Value stage(Collective collective, int index) {
    var operand = collective.operands().get(index);
    return copier.insert(
        STAGE,
        ImmutableList.of(new Arg.Ref(copier.now(operand))),
        operand.name() + "_staged",
        stagedType(collective, index),
        collective.op().span());
  }

  /** A copy lies as the collective moves it: as the result does, or in rows one after the other. */
  private static TensorType stagedType(Collective collective, int index) {
    var operand = collective.operands().get(index).tensor();
    var type =
        collective.kind().keepsLayout()
            ? operand.withStrides(collective.results().get(index).tensor().strides())
            : operand.contiguous();
    return type.withSpace(MemorySpace.ANY);
  }

  private ArgDecision decide(
      OperandConstraint slot, boolean staged, boolean differs, boolean result, int k) {
    var variant = selections.get(k).variant();
    var kind = source.collectives().get(k).kind();
    var spec = VariantSpec.of(kind, variant);
    boolean needed = spec.needsSymmetric(result);
    boolean apart = slot.rows().isPresent();
    Realization realization;
    Reason reason;
    if (staged) {
      realization = Realization.STAGED;
      reason =
          slot.rows().filter(rows -> !spec.reads(rows)).isPresent()
              ? Reason.NOT_CONTIGUOUS
              : differs && (slot.free() || !needed) ? Reason.RANKS_DIFFER : slot.reason();
    } else {
      realization = needed ? Realization.ZERO_COPY : Realization.NOT_NEEDED;
      reason = apart ? Reason.READS_ROWS : needed ? slot.reason() : Reason.VARIANT_READS_ANYWHERE;
    }
    var cause =
        reason == Reason.READS_ROWS
            ? source.aliases().of(slot.value()).value().name()
            : reason == Reason.NOT_CONTIGUOUS ? slot.value().name() : slot.cause();
    return new ArgDecision(
        result, slot.value().name(), realization, reason, cause, slot.value().tensor().bytes());
  }

  /**
   * Outputs in memory of the caller's that nothing can write directly get a copy, and so do those
   * that an op may have moved. The copies of a graph of the program are there when it ends.
   *
   * @param end after the last output of the graph
   * @param outputs those of the graphs before it, to which those of this graph are added
   */
  private void give(int end, boolean[] leavesOutput, List<Arg> outputs) {
    var aliases = source.aliases();
    var given = source.graph().outputs();
    for (int i = outputs.size(); i < end; i++) {
      var output = copier.now(given.get(i));
      if (given.get(i) instanceof Arg.Ref(Value value)
          && value.isTensor()
          && output instanceof Arg.Ref(Value now)) {
        int storage = aliases.id(value);
        boolean direct =
            source.externalOutputs().isExternal(i)
                ? source.externalOutputs().outputOf(storage) == i && !leavesOutput[storage]
                : ExternalOutputs.isLocationKnown(aliases, value);
        if (!direct) {
          output =
              new Arg.Ref(
                  copier.insert(
                      STAGE,
                      ImmutableList.of(new Arg.Ref(now)),
                      value.name() + "_out",
                      value.tensor().contiguous(),
                      value.span()));
        }
      }
      outputs.add(output);
    }
  }

  private Realized place(Analyses realized) {
    var aliases = realized.aliases();
    var arenas = new ArenaKind[aliases.count()];
    Arrays.fill(arenas, ArenaKind.LOCAL);
    for (var storage : aliases.storages()) {
      if (storage.value().tensor().space() == MemorySpace.HOST) {
        arenas[storage.id()] = ArenaKind.HOST;
      }
    }
    placeOutputs(realized, arenas);
    for (int k = 0; k < realized.collectives().size(); k++) {
      var variant = selections.get(k).variant();
      var collective = realized.collectives().get(k);
      if (VariantSpec.of(collective.kind(), variant).needsSymmetricOperand()) {
        collective.operands().forEach(v -> arenas[aliases.id(v)] = ArenaKind.SYMMETRIC);
      }
      if (VariantSpec.of(collective.kind(), variant).needsSymmetricResult()) {
        collective.results().forEach(v -> arenas[aliases.id(v)] = ArenaKind.SYMMETRIC);
      }
    }
    for (var input : realized.graph().inputs()) {
      if (input.isTensor()) {
        int storage = aliases.id(input);
        boolean symmetric = arenas[storage] == ArenaKind.SYMMETRIC;
        arenas[storage] =
            switch (spaces.input(input)) {
              case SYMMETRIC -> ArenaKind.SYMMETRIC;
              case LOCAL -> ArenaKind.LOCAL;
              case DONATED -> symmetric ? ArenaKind.SYMMETRIC : ArenaKind.LOCAL;
              case EXTERNAL -> ArenaKind.EXTERNAL_INPUT;
              case ANY -> symmetric ? ArenaKind.SYMMETRIC : ArenaKind.EXTERNAL_INPUT;
              case HOST -> ArenaKind.HOST;
            };
      }
    }
    return new Realized(
        realized,
        selections.stream().map(Selection::variant).collect(ImmutableList.toImmutableList()),
        ImmutableList.copyOf(arenas),
        ImmutableList.copyOf(decisions));
  }

  private void placeOutputs(Analyses realized, ArenaKind[] arenas) {
    var aliases = realized.aliases();
    for (int storage = 0; storage < aliases.count(); storage++) {
      if (realized.externalOutputs().isDirect(storage)) {
        arenas[storage] = ArenaKind.EXTERNAL_OUTPUT;
      }
    }
    var outputs = realized.graph().outputs();
    for (int i = 0; i < outputs.size(); i++) {
      if (outputs.get(i) instanceof Arg.Ref(Value value)
          && value.isTensor()
          && spaces.output(i) == MemorySpace.SYMMETRIC
          && !aliases.of(value).isInput()) {
        arenas[aliases.id(value)] = ArenaKind.SYMMETRIC;
      }
    }
  }
}
