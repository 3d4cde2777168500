package dev.symplan.planner.verify;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Topology;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.ArenaSize;
import dev.symplan.planner.plan.ArgDecision;
import dev.symplan.planner.plan.ArgDecision.Realization;
import dev.symplan.planner.plan.Barrier;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Epilogue;
import dev.symplan.planner.plan.Placement;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.plan.StreamKind;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.IntStream;

/** Changes one thing in a plan, and the digest so that it does not tell. */
public final class PlanMutator {
  public enum Kind {
    OFFSET,
    SHARE,
    SWAP_BUFFERS,
    ARENA,
    SIZE,
    PLACEMENT,
    SWAP_PLACEMENTS,
    MOVE_STEP,
    SWAP_STEPS,
    DROP_STEP,
    MOVE_JOIN,
    DROP_JOIN,
    FUSE,
    UNFUSE,
    NO_MEMORY,
    STREAM,
    VARIANT,
    IN_PLACE,
    GROUP,
    ROOT,
    REDUCTION,
    OPERANDS,
    DIM,
    DTYPE,
    BARRIER,
    EPILOGUE,
    EPILOGUE_STEP,
    SHARD,
    ROWS,
    BORDER,
    MOVE_BORDER,
    LIFETIME,
    ARENA_SIZE,
    BOUND,
    HOSTS;

    /** Whether it makes the plan state something false, which is wrong whatever happens. */
    public boolean isStatement() {
      return this == LIFETIME
          || this == ARENA_SIZE
          || this == BOUND
          || this == DIM
          || this == DTYPE;
    }
  }

  private final Random random;
  private final Plan plan;
  private final int index;
  private final RankPlan rank;

  private PlanMutator(Plan plan, Random random) {
    this.random = random;
    this.plan = plan;
    this.index = random.nextInt(plan.rankPlans().size());
    this.rank = plan.rankPlans().get(index);
  }

  /**
   * {@return the plan changed; empty if it has nothing of this kind, or the change does not give a
   * plan}
   */
  public static Optional<Plan> mutate(Plan plan, Kind kind, Random random) {
    try {
      return new PlanMutator(plan, random).apply(kind).map(changed -> PlanEdits.of(changed).plan());
    } catch (IllegalArgumentException e) {
      return Optional.empty();
    }
  }

  private Optional<Plan> apply(Kind kind) {
    var changed =
        switch (kind) {
          case OFFSET -> buffer(this::moved);
          case SHARE -> buffer(this::shared);
          case SWAP_BUFFERS -> swapBuffers();
          case ARENA -> buffer(this::elsewhere);
          case SIZE -> buffer(this::resized);
          case PLACEMENT -> placement();
          case SWAP_PLACEMENTS -> swapPlacements();
          case MOVE_STEP -> steps(this::moveStep);
          case SWAP_STEPS -> steps(this::swapSteps);
          case DROP_STEP -> steps(list -> list.remove(random.nextInt(list.size())));
          case MOVE_JOIN -> steps(this::moveJoin);
          case DROP_JOIN -> steps(list -> list.remove(join(list)));
          case FUSE -> steps(this::fuse);
          case UNFUSE -> steps(this::unfuse);
          case NO_MEMORY -> noMemory();
          case STREAM, VARIANT, IN_PLACE, GROUP, ROOT, REDUCTION, OPERANDS, BARRIER, EPILOGUE ->
              collective(kind);
          case DIM -> dim();
          case DTYPE -> dtype();
          case EPILOGUE_STEP -> epilogueStep();
          case SHARD -> shard();
          case ROWS -> rows();
          case BORDER -> border();
          case MOVE_BORDER -> steps(this::moveBorder);
          case LIFETIME -> buffer(this::relived);
          case ARENA_SIZE -> Optional.of(resizeArena());
          case BOUND -> Optional.of(rebound());
          case HOSTS -> onOtherHosts();
        };
    boolean restate = !kind.isStatement() && random.nextBoolean();
    return changed.map(p -> restate ? restated(p) : p).filter(p -> !p.equals(plan));
  }

