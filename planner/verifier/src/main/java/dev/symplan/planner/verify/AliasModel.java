package dev.symplan.planner.verify;

import com.google.common.collect.ImmutableList;
import com.google.common.math.LongMath;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Parallel;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.AliasInfo;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The facts that follow from the rules of one rank plan's ops: which values share a storage and
 * where, and what each op reads and writes. It also knows the bytes at which the plan puts these.
 *
 * <p>A storage is memory that one op or one input defines. Bytes are counted from the start of a
 * space: the symmetric arena, the local one, the host's, or one buffer of the caller.
 */
final class AliasModel {
  static final int SYMMETRIC_SPACE = 0;
  static final int LOCAL_SPACE = 1;
  static final int HOST_SPACE = 2;

  /** The spaces before those of single buffers. */
  static final int ARENAS = 3;

  final RankPlan plan;

  private final int rank;

  private final Findings findings;
  private final @Nullable Value[] values;
  private final int[] storageOf;
  private final long[] offsetInStorage;
  private final List<Value> storages = new ArrayList<>();
  private final List<Integer> definedBy = new ArrayList<>();
  private final int[][] reads;
  private final int[][] fresh;
  private final int[][] mutated;
  private final boolean[] needsStep;
  private final boolean[] mayHaveStep;
  private final int[] collectiveOf;
  private final int[] opOf;

  /** The op that ends the setup; -1 if the plan has none. */
  int setupEnd = -1;

  /** By border, or the end of the setup, the inputs of the graph after it. */
  private final Map<Integer, ImmutableList<Value>> taken = new HashMap<>();

  private final BitSet workspaces = new BitSet();
  private final MayAlias mayAlias = new MayAlias(this::storageOf);

  /** How far apart the addresses of a value are on the first and the last rank of a group. */
  private final long[] spread;

  /** The words of findings about this plan. */
  final Wording words = new Wording(this);

  private AliasModel(RankPlan plan, int rank, Findings findings) {
    this.plan = plan;
    this.rank = rank;
    this.findings = findings;
    int valueCount = plan.graph().valueCount();
    int opCount = plan.graph().ops().size();
    this.values = new @Nullable Value[valueCount];
    this.storageOf = new int[valueCount];
    Arrays.fill(storageOf, -1);
    this.opOf = new int[valueCount];
    Arrays.fill(opOf, -1);
    this.offsetInStorage = new long[valueCount];
    this.reads = new int[opCount][];
    this.fresh = new int[opCount][];
    this.mutated = new int[opCount][];
    this.needsStep = new boolean[opCount];
    this.mayHaveStep = new boolean[opCount];
    this.collectiveOf = new int[opCount];
    Arrays.fill(collectiveOf, -1);
    this.spread = new long[valueCount];
  }

  /** Reads the rules of a structurally sound rank plan. */
  static AliasModel of(Plan plan, int index, Findings findings) {
    var rankPlan = plan.rankPlans().get(index);
    var facts = new AliasModel(rankPlan, plan.planOfRank().indexOf(index), findings);
    for (var input : rankPlan.graph().inputs()) {
      facts.define(input, -1);
    }
    for (int k = 0; k < rankPlan.collectives().size(); k++) {
      var collective = rankPlan.collectives().get(k);
      facts.collectiveOf[collective.op()] = k;
      if (collective.workspace() != CollectivePlan.NO_WORKSPACE) {
        facts.workspaces.set(collective.workspace());
      }
    }
    facts.findBorders();
    for (int i = 0; i < rankPlan.graph().ops().size(); i++) {
      facts.visit(i, rankPlan.graph().ops().get(i));
      facts.mayAlias.visit(i, rankPlan.graph().ops().get(i));
    }
    facts.mayAlias.connect();
    Parallel.forEach(
        rankPlan.graph().ops().size(),
        (from, to) -> {
          for (int i = from; i < to; i++) {
            facts.findUses(i, rankPlan.graph().ops().get(i));
          }
        });
    for (int id = 0; id < facts.spread.length; id++) {
      var placement = rankPlan.placements().get(id);
      if (placement.isShard()) {
        var group = plan.group(rankPlan.collectives().get(placement.shardOf()).group());
        // A shard of one run is as far from the first rank's as it is long; rows are all over.
        long apart = Math.max(placement.stride(), facts.value(id).tensor().storageBytes());
        facts.spread[id] = LongMath.saturatedMultiply(group.size() - 1L, apart);
      }
    }
    return facts;
  }

  /**
   * A border counts as a reader of what the graph after it takes: the caller may fill that before
   * the program begins, or just before the graph does. So does the end of the setup, as each later
   * run begins there.
   */
  private void findBorders() {
    var graph = plan.graph();
    int end = graph.inputs().size();
    for (int i = graph.ops().size() - 1; i >= 0; i--) {
      var op = graph.ops().get(i);
      if (op.def().has(OpTrait.SETUP_END)) {
        setupEnd = i;
        taken.put(i, graph.inputs().subList(0, end));
      } else if (op.def().has(OpTrait.BORDER) && op.arg("inputs") instanceof Arg.Int(long inputs)) {
        int begin = (int) Math.clamp(inputs, 0, end);
        taken.put(i, graph.inputs().subList(begin, end));
        end = begin;
      }
    }
  }

