package dev.symplan.planner.verify;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Topology;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.ArenaSize;
import dev.symplan.planner.plan.Barrier;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Epilogue;
import dev.symplan.planner.plan.Placement;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.PlanDigest;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.plan.StreamKind;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;

/** A plan that a test breaks, piece by piece. */
final class PlanEdits {
  private final Plan plan;
  private final List<RankPlan> ranks;
  private ArenaSize symmetric;
  private Target target;
  private Topology topology;
  private boolean multicast;

  private PlanEdits(Plan plan) {
    this.plan = plan;
    this.ranks = new ArrayList<>(plan.rankPlans());
    this.symmetric = plan.symmetric();
    this.target = plan.target();
    this.topology = plan.topology();
    this.multicast = plan.multicast();
  }

  static PlanEdits of(Plan plan) {
    return new PlanEdits(plan);
  }

  RankPlan rank(int index) {
    return ranks.get(index);
  }

  int buffer(int rank, String name) {
    for (int i = 0; i < ranks.get(rank).buffers().size(); i++) {
      if (ranks.get(rank).buffers().get(i).name().equals(name)) {
        return i;
      }
    }
    throw new IllegalArgumentException(
        "no buffer "
            + name
            + " but "
            + ranks.get(rank).buffers().stream().map(Buffer::name).toList());
  }

  Value value(int rank, String name) {
    var graph = ranks.get(rank).graph();
    return java.util.stream.Stream.concat(
            graph.inputs().stream(), graph.ops().stream().flatMap(op -> op.results().stream()))
        .filter(v -> v.name().equals(name))
        .findFirst()
        .orElseThrow();
  }

  PlanEdits buffer(String name, UnaryOperator<Buffer> change) {
    return buffer(0, name, change);
  }

  PlanEdits buffer(int rank, String name, UnaryOperator<Buffer> change) {
    var buffers = new ArrayList<>(ranks.get(rank).buffers());
    int i = buffer(rank, name);
    buffers.set(i, change.apply(buffers.get(i)));
    var old = ranks.get(rank);
    ranks.set(
        rank,
        new RankPlan(
            old.graph(),
            old.placements(),
            ImmutableList.copyOf(buffers),
            old.steps(),
            old.collectives(),
            old.local()));
    return this;
  }

  /** Puts a buffer where another one begins. */
  PlanEdits over(String name, String other) {
    var where = ranks.getFirst().buffers().get(buffer(0, other));
    return buffer(name, b -> at(b, where.arena(), b.symmetric(), where.offset()));
  }

  static Buffer at(Buffer b, ArenaKind arena, boolean symmetric, long offset) {
    return new Buffer(b.name(), arena, symmetric, offset, b.bytes(), b.first(), b.last());
  }

  static Buffer at(Buffer b, long offset) {
    return at(b, b.arena(), b.symmetric(), offset);
  }

  static Buffer lives(Buffer b, int first, int last) {
    return new Buffer(b.name(), b.arena(), b.symmetric(), b.offset(), b.bytes(), first, last);
  }

  PlanEdits placement(String value, Placement placement) {
    var old = ranks.getFirst();
    var placements = new ArrayList<>(old.placements());
    placements.set(value(0, value).id(), placement);
    ranks.set(
        0,
        new RankPlan(
            old.graph(),
            ImmutableList.copyOf(placements),
            old.buffers(),
            old.steps(),
            old.collectives(),
            old.local()));
    return this;
  }

  PlanEdits steps(Consumer<List<Step>> change) {
    return steps(0, change);
  }

  PlanEdits steps(int rank, Consumer<List<Step>> change) {
    var old = ranks.get(rank);
    var steps = new ArrayList<>(old.steps());
    change.accept(steps);
    ranks.set(
        rank,
        new RankPlan(
            old.graph(),
            old.placements(),
            old.buffers(),
            ImmutableList.copyOf(steps),
            old.collectives(),
            old.local()));
    return this;
  }

  PlanEdits op(int index, UnaryOperator<Op> change) {
    var old = ranks.getFirst();
    var graph = old.graph();
    var ops = new ArrayList<>(graph.ops());
    ops.set(index, change.apply(ops.get(index)));
    ranks.set(
        0,
        new RankPlan(
            new Graph(
                graph.name(),
                graph.ranks(),
                graph.inputs(),
                ImmutableList.copyOf(ops),
                graph.outputs(),
                graph.valueCount(),
                graph.span(),
                graph.notes(),
                graph.endNotes()),
            old.placements(),
            old.buffers(),
            old.steps(),
            old.collectives(),
            old.local()));
    return this;
  }

  /** {@return the op with another layout of a result that nothing reads} */
  static Op restrided(Op op, int result, ImmutableLongArray strides) {
    var results = new ArrayList<>(op.results());
    var old = results.get(result);
    results.set(
        result,
        new Value(
            old.id(), old.name(), old.tensor().withStrides(strides), old.span(), old.annotated()));
    return new Op(op.def(), op.args(), ImmutableList.copyOf(results), op.span(), op.notes());
  }