  /**
   * The same plan on other hosts, at least two: none has more ranks than the target's have GPUs.
   */
  private Optional<Plan> onOtherHosts() {
    if (plan.worldSize() < 2) {
      return Optional.empty();
    }
    var sizes = ImmutableIntArray.builder();
    for (int left = plan.worldSize(); left > 0; ) {
      int most = Math.min(plan.target().gpus(), left == plan.worldSize() ? left - 1 : left);
      int own = 1 + random.nextInt(most);
      sizes.add(own);
      left -= own;
    }
    var ofRank = new ArrayList<>(Hosts.filled(sizes.build()).ofRank().asList());
    if (random.nextInt(3) == 0) {
      Collections.shuffle(ofRank, random);
    }
    var topology =
        new Topology(new Hosts(ImmutableIntArray.copyOf(ofRank)), plan.topology().hostsPerDomain());
    return Optional.of(with(plan, topology, plan.rankPlans(), plan.symmetric()));
  }

  private Plan with(RankPlan changed) {
    var ranks = new ArrayList<>(plan.rankPlans());
    ranks.set(index, changed);
    return with(plan, ImmutableList.copyOf(ranks), plan.symmetric());
  }

  private static Plan with(Plan plan, ImmutableList<RankPlan> ranks, ArenaSize symmetric) {
    return with(plan, plan.topology(), ranks, symmetric);
  }

  private static Plan with(
      Plan plan, Topology topology, ImmutableList<RankPlan> ranks, ArenaSize symmetric) {
    return new Plan(
        plan.name(),
        plan.target(),
        topology,
        plan.multicast(),
        plan.groups(),
        plan.declarations(),
        ranks,
        plan.planOfRank(),
        symmetric,
        plan.digest(),
        plan.rewrites(),
        plan.replicated(),
        plan.reordering(),
        plan.frontier(),
        plan.least(),
        plan.warnings());
  }

  private static RankPlan with(
      RankPlan rank, List<Buffer> buffers, List<Step> steps, ArenaSize local) {
    return new RankPlan(
        rank.graph(),
        rank.placements(),
        ImmutableList.copyOf(buffers),
        ImmutableList.copyOf(steps),
        rank.collectives(),
        local);
  }

  private interface BufferChange {
    Buffer apply(Buffer buffer);
  }

  private Optional<Plan> buffer(BufferChange change) {
    var buffers = new ArrayList<>(rank.buffers());
    int i = random.nextInt(buffers.size());
    buffers.set(i, change.apply(buffers.get(i)));
    return Optional.of(with(with(rank, buffers, rank.steps(), rank.local())));
  }

  private static Buffer at(Buffer b, long offset) {
    return new Buffer(b.name(), b.arena(), b.symmetric(), offset, b.bytes(), b.first(), b.last());
  }

  private Buffer moved(Buffer b) {
    long unit =
        b.arena().isExternal() ? 1 : new long[] {128, 128, 128, 64, 16, 4}[random.nextInt(6)];
    return at(b, b.offset() + unit * (random.nextInt(9) - 4));
  }

  private Buffer shared(Buffer b) {
    var others = rank.buffers().stream().filter(o -> o.arena() == b.arena()).toList();
    return at(b, others.get(random.nextInt(others.size())).offset());
  }

  private Buffer elsewhere(Buffer b) {
    var arena = ArenaKind.values()[random.nextInt(ArenaKind.values().length)];
    boolean symmetric = arena == ArenaKind.SYMMETRIC && random.nextBoolean();
    return new Buffer(b.name(), arena, symmetric, b.offset(), b.bytes(), b.first(), b.last());
  }

  private Buffer resized(Buffer b) {
    long bytes = b.bytes() + 4L * (random.nextInt(41) - 20);
    return new Buffer(b.name(), b.arena(), b.symmetric(), b.offset(), bytes, b.first(), b.last());
  }

  private Buffer relived(Buffer b) {
    boolean first = random.nextBoolean();
    int by = random.nextInt(7) - 3;
    return new Buffer(
        b.name(),
        b.arena(),
        b.symmetric(),
        b.offset(),
        b.bytes(),
        b.first() + (first ? by : 0),
        b.last() + (first ? 0 : by));
  }

