package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.Layouts;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.SliceDims;
import dev.symplan.planner.pass.analysis.Aliases;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.rewrite.Traversal.Loop;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.LongFunction;
import java.util.stream.Stream;

/**
 * The collectives of one graph that need no copies around them, if their slices may be rows.
 *
 * <p>A collective moves slices that lie one after the other. Where the program wants them side by
 * side, along another dimension, it copies everything once more: what it got, or what it sends.
 * Such a copy is known by the order in which it goes through memory, whatever ops and views make it
 * up.
 */
final class FoldableLayouts {
  private static final Optional<Widening> NOT_WIDENED = Optional.empty();

  private final Analyses graph;
  private final Aliases aliases;
  private final ImmutableList<Op> ops;
  private final DataFlow flow;

  FoldableLayouts(Analyses graph, DataFlow flow) {
    this.graph = graph;
    this.aliases = graph.aliases();
    this.ops = graph.graph().ops();
    this.flow = flow;
  }

  /**
   * A copy around a collective.
   *
   * @param op its position in the graph; {@link DataFlow#NONE} where the collective itself would
   *     copy
   * @param rows of which each slice is on its far side, where slices lie side by side
   * @param far the tensor there: what the copy makes, or what it is of
   */
  private record Copy(int op, long rows, Value far) {}

  /**
   * {@return how a collective can do without copies, between so many ranks}
   *
   * @param widens whether a scatter may also convert what it reduces ({@link Widening})
   */
  Optional<LayoutFold> of(int k, int ranks, boolean widens) {
    var collective = graph.collectives().get(k);
    if (!isPlain(collective, ranks)) {
      return Optional.empty();
    }
    return switch (collective.kind()) {
      case ALL_GATHER ->
          after(collective, ranks).flatMap(copy -> gather(k, collective, copy, ranks));
      case REDUCE_SCATTER -> scatter(k, collective, ranks, widens);
      case ALL_TO_ALL -> exchange(k, collective, ranks);
      case ALL_REDUCE, BROADCAST, COLLECTIVE_PERMUTE, CUSTOM -> Optional.empty();
    };
  }

  private static boolean isPlain(Collective collective, int ranks) {
    var op = collective.op();
    return ranks > 1
        && op.def().name().namespace().startsWith("_c10d_functional")
        && !op.def().schema().mutates()
        && collective.operands().size() == 1
        && collective.operands().getFirst().tensor().numel() > 0
        && collective.operands().getFirst().tensor().rank() > 0;
  }

  private static Optional<LayoutFold> gather(int k, Collective collective, Copy copy, int ranks) {
    var source = collective.operands().getFirst();
    var result = sizes(copy.far(), copy.rows(), ranks);
    var sizes = with(result.sizes(), result.dim(), result.sizes().get(result.dim()) / ranks);
    return Layouts.viewStrides(source.tensor(), sizes).isPresent()
        ? Optional.of(
            new LayoutFold(
                k,
                ranks,
                source,
                sizes,
                new SliceDims(0, result.dim()),
                result.sizes(),
                copy.far(),
                ops(Stream.of(copy))))
        : Optional.empty();
  }

  /** A conversion may be behind the copy before a scatter, or in front of it. */
  private Optional<LayoutFold> scatter(int k, Collective collective, int ranks, boolean widens) {
    var sent = collective.operands().getFirst();
    var behind = widens ? widening(sent, collective.index(), collective) : NOT_WIDENED;
    var whole = behind.map(Widening::narrow).orElse(sent);
    int reader = behind.map(Widening::op).orElse(collective.index());
    var copy = before(collective, whole, reader, ranks);
    if (copy.isEmpty()) {
      return Optional.empty();
    }
    var before =
        widens && behind.isEmpty() && copy.get().op() != DataFlow.NONE
            ? widening(copy.get().far(), copy.get().op(), collective)
                .filter(widening -> widening.narrow().tensor().isContiguous())
            : NOT_WIDENED;
    var copies =
        ImmutableIntArray.builder()
            .addAll(ops(Stream.of(copy.get())))
            .addAll(Stream.of(behind, before).flatMap(Optional::stream).mapToInt(Widening::op))
            .build();
    var source = before.map(Widening::narrow).orElse(copy.get().far());
    return Optional.of(scatter(k, collective, source, copy.get().rows(), copies, ranks));
  }

  private Optional<Widening> widening(Value wide, int reader, Collective collective) {
    return Widening.of(wide, reader, collective.index(), graph, flow);
  }

