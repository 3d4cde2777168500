package dev.symplan.planner.pass.order;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ListMultimap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.GraphCopier;
import dev.symplan.planner.pass.analysis.OverlapWindows;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashMap;
import java.util.List;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * Finds what moves to the host's memory so that its own is free at the peak: a copy out after the
 * last use before the peak, and a copy back before the next one, both by the copy engines. {@link
 * CopyWindows} then lets compute go on beside them.
 *
 * <p>The predicted time is that of the best windows: up to the peak, and from it on, but no copy is
 * under way where another graph of the program begins, or at an op that may do anything.
 *
 * <p>Only what one op makes and none overwrites moves, as a whole. Ranks that do not all run the
 * same ops keep what collectives use, as they must agree on symmetric memory.
 */
final class Offloading {
  private static final OpDef OFFLOAD = BuiltinOps.registry().get("symplan::offload");
  private static final OpDef RELOAD = BuiltinOps.registry().get("symplan::reload");
  private static final OpDef AWAIT = BuiltinOps.registry().get("symplan::await_copy");

  /**
   * A storage that could move.
   *
   * @param out the op before which it is copied to the host
   * @param back the op before which it is copied back
   * @param views views of the storage that are taken again of the copy, ascending
   */
  record RoundTrip(
      Aliases.Storage storage,
      int out,
      int back,
      BitSet views,
      double micros,
      PeakReduction.Offloaded made)
      implements Saving {
    @Override
    public RoundTrip atLeast(double least) {
      return new RoundTrip(storage, out, back, views, Math.max(micros, least), made);
    }

    @Override
    public BitSet leaves() {
      return new BitSet();
    }
  }

  /** A copy that is in the graph already, by the units between which it is under way. */
  private record UnderWay(int from, int to, double micros) {}

  private final PeakView view;
  private final CostModel costs;
  private final boolean alike;
  private final OverlapWindows overlap;

  /** By unit, whether no copy may be under way there. */
  private final BitSet full = new BitSet();

  private final BitSet byCollective = new BitSet();
  private final BitSet written = new BitSet();
  private final List<UnderWay> underWay = new ArrayList<>();

  /**
   * @param alike whether all ranks run the same ops
   */
  Offloading(PeakView view, CostModel costs, boolean alike) {
    this.view = view;
    this.costs = costs;
    this.alike = alike;
    this.overlap = view.own.overlap();
    // A graph without ops has no unit.
    if (view.units.count() > 0) {
      view.units
          .ops(view.profile.at())
          .filter(view.aliases::runs)
          .forEach(op -> full.set(unitOf(op)));
    }
    var begins = new HashMap<Value, Integer>();
    for (int i = 0; i < view.ops.size(); i++) {
      var op = view.ops.get(i);
      if (op.def().isFence()) {
        full.set(unitOf(i));
        op.operands().forEach(value -> mark(written, value));
      }
      if (op.collective().isPresent()) {
        op.operands().forEach(value -> mark(byCollective, value));
        op.results().forEach(value -> mark(byCollective, value));
      }
      op.written().forEach(value -> mark(written, value));
      op.moved().forEach(value -> mark(written, value));
      if (op.def().has(OpTrait.HOST_COPY)) {
        begins.put(op.result(), unitOf(i));
      } else if (op.def().has(OpTrait.HOST_COPY_END)) {
        var copy = op.operands().getLast();
        underWay.add(
            new UnderWay(
                begins.getOrDefault(copy, 0), unitOf(i), costs.hostCopyMicros(copy.tensor())));
      }
    }
  }

  private void mark(BitSet storages, Value value) {
    if (view.aliases.id(value) >= 0) {
      storages.set(view.aliases.id(value));
    }
  }

  private int unitOf(int op) {
    return view.own.fusion().unitOf(op);
  }

  private int opOf(int unit) {
    return overlap.units().get(unit).get(0);
  }