  private Optional<Plan> swapBuffers() {
    var buffers = new ArrayList<>(rank.buffers());
    int i = random.nextInt(buffers.size());
    int j = random.nextInt(buffers.size());
    var a = buffers.get(i);
    var b = buffers.get(j);
    buffers.set(i, in(a, b));
    buffers.set(j, in(b, a));
    return Optional.of(with(with(rank, buffers, rank.steps(), rank.local())));
  }

  private static Buffer in(Buffer what, Buffer where) {
    return new Buffer(
        what.name(),
        where.arena(),
        where.symmetric(),
        where.offset(),
        what.bytes(),
        what.first(),
        what.last());
  }

  private Optional<Plan> placement() {
    var placements = new ArrayList<>(rank.placements());
    int i = random.nextInt(placements.size());
    var old = placements.get(i);
    placements.set(
        i,
        random.nextBoolean()
            ? new Placement(random.nextInt(rank.buffers().size()), old.offset())
            : new Placement(old.buffer(), old.offset() + 4L * (random.nextInt(65) - 32)));
    return Optional.of(with(placed(placements)));
  }

  private Optional<Plan> swapPlacements() {
    var placements = new ArrayList<>(rank.placements());
    Collections.swap(
        placements, random.nextInt(placements.size()), random.nextInt(placements.size()));
    return Optional.of(with(placed(placements)));
  }

  private RankPlan placed(List<Placement> placements) {
    return new RankPlan(
        rank.graph(),
        ImmutableList.copyOf(placements),
        rank.buffers(),
        rank.steps(),
        rank.collectives(),
        rank.local());
  }

  private interface StepChange {
    void apply(List<Step> steps);
  }

  private Optional<Plan> steps(StepChange change) {
    var steps = new ArrayList<>(rank.steps());
    change.apply(steps);
    return Optional.of(with(with(rank, rank.buffers(), steps, rank.local())));
  }

  private void moveStep(List<Step> steps) {
    var step = steps.remove(random.nextInt(steps.size()));
    steps.add(random.nextInt(steps.size() + 1), step);
  }

  private void swapSteps(List<Step> steps) {
    int i = random.nextInt(steps.size());
    int j = random.nextBoolean() ? random.nextInt(steps.size()) : Math.min(i + 1, steps.size() - 1);
    Collections.swap(steps, i, j);
  }

  /** Makes one step of two that stand next to each other. */
  private void fuse(List<Step> steps) {
    if (steps.size() < 2) {
      throw new IllegalArgumentException("no two steps");
    }
    int i = random.nextInt(steps.size() - 1);
    var ops = ops(steps.remove(i));
    ops.addAll(ops(steps.remove(i)));
    steps.add(i, new Step.Fused(ImmutableIntArray.copyOf(ops)));
  }

  private static List<Integer> ops(Step step) {
    return switch (step) {
      case Step.Compute(int op) -> new ArrayList<>(List.of(op));
      case Step.Fused(var ops) -> new ArrayList<>(ops.asList());
      case Step.Start _, Step.Join _ -> throw new IllegalArgumentException("no local ops");
    };
  }

  /** Takes an op out of a fused step, or changes their order, or ends the fusion. */
  private void unfuse(List<Step> steps) {
    var fused = steps.stream().filter(Step.Fused.class::isInstance).toList();
    if (fused.isEmpty()) {
      throw new IllegalArgumentException("nothing is fused");
    }
    var step = fused.get(random.nextInt(fused.size()));
    int at = steps.indexOf(step);
    var ops = ops(step);
    switch (random.nextInt(3)) {
      case 0 -> {
        Collections.swap(ops, 0, 1 + random.nextInt(ops.size() - 1));
        steps.set(at, new Step.Fused(ImmutableIntArray.copyOf(ops)));
      }
      case 1 -> {
        boolean first = random.nextBoolean();
        int op = ops.remove(first ? 0 : ops.size() - 1);
        steps.set(
            at,
            ops.size() > 1
                ? new Step.Fused(ImmutableIntArray.copyOf(ops))
                : new Step.Compute(ops.getFirst()));
        steps.add(at + (first ? 0 : 1), new Step.Compute(op));
      }
      default -> {
        steps.remove(at);
        steps.addAll(at, ops.stream().map(Step.Compute::new).toList());
      }
    }
  }