  private static LayoutFold scatter(
      int k, Collective collective, Value source, long rows, ImmutableIntArray copies, int ranks) {
    var target = collective.results().getFirst();
    var part = sizes(target, rows, 1);
    var sizes = with(part.sizes(), part.dim(), part.sizes().get(part.dim()) * ranks);
    return new LayoutFold(
        k, ranks, source, sizes, new SliceDims(part.dim(), 0), part.sizes(), target, copies);
  }

  private static ImmutableIntArray ops(Stream<Copy> copies) {
    return ImmutableIntArray.copyOf(copies.mapToInt(Copy::op).filter(op -> op != DataFlow.NONE));
  }

  /** Each slice is seen as rows of both ends, and the dimensions of what is in them. */
  private Optional<LayoutFold> exchange(int k, Collective collective, int ranks) {
    var operand = collective.operands().getFirst();
    var call = collective.op().collective().orElseThrow();
    boolean equal =
        call.inputSplits().stream().distinct().count() <= 1
            && call.outputSplits().stream().distinct().count() <= 1
            && operand.tensor().size(0) % ranks == 0
            && collective.results().getFirst().tensor().numel() == operand.tensor().numel();
    var before =
        equal ? before(collective, operand, collective.index(), ranks) : Optional.<Copy>empty();
    var after = equal ? after(collective, ranks) : Optional.<Copy>empty();
    var source = before.map(Copy::far).orElse(operand);
    long sent = before.map(Copy::rows).orElse(1L);
    long received = after.map(Copy::rows).orElse(1L);
    if ((before.isEmpty() && after.isEmpty())
        || !(source.tensor().isContiguous() || before.isPresent())
        || Math.max(sent, received) % Math.min(sent, received) != 0) {
      return Optional.empty();
    }
    long outer = Math.min(sent, received);
    long middle = Math.max(sent, received) / outer;
    long inner = operand.tensor().numel() / ranks / outer / middle;
    var slice =
        ImmutableLongArray.builder()
            .add(outer)
            .add(middle)
            .addAll(inner(operand.tensor(), inner))
            .build();
    // Slices of fewer rows lie along the dimension in front.
    var dims = sent <= received ? new SliceDims(1, 2) : new SliceDims(2, 1);
    return Optional.of(
        new LayoutFold(
            k,
            ranks,
            source,
            with(slice, dims.operand(), slice.get(dims.operand()) * ranks),
            dims,
            with(slice, dims.result(), slice.get(dims.result()) * ranks),
            after.map(Copy::far).orElse(collective.results().getFirst()),
            ops(Stream.concat(before.stream(), after.stream()))));
  }

  /** {@return the last dimensions of a tensor that have so many elements; else all in one} */
  private static ImmutableLongArray inner(TensorType type, long elements) {
    long product = 1;
    for (int dim = type.rank() - 1; dim > 0 && product < elements; dim--) {
      product *= type.size(dim);
      if (product == elements) {
        return type.sizes().subArray(dim, type.rank());
      }
    }
    return ImmutableLongArray.of(elements);
  }

  /**
   * Sizes with a dimension after so many rows.
   *
   * @param dim the dimension, whose size the number of parts divides
   */
  private record Sizes(ImmutableLongArray sizes, int dim) {}

  /** The tensor's own, where one of its dimensions is that; else rows and what is in them. */
  private static Sizes sizes(Value value, long rows, int parts) {
    var type = value.tensor();
    for (int dim = type.rank() - 1; dim > 0; dim--) {
      if (SliceDims.rows(type, dim) == rows && type.size(dim) % parts == 0) {
        return new Sizes(type.sizes(), dim);
      }
    }
    return new Sizes(ImmutableLongArray.of(rows, type.numel() / rows), 1);
  }

  private static ImmutableLongArray with(ImmutableLongArray sizes, int dim, long size) {
    var changed = sizes.toArray();
    changed[dim] = size;
    return ImmutableLongArray.copyOf(changed);
  }

  /**
   * {@return the copy that puts the slices side by side which a collective gave, if it is alone}
   */
  private Optional<Copy> after(Collective collective, int ranks) {
    var whole = collective.results().getFirst();
    int storage = aliases.id(whole);
    int reader = flow.onlyReader(storage);
    if (reader == DataFlow.NONE || !aliases.isWhole(whole) || !copiesAll(reader, whole.tensor())) {
      return Optional.empty();
    }
    return Traversal.of(ops.get(reader), aliases)
        .filter(copy -> copy.offset() == 0 && !copy.loops().isEmpty())
        .filter(
            copy -> copy.loops().equals(sideBySide(copy.loops().getFirst().rounds(), whole, ranks)))
        .map(copy -> new Copy(reader, copy.loops().getFirst().rounds(), ops.get(reader).result()));
  }

