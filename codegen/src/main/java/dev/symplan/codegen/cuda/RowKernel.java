package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.cuda.RowNode.Computed;
import dev.symplan.codegen.cuda.RowNode.Fold;
import dev.symplan.codegen.cuda.RowNode.Folded;
import dev.symplan.codegen.cuda.RowNode.Loaded;
import dev.symplan.codegen.cuda.RowNode.Location;
import dev.symplan.codegen.cuda.RowNode.Scanned;
import dev.symplan.codegen.cuda.RowNode.Store;
import dev.symplan.planner.plan.StreamKind;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Builds a kernel that takes rows, one after the other, through values: of each element of a row,
 * or one for all, which a fold over the elements leaves.
 *
 * <p>Some threads share a row, and its elements among them. They go through it once for each fold
 * that needs the one before, and write only the last time, so that results may lie where operands
 * do. What a later pass needs again is kept in registers where the row is short enough, else
 * computed again.
 */
final class RowKernel {
  /** Beyond this, blocks take several rows each. */
  private static final int MAX_BLOCKS = 1 << 16;

  private final ImmutableLongArray rowSizes;
  private final ImmutableLongArray innerSizes;
  private final long rows;
  private final long elements;
  private final List<RowNode> nodes = new ArrayList<>();
  private final Map<Location, Integer> loads = new HashMap<>();
  private final List<Store> stores = new ArrayList<>();
  private boolean inOrder;
  private boolean across;

  /**
   * @param rowSizes the indices of rows
   * @param innerSizes the indices of a row's elements
   */
  RowKernel(ImmutableLongArray rowSizes, ImmutableLongArray innerSizes) {
    this.rowSizes = rowSizes;
    this.innerSizes = innerSizes;
    this.rows = rowSizes.stream().reduce(1, Math::multiplyExact);
    this.elements = innerSizes.stream().reduce(1, Math::multiplyExact);
  }

  /** {@return the name of a value in messages and expressions} */
  static String name(int node) {
    return "v" + node;
  }

  /**
   * Has neighbouring threads take neighbouring rows, rather than elements: for rows whose elements
   * are further apart in memory than rows are.
   */
  void goAcross() {
    across = true;
  }

  ImmutableLongArray rowSizes() {
    return rowSizes;
  }

  ImmutableLongArray innerSizes() {
    return innerSizes;
  }

  /** {@return the number of rows} */
  long rows() {
    return rows;
  }

  /** {@return the number of elements of a row} */
  long elements() {
    return elements;
  }

  private boolean isFull(int node) {
    return nodes.get(node).full();
  }

  private boolean isAnyFull(List<Integer> inputs) {
    return inputs.stream().anyMatch(this::isFull);
  }

  private int add(RowNode node) {
    nodes.add(node);
    return nodes.size() - 1;
  }

  /**
   * {@return a tensor's elements, as they are computed with}
   *
   * @param full whether it has one for each element of a row, be it the same
   */
  int load(Location location, boolean full) {
    return loads.computeIfAbsent(location, p -> add(new Loaded(p, full, Optional.empty())));
  }

  /**
   * {@return the elements of a tensor that an index picks}
   *
   * @param location where they are where the index is 0
   */
  int pick(Location location, RowNode.Offset offset) {
    return add(new Loaded(location, isFull(offset.index()), Optional.of(offset)));
  }

  /**
   * {@return the index along a dimension}
   *
   * @param inner whether it is one of those within a row, rather than one of those that count rows
   */
  int index(int dim, boolean inner) {
    return add(new RowNode.Index(dim, inner));
  }

  /** {@return the value of an expression of the inputs' names} */
  int compute(String type, String text, List<Integer> inputs) {
    return add(new Computed(type, text, ImmutableList.copyOf(inputs), isAnyFull(inputs)));
  }

  /**
   * {@return the state that a fold keeps of a row; the second part of it has {@code _1} at its
   * name}
   *
   * @param terms the terms that it takes in, expressions of the inputs' names and of {@code {c}},
   *     the element's number
   * @param overRow whether there is a term for each element of the row, rather than one
   */
  int fold(Fold fold, List<String> terms, List<Integer> inputs, boolean overRow) {
    return add(
        new Folded(fold, ImmutableList.copyOf(terms), ImmutableList.copyOf(inputs), overRow));
  }

  /** {@return for each element what a fold keeps of those up to it} */
  int scan(Fold fold, String term, List<Integer> inputs) {
    boolean full = isAnyFull(inputs);
    inOrder |= full;
    return add(new Scanned(fold, term, ImmutableList.copyOf(inputs), full));
  }

  /** Writes a value into a tensor. */
  void store(int node, Location location) {
    stores.add(new Store(node, location));
  }

  DeviceStep.Launch build(StreamKind stream, String label) {
    var ordered = inMemoryOrder();
    var held = ordered.turnedRows();
    return held.isPresent()
        ? ordered.launch(stream, label, held.get())
        : ordered.launch(stream, label);
  }

