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
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.GraphCopier;
import java.util.BitSet;
import java.util.Optional;
import java.util.function.Consumer;

/**
 * Finds what moves to the host's memory so that its own is free at the peak: a copy out after the
 * last use before the peak, and a copy back before the next one, both by the copy engines. {@link
 * CopyWindows} then lets compute go on beside them; {@link CopyTimes} predicts the time.
 *
 * <p>Only what one op makes and none overwrites moves, as a whole. Ranks that do not all run the
 * same ops keep what collectives use, as they must agree on symmetric memory.
 */
final class Offloading {
  private static final OpDef OFFLOAD = BuiltinOps.registry().get("symplan::offload");
  private static final OpDef STORE = BuiltinOps.registry().get("symplan::offload_");
  static final OpDef RELOAD = BuiltinOps.registry().get("symplan::reload");

  /** Brings in an input that the planner keeps in the host's memory. */
  static final OpDef FETCH = BuiltinOps.registry().get("symplan::fetch");

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
  }

  private final PeakView view;
  private final CopyTimes times;
  private final boolean alike;
  private final BitSet byCollective = new BitSet();
  private final BitSet written = new BitSet();

  /**
   * @param alike whether all ranks run the same ops
   */
  Offloading(PeakView view, CopyTimes times, boolean alike) {
    this.view = view;
    this.times = times;
    this.alike = alike;
    for (var op : view.ops) {
      if (op.def().isFence()) {
        op.operands().forEach(value -> mark(written, value));
      }
      if (op.collective().isPresent()) {
        op.operands().forEach(value -> mark(byCollective, value));
        op.results().forEach(value -> mark(byCollective, value));
      }
      op.written().forEach(value -> mark(written, value));
      op.moved().forEach(value -> mark(written, value));
    }
  }

  private void mark(BitSet storages, Value value) {
    if (view.aliases.id(value) >= 0) {
      storages.set(view.aliases.id(value));
    }
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
    int out =
        view.units
            .ops(waiting.left())
            .filter(view.aliases::runs)
            .map(times::after)
            .max()
            .orElseThrow();
    int back = times.opOf(times.unitOf(waiting.next()));
    var views = views(storage, waiting.next());
    if (back < out || views.isEmpty()) {
      return Optional.empty();
    }
    var type = storage.value().tensor();
    var host = type.withSpace(MemorySpace.HOST);
    double micros = times.out(host, out) + times.in(type, back, out);
    var made =
        new PeakReduction.Offloaded(
            storage.value(),
            storage.bytes(),
            false,
            ImmutableList.of(view.ops.get(waiting.next()).label()),
            times.copy(host) + times.copy(type),
            micros);
    return Optional.of(new RoundTrip(storage, out, back, views.get(), micros, made));
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
          copier.replace(value, load(copier, RELOAD, host[0], value));
          trip.views().stream().forEach(op -> again(copier, view.ops.get(op)));
        });
  }

  /**
   * {@return a copy on the device of what is in the host's memory, all of which is there}
   *
   * @param def {@link #RELOAD} or {@link #FETCH}
   * @param named the tensor that it is
   */
  static Value load(GraphCopier copier, OpDef def, Value host, Value named) {
    var space = named.tensor().space();
    var copy =
        copy(
            copier, def, host, named, "_back", space == MemorySpace.HOST ? MemorySpace.ANY : space);
    await(copier, host, copy);
    return copy;
  }

  /** Writes a copy on the device over what is in the host's memory. */
  static void store(GraphCopier copier, Value device, Value host) {
    var stored =
        copier.insert(
            STORE,
            ImmutableList.of(new Arg.Ref(device), new Arg.Ref(host)),
            host.name() + "_stored",
            host.type(),
            host.span());
    await(copier, device, stored);
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
  static void again(GraphCopier copier, Op op) {
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