  /**
   * {@return the copy that puts the slices one after the other which a collective sends}
   *
   * @param whole the tensor that it sends
   * @param reader the only op that reads that
   */
  private Optional<Copy> before(Collective collective, Value whole, int reader, int ranks) {
    return whole.tensor().isContiguous()
        ? copyBefore(collective, whole, reader, ranks)
        // A view that the collective would have to copy by itself.
        : split(DataFlow.NONE, whole, Traversal.of(whole, aliases), whole, ranks);
  }

  private Optional<Copy> copyBefore(Collective collective, Value whole, int reader, int ranks) {
    int storage = aliases.id(whole);
    int maker = aliases.storage(storage).def();
    if (maker == DataFlow.NONE
        || flow.onlyReader(storage) != reader
        || !aliases.isWhole(whole)
        || !copiesAll(maker, whole.tensor())
        || flow.mayWrite(maker + 1, collective.index())) {
      return Optional.empty();
    }
    var copy = ops.get(maker);
    return Traversal.of(copy, aliases)
        .flatMap(
            order ->
                split(maker, copy.args().getFirst().operands().getFirst(), order, whole, ranks));
  }

  /** {@return a copy in an order that takes slices apart which lie side by side in what it sees} */
  private Optional<Copy> split(int op, Value seen, Traversal order, Value whole, int ranks) {
    if (order.loops().size() < 2) {
      return Optional.empty();
    }
    long rows = order.loops().get(1).rounds();
    // Beside the slices, there may be something else.
    long pitch = order.loops().get(1).stride();
    return order.loops().equals(apart(rows, pitch, whole, ranks))
        ? inRows(seen, order.offset(), whole.tensor(), rows, pitch)
            .map(far -> new Copy(op, rows, far))
        : Optional.empty();
  }

  /** {@return the loops that put slices of so many rows side by side} */
  private static ImmutableList<Loop> sideBySide(long rows, Value whole, int ranks) {
    long slice = whole.tensor().numel() / ranks;
    return loops(rows, slice, row -> List.of(new Loop(rows, row), new Loop(ranks, slice)));
  }

  /**
   * {@return the loops that put slices of so many rows one after the other}
   *
   * @param pitch the elements from a row of all slices to the next
   */
  private static ImmutableList<Loop> apart(long rows, long pitch, Value whole, int ranks) {
    long slice = whole.tensor().numel() / ranks;
    return loops(rows, slice, row -> List.of(new Loop(ranks, row), new Loop(rows, pitch)));
  }

  /** Those outside, by the elements of a row of a slice, and the one in the row. */
  private static ImmutableList<Loop> loops(
      long rows, long slice, LongFunction<List<Loop>> outside) {
    if (rows < 2 || slice % rows != 0) {
      // Nothing goes through several elements in no loop.
      return ImmutableList.of();
    }
    long row = slice / rows;
    var loops = new ArrayList<>(outside.apply(row));
    loops.add(new Loop(row, 1));
    return Traversal.of(0, loops).loops();
  }

  /** Whether an op makes as many elements as there are, of the same type, row by row. */
  private boolean copiesAll(int op, TensorType whole) {
    var results = ops.get(op).results();
    if (results.size() != 1 || !results.getFirst().isTensor()) {
      return false;
    }
    var type = results.getFirst().tensor();
    return aliases.storage(aliases.id(results.getFirst())).def() == op
        && type.dtype() == whole.dtype()
        && type.numel() == whole.numel()
        && type.strides().equals(TensorType.contiguousStrides(type.sizes()));
  }

  /**
   * {@return the tensor that a view shows, if that has such elements at an offset, row by row, so
   * many of them from the beginning of a row to the next}
   */
  private Optional<Value> inRows(Value view, long offset, TensorType like, long rows, long pitch) {
    var apart =
        Optional.of(pitch)
            .filter(own -> own != like.numel() / rows)
            .map(own -> new TensorType.Rows.Loop(rows, own))
            .map(loop -> new TensorType.Rows(like.numel() / rows, ImmutableList.of(loop)));
    var value = view;
    while (true) {
      var type = value.tensor();
      if (aliases.offset(value) == offset
          && (type.isContiguous() || apart.isPresent())
          && type.rowsApart().equals(apart)
          && type.dtype() == like.dtype()
          && type.numel() == like.numel()) {
        return Optional.of(value);
      }
      var base = flow.base(value);
      if (base.isEmpty()) {
        return Optional.empty();
      }
      value = base.get();
    }
  }
}
