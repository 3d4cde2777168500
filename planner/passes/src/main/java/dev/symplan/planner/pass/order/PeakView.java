package dev.symplan.planner.pass.order;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.joint.ProgramGraph;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.Analyses;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** A graph, the point at which the most is live, and what waits there to be used again. */
final class PeakView {
  /**
   * A storage that is used before the peak and after it, but not there.
   *
   * @param left the last unit that uses it before the peak
   * @param read whether that reads it; it may only make it
   * @param next the op after the peak that reads it first
   */
  record Waiting(Aliases.Storage storage, int left, boolean read, int next) {}

  final Analyses own;
  final ImmutableList<Op> ops;
  final Aliases aliases;
  final WorkUnits units;
  final MemoryProfile profile;

  /** By op, the unit that it is in. */
  private final int[] unitOf;

  /** By unit, the bytes that are live there, inputs included. */
  private final long[] live;

  /** By value, the op that gives it; -1 for an input. */
  private final int[] makers;

  /** Ops that write into arguments, or may. */
  private final int[] writers;

  /** Storages that move to the host's memory already, or come from there. */
  private final BitSet copied = new BitSet();

  /** Storages that the setup makes or reads: it runs once, without copies of them. */
  private final BitSet ofSetup = new BitSet();

  PeakView(Analyses own) {
    this.own = own;
    this.ops = own.graph().ops();
    this.aliases = own.aliases();
    this.units = WorkUnits.of(own);
    this.unitOf = new int[ops.size()];
    for (int unit = 0; unit < units.count(); unit++) {
      int number = unit;
      units.ops(unit).forEach(op -> unitOf[op] = number);
    }
    this.live = MemoryProfile.live(units, units.given());
    addInputs();
    this.profile = MemoryProfile.of(live);
    this.makers = new int[own.graph().valueCount()];
    Arrays.fill(makers, -1);
    for (int i = 0; i < ops.size(); i++) {
      int index = i;
      var op = ops.get(i);
      op.results().forEach(result -> makers[result.id()] = index);
      if (op.def().has(OpTrait.HOST_COPY)) {
        op.operands().forEach(value -> copied.set(aliases.id(value)));
        op.results().forEach(value -> copied.set(aliases.id(value)));
      }
    }
    ops.subList(0, Math.max(0, ProgramGraph.setupEnd(own.graph()))).forEach(this::addToSetup);
    this.writers = IntStream.range(0, ops.size()).filter(i -> mayWrite(ops.get(i))).toArray();
  }

  /** Inputs on the device are there all the time, those that were donated up to their last use. */
  private void addInputs() {
    for (var storage : aliases.storages()) {
      if (storage.isInput() && !isInHost(storage.value())) {
        int last = isDonated(storage) ? lastUnit(storage) : live.length - 1;
        for (int unit = 0; unit <= last; unit++) {
          live[unit] += storage.bytes();
        }
      }
    }
  }

  private void addToSetup(Op op) {
    Stream.concat(op.operands().stream(), op.results().stream())
        .mapToInt(aliases::id)
        .filter(id -> id >= 0)
        .forEach(ofSetup::set);
  }

  /** {@return whether the setup makes or reads a storage, which stays where it is then} */
  boolean isOfSetup(int storage) {
    return ofSetup.get(storage);
  }

  private boolean isDonated(Aliases.Storage storage) {
    return own.spaces().input(storage.value()) == MemorySpace.DONATED;
  }

  private int lastUnit(Aliases.Storage storage) {
    int last = own.uses().lastOp(storage.id());
    return last < 0 ? -1 : unitOf[last];
  }

  private static boolean mayWrite(Op op) {
    // An op that only waits for a copy changes nothing.
    return op.def().isUnbounded()
        || !op.def().has(OpTrait.HOST_COPY_END) && !op.written().isEmpty()
        || !op.moved().isEmpty();
  }

  /** {@return the op that gives a value; -1 for an input} */
  int maker(Value value) {
    return makers[value.id()];
  }

  /** {@return the unit that an op is in} */
  int unitOf(int op) {
    return unitOf[op];
  }

  /** {@return the value in the host's memory that a storage is a copy of} */
  Optional<Value> home(Aliases.Storage storage) {
    return Optional.of(storage)
        .filter(copy -> !copy.isInput())
        .map(copy -> ops.get(copy.def()))
        .filter(op -> op.def().has(OpTrait.HOST_COPY) && !isInHost(op.result()))
        .map(op -> op.operands().getFirst());
  }

  /** {@return the tensor that a value in the host's memory holds, as it was defined first} */
  Value origin(Value host) {
    int maker = maker(host);
    return maker < 0 ? host : aliases.of(ops.get(maker).operands().getFirst()).value();
  }

  /** {@return whether the memory of a storage is taken at the peak and used after it, or kept} */
  boolean isLiveAtPeak(Aliases.Storage storage) {
    if (storage.isInput()) {
      return !isDonated(storage) || lastUnit(storage) > profile.at();
    }
    return lastUnit(storage) > profile.at() && unitOf[storage.def()] < profile.at();
  }

  /** {@return the ops that write into arguments, or may, ascending} */
  int[] writers() {
    return writers;
  }

  /** {@return whether a value is in the host's memory} */
  static boolean isInHost(Value value) {
    return value.isTensor() && value.tensor().space() == MemorySpace.HOST;
  }

  /** {@return the bytes of a tensor's storage as they count at the peak} */
  long bytes(Value value) {
    return units.bytes(aliases.id(value));
  }

  /** {@return by what runs as one step, the bytes that are live there} */
  long[] liveByUnit() {
    var byUnit = new long[own.fusion().units().size()];
    for (int unit = 0; unit < units.count(); unit++) {
      long bytes = live[unit];
      units
          .ops(unit)
          .filter(aliases::runs)
          .map(own.fusion()::unitOf)
          .forEach(step -> byUnit[step] = Math.max(byUnit[step], bytes));
    }
    return byUnit;
  }

  /** {@return whether a storage waits at the peak: only the plan uses it, and not right there} */
  Optional<Waiting> waiting(Aliases.Storage storage) {
    int id = storage.id();
    int maker = units.maker(id);
    if (maker < 0
        || maker >= profile.at()
        || units.escapes(id)
        || copied.get(id)
        || ofSetup.get(id)
        || !aliases.families().isAlone(id)) {
      return Optional.empty();
    }
    var readers = units.readers();
    int left = maker;
    int next = Integer.MAX_VALUE;
    for (int i = 0; i < readers.size(id); i++) {
      int reader = readers.get(id, i);
      if (reader == profile.at()) {
        return Optional.empty();
      }
      left = reader < profile.at() ? Math.max(left, reader) : left;
      next = reader > profile.at() ? Math.min(next, reader) : next;
    }
    return next == Integer.MAX_VALUE
        ? Optional.empty()
        : Optional.of(new Waiting(storage, left, left != maker, units.firstOp(next)));
  }

  /** {@return whether a storage holds its tensor at an op, whatever is given up} */
  boolean isLiveAt(int storage, int at) {
    var of = aliases.storage(storage);
    if (of.isInput() && isDonated(of)) {
      return own.uses().lastOp(storage) >= at;
    }
    return own.uses().lastOpOrCaller(storage) >= at && !own.fusion().isPassing(storage);
  }
}