  /** {@return how a storage that waits can move to the host's memory and back} */
  Optional<RoundTrip> of(PeakView.Waiting waiting) {
    var storage = waiting.storage();
    if (written.get(storage.id()) || !alike && byCollective.get(storage.id())) {
      return Optional.empty();
    }
    // A copy of what a collective makes would have compute wait for that.
    if (!waiting.read() && byCollective.get(storage.id())) {
      return Optional.empty();
    }
    int begin =
        1
            + view.units
                .ops(waiting.left())
                .filter(view.aliases::runs)
                .map(this::unitOf)
                .max()
                .orElseThrow();
    int needed = unitOf(waiting.next());
    var views = views(storage, waiting.next());
    if (needed < begin || views.isEmpty()) {
      return Optional.empty();
    }
    var type = storage.value().tensor();
    double out = costs.hostCopyMicros(type.withSpace(MemorySpace.HOST));
    double in = costs.hostCopyMicros(type);
    int gone = full.nextSetBit(begin);
    int back = full.previousSetBit(needed - 1) + 1;
    double micros =
        exposed(out, begin, gone) + exposed(in, back, needed) + 2 * costs.forkJoinMicros();
    var made =
        new PeakReduction.Offloaded(
            storage.value(),
            storage.bytes(),
            view.ops.get(waiting.next()).label(),
            out + in,
            micros);
    return Optional.of(
        new RoundTrip(storage, opOf(begin), opOf(needed), views.get(), micros, made));
  }

  /** The compute between two units that other copies leave, in µs. */
  private double hidden(int from, int to) {
    double others =
        underWay.stream()
            .filter(copy -> copy.from() < to && copy.to() > from)
            .mapToDouble(UnderWay::micros)
            .sum();
    return Math.max(0, overlap.workBetween(from, to) - others);
  }

  private double exposed(double transfer, int from, int to) {
    return costs.exposedMicros(Variant.COPY_ENGINE, transfer, hidden(from, to));
  }

  /** {@return the views through which ops from one on read a storage, unless it moves meanwhile} */
  private Optional<BitSet> views(Aliases.Storage storage, int at) {
    var views = new BitSet();
    for (var op : view.ops.subList(at, view.ops.size())) {
      for (var value : op.operands()) {
        if (view.aliases.id(value) == storage.id()
            && view.maker(value) < at
            && !addViews(value, storage, views)) {
          return Optional.empty();
        }
      }
    }
    return Optional.of(views);
  }

  private boolean addViews(Value value, Aliases.Storage storage, BitSet views) {
    int maker = view.maker(value);
    if (maker == storage.def() || views.get(maker)) {
      return true;
    }
    var op = view.ops.get(maker);
    views.set(maker);
    return !view.aliases.runs(maker)
        && op.def().rule().isPresent()
        && op.operands().stream()
            .allMatch(
                operand ->
                    !operand.isTensor()
                        || view.aliases.id(operand) == storage.id()
                            && addViews(operand, storage, views));
  }

  /** Adds what moves a storage, in tight windows. */
  static void insert(
      PeakView view, RoundTrip trip, ListMultimap<Integer, Consumer<GraphCopier>> insertions) {
    var value = trip.value();
    var host = new Value[] {value};
    insertions.put(
        trip.out(),
        copier -> {
          var copied = copier.now(value);
          host[0] = copy(copier, OFFLOAD, copied, value, "_host", MemorySpace.HOST);
          await(copier, copied, host[0]);
        });
    insertions.put(
        trip.back(),
        copier -> {
          var back = copy(copier, RELOAD, host[0], value, "_back", value.tensor().space());
          await(copier, host[0], back);
          copier.replace(value, back);
          trip.views().stream().forEach(op -> again(copier, view.ops.get(op)));
        });
  }

  private static Value copy(
      GraphCopier copier, OpDef def, Value from, Value named, String suffix, MemorySpace space) {
    return copier.insert(
        def,
        ImmutableList.of(new Arg.Ref(from)),
        named.name() + suffix,
        named.tensor().withSpace(space),
        named.span());
  }

  private static void await(GraphCopier copier, Value source, Value copy) {
    copier.insert(
        AWAIT,
        ImmutableList.of(new Arg.Ref(source), new Arg.Ref(copy)),
        "",
        ImmutableList.of(),
        copy.span());
  }

  /** Takes a view again; nothing has to be waited for any more. */
  private static void again(GraphCopier copier, Op op) {
    if (op.def().has(OpTrait.WAIT)) {
      copier.replace(op.result(), copier.now(op.operands().getFirst()));
      return;
    }
    var results =
        copier.insert(
            op.def(),
            copier.now(op.args()),
            op.label() + "_back",
            op.results().stream().map(Value::type).toList(),
            op.span());
    for (int i = 0; i < results.size(); i++) {
      copier.replace(op.results().get(i), results.get(i));
    }
  }
}
