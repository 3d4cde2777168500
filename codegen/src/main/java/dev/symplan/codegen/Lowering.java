package dev.symplan.codegen;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Instruction.AwaitEvent;
import dev.symplan.codegen.Instruction.Border;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.Fused;
import dev.symplan.codegen.Instruction.GroupUse;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Instruction.RecordEvent;
import dev.symplan.codegen.Instruction.Region;
import dev.symplan.codegen.Instruction.SetupEnd;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.AttentionOps;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.RankNumbers;
import dev.symplan.ir.graph.Rows;
import dev.symplan.ir.joint.ProgramGraph;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.plan.StreamKind;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/**
 * Turns a plan into instructions.
 *
 * <p>A collective on a side stream is forked by an event of the compute stream, and joined by one
 * of its own. So are copies between device and host memory, which the graph waits for.
 */
public final class Lowering {
  private final Plan plan;
  private final RankPlan rankPlan;
  private final CollectiveNumbers numbers;
  private final int rank;
  private final ImmutableList<Value> values;
  private final ImmutableList.Builder<Instruction> instructions = ImmutableList.builder();
  private final int[] doneEvents;
  private int events;

  /** The ids of values that ops or the caller read. */
  private final BitSet read = new BitSet();

  /** By the result of a copy between device and host memory, the event of its end. */
  private final Map<Value, Integer> copied = new HashMap<>();

  /** The numbers of what the fused step at hand passes on, by value id. */
  private final Map<Integer, Integer> passed = new HashMap<>();

  private Lowering(Plan plan, CollectiveNumbers numbers, int rank) {
    this.plan = plan;
    this.numbers = numbers;
    this.rank = rank;
    this.rankPlan = plan.forRank(rank);
    this.values = rankPlan.graph().values();
    this.doneEvents = new int[rankPlan.collectives().size()];
    rankPlan.graph().ops().forEach(op -> op.operands().forEach(value -> read.set(value.id())));
    rankPlan.graph().outputValues().forEach(value -> read.set(value.id()));
  }

  /** {@return the instructions of every rank} */
  public static Executable lower(Plan plan) {
    var numbers = CollectiveNumbers.of(plan);
    var ranks = ImmutableList.<RankProgram>builder();
    for (int rank = 0; rank < plan.worldSize(); rank++) {
      ranks.add(new Lowering(plan, numbers, rank).program());
    }
    return new Executable(plan.name(), plan.symmetric().bytes(), plan.digest(), ranks.build());
  }

  private RankProgram program() {
    for (int s = 0; s < rankPlan.steps().size(); s++) {
      switch (rankPlan.steps().get(s)) {
        case Step.Compute(int op) when ProgramGraph.isBorder(rankPlan.graph().ops().get(op)) ->
            instructions.add(border(op));
        case Step.Compute(int op) when ProgramGraph.endsSetup(rankPlan.graph().ops().get(op)) ->
            instructions.add(new SetupEnd(ProgramGraph.weights(rankPlan.graph().ops().get(op))));
        case Step.Compute(int op) when isHostCopy(op) -> hostCopy(op(op));
        case Step.Compute(int op) when isHostCopyEnd(op) ->
            instructions.add(
                new AwaitEvent(
                    StreamKind.COMPUTE,
                    Objects.requireNonNull(copied.get(op(op).operands().getLast()))));
        case Step.Compute(int op) -> compute(op(op));
        case Step.Fused(var ops) -> fused(ops, s);
        case Step.Start(int k) -> start(k);
        case Step.Join(int k) ->
            instructions.add(new AwaitEvent(StreamKind.COMPUTE, doneEvents[k]));
      }
    }
    var graph = rankPlan.graph();
    return new RankProgram(
        rank,
        rankPlan.local().bytes(),
        graph.inputs().stream().map(this::input).collect(ImmutableList.toImmutableList()),
        graph.inputs().stream().map(Value::name).collect(ImmutableList.toImmutableList()),
        graph.outputs().stream()
            .map(
                output ->
                    output instanceof Arg.Ref(Value value)
                        ? ref(value)
                        : Optional.<TensorRef>empty())
            .collect(ImmutableList.toImmutableList()),
        rankPlan.buffers().stream().map(Lowering::buffer).collect(ImmutableList.toImmutableList()),
        instructions.build(),
        events);
  }

  private boolean isHostCopy(int op) {
    return rankPlan.graph().ops().get(op).def().has(OpTrait.HOST_COPY);
  }

  private boolean isHostCopyEnd(int op) {
    return rankPlan.graph().ops().get(op).def().has(OpTrait.HOST_COPY_END);
  }

