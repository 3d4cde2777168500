package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSortedSet;
import com.google.common.collect.ListMultimap;
import com.google.common.collect.MultimapBuilder;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.Rows;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.Fusion;
import dev.symplan.planner.pass.analysis.IntLists;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.IntStream;

/**
 * Finds elementwise ops that are worth running again. What a kernel makes element by element, and
 * only some later kernels read, is not kept for them; they make it again, from other tensors that
 * the first kernel reads or makes.
 *
 * <p>Kernels must read and write less then, and at no point may more be live: not while other
 * kernels run between, and not at the first kernel or the last, whose results may take the memory
 * of what ends there. No op runs again in another graph of a program, whose caller may have filled
 * inputs anew.
 */
final class Repeatable {
  private static final long NEVER = Long.MAX_VALUE / 64;

  /** Memory that is taken for longer matters more than what is read once more. */
  private static final long KEPT = 8;

  /**
   * Ops that run again.
   *
   * @param ops the ops, ascending
   * @param given the tensors that they make for the readers
   * @param readers the kernels that read these
   */
  record Repeat(
      ImmutableSortedSet<Integer> ops,
      ImmutableList<Value> given,
      ImmutableSortedSet<Integer> readers) {}

  private final Analyses own;
  private final Graph graph;
  private final ImmutableList<Op> ops;
  private final Aliases aliases;
  private final Fusion fusion;

  /** Of each kernel, its ops. */
  private final ImmutableList<ImmutableIntArray> units;

  /** By value, the op that gives it. */
  private final int[] maker;

  /** By storage, the ops that run and use it, ascending. */
  private final IntLists users;

  /** By storage, whether more than the value that defines it is in it. */
  private final boolean[] viewed;

  /** By op, the graph of the program that it is in. */
  private final int[] part;

  /** Ops that may write into tensors. */
  private final int[] writers;

  Repeatable(Analyses own) {
    this.own = own;
    this.graph = own.graph();
    this.ops = graph.ops();
    this.aliases = own.aliases();
    this.fusion = own.fusion();
    this.units = fusion.units();
    this.maker = new int[graph.valueCount()];
    Arrays.fill(maker, DataFlow.NONE);
    this.viewed = new boolean[aliases.count()];
    this.part = new int[ops.size()];
    var found = new IntLists.Builder();
    int borders = 0;
    for (int i = 0; i < ops.size(); i++) {
      var op = ops.get(i);
      borders += op.def().has(OpTrait.BORDER) ? 1 : 0;
      part[i] = borders;
      for (var result : op.results()) {
        maker[result.id()] = i;
        int storage = aliases.id(result);
        if (storage >= 0 && !aliases.defines(result)) {
          viewed[storage] = true;
        }
      }
      for (var storage : storages(op.operands())) {
        viewed[storage] |= !aliases.runs(i);
        if (aliases.runs(i)) {
          found.add(storage, i);
        }
      }
    }
    this.users = found.build(aliases.count());
    this.writers =
        IntStream.range(0, ops.size())
            .filter(
                i ->
                    ops.get(i).def().isUnbounded()
                        || !ops.get(i).written().isEmpty()
                        || !ops.get(i).moved().isEmpty())
            .toArray();
  }

  private Set<Integer> storages(List<Value> values) {
    var storages = new LinkedHashSet<Integer>();
    for (var value : values) {
      if (aliases.id(value) >= 0) {
        storages.add(aliases.id(value));
      }
    }
    return storages;
  }

  ImmutableList<Repeat> find() {
    var repeats = ImmutableList.<Repeat>builder();
    for (int unit = 0; unit < units.size(); unit++) {
      ListMultimap<ImmutableSortedSet<Integer>, Value> byReaders =
          MultimapBuilder.linkedHashKeys().arrayListValues().build();
      for (int op : units.get(unit).asList()) {
        var readers = readers(unit, op);
        if (!readers.isEmpty()) {
          byReaders.put(readers, ops.get(op).result());
        }
      }
      for (var readers : byReaders.keySet()) {
        var search = new Search(unit, readers, byReaders.get(readers));
        if (search.pays()) {
          repeats.add(search.found());
        }
      }
    }
    return repeats.build();
  }

