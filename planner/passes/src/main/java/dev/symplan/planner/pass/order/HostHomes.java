package dev.symplan.planner.pass.order;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ListMultimap;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.GraphCopier;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Finds what has its home in the host's memory, and is on the device only while it is used: an
 * input of which the caller did not say where it is, or a tensor that has been there already. A
 * visit begins with a copy from the host. It ends with one back if something was written in it;
 * otherwise the host still holds the same, and the copy on the device is dropped.
 *
 * <p>An input visits the device up to the peak, and again after it, if it is used there. No visit
 * crosses the border to another graph of the program, which may run by itself, or after the caller
 * has changed the input. A copy on the device that waits at a later peak is dropped there, and
 * brought in once more.
 *
 * <p>Stays where it is: an input in the caller's memory or that peers must reach, as the caller
 * wants it, or whose elements overlap or have gaps between them; what an output shows, what ops
 * without a rule may hold, what gives views of others their sizes; what the setup reads; and what
 * collectives use where not all ranks run the same ops.
 */
final class HostHomes {
  /**
   * One stay on the device.
   *
   * @param load the op before which it is copied in
   * @param store the op before which it is copied out; empty if nothing wrote into it
   * @param again ops before that give views of it, which are taken again; ascending
   */
  record Visit(int load, OptionalInt store, BitSet again) {}

  /**
   * A storage that could be on the device for some visits only.
   *
   * @param home where it is in the host's memory already; empty for an input that is not
   * @param dropped views that no op of the visit in which they are taken needs
   */
  record Visits(
      Aliases.Storage storage,
      Optional<Value> home,
      ImmutableList<Visit> visits,
      BitSet dropped,
      double micros,
      PeakReduction.Offloaded made)
      implements Saving {
    @Override
    public Visits atLeast(double least) {
      return new Visits(storage, home, visits, dropped, Math.max(micros, least), made);
    }
  }

  private final PeakView view;
  private final CopyTimes times;
  private final boolean alike;

  /** The ops that are borders. */
  private final BitSet borders = new BitSet();

  /** By storage, the ops that run and use it, in order; null for what cannot have a home. */
  private final List<@Nullable List<Integer>> users = new ArrayList<>();

  /** By storage, the ops that give a value in it that was there before. */
  private final List<List<Integer>> views = new ArrayList<>();

  /**
   * @param alike whether all ranks run the same ops
   */
  HostHomes(PeakView view, CopyTimes times, boolean alike) {
    this.view = view;
    this.times = times;
    this.alike = alike;
    for (var storage : view.aliases.storages()) {
      users.add(mayLeave(storage) ? new ArrayList<>() : null);
      views.add(new ArrayList<>());
    }
    for (int i = 0; i < view.ops.size(); i++) {
      var op = view.ops.get(i);
      borders.set(i, op.def().has(OpTrait.BORDER));
      for (var value : op.operands()) {
        use(i, op, value);
      }
      for (int r = 0; r < op.results().size(); r++) {
        int id = view.aliases.id(op.results().get(r));
        if (id >= 0 && view.aliases.storage(id).def() != i) {
          views.get(id).add(i);
          boolean all = view.aliases.runs(i) ? same(op, r).isPresent() : isOf(op, id);
          if (!all) {
            users.set(id, null);
          }
        }
      }
    }
  }

  private boolean mayLeave(Aliases.Storage storage) {
    int id = storage.id();
    return storage.bytes() >= Alignment.BYTES
        && !view.units.escapes(id)
        && !view.isOfSetup(id)
        && view.aliases.families().isAlone(id)
        && (storage.isInput() ? mayMove(storage.value()) : view.home(storage).isPresent());
  }

  /** A copy has memory for each element, and none for the gaps between them. */
  private boolean mayMove(Value input) {
    return input.tensor().isDense() && isLeftToPlanner(input);
  }

  private boolean isLeftToPlanner(Value input) {
    return switch (view.own.spaces().input(input)) {
      case ANY, LOCAL, DONATED -> true;
      case SYMMETRIC, EXTERNAL, HOST -> false;
    };
  }