  private Optional<Plan> noMemory() {
    var placements = new ArrayList<>(rank.placements());
    placements.set(random.nextInt(placements.size()), Placement.NONE);
    return Optional.of(with(placed(placements)));
  }

  private int join(List<Step> steps) {
    var joins = new ArrayList<Integer>();
    for (int i = 0; i < steps.size(); i++) {
      if (steps.get(i) instanceof Step.Join) {
        joins.add(i);
      }
    }
    if (joins.isEmpty()) {
      throw new IllegalArgumentException("no join");
    }
    return joins.get(random.nextInt(joins.size()));
  }

  private void moveJoin(List<Step> steps) {
    var step = steps.remove(join(steps));
    steps.add(random.nextInt(steps.size() + 1), step);
  }

  /** Slices along another dimension, of tensors that stay as they are. */
  private Optional<Plan> dim() {
    var graph = rank.graph();
    var ops = new ArrayList<>(graph.ops());
    var params = List.of("dim", "split_dim", "concat_dim");
    var param = params.get(random.nextInt(params.size()));
    var found =
        rank.collectives().stream()
            .filter(collective -> plan.group(collective.group()).size() > 1)
            .map(CollectivePlan::op)
            .filter(op -> ops.get(op).def().schema().hasParam(param))
            // The elements of empty tensors lie in no dimension.
            .filter(op -> ops.get(op).result().tensor().bytes() > 0)
            .toList();
    if (found.isEmpty()) {
      return Optional.empty();
    }
    int at = found.get(random.nextInt(found.size()));
    var op = ops.get(at);
    var args = new ArrayList<>(op.args());
    int arg = op.def().schema().indexOf(param);
    int dims = op.result().tensor().rank();
    args.set(arg, new Arg.Int(Math.floorMod(op.call().integer(param) + 1, dims)));
    return Optional.of(with(with(rank, at, args)));
  }

  /** Reduces as another type than that of the result. */
  private Optional<Plan> dtype() {
    var ops = rank.graph().ops();
    var found =
        rank.collectives().stream()
            .map(CollectivePlan::op)
            .filter(op -> ops.get(op).def().schema().hasParam("dtype"))
            .toList();
    if (found.isEmpty()) {
      return Optional.empty();
    }
    int at = found.get(random.nextInt(found.size()));
    var op = ops.get(at);
    var operand = op.operands().getFirst().tensor().dtype();
    var other = List.of(DType.F32, DType.BF16, DType.F64).get(random.nextInt(3));
    boolean none = random.nextBoolean();
    if ((none ? operand : other) == op.results().getFirst().tensor().dtype()) {
      return Optional.empty();
    }
    var args = new ArrayList<>(op.args());
    args.set(op.def().schema().indexOf("dtype"), none ? Arg.None.NONE : new Arg.Dtype(other));
    return Optional.of(with(with(rank, at, args)));
  }

  private static RankPlan with(RankPlan rank, int at, List<Arg> args) {
    var ops = new ArrayList<>(rank.graph().ops());
    var op = ops.get(at);
    ops.set(at, new Op(op.def(), ImmutableList.copyOf(args), op.results(), op.span(), op.notes()));
    return new RankPlan(
        rank.graph().withOps(ops),
        rank.placements(),
        rank.buffers(),
        rank.steps(),
        rank.collectives(),
        rank.local());
  }

