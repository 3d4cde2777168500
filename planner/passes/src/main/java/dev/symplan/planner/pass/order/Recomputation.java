package dev.symplan.planner.pass.order;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.MultimapBuilder;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.GraphCopier;
import dev.symplan.planner.pass.analysis.Precedence;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;

/**
 * Lowers the memory at the peak: what is live there, and next read only later, is given up and
 * computed again before that. This is PyTorch's activation checkpointing, and XLA's
 * rematerialization, tensor by tensor.
 *
 * <p>An op runs again with the operands of its first run. Each of them is still live then, or is
 * itself computed again, so that nothing lives longer for it. A gather may run again, which frees a
 * whole while only its shards wait: FSDP's resharding after forward. Other collectives, whose sums
 * another variant would round otherwise, ops with effects, ops that draw random numbers and ops
 * without a rule never run twice, and nothing is computed again from what is written in between.
 */
public final class Recomputation {
  /** The most ops that run again for one tensor. */
  private static final int MAX_OPS = 16;

  /** Tensors that are looked at in one round, the largest ones. */
  private static final int MAX_STORAGES = 512;

  /** The number that is tried one at a time, if a sufficient set does not lower the peak. */
  private static final int MAX_ALONE = 8;

  private static final int MAX_ROUNDS = 500;

  /** An op runs again as it is. */
  private static final int WHOLE = -1;

  /**
   * A graph in which tensors are computed again.
   *
   * @param peak the most that is live at once, predicted as for an order of ops
   */
  public record Lowered(Graph graph, long peak, ImmutableList<Made> made) {}

  /**
   * A tensor that is computed again.
   *
   * @param value as it was defined first
   * @param bytes that are free from its last use before the peak until it is computed again
   * @param ops how many run again
   * @param gathers how many of them are gathers
   * @param reader the op before which they do
   * @param micros their predicted time
   */
  public record Made(Value value, long bytes, int ops, int gathers, String reader, double micros) {}

  /**
   * A storage that could be given up.
   *
   * @param at the op before which it is computed again
   * @param ops the ops that run again, and views of it
   * @param leaves storages that these read and that are live there anyway
   */
  private record Candidate(
      Aliases.Storage storage, int at, BitSet ops, BitSet leaves, double micros) {

    /** {@return microseconds a byte} */
    double price() {
      return micros / storage.bytes();
    }
  }

  /** Prices gathers that run again. */
  public interface Gathers {
    /** For ranks that do not all run the same ops, and so cannot decide alike. */
    Gathers NEVER = (_, _) -> OptionalDouble.empty();

    /**
     * {@return the predicted time in µs of a gather of one tensor; empty for an op that is no
     * gather or must not run twice}
     *
     * @param k which of the op's tensors
     */
    OptionalDouble micros(Op op, int k);
  }

  private final Analyses own;
  private final CostModel costs;
  private final Gathers gathers;
  private final ImmutableList<Op> ops;
  private final Aliases aliases;
  private final WorkUnits units;
  private final MemoryProfile profile;

  /** By value, the op that gives it; -1 for an input. */
  private final int[] makers;

  /** Ops that write into arguments, or may. */
  private final int[] writers;

  private Recomputation(Analyses own, CostModel costs, Gathers gathers) {
    this.own = own;
    this.costs = costs;
    this.gathers = gathers;
    this.ops = own.graph().ops();
    this.aliases = own.aliases();
    this.units = WorkUnits.of(own);
    this.profile = MemoryProfile.of(units, units.given());
    this.makers = new int[own.graph().valueCount()];
    Arrays.fill(makers, -1);
    var writing = new ArrayList<Integer>();
    for (int i = 0; i < ops.size(); i++) {
      int index = i;
      var op = ops.get(i);
      op.results().forEach(result -> makers[result.id()] = index);
      if (op.def().isUnbounded() || !op.written().isEmpty() || !op.moved().isEmpty()) {
        writing.add(i);
      }
    }
    this.writers = writing.stream().mapToInt(i -> i).toArray();
  }

  /** {@return the predicted peak of live bytes} */
  public static long peak(Analyses own) {
    var units = WorkUnits.of(own);
    return MemoryProfile.of(units, units.given()).peak();
  }

  /**
   * {@return the graph with a peak of at most so many bytes by prediction, or as low as it gets}
   */
  public static Lowered lower(Analyses own, CostModel costs, Gathers gathers, long most) {
    var now = new Recomputation(own, costs, gathers);
    var made = ImmutableList.<Made>builder();
    for (int round = 0; round < MAX_ROUNDS && now.profile.peak() > most; round++) {
      var chosen = now.lower(most);
      if (chosen.isEmpty()) {
        break;
      }
      chosen.get().picked().forEach(made::add);
      now = chosen.get().after();
    }
    return new Lowered(now.own.graph(), now.profile.peak(), made.build());
  }