  PlanEdits collective(int k, UnaryOperator<CollectivePlan> change) {
    for (int rank = 0; rank < ranks.size(); rank++) {
      collective(rank, k, change);
    }
    return this;
  }

  PlanEdits collective(int rank, int k, UnaryOperator<CollectivePlan> change) {
    var old = ranks.get(rank);
    var collectives = new ArrayList<>(old.collectives());
    collectives.set(k, change.apply(collectives.get(k)));
    ranks.set(
        rank,
        new RankPlan(
            old.graph(),
            old.placements(),
            old.buffers(),
            old.steps(),
            ImmutableList.copyOf(collectives),
            old.local()));
    return this;
  }

  /** Takes barriers away without putting others in their place. */
  static CollectivePlan barriers(CollectivePlan c, boolean before, boolean after) {
    return c.withBarriers(
        before ? new Barrier.Own() : new Barrier.None(),
        after ? new Barrier.Own() : new Barrier.None());
  }

  /** Gives every collective barriers of its own. */
  PlanEdits ownBarriers() {
    for (int k = 0; k < ranks.getFirst().collectives().size(); k++) {
      collective(k, c -> barriers(c, true, true));
    }
    return this;
  }

  static CollectivePlan variant(CollectivePlan c, Variant variant) {
    return with(c, c.group(), variant, c.stream());
  }

  static CollectivePlan stream(CollectivePlan c, StreamKind stream) {
    return with(c, c.group(), c.variant(), stream);
  }

  static CollectivePlan group(CollectivePlan c, String group) {
    return with(c, group, c.variant(), c.stream());
  }

  static CollectivePlan workspace(CollectivePlan c, int workspace) {
    return with(c, c.group(), c.variant(), c.stream(), workspace);
  }

  static CollectivePlan epilogue(CollectivePlan c, Epilogue epilogue) {
    return with(c, c.inPlace(), Optional.of(epilogue));
  }

  static CollectivePlan inPlace(CollectivePlan c) {
    return with(c, true, c.epilogue());
  }

  private static CollectivePlan with(
      CollectivePlan c, boolean inPlace, Optional<Epilogue> epilogue) {
    return new CollectivePlan(
        c.op(),
        c.kind(),
        c.group(),
        c.reduceOp(),
        c.root(),
        c.operands(),
        c.results(),
        c.variant(),
        c.stream(),
        c.start(),
        c.end(),
        inPlace,
        c.workspace(),
        c.verdicts(),
        c.args(),
        epilogue);
  }

  private static CollectivePlan with(
      CollectivePlan c, String group, Variant variant, StreamKind stream) {
    return with(c, group, variant, stream, c.workspace());
  }

  private static CollectivePlan with(
      CollectivePlan c, String group, Variant variant, StreamKind stream, int workspace) {
    return new CollectivePlan(
        c.op(),
        c.kind(),
        group,
        c.reduceOp(),
        c.root(),
        c.operands(),
        c.results(),
        variant,
        stream,
        c.start(),
        c.end(),
        c.inPlace(),
        workspace,
        c.verdicts(),
        c.args(),
        c.epilogue());
  }

  PlanEdits symmetric(long bytes, long bound) {
    symmetric = new ArenaSize(bytes, bound);
    return this;
  }

  /** Says that the plan is for another machine. */
  PlanEdits target(Target machine) {
    target = machine;
    return topology(Topology.of(plan.worldSize(), machine));
  }

  PlanEdits topology(Topology hosts) {
    topology = hosts;
    return this;
  }

  PlanEdits multicast(boolean on) {
    multicast = on;
    return this;
  }

  /**
   * {@return the plan with live ranges and sizes computed anew, so that they do not give it away}
   */
  Plan restated() {
    ranks.replaceAll(Restate::rank);
    long end = 0;
    for (var rank : ranks) {
      for (var buffer : rank.buffers()) {
        end = buffer.symmetric() ? Math.max(end, Restate.aligned(buffer.end())) : end;
      }
    }
    long bound = ranks.size() == 1 ? Restate.bound(ranks.getFirst()) : 0;
    symmetric = new ArenaSize(Math.max(end, bound), bound);
    return plan();
  }

  /** {@return the plan, with its digest} */
  Plan plan() {
    var changed = digest(plan.digest());
    try {
      return digest(PlanDigest.of(changed));
    } catch (IndexOutOfBoundsException e) {
      return changed;
    }
  }

  Plan digest(String digest) {
    return new Plan(
        plan.name(),
        target,
        topology,
        multicast,
        plan.groups(),
        plan.declarations(),
        ImmutableList.copyOf(ranks),
        plan.planOfRank(),
        symmetric,
        digest,
        plan.rewrites(),
        plan.replicated(),
        plan.reordering(),
        plan.frontier(),
        plan.least(),
        plan.warnings());
  }
}