  /** {@return the kernels that read what an op makes, if they alone could make it instead} */
  private ImmutableSortedSet<Integer> readers(int unit, int op) {
    if (!isElementwise(op)) {
      return ImmutableSortedSet.of();
    }
    int storage = aliases.id(ops.get(op).result());
    boolean alone =
        !viewed[storage]
            && !fusion.isPassing(storage)
            && !own.uses().escapes(storage)
            && aliases.families().isAlone(storage)
            && ops.get(op).result().tensor().space() == MemorySpace.ANY;
    var readers = new TreeSet<Integer>();
    for (int i = 0; alone && i < users.size(storage); i++) {
      int user = users.get(storage, i);
      if (fusion.unitOf(user) != unit) {
        readers.add(fusion.unitOf(user));
        alone = part[user] == part[op] && goesByRows(fusion.unitOf(user));
      }
    }
    return alone ? ImmutableSortedSet.copyOfSorted(readers) : ImmutableSortedSet.of();
  }

  private boolean goesByRows(int unit) {
    var first = ops.get(units.get(unit).get(0));
    return PureOps.isPure(first) && (first.def().has(OpTrait.ELEMENTWISE) || Rows.of(first) > 0);
  }

  private boolean isElementwise(int index) {
    return PureOps.isElementwise(ops.get(index), aliases);
  }

  /** The search for what some tensors of one kernel can be made of again. */
  private final class Search {
    private final int unit;
    private final ImmutableSortedSet<Integer> readers;
    private final List<Value> given;
    private final int last;

    /** By value, the weight of what must be kept to have it again. */
    private final Map<Value, Long> weights = new HashMap<>();

    private final Set<Integer> repeated = new TreeSet<>();
    private final Set<Value> kept = new LinkedHashSet<>();

    Search(int unit, ImmutableSortedSet<Integer> readers, List<Value> given) {
      this.unit = unit;
      this.readers = readers;
      this.given = given;
      this.last = readers.last();
      given.forEach(this::repeat);
    }

    Repeat found() {
      return new Repeat(ImmutableSortedSet.copyOf(repeated), ImmutableList.copyOf(given), readers);
    }

    private void repeat(Value value) {
      if (repeated.add(maker[value.id()])) {
        for (var operand : ops.get(maker[value.id()]).operands()) {
          if (keeping(operand) <= repeating(operand)) {
            kept.add(operand);
          } else {
            repeat(operand);
          }
        }
      }
    }

    private long weight(Value value) {
      var known = weights.get(value);
      if (known == null) {
        known = Math.min(keeping(value), repeating(value));
        weights.put(value, known);
      }
      return known;
    }

    private long repeating(Value value) {
      int op = maker[value.id()];
      if (op == DataFlow.NONE || fusion.unitOf(op) != unit || !isElementwise(op)) {
        return NEVER;
      }
      long sum = 0;
      for (var operand : new LinkedHashSet<>(ops.get(op).operands())) {
        sum = Math.min(NEVER, sum + weight(operand));
      }
      return sum;
    }

    private long keeping(Value value) {
      int storage = aliases.id(value);
      if (storage < 0) {
        return 0;
      }
      if (given.contains(value) || !keeps(storage)) {
        return NEVER;
      }
      return (isLiveAnyway(storage) ? 0 : KEPT * bytes(storage)) + value.tensor().bytes();
    }

    /** Whether a storage can hold its elements until the last reader. */
    private boolean keeps(int storage) {
      if (!aliases.families().isAlone(storage) || isDonated(storage)) {
        return false;
      }
      for (int writer : writers) {
        var op = ops.get(writer);
        if (writer >= begin(unit)
            && writer < begin(last)
            && (op.def().isUnbounded()
                || storages(op.written()).contains(storage)
                || storages(op.moved()).contains(storage))) {
          return false;
        }
      }
      return true;
    }

    private boolean isDonated(int storage) {
      var of = aliases.storage(storage);
      return of.isInput() && own.spaces().input(of.value()) == MemorySpace.DONATED;
    }

    private boolean isLiveAnyway(int storage) {
      return !fusion.isPassing(storage) && own.uses().lastOpOrCaller(storage) >= begin(last);
    }