  /** One round. */
  private record Round(Recomputation after, ImmutableList<Made> picked) {}

  private Optional<Round> lower(long most) {
    var candidates = candidates();
    var enough = pick(candidates, profile.peak() - most);
    if (!enough.isEmpty()) {
      var all = new Recomputation(own.of(without(enough)), costs, gathers);
      if (all.profile.isBelow(profile)) {
        return Optional.of(round(all, enough));
      }
    }
    for (var candidate : candidates.subList(0, Math.min(MAX_ALONE, candidates.size()))) {
      var one = new Recomputation(own.of(without(List.of(candidate))), costs, gathers);
      if (one.profile.isBelow(profile)) {
        return Optional.of(round(one, List.of(candidate)));
      }
    }
    return Optional.empty();
  }

  private Round round(Recomputation after, List<Candidate> picked) {
    return new Round(
        after,
        picked.stream()
            .map(
                one ->
                    new Made(
                        one.storage().value(),
                        one.storage().bytes(),
                        (int) one.ops().stream().filter(aliases::runs).count(),
                        (int)
                            one.ops().stream()
                                .filter(index -> ops.get(index).collective().isPresent())
                                .count(),
                        ops.get(one.at()).label(),
                        one.micros()))
            .collect(ImmutableList.toImmutableList()));
  }

  /** Tensors that are live at the peak and not used there, the cheapest bytes first. */
  private List<Candidate> candidates() {
    return aliases.storages().stream()
        .filter(storage -> units.maker(storage.id()) >= 0 && !units.escapes(storage.id()))
        .filter(storage -> units.maker(storage.id()) < profile.at())
        .filter(storage -> aliases.families().isAlone(storage.id()))
        .flatMap(storage -> waiting(storage).stream())
        .sorted(Comparator.comparingLong((Again again) -> again.storage.bytes()).reversed())
        .limit(MAX_STORAGES)
        .flatMap(again -> again.candidate().stream())
        .sorted(Comparator.comparingDouble(Candidate::price))
        .toList();
  }

  /** A storage that is used before the peak and after it, but not there. */
  private Optional<Again> waiting(Aliases.Storage storage) {
    var readers = units.readers();
    // Without a reader before the peak, it would be moved, not computed again.
    boolean early = false;
    int next = Integer.MAX_VALUE;
    for (int i = 0; i < readers.size(storage.id()); i++) {
      int reader = readers.get(storage.id(), i);
      if (reader == profile.at()) {
        return Optional.empty();
      }
      early |= reader < profile.at();
      next = reader > profile.at() ? Math.min(next, reader) : next;
    }
    return early && next != Integer.MAX_VALUE
        ? Optional.of(new Again(storage, units.firstOp(next)))
        : Optional.empty();
  }

  /** The search for the ops that compute one storage again. */
  private final class Again {
    private final Aliases.Storage storage;
    private final int at;
    private final BitSet again = new BitSet();
    private final BitSet leaves = new BitSet();

    Again(Aliases.Storage storage, int at) {
      this.storage = storage;
      this.at = at;
    }

    Optional<Candidate> candidate() {
      if (!repeat(storage.def())) {
        return Optional.empty();
      }
      for (var op : ops.subList(at, ops.size())) {
        for (var operand : op.operands()) {
          int maker = makers[operand.id()];
          if (aliases.id(operand) == storage.id() && maker < at && !repeat(maker)) {
            return Optional.empty();
          }
        }
      }
      return isWritten(at, again)
          ? Optional.empty()
          : Optional.of(new Candidate(storage, at, again, leaves, micros(again, storage)));
    }

    /** Notes that an op runs again, after those that it needs; false if one of them must not. */
    private boolean repeat(int index) {
      if (again.get(index)) {
        return true;
      }
      var op = ops.get(index);
      if (!isRepeatable(op, storage) || again.cardinality() == MAX_OPS) {
        return false;
      }
      again.set(index);
      int part = part(op, storage);
      var operands = part == WHOLE ? op.operands() : op.operands().subList(part, part + 1);
      return operands.stream().allMatch(this::isReady);
    }

    private boolean isReady(Value operand) {
      int id = aliases.id(operand);
      int maker = makers[operand.id()];
      if (id < 0 || maker >= 0 && again.get(maker)) {
        return true;
      }
      if (id != storage.id() && isLiveAt(id, at)) {
        leaves.set(id);
        return true;
      }
      return maker >= 0 && aliases.families().isAlone(id) && repeat(maker);
    }
  }

  private boolean isRepeatable(Op op, Aliases.Storage storage) {
    return op.def().rule().isPresent()
        && !Precedence.hasEffect(op)
        && !op.def().isFence()
        && (op.collective().isEmpty() || gatherMicros(op, storage).isPresent());
  }