  private void hostCopy(Op op) {
    int fork = events++;
    instructions.add(new RecordEvent(StreamKind.COMPUTE, fork));
    instructions.add(new AwaitEvent(StreamKind.COPY, fork));
    localOp(op, StreamKind.COPY, Optional.empty());
    int done = events++;
    copied.put(op.result(), done);
    instructions.add(new RecordEvent(StreamKind.COPY, done));
  }

  private Op op(int index) {
    return RankNumbers.on(rankPlan.graph().ops().get(index), rank);
  }

  private Border border(int op) {
    var call = rankPlan.graph().ops().get(op).call();
    int inputs = Math.toIntExact(call.integer("inputs"));
    int outputs = Math.toIntExact(call.integer("outputs"));
    return new Border(
        call.string("graph"), inputs, outputs, ProgramGraph.isIndependent(rankPlan.graph(), op));
  }

  private static RankProgram.Buffer buffer(Buffer buffer) {
    return buffer.arena().isExternal()
        ? new RankProgram.Buffer(
            buffer.arena(), Math.toIntExact(buffer.offset()), 0, buffer.bytes())
        : new RankProgram.Buffer(buffer.arena(), 0, buffer.offset(), buffer.bytes());
  }

  /** Callers see an ordinary tensor, wherever the plan has it. */
  private Optional<TensorRef> input(Value value) {
    return ref(value)
        .map(
            ref ->
                ref.type().space() == MemorySpace.HOST
                    ? new TensorRef(
                        ref.arena(),
                        ref.index(),
                        ref.offset(),
                        ref.type().withSpace(MemorySpace.ANY))
                    : ref);
  }

  private Optional<TensorRef> ref(Value value) {
    return value.isTensor() ? Optional.of(tensor(value)) : Optional.empty();
  }

  private TensorRef tensor(Value value) {
    var placement = rankPlan.placement(value);
    var buffer = rankPlan.buffers().get(placement.buffer());
    long offset = placement.offset() + plan.shift(rank, placement);
    var type = plan.typeInMemory(rank, value);
    return buffer.arena().isExternal()
        ? new TensorRef(buffer.arena(), Math.toIntExact(buffer.offset()), offset, type)
        : new TensorRef(buffer.arena(), 0, buffer.offset() + offset, type);
  }

  private void compute(Op op) {
    if (!op.def().has(OpTrait.CONCATENATION) || !isJoined(op)) {
      localOp(op, StreamKind.COMPUTE, Optional.empty());
    }
  }

  /**
   * Whether what a concatenation joins was written where its result lies: one after the other, or
   * in rows.
   */
  private boolean isJoined(Op op) {
    var values =
        op.args().getFirst().operands().stream()
            .filter(value -> value.tensor().numel() > 0)
            .toList();
    if (values.stream().allMatch(value -> rankPlan.placement(value).isInRows())) {
      // The plan has such a piece nowhere else.
      return op.result().tensor().isContiguous();
    }
    var result = tensor(op.result());
    long next = result.offset();
    for (var piece : values.stream().map(this::tensor).toList()) {
      boolean there =
          piece.arena() == result.arena()
              && piece.index() == result.index()
              && piece.offset() == next
              && piece.type().dtype() == result.type().dtype()
              && piece.type().isContiguous();
      if (!there) {
        return false;
      }
      next += piece.type().bytes();
    }
    return result.type().isContiguous();
  }

  private void localOp(Op op, StreamKind stream, Optional<GroupUse> group) {
    instructions.add(
        new LocalOp(
            stream,
            op.def(),
            op.args().stream().map(this::operand).collect(ImmutableList.toImmutableList()),
            results(op),
            group,
            nameOf(op),
            op.span()));
  }

  /**
   * What attention gives besides its result, such as for gradients, is left out if it is unread.
   */
  private ImmutableList<Optional<TensorRef>> results(Op op) {
    boolean all = !AttentionOps.is(op.def()) || AttentionOps.isBackward(op.def());
    return op.results().stream()
        .map(
            value ->
                all || value.equals(op.results().getFirst()) || read.get(value.id())
                    ? ref(value)
                    : Optional.<TensorRef>empty())
        .collect(ImmutableList.toImmutableList());
  }