  /** The tensors whose rows blocks are to hold; empty if they had better read elements. */
  private Optional<TurnedRows> turnedRows() {
    return inOrder || across
        ? Optional.empty()
        : TurnedRows.of(
            rowSizes,
            innerSizes,
            nodes.stream()
                .filter(node -> node instanceof Loaded own && own.full() && own.offset().isEmpty())
                .map(node -> ((Loaded) node).location())
                .toList());
  }

  private DeviceStep.Launch launch(StreamKind stream, String label, TurnedRows held) {
    var kernel = new RowKernel(rowSizes, innerSizes);
    for (var node : nodes) {
      kernel.nodes.add(
          node instanceof Loaded(var location, boolean full, var offset)
              ? new Loaded(held.of(location), full, offset)
              : node);
    }
    kernel.stores.addAll(stores);
    var memory = new MemoryArguments();
    var threads = held.threads(kernel.vectors());
    var text =
        held.kernel(
            new RowWriter(kernel, kernel.nodes, kernel.stores, threads).rows(memory),
            threads,
            memory);
    return memory
        .launch(
            stream,
            text,
            Math.ceilDiv(rows, threads.together()),
            MAX_BLOCKS,
            threads.block(),
            label)
        .withShared(held.bytes());
  }

  private DeviceStep.Launch launch(StreamKind stream, String label) {
    var threads = RowThreads.of(rows, elements, inOrder, across, vectors());
    var memory = new MemoryArguments();
    var text = new RowWriter(this, nodes, stores, threads).kernel(memory);
    return memory.launch(
        stream, text, Math.ceilDiv(rows, threads.together()), MAX_BLOCKS, threads.block(), label);
  }

  /**
   * The work of a block on rows, in a kernel that does something else with them before.
   *
   * @param statements for the rows from {@code first} on; threads have a {@code lane}
   * @param threads how rows are divided among them
   */
  record Rows(String statements, RowThreads threads) {}

  /**
   * {@return statements for a part of another kernel's rows}
   *
   * @param memory the arguments of the kernel that they become a part of
   * @param most threads of a block, if there are rows enough
   * @param mostRows that a block should take at once
   */
  Rows rows(MemoryArguments memory, int most, long mostRows) {
    var threads =
        RowThreads.of(rows, elements, inOrder, across, vectors()).wider(rows, most, mostRows);
    return new Rows(new RowWriter(this, nodes, stores, threads).rows(memory), threads);
  }

  /**
   * The same kernel, which takes the rows in the order in which they are neighbours in memory where
   * a row's elements are not: across rows, if most of what is read and written lies so.
   */
  private RowKernel inMemoryOrder() {
    var order = RowOrder.of(rowSizes, innerSizes, fullLocations());
    if (nodes.stream().anyMatch(node -> node instanceof RowNode.Index index && !index.full())) {
      return this;
    }
    var kernel = new RowKernel(order.of(rowSizes), innerSizes);
    for (var node : nodes) {
      kernel.nodes.add(
          node instanceof Loaded(var location, boolean full, var offset)
              ? new Loaded(order.of(location), full, offset)
              : node);
    }
    stores.forEach(store -> kernel.stores.add(new Store(store.node(), order.of(store.location()))));
    kernel.inOrder = inOrder;
    kernel.across = across || order.across();
    return kernel;
  }

  /** Where the elements of rows are that are read, at places that are known, or written. */
  private List<Location> fullLocations() {
    var all = new ArrayList<Location>();
    for (var node : nodes) {
      if (node instanceof Loaded(var location, boolean full, var offset)
          && full
          && offset.isEmpty()) {
        all.add(location);
      }
    }
    stores.stream().filter(store -> isFull(store.node())).map(Store::location).forEach(all::add);
    return all;
  }

  /** The vectors that all elements of rows lie for. */
  private Vectors vectors() {
    if (nodes.stream()
        .anyMatch(node -> node instanceof Loaded own && own.full() && own.offset().isPresent())) {
      return Vectors.NONE;
    }
    var locations = new RowLocations(rowSizes, innerSizes);
    var all = fullLocations();
    return Vectors.widest(
        all.stream().map(Location::dtype).toList(),
        stores.stream()
            .filter(store -> isFull(store.node()))
            .map(store -> store.location().dtype())
            .toList(),
        wide -> all.stream().allMatch(location -> locations.isWide(location, wide)));
  }

  /**
   * {@return statements that do, with all threads of a block, some of the rows: so many together,
   * of which {@code outer} is the number}
   *
   * @param threads those of the block
   * @param memory the arguments of the kernel that they become a part of
   */
  String fragment(long together, int threads, MemoryArguments memory) {
    return new RowWriter(this, nodes, stores, RowThreads.ALONE).fragment(together, threads, memory);
  }
}