  /** A gather of several tensors runs again for the one that it is to give, and only for that. */
  private OptionalDouble gatherMicros(Op op, Aliases.Storage storage) {
    int part = part(op, storage);
    return part == WHOLE && op.results().size() > 1
        ? OptionalDouble.empty()
        : gathers.micros(op, Math.max(0, part));
  }

  /** {@return which of the tensors that a collective gives together a storage is, or WHOLE} */
  private int part(Op op, Aliases.Storage storage) {
    if (op.collective().isPresent() && op.results().size() > 1) {
      for (int k = 0; k < op.results().size(); k++) {
        if (aliases.id(op.results().get(k)) == storage.id()) {
          return k;
        }
      }
    }
    return WHOLE;
  }

  /** Whether a storage holds its tensor at an op, whatever is computed again. */
  private boolean isLiveAt(int storage, int at) {
    var of = aliases.storage(storage);
    if (of.isInput() && own.spaces().input(of.value()) == MemorySpace.DONATED) {
      return own.uses().lastOp(storage) >= at;
    }
    return own.uses().lastOpOrCaller(storage) >= at && !own.fusion().isPassing(storage);
  }

  /** Whether anything that the ops read may be written between their first run and the second. */
  private boolean isWritten(int at, BitSet again) {
    int first = again.nextSetBit(0);
    var read = new HashSet<Integer>();
    again.stream()
        .mapToObj(ops::get)
        .forEach(
            op -> {
              op.operands().forEach(operand -> read.add(aliases.family(operand)));
              op.results().forEach(result -> read.add(aliases.family(result)));
            });
    for (int writer : writers) {
      if (writer < first) {
        continue;
      }
      var op = ops.get(writer);
      if (writer < at && op.def().isUnbounded()) {
        return true;
      }
      for (var values : List.of(op.written(), op.moved())) {
        for (var value : values) {
          if (read.contains(aliases.family(value))) {
            return true;
          }
        }
      }
    }
    return false;
  }

  private double micros(BitSet again, Aliases.Storage storage) {
    return again.stream()
        .filter(aliases::runs)
        .mapToObj(ops::get)
        .mapToDouble(
            op ->
                op.collective().isPresent()
                    ? gatherMicros(op, storage).orElseThrow()
                    : costs.computeMicros(op))
        .sum();
  }

  /** {@return the cheapest that free so many bytes together, and do not need each other} */
  private List<Candidate> pick(List<Candidate> candidates, long bytes) {
    var picked = new ArrayList<Candidate>();
    var gone = new BitSet();
    var needed = new BitSet();
    long freed = 0;
    for (var candidate : candidates) {
      if (freed >= bytes) {
        break;
      }
      if (!needed.get(candidate.storage().id()) && !gone.intersects(candidate.leaves())) {
        picked.add(candidate);
        gone.set(candidate.storage().id());
        needed.or(candidate.leaves());
        freed += candidate.storage().bytes();
      }
    }
    for (int i = picked.size() - 2; i >= 0; i--) {
      if (freed - picked.get(i).storage().bytes() >= bytes) {
        freed -= picked.remove(i).storage().bytes();
      }
    }
    return picked;
  }

  /** {@return the graph that gives up some storages} */
  private Graph without(List<Candidate> picked) {
    var byPlace = MultimapBuilder.hashKeys().arrayListValues().<Integer, Candidate>build();
    picked.forEach(one -> byPlace.put(one.at(), one));
    var copier = new GraphCopier(own.graph());
    for (int i = 0; i < ops.size(); i++) {
      for (var one : byPlace.get(i)) {
        one.ops().stream().forEach(index -> again(copier, index, one));
      }
      copier.keep(ops.get(i));
    }
    return copier.finish();
  }

  private void again(GraphCopier copier, int index, Candidate one) {
    var op = ops.get(index);
    int part = part(op, one.storage());
    var given = part == WHOLE ? op.results() : op.results().subList(part, part + 1);
    var results =
        copier.insert(
            op.def(),
            copier.now(part == WHOLE ? op.args() : only(part, op.args())),
            op.label() + "_again",
            given.stream().map(Value::type).toList(),
            op.span());
    for (int r = 0; r < results.size(); r++) {
      int storage = aliases.id(given.get(r));
      // Tensors that are still live are read in place.
      if (storage >= 0 && (storage == one.storage().id() || !isLiveAt(storage, one.at()))) {
        copier.replace(given.get(r), results.get(r));
      }
    }
  }

  /** {@return the arguments with one of the tensors in lists} */
  private static ImmutableList<Arg> only(int part, ImmutableList<Arg> args) {
    return args.stream()
        .map(
            arg ->
                arg instanceof Arg.Seq(var items) && !arg.operands().isEmpty()
                    ? new Arg.Seq(items.subList(part, part + 1))
                    : arg)
        .collect(ImmutableList.toImmutableList());
  }
}