  /** Has other ops run in the kernel of a collective, or puts what they make elsewhere. */
  private Optional<Plan> epilogueStep() {
    var behind =
        IntStream.range(0, rank.steps().size()).filter(s -> rank.epilogueOf(s) >= 0).toArray();
    if (behind.length == 0) {
      return Optional.empty();
    }
    int at = behind[random.nextInt(behind.length)];
    var collective = rank.collectives().get(rank.epilogueOf(at));
    if (random.nextBoolean()) {
      return steps(
          steps -> {
            var ops = ops(steps.get(at));
            if (at + 1 == steps.size()) {
              throw new IllegalArgumentException("no step behind it");
            }
            switch (random.nextInt(3)) {
              case 0 -> {
                ops.addAll(ops(steps.remove(at + 1)));
                steps.set(at, new Step.Fused(ImmutableIntArray.copyOf(ops)));
              }
              case 1 -> Collections.swap(steps, at, at + 1);
              default -> {
                int first = ops.removeFirst();
                steps.set(at, new Step.Compute(first));
                ops.reversed().forEach(op -> steps.add(at + 1, new Step.Compute(op)));
              }
            }
          });
    }
    var made =
        ops(rank.steps().get(at)).stream()
            .flatMap(op -> rank.graph().ops().get(op).results().stream())
            .toList();
    var over =
        random.nextBoolean() ? collective.operands().getFirst() : collective.results().getFirst();
    var place = rank.placements().get(over);
    if (!place.exists()) {
      return Optional.empty();
    }
    var placements = new ArrayList<>(rank.placements());
    placements.set(
        made.get(random.nextInt(made.size())).id(),
        new Placement(
            place.buffer(), place.offset() + 4L * (random.nextBoolean() ? 0 : random.nextInt(9))));
    return Optional.of(with(placed(placements)));
  }

  /** Puts a rank's part of a whole between those of other ranks, or has its rows lie otherwise. */
  private Optional<Plan> shard() {
    var shards =
        IntStream.range(0, rank.placements().size())
            .filter(i -> rank.placements().get(i).isShard())
            .toArray();
    if (shards.length == 0) {
      return Optional.empty();
    }
    int i = shards[random.nextInt(shards.length)];
    var old = rank.placements().get(i);
    var placements = new ArrayList<>(rank.placements());
    placements.set(
        i,
        switch (random.nextInt(5)) {
          case 0 -> new Placement(old.buffer(), old.offset(), old.shardOf(), 2 * old.stride());
          case 1 -> new Placement(old.buffer(), old.offset(), old.shardOf(), old.stride() / 2);
          case 2 -> new Placement(old.buffer(), old.offset() + 16, old.shardOf(), old.stride());
          case 3 ->
              new Placement(
                  old.buffer(),
                  old.offset(),
                  random.nextInt(rank.collectives().size()),
                  old.stride());
          default -> new Placement(old.buffer(), old.offset());
        });
    return Optional.of(with(placed(placements)));
  }

  /**
   * Has the rows of a piece that is joined with others lie otherwise, or where another one does.
   */
  private Optional<Plan> rows() {
    var pieces =
        IntStream.range(0, rank.placements().size())
            .filter(i -> rank.placements().get(i).isInRows())
            .toArray();
    if (pieces.length == 0) {
      return Optional.empty();
    }
    int i = pieces[random.nextInt(pieces.length)];
    var old = rank.placements().get(i);
    int step = 16 * (1 + random.nextInt(2));
    boolean up = random.nextBoolean();
    var other = rank.placements().get(pieces[random.nextInt(pieces.length)]);
    var changed =
        switch (random.nextInt(6)) {
          case 0 -> rows(old, old.offset() + (up ? step : -step), old.stride(), old.pitch());
          case 1 -> rows(old, old.offset(), old.stride(), old.pitch() + (up ? step : -step));
          case 2 -> rows(old, old.offset(), up ? 2 * old.stride() : old.stride() / 2, old.pitch());
          case 3 -> new Placement(old.buffer(), old.offset());
          case 4 -> rows(old, other.offset(), old.stride(), old.pitch());
          default ->
              new Placement(
                  random.nextInt(rank.buffers().size()),
                  old.offset(),
                  -1,
                  old.stride(),
                  old.pitch());
        };
    // All views of the piece with it, or only one of them.
    boolean all = random.nextInt(4) > 0;
    var placements = new ArrayList<>(rank.placements());
    for (int id = 0; id < placements.size(); id++) {
      if (id == i || (all && placements.get(id).equals(old))) {
        placements.set(id, changed);
      }
    }
    return Optional.of(with(placed(placements)));
  }

  private static Placement rows(Placement old, long offset, long bytes, long pitch) {
    return Placement.rows(old.buffer(), offset, bytes, pitch);
  }