  private void define(Value value, int op) {
    values[value.id()] = value;
    opOf[value.id()] = op;
    if (value.isTensor()) {
      storageOf[value.id()] = storages.size();
      storages.add(value);
      definedBy.add(op);
    }
  }

  private void visit(int index, Op op) {
    List<OpResult> inferred;
    try {
      inferred = op.infer();
    } catch (OpTypeException | IllegalArgumentException | ArithmeticException e) {
      findings.add(
          Rule.STRUCTURE, rank, "%s rejects its arguments: %s".formatted(op.def().name(), e));
      inferred = op.results().stream().map(value -> OpResult.fresh(value.type())).toList();
    }
    if (inferred.size() != op.results().size()) {
      findings.add(
          Rule.STRUCTURE,
          rank,
          "%s returns %s, but the graph names %s"
              .formatted(
                  op.def().name(), Units.count(inferred.size(), "result"), op.results().size()));
      inferred = op.results().stream().map(value -> OpResult.fresh(value.type())).toList();
    }
    for (int i = 0; i < op.results().size(); i++) {
      var value = op.results().get(i);
      var view = inferred.get(i).view();
      if (!inferred.get(i).allows(value.type())) {
        findings.add(
            Rule.STRUCTURE,
            rank,
            "%s returns %s, but %s is %s"
                .formatted(op.def().name(), inferred.get(i).type(), value.name(), value.type()));
      }
      if (value.isTensor() && view.isPresent() && storageOf[view.get().of().id()] >= 0) {
        share(value, view.get(), index);
      } else {
        define(value, index);
      }
    }
  }

  /** What an op reads and writes, once it is known which values are what storages. */
  private void findUses(int index, Op op) {
    reads[index] = tensors(taken.getOrDefault(index, op.operands()), this::isInMemory);
    mutated[index] = tensors(op.written(), _ -> true);
    boolean writes =
        mutated[index].length > 0
            || op.results().stream().anyMatch(value -> value.isTensor() && isOwner(value));
    fresh[index] = tensors(op.results(), value -> isOwner(value) && isInMemory(value));
    boolean acts =
        writes
            || op.def().has(OpTrait.SIDE_EFFECT)
            || op.results().isEmpty()
            || mayDoAnything(index);
    boolean waits = op.def().has(OpTrait.WAIT);
    needsStep[index] = acts && !waits || collectiveOf[index] >= 0;
    // An op that gives only numbers is known when the plan is made, or computed by a step.
    mayHaveStep[index] =
        needsStep[index]
            || (!waits && op.results().stream().noneMatch(value -> storageOf[value.id()] >= 0));
  }

  private void share(Value value, OpResult.View view, int op) {
    values[value.id()] = value;
    opOf[value.id()] = op;
    int base = view.of().id();
    storageOf[value.id()] = storageOf[base];
    // Saturated, what is beyond any storage stays there.
    offsetInStorage[value.id()] =
        LongMath.saturatedAdd(
            view.fromStorage() ? 0 : offsetInStorage[base],
            LongMath.saturatedMultiply(view.offset(), view.of().tensor().dtype().bytes()));
  }

  /** Some of the tensors among values, each once, in their order. */
  private int[] tensors(ImmutableList<Value> values, Predicate<Value> condition) {
    var ids = new int[values.size()];
    int count = 0;
    for (var value : values) {
      if (value.isTensor() && condition.test(value)) {
        ids[count++] = value.id();
      }
    }
    var found = count == ids.length ? ids : Arrays.copyOf(ids, count);
    boolean distinct = count < 2 || count == 2 && found[0] != found[1];
    return distinct ? found : Arrays.stream(found).distinct().toArray();
  }

  /** Whether a tensor is what its storage was defined as, not a view. */
  private boolean isOwner(Value value) {
    return storages.get(storageOf[value.id()]).id() == value.id();
  }

  /** A value without memory is passed on inside a step, which {@link StructureRules} checks. */
  private boolean isInMemory(Value value) {
    return plan.placements().get(value.id()).exists();
  }

  /** {@return whether the caller wants nothing of an input after the program} */
  static boolean isDonated(Value input) {
    return input.isTensor() && input.tensor().space() == MemorySpace.DONATED;
  }

  /** {@return the first rank that runs this plan} */
  int rank() {
    return rank;
  }

  Op op(int index) {
    return plan.graph().ops().get(index);
  }

  Value value(int id) {
    @Nullable Value value = values[id];
    if (value == null) {
      throw new IllegalStateException("value " + id + " is not defined");
    }
    return value;
  }

  /** {@return the tensors in memory that the op has as arguments, each once} */
  int[] reads(int op) {
    return reads[op];
  }