  private void use(int index, Op op, Value value) {
    int id = view.aliases.id(value);
    if (id < 0) {
      return;
    }
    @Nullable List<Integer> own = users.get(id);
    if (own == null) {
      return;
    }
    boolean collective = op.collective().isPresent();
    boolean held = op.def().rule().isEmpty() || op.def().isFence() || takesSizes(index, op, id);
    boolean changed = !op.written().isEmpty() && writes(op, id);
    if (held
        || collective && (!alike || changed)
        || changed && isDonated(view.aliases.storage(id))) {
      users.set(id, null);
    } else if (view.aliases.runs(index) && (own.isEmpty() || own.getLast() != index)) {
      own.add(index);
    }
  }

  /** Whether a view of something else has the sizes of a storage, which no copy of it gives. */
  private boolean takesSizes(int index, Op op, int storage) {
    return !view.aliases.runs(index)
        && op.results().stream().noneMatch(result -> view.aliases.id(result) == storage);
  }

  private boolean isDonated(Aliases.Storage storage) {
    return storage.isInput() && view.own.spaces().input(storage.value()) == MemorySpace.DONATED;
  }

  /** Whether an op changes a storage; what waits for a copy of it does not. */
  private boolean writes(Op op, int storage) {
    return !op.def().has(OpTrait.HOST_COPY_END)
        && op.written().stream().anyMatch(value -> view.aliases.id(value) == storage);
  }

  /** Whether all results are in one storage. */
  private boolean isOf(Op op, int storage) {
    return op.results().stream().allMatch(result -> view.aliases.id(result) == storage);
  }

  /** {@return the argument that a result of an op that writes is} */
  private static Optional<Value> same(Op op, int r) {
    return op.infer()
        .get(r)
        .view()
        .filter(
            of ->
                !of.fromStorage()
                    && of.offset() == 0
                    && of.of().tensor().sizes().equals(op.results().get(r).tensor().sizes())
                    && of.of().tensor().strides().equals(op.results().get(r).tensor().strides()))
        .map(OpResult.View::of);
  }

  /** {@return the storages that can wait in the host's memory at the peak, by visits} */
  List<Visits> all() {
    var all = new ArrayList<Visits>();
    for (var storage : view.aliases.storages()) {
      @Nullable List<Integer> own = users.get(storage.id());
      if (own != null && view.isLiveAtPeak(storage)) {
        new Search(storage, own).visits().ifPresent(all::add);
      }
    }
    return all;
  }

  /** The search for the visits of one storage. */
  private final class Search {
    private final Aliases.Storage storage;
    private final List<Integer> users;
    private final Optional<Value> home;
    private final BitSet kept = new BitSet();

    Search(Aliases.Storage storage, List<Integer> users) {
      this.storage = storage;
      this.users = users;
      this.home = view.home(storage);
    }

    Optional<Visits> visits() {
      int peak = view.profile.at();
      if (users.stream().anyMatch(op -> view.unitOf(op) == peak)) {
        return Optional.empty();
      }
      var groups = home.isPresent() ? afterPeak() : groups();
      return groups.flatMap(this::visits);
    }

    /** {@return the uses before the peak, and those after it, none on both sides of a border} */
    private Optional<List<List<Integer>>> groups() {
      var groups = new ArrayList<List<Integer>>();
      int last = -1;
      for (int op : users) {
        boolean apart =
            last < 0
                || isAfter(op) != isAfter(last)
                || borders.nextSetBit(last) >= 0 && borders.nextSetBit(last) < op;
        if (apart) {
          groups.add(new ArrayList<>());
        }
        groups.getLast().add(op);
        last = op;
      }
      return Optional.of(groups);
    }

    private boolean isAfter(int op) {
      return view.unitOf(op) > view.profile.at();
    }

    /** The uses after the peak, if what was written before it is in the host's memory by then. */
    private Optional<List<List<Integer>>> afterPeak() {
      int written = -1;
      int stored = -1;
      var after = new ArrayList<Integer>();
      for (int op : users) {
        if (isAfter(op)) {
          after.add(op);
        } else if (view.ops.get(op).def().has(OpTrait.HOST_COPY)) {
          stored = op;
        } else if (writes(view.ops.get(op), storage.id())) {
          written = op;
        }
      }
      return after.isEmpty() || after.size() == users.size() || written > stored
          ? Optional.empty()
          : Optional.of(List.of(after));
    }