  /** Counts another number of inputs or outputs before a border, on all ranks or one. */
  private Optional<Plan> border() {
    if (rank.borders().isEmpty()) {
      return Optional.empty();
    }
    int border = random.nextInt(rank.borders().size());
    var param = random.nextBoolean() ? "inputs" : "outputs";
    int by = random.nextInt(9) - 4;
    boolean all = random.nextInt(4) > 0;
    var ranks = new ArrayList<RankPlan>();
    for (int i = 0; i < plan.rankPlans().size(); i++) {
      var own = plan.rankPlans().get(i);
      ranks.add(all || i == index ? bordered(own, border, param, by) : own);
    }
    return Optional.of(with(plan, ImmutableList.copyOf(ranks), plan.symmetric()));
  }

  private static RankPlan bordered(RankPlan own, int border, String param, int by) {
    int at = own.borders().get(border);
    var op = own.graph().ops().get(at);
    var args = new ArrayList<>(op.args());
    args.set(
        op.def().schema().indexOf(param), new Arg.Int(Math.max(0, op.call().integer(param) + by)));
    return with(own, at, args);
  }

  private void moveBorder(List<Step> steps) {
    var borders =
        steps.stream()
            .filter(step -> step instanceof Step.Compute(int op) && rank.borders().contains(op))
            .toList();
    if (borders.isEmpty()) {
      throw new IllegalArgumentException("the plan is of one graph");
    }
    var border = borders.get(random.nextInt(borders.size()));
    steps.remove(border);
    steps.add(random.nextInt(steps.size() + 1), border);
  }

  private Optional<Plan> collective(Kind kind) {
    int k = random.nextInt(rank.collectives().size());
    // The ranks would notice a difference; let all of them be wrong, sometimes.
    boolean all = random.nextBoolean();
    long seed = random.nextLong();
    var ranks = new ArrayList<RankPlan>();
    for (int i = 0; i < plan.rankPlans().size(); i++) {
      var own = plan.rankPlans().get(i);
      int same = sameAs(k, own);
      if ((all || i == index) && same >= 0) {
        var list = new ArrayList<>(own.collectives());
        list.set(same, changed(list.get(same), kind, new Random(seed)));
        own =
            new RankPlan(
                own.graph(),
                own.placements(),
                own.buffers(),
                own.steps(),
                ImmutableList.copyOf(list),
                own.local());
      }
      ranks.add(own);
    }
    return Optional.of(with(plan, ImmutableList.copyOf(ranks), plan.symmetric()));
  }

  /** The collective of other ranks that one is, or -1; stages have the same ones in groups only. */
  private int sameAs(int k, RankPlan other) {
    if (other.collectives().size() == rank.collectives().size()) {
      return k;
    }
    var group = rank.collectives().get(k).group();
    long before =
        rank.collectives().subList(0, k).stream().filter(c -> c.group().equals(group)).count();
    return IntStream.range(0, other.collectives().size())
        .filter(i -> other.collectives().get(i).group().equals(group))
        .skip(before)
        .findFirst()
        .orElse(-1);
  }

  private CollectivePlan changed(CollectivePlan c, Kind kind, Random choice) {
    var group =
        kind == Kind.GROUP
            ? plan.groups().get(choice.nextInt(plan.groups().size())).name()
            : c.group();
    var variant =
        kind == Kind.VARIANT
            ? Variant.values()[choice.nextInt(Variant.values().length)]
            : c.variant();
    var stream =
        kind == Kind.STREAM
            ? StreamKind.values()[choice.nextInt(StreamKind.values().length)]
            : c.stream();
    int mode = choice.nextInt(3);
    var operands = c.operands();
    if (kind == Kind.OPERANDS) {
      operands =
          operands.size() > 1 && choice.nextBoolean()
              ? operands.reverse()
              : ImmutableList.<Integer>builder()
                  .addAll(operands.subList(1, operands.size()))
                  .add(choice.nextInt(rank.graph().valueCount()))
                  .build();
    }
    return new CollectivePlan(
        c.op(),
        c.kind(),
        group,
        kind == Kind.REDUCTION
            ? Optional.of(choice.nextBoolean() ? ReduceOp.MIN : ReduceOp.AVG)
            : c.reduceOp(),
        kind == Kind.ROOT ? choice.nextInt(4) - 1 : c.root(),
        operands,
        c.results(),
        variant,
        stream,
        kind == Kind.BARRIER && mode != 1 ? barrier(choice) : c.start(),
        kind == Kind.BARRIER && mode != 0 ? barrier(choice) : c.end(),
        (kind == Kind.IN_PLACE) != c.inPlace(),
        c.workspace(),
        verdicts(c, variant),
        args(c, variant),
        kind == Kind.EPILOGUE ? Optional.of(epilogue(c, choice)) : c.epilogue());
  }