  /** {@return the op's results in storage and memory of their own} */
  int[] fresh(int op) {
    return fresh[op];
  }

  /** {@return the arguments that the op writes into, by its schema} */
  int[] mutated(int op) {
    return mutated[op];
  }

  /** {@return whether exactly one step must carry out the op} */
  boolean needsStep(int op) {
    return needsStep[op];
  }

  boolean mayHaveStep(int op) {
    return mayHaveStep[op];
  }

  /** {@return the collective that the op is in the plan, or -1} */
  int collectiveOf(int op) {
    return collectiveOf[op];
  }

  /** {@return the op whose result the value is, or -1 for an input} */
  int opOf(int value) {
    return opOf[value];
  }

  int storageCount() {
    return storages.size();
  }

  /** {@return the value as which a storage is defined} */
  Value storage(int id) {
    return storages.get(id);
  }

  /** {@return the op that defines a storage; -1 for an input} */
  int definedBy(int storage) {
    return definedBy.get(storage);
  }

  int storageOf(int value) {
    return storageOf[value];
  }

  private int storageOf(Value value) {
    return storageOf[value.id()];
  }

  /** {@return in which storages tensors may be besides their own} */
  MayAlias mayAlias() {
    return mayAlias;
  }

  /**
   * {@return whether neither rule nor schema says what an op does: then it may communicate, too}
   */
  boolean mayDoAnything(int op) {
    if (op(op).def().rule().isPresent()) {
      return false;
    }
    var schema = op(op).def().schema();
    return schema.params().stream().anyMatch(p -> p.alias().after().contains(AliasInfo.ANYTHING))
        || schema.results().stream().anyMatch(r -> r.alias().after().contains(AliasInfo.ANYTHING));
  }

  long offsetInStorage(int value) {
    return offsetInStorage[value];
  }

  /** {@return whether collectives push through a buffer} */
  boolean isWorkspace(int buffer) {
    return workspaces.get(buffer);
  }

  int spaceCount() {
    return ARENAS + plan.buffers().size();
  }

  /** {@return the space of a tensor's bytes} */
  int space(int value) {
    int index = plan.placements().get(value).buffer();
    return switch (plan.buffers().get(index).arena()) {
      case SYMMETRIC -> SYMMETRIC_SPACE;
      case LOCAL -> LOCAL_SPACE;
      case HOST -> HOST_SPACE;
      case EXTERNAL_INPUT, EXTERNAL_OUTPUT -> ARENAS + index;
    };
  }

  /**
   * {@return where in its space a tensor's first byte is, on the first rank of the group where that
   * depends on the rank}
   */
  long begin(int value) {
    var placement = plan.placements().get(value);
    var buffer = plan.buffers().get(placement.buffer());
    return placement.offset() + (buffer.arena().isExternal() ? 0 : buffer.offset());
  }

  /**
   * {@return where in its space the first byte after a tensor is, on the last rank of the group
   * where that depends on the rank: what holds of all bytes up to there holds on every rank}
   */
  long end(int value) {
    long extent = Runs.extent(plan.placements().get(value), value(value).tensor().storageBytes());
    return LongMath.saturatedAdd(LongMath.saturatedAdd(begin(value), extent), spread[value]);
  }

  /** {@return whether a tensor is rows, between which other tensors may lie} */
  boolean isInRows(int value) {
    return plan.placements().get(value).isInRows();
  }

  /** Calls {@code action} for each run of bytes of a tensor with any. */
  void forEachRun(int value, Runs.Action action) {
    Runs.forEach(plan.placements().get(value), begin(value), end(value), action);
  }

  /**
   * {@return how many more bytes a tensor may be in than it takes, as its address depends on the
   * rank}
   */
  long spread(int value) {
    return spread[value];
  }

  /**
   * {@return whether two tensors are equally far from where they are on the first rank, and have
   * rows at the same distances}
   */
  boolean shiftAlike(int a, int b) {
    var one = plan.placements().get(a);
    var other = plan.placements().get(b);
    return one.shardOf() == other.shardOf()
        && one.stride() == other.stride()
        && one.pitch() == other.pitch();
  }

  /** {@return whether two tensors with memory share a byte, as far as can be told} */
  boolean overlap(int a, int b) {
    return space(a) == space(b)
        && Math.max(begin(a), begin(b)) < Math.min(end(a), end(b))
        && !Runs.lieBetween(
            plan.placements().get(a), plan.placements().get(b), begin(b) - begin(a));
  }

  /** {@return whether two tensors are the same elements at the same addresses} */
  boolean sameElements(int a, int b) {
    var from = value(a).tensor();
    var to = value(b).tensor();
    return space(a) == space(b)
        && begin(a) == begin(b)
        && shiftAlike(a, b)
        && from.sizes().equals(to.sizes())
        && from.strides().equals(to.strides())
        && from.dtype().bytes() == to.dtype().bytes()
        && from.isDense();
  }
}