    private Optional<Visits> visits(List<List<Integer>> groups) {
      var visits = new ArrayList<Visit>();
      double link = 0;
      double micros = 0;
      int end = -1;
      for (var group : groups) {
        int load = times.opOf(times.unitOf(group.getFirst()));
        var again = again(load, group);
        if (load < end || again.isEmpty()) {
          return Optional.empty();
        }
        var store = home.isPresent() ? OptionalInt.empty() : store(group);
        visits.add(new Visit(load, store, again.get()));
        var type = storage.value().tensor().withSpace(MemorySpace.ANY);
        link += times.copy(type);
        micros += times.in(type, load, Math.max(0, end));
        end = Math.max(store.orElse(0), group.getLast() + 1);
        if (store.isPresent()) {
          var host = type.withSpace(MemorySpace.HOST);
          link += times.copy(host);
          micros += times.out(host, store.getAsInt());
        }
      }
      return Optional.of(
          new Visits(
              storage,
              home,
              ImmutableList.copyOf(visits),
              dropped(),
              micros,
              new PeakReduction.Offloaded(
                  home.isPresent() ? view.origin(home.get()) : storage.value(),
                  storage.bytes(),
                  home.isEmpty(),
                  readers(visits),
                  link,
                  micros)));
    }

    private ImmutableList<String> readers(List<Visit> visits) {
      return visits.stream()
          .map(visit -> view.ops.get(visit.load()).label())
          .collect(ImmutableList.toImmutableList());
    }

    /** The op after all that writes in a visit. */
    private OptionalInt store(List<Integer> group) {
      return group.stream()
          .filter(op -> writes(view.ops.get(op), storage.id()))
          .mapToInt(op -> times.after(op))
          .max();
    }

    /** {@return the views that are taken again; empty if one of them cannot be} */
    private Optional<BitSet> again(int load, List<Integer> group) {
      var needed = new BitSet();
      for (int op : group) {
        for (var value : view.ops.get(op).operands()) {
          if (!need(value, needed)) {
            return Optional.empty();
          }
        }
      }
      var again = new BitSet();
      needed.stream().filter(op -> op < load).forEach(again::set);
      needed.stream().filter(op -> op >= load).forEach(kept::set);
      return Optional.of(again);
    }

    private boolean need(Value value, BitSet needed) {
      int maker = view.maker(value);
      if (view.aliases.id(value) != storage.id() || maker == storage.def() || needed.get(maker)) {
        return true;
      }
      var op = view.ops.get(maker);
      needed.set(maker);
      return op.def().rule().isPresent()
          && (view.aliases.runs(maker)
              || op.operands().stream()
                  .allMatch(of -> !of.isTensor() || view.aliases.id(of) == storage.id()))
          && op.operands().stream().allMatch(operand -> need(operand, needed));
    }

    private BitSet dropped() {
      var dropped = new BitSet();
      if (home.isPresent()) {
        return dropped;
      }
      views.get(storage.id()).stream()
          .filter(op -> !view.aliases.runs(op) && !kept.get(op))
          .forEach(dropped::set);
      return dropped;
    }
  }

  /**
   * Adds the visits of a storage.
   *
   * @param into of whose inputs those that get a home are in the host's memory
   */
  void insert(
      Visits one, GraphCopier into, ListMultimap<Integer, Consumer<GraphCopier>> insertions) {
    var value = one.value();
    // Later, the copier has a copy on the device for it.
    var host = one.home().orElseGet(() -> into.now(value));
    var load = one.home().isPresent() ? view.ops.get(one.storage().def()).def() : Offloading.FETCH;
    for (var visit : one.visits()) {
      insertions.put(
          visit.load(),
          copier -> {
            var from = one.home().map(copier::now).orElse(host);
            copier.replace(value, Offloading.load(copier, load, from, one.made().value()));
            visit.again().stream().forEach(op -> again(copier, op));
          });
      visit
          .store()
          .ifPresent(
              at ->
                  insertions.put(at, copier -> Offloading.store(copier, copier.now(value), host)));
    }
  }

  private void again(GraphCopier copier, int index) {
    var op = view.ops.get(index);
    if (!view.aliases.runs(index)) {
      Offloading.again(copier, op);
      return;
    }
    for (int r = 0; r < op.results().size(); r++) {
      var result = op.results().get(r);
      same(op, r).ifPresent(of -> copier.replace(result, copier.now(of)));
    }
  }

  /** {@return the inputs among what visits the device that are to lie in the host's memory} */
  static BitSet inputs(List<Saving> picked) {
    return picked.stream()
        .filter(saving -> saving instanceof Visits visits && visits.home().isEmpty())
        .flatMapToInt(saving -> IntStream.of(saving.value().id()))
        .collect(BitSet::new, BitSet::set, BitSet::or);
  }
}