  private static Epilogue epilogue(CollectivePlan c, Random choice) {
    return c.hasEpilogue() && choice.nextBoolean()
        ? Epilogue.none(Epilogue.Reason.ROWS)
        : new Epilogue(Epilogue.Reason.FUSED, choice.nextBoolean(), 0);
  }

  private Barrier barrier(Random choice) {
    return switch (choice.nextInt(6)) {
      case 0 -> new Barrier.None();
      case 1 -> new Barrier.Own();
      default ->
          new Barrier.StandIn(
              choice.nextInt(rank.collectives().size()),
              choice.nextBoolean() ? Barrier.Edge.START : Barrier.Edge.END);
    };
  }

  /** As a compiler would write that chose this variant. */
  private static ImmutableList<Verdict> verdicts(CollectivePlan c, Variant variant) {
    return c.verdicts().stream()
        .map(
            v ->
                new Verdict(
                    v.variant(),
                    v.chosen() == (v.variant() == variant)
                        ? v.reason()
                        : v.chosen() ? Verdict.Reason.SLOWER : Verdict.Reason.CHOSEN,
                    v.detail(),
                    v.transferMicros(),
                    v.stagingMicros()))
        .collect(ImmutableList.toImmutableList());
  }

  private static ImmutableList<ArgDecision> args(CollectivePlan c, Variant variant) {
    return c.args().stream()
        .map(
            arg -> {
              boolean needed = VariantSpec.of(c.kind(), variant).needsSymmetric(arg.result());
              var realization =
                  arg.realization() == Realization.STAGED
                      ? Realization.STAGED
                      : needed ? Realization.ZERO_COPY : Realization.NOT_NEEDED;
              return new ArgDecision(
                  arg.result(), arg.value(), realization, arg.reason(), arg.cause(), arg.bytes());
            })
        .collect(ImmutableList.toImmutableList());
  }

  private Plan resizeArena() {
    long by = 128L * (random.nextInt(9) - 4);
    if (random.nextBoolean()) {
      var local = rank.local();
      return with(
          with(
              rank,
              rank.buffers(),
              rank.steps(),
              new ArenaSize(local.bytes() + by, Math.min(local.bound(), local.bytes() + by))));
    }
    var symmetric = plan.symmetric();
    return with(
        plan,
        plan.rankPlans(),
        new ArenaSize(symmetric.bytes() + by, Math.min(symmetric.bound(), symmetric.bytes() + by)));
  }

  private Plan rebound() {
    if (plan.rankPlans().size() > 1) {
      throw new IllegalArgumentException("the bound of several graphs is the planner's");
    }
    var symmetric = plan.symmetric();
    return with(
        plan,
        plan.rankPlans(),
        new ArenaSize(symmetric.bytes(), symmetric.bound() + 128L * (random.nextInt(9) - 4)));
  }

  /** Makes sizes and live ranges fit the change, so that only what really is wrong can tell. */
  private static Plan restated(Plan plan) {
    var ranks = ImmutableList.<RankPlan>builder();
    long end = 0;
    for (var rank : plan.rankPlans()) {
      var restated = Restate.rank(rank);
      ranks.add(restated);
      for (var buffer : restated.buffers()) {
        if (buffer.symmetric()) {
          end = Math.max(end, Restate.aligned(buffer.end()));
        }
      }
    }
    var all = ranks.build();
    long bound =
        all.size() == 1 ? Restate.bound(all.getFirst()) : Math.min(plan.symmetric().bound(), end);
    return with(plan, all, new ArenaSize(Math.max(end, bound), bound));
  }
}