    boolean pays() {
      var keptAnew = new HashSet<Integer>();
      for (var value : kept) {
        int storage = aliases.id(value);
        if (storage >= 0 && !keeps(storage)) {
          return false;
        }
        if (storage >= 0 && !isLiveAnyway(storage)) {
          keptAnew.add(storage);
        }
      }
      var gone = new HashSet<>(storages(given));
      return bytes(keptAnew) < bytes(gone)
          && addedTraffic(keptAnew) < 0
          && atMaker(gone, keptAnew) <= atMaker(Set.of(), Set.of())
          && atLast(gone, keptAnew) <= atLast(Set.of(), Set.of());
    }

    /** {@return the bytes that kernels read and write more; less if it is negative} */
    private long addedTraffic(Set<Integer> keptAnew) {
      long added = 0;
      for (var value : given) {
        added -= (1 + readers.size()) * value.tensor().bytes();
      }
      for (var value : kept) {
        int storage = aliases.id(value);
        if (storage < 0) {
          continue;
        }
        added += keptAnew.contains(storage) && fusion.isPassing(storage) ? bytes(storage) : 0;
        for (int reader : readers) {
          boolean reads =
              kernel(reader).stream().anyMatch(op -> ops.get(op).operands().contains(value));
          added += reads ? 0 : value.tensor().bytes();
        }
      }
      return added;
    }

    /** {@return the bytes that are live at the maker only, or begin or end there} */
    private long atMaker(Set<Integer> gone, Set<Integer> keptAnew) {
      var dying = dying(unit);
      long held = bytes(dying);
      dying.removeAll(keptAnew);
      var made = made(unit);
      made.removeAll(gone);
      keptAnew.stream().filter(fusion::isPassing).forEach(made::add);
      return held + bytesNotInPlace(unit, made, dying);
    }

    /** {@return the same at the last reader} */
    private long atLast(Set<Integer> gone, Set<Integer> keptAnew) {
      var dying = dying(last);
      dying.removeAll(gone);
      dying.addAll(keptAnew);
      return bytes(dying) + bytesNotInPlace(last, made(last), dying);
    }
  }

  private ImmutableIntArray kernelOf(int unit) {
    return units.get(unit);
  }

  private List<Integer> kernel(int unit) {
    return kernelOf(unit).asList();
  }

  private int begin(int unit) {
    return kernelOf(unit).get(0);
  }

  private int end(int unit) {
    return kernelOf(unit).get(kernelOf(unit).length() - 1);
  }

  /** {@return the storages that are older than a kernel and end with it} */
  private Set<Integer> dying(int unit) {
    var dying = new LinkedHashSet<Integer>();
    for (int op : kernel(unit)) {
      for (int storage : storages(ops.get(op).operands())) {
        if (aliases.storage(storage).def() < begin(unit)
            && own.uses().lastOpOrCaller(storage) <= end(unit)) {
          dying.add(storage);
        }
      }
    }
    return dying;
  }

  /** {@return the storages that a kernel makes in memory} */
  private Set<Integer> made(int unit) {
    var made = new HashSet<Integer>();
    for (int op : kernel(unit)) {
      storages(ops.get(op).results()).stream()
          .filter(storage -> !fusion.isPassing(storage))
          .forEach(made::add);
    }
    return made;
  }

  /** {@return the bytes of what a kernel makes, but for what can lie where others end} */
  private long bytesNotInPlace(int unit, Set<Integer> made, Set<Integer> dying) {
    var free = new LinkedHashSet<>(dying);
    long bytes = 0;
    for (int op : kernel(unit)) {
      for (int storage : storages(ops.get(op).results())) {
        if (made.contains(storage)) {
          var place =
              free.stream()
                  .filter(
                      old ->
                          isElementwise(op)
                              && bytes(old) == bytes(storage)
                              && lastUse(old, unit) <= op)
                  .findFirst();
          place.ifPresent(free::remove);
          bytes += place.isPresent() ? 0 : bytes(storage);
        }
      }
    }
    return bytes;
  }

  /** {@return the last op of a kernel that uses a storage; {@link DataFlow#NONE} if none does} */
  private int lastUse(int storage, int unit) {
    for (int i = users.size(storage) - 1; i >= 0; i--) {
      if (fusion.unitOf(users.get(storage, i)) == unit) {
        return users.get(storage, i);
      }
    }
    return DataFlow.NONE;
  }

  private long bytes(int storage) {
    return aliases.storage(storage).bytes();
  }

  private long bytes(Set<Integer> storages) {
    return storages.stream().mapToLong(this::bytes).sum();
  }
}