  private void fused(ImmutableIntArray indices, int step) {
    var ops = indices.stream().mapToObj(this::op).collect(ImmutableList.toImmutableList());
    passed.clear();
    var parts = ImmutableList.<Part>builder();
    for (var op : ops) {
      for (var result : op.results()) {
        if (!rankPlan.placement(result).exists()) {
          passed.put(result.id(), passed.size());
        }
      }
      parts.add(
          new Part(
              op.def(),
              op.args().stream().map(this::operand).collect(ImmutableList.toImmutableList()),
              op.results().stream()
                  .map(this::tensorOperand)
                  .collect(ImmutableList.toImmutableList()),
              nameOf(op),
              op.span()));
    }
    var lastReads =
        ops.stream()
            .flatMap(op -> op.operands().stream())
            .filter(value -> isLastRead(value, step))
            .map(this::tensor)
            .collect(ImmutableSet.toImmutableSet());
    instructions.add(new Fused(StreamKind.COMPUTE, Rows.shared(ops), parts.build(), lastReads));
  }

  private boolean isLastRead(Value value, int step) {
    return value.isTensor()
        && rankPlan.placement(value).exists()
        && rankPlan.buffers().get(rankPlan.placement(value).buffer()).last() == step;
  }

  private Operand tensorOperand(Value value) {
    return rankPlan.placement(value).exists()
        ? new Operand.Tensor(tensor(value))
        : new Operand.Passed(Objects.requireNonNull(passed.get(value.id())), value.tensor());
  }

  private static String nameOf(Op op) {
    return op.results().isEmpty() || op.results().getFirst().name().isEmpty()
        ? op.def().name().toString()
        : op.results().getFirst().name();
  }

  private Operand operand(Arg arg) {
    return switch (arg) {
      case Arg.Ref(Value value) when value.isTensor() -> tensorOperand(value);
      case Arg.Seq(ImmutableList<Arg> items) when holdsTensors(arg) ->
          new Operand.Many(
              items.stream().map(this::operand).collect(ImmutableList.toImmutableList()));
      case Arg.Ref _, Arg.Seq _, Arg.Literal _ -> new Operand.Constant(arg);
    };
  }

  private static boolean holdsTensors(Arg arg) {
    return arg.operands().stream().anyMatch(Value::isTensor);
  }

  private void start(int k) {
    var collective = rankPlan.collectives().get(k);
    var stream = collective.stream();
    if (collective.kind() == Kind.CUSTOM) {
      localOp(
          rankPlan.graph().ops().get(collective.op()),
          StreamKind.COMPUTE,
          Optional.of(group(k, collective)));
      return;
    }
    if (collective.isAsync()) {
      int fork = events++;
      instructions.add(new RecordEvent(StreamKind.COMPUTE, fork));
      instructions.add(new AwaitEvent(stream, fork));
    }
    instructions.add(collective(k, collective));
    if (collective.isAsync()) {
      doneEvents[k] = events++;
      instructions.add(new RecordEvent(stream, doneEvents[k]));
    }
  }

  private GroupUse group(int k, CollectivePlan collective) {
    var group = plan.group(collective.group());
    var members = group.members().get(group.partOf(rank).orElseThrow());
    return new GroupUse(numbers.of(rank, k), members, members.indexOf(rank));
  }

  private Collective collective(int k, CollectivePlan collective) {
    var op = rankPlan.graph().ops().get(collective.op());
    var call = op.collective().orElseThrow();
    return new Collective(
        collective.stream(),
        collective.kind(),
        collective.variant(),
        group(k, collective),
        collective.reduceOp(),
        collective.root(),
        call.permutation(),
        call.inputSplits(),
        call.outputSplits(),
        call.sliceDims(),
        refs(collective.operands()),
        refs(collective.results()),
        collective.startBarrier(),
        collective.endBarrier(),
        workspace(collective),
        epilogue(collective),
        nameOf(op),
        op.span());
  }

  private static Instruction.Epilogue epilogue(CollectivePlan collective) {
    if (!collective.hasEpilogue()) {
      return Instruction.Epilogue.NONE;
    }
    return collective.epilogue().orElseThrow().stored()
        ? Instruction.Epilogue.STORED
        : Instruction.Epilogue.PASSED;
  }

  private Optional<Region> workspace(CollectivePlan collective) {
    if (collective.workspace() == CollectivePlan.NO_WORKSPACE) {
      return Optional.empty();
    }
    var buffer = rankPlan.buffers().get(collective.workspace());
    return Optional.of(new Region(buffer.offset(), buffer.bytes()));
  }

  private ImmutableList<TensorRef> refs(ImmutableList<Integer> ids) {
    return ids.stream().map(id -> tensor(values.get(id))).collect(ImmutableList.toImmutableList());
  }
}
