package dev.symplan.ir.hlo;

import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * Makes PyTorch's ops of {@code gather} and {@code scatter}: the array is seen as rows, of which an
 * index picks some.
 */
final class Gathers {
  private final GraphEmitter emitter;

  Gathers(GraphEmitter emitter) {
    this.emitter = emitter;
  }

  /** {@return windows of an array, each moved so that it fits} */
  Value gather(HloInstruction instruction, Value operand, Value starts, Array shape) {
    var name = instruction.name();
    var windows = Windows.ofGather(instruction, operand, shape.tensor().rank());
    var rows = rows(name + ".rows", operand, windows);
    var parts = new ArrayList<Value>();
    for (int i = 0; i < windows.indexed().length(); i++) {
      int dim = (int) windows.indexed().get(i);
      parts.add(
          emitter.op(
              name + ".fits" + dim,
              "aten::clamp",
              new Arg.Ref(part(name + ".start" + dim, starts, windows, i)),
              new Arg.Int(0),
              new Arg.Int(windows.sizes().get(dim) - windows.counts().get(dim))));
    }
    var index = index(name, windows, parts, starts);
    var picked =
        emitter.op(
            name + ".picked",
            "aten::index_select",
            new Arg.Ref(rows),
            new Arg.Int(0),
            new Arg.Ref(flat(name + ".flat", index)));
    var order = windows.order();
    var sizes = shape.tensor().sizes();
    var whole =
        emitter.reshaped(
            picked,
            ImmutableLongArray.copyOf(order.stream().mapToLong(sizes::get)),
            name + ".whole");
    return Views.checkGives(shape, emitter.permuted(whole, inverse(order), name));
  }

  /**
   * {@return an array with windows overwritten, or added to, except for those that do not fit}
   *
   * @param adds whether what is there is added to
   */
  Value scatter(
      HloInstruction instruction, Bound operand, Value starts, Value updates, boolean adds) {
    var name = instruction.name();
    var sizes =
        switch (operand) {
          case Bound.Tensor(Value value) -> value.tensor().sizes();
          case Bound.Splat(Arg.Literal _, Array shape) -> shape.tensor().sizes();
          case Bound.Table(var _, Array shape) -> shape.tensor().sizes();
          case Bound.ByRank _, Bound.Tuple _, Bound.Hosted _, Bound.Pending _, Bound.Nothing _ ->
              throw new IllegalArgumentException("its first operand is one array");
        };
    var windows = Windows.ofScatter(instruction, sizes, updates);
    var lead = windows.lead();
    long count = lead.stream().mapToLong(sizes::get).reduce(1, Math::multiplyExact);
    // Updates that do not fit are written into one more row.
    var rows = withOneMore(name, operand, windows, count, updates.tensor().dtype());
    var parts = new ArrayList<Value>();
    Optional<Value> fits = Optional.empty();
    for (int i = 0; i < windows.indexed().length(); i++) {
      int dim = (int) windows.indexed().get(i);
      var start = part(name + ".start" + dim, starts, windows, i);
      parts.add(start);
      long last = sizes.get(dim) - windows.counts().get(dim);
      var low = compared(name + ".low" + dim, "aten::ge.Scalar", start, 0);
      var high = compared(name + ".high" + dim, "aten::le.Scalar", start, last);
      var both = op(name + ".in" + dim, "aten::logical_and", low, high);
      fits =
          Optional.of(
              fits.map(all -> op(name + ".fits", "aten::logical_and", all, both)).orElse(both));
    }
    var index = index(name, windows, parts, starts);
    if (fits.isPresent()) {
      var padded = seen(name + ".padded", fits.get(), index.tensor().rank());
      var outside = emitter.number(count, name + ".outside");
      index =
          emitter.op(
              name + ".index",
              "aten::where.self",
              new Arg.Ref(padded),
              new Arg.Ref(index),
              new Arg.Ref(outside));
    }
    var order = windows.order();
    var given = emitter.permuted(updates, order, name + ".ordered");
    long picked = index.tensor().numel();
    var source =
        emitter.reshaped(
            given,
            ImmutableLongArray.copyOf(
                LongStream.concat(
                    LongStream.of(picked), windows.rest().stream().mapToLong(sizes::get))),
            name + ".source");
    var written =
        emitter.op(
            name + ".written",
            "aten::index_put",
            new Arg.Ref(rows),
            GraphEmitter.refs(List.of(flat(name + ".flat", index))),
            new Arg.Ref(source),
            new Arg.Bool(adds));
    var kept =
        emitter.op(
            name + ".kept",
            "aten::narrow",
            new Arg.Ref(written),
            new Arg.Int(0),
            new Arg.Int(0),
            new Arg.Int(count));
    var dims = rowOrder(windows);
    var whole =
        emitter.reshaped(
            kept, ImmutableLongArray.copyOf(dims.stream().mapToLong(sizes::get)), name + ".whole");
    return emitter.permuted(whole, inverse(dims), name);
  }

  private Value withOneMore(String name, Bound operand, Windows windows, long count, DType dtype) {
    var rest = windows.rest().stream().mapToLong(windows.sizes()::get);
    if (operand instanceof Bound.Splat(Arg.Literal number, Array _)) {
      return emitter.op(
          name + ".rows",
          "aten::full",
          Arg.Seq.of(LongStream.concat(LongStream.of(count + 1), rest)),
          number,
          new Arg.Dtype(dtype));
    }
    var more =
        emitter.op(
            name + ".more",
            "aten::full",
            Arg.Seq.of(LongStream.concat(LongStream.of(1), rest)),
            new Arg.Int(0),
            new Arg.Dtype(dtype));
    var rows = rows(name + ".array", emitter.value(operand, name), windows);
    return emitter.op(
        name + ".rows", "aten::cat", GraphEmitter.refs(List.of(rows, more)), new Arg.Int(0));
  }

  private static ImmutableIntArray rowOrder(Windows windows) {
    return ImmutableIntArray.builder().addAll(windows.lead()).addAll(windows.rest()).build();
  }

  /** An array with one dimension in place of the leading ones. */
  private Value rows(String name, Value array, Windows windows) {
    var sizes = array.tensor().sizes();
    long count = windows.lead().stream().mapToLong(sizes::get).reduce(1, Math::multiplyExact);
    return emitter.reshaped(
        emitter.permuted(array, rowOrder(windows), name + ".ordered"),
        ImmutableLongArray.copyOf(
            LongStream.concat(LongStream.of(count), windows.rest().stream().mapToLong(sizes::get))),
        name);
  }

  /** One part of each index, with the dimensions of the indexes but that of the parts. */
  private Value part(String name, Value starts, Windows windows, int number) {
    var value = starts;
    if (windows.vector() < starts.tensor().rank()) {
      value =
          emitter.op(
              name + ".part",
              "aten::select.int",
              new Arg.Ref(starts),
              new Arg.Int(windows.vector()),
              new Arg.Int(number));
    }
    return emitter.converted(value, DType.I64, name);
  }

  /**
   * The numbers of the rows, with a dimension for each of the indexes and for each leading one that
   * windows have.
   */
  private Value index(String name, Windows windows, List<Value> parts, Value starts) {
    var lead = windows.lead();
    int batch = starts.tensor().rank() - (windows.vector() < starts.tensor().rank() ? 1 : 0);
    int wide = (int) lead.stream().filter(windows::isInWindow).count();
    int rank = batch + wide;
    var sum = sizesOf(name + ".zero", windows, starts, rank);
    long stride = lead.stream().mapToLong(windows.sizes()::get).reduce(1, Math::multiplyExact);
    int next = batch;
    for (int i = 0; i < lead.length(); i++) {
      int dim = lead.get(i);
      stride /= Math.max(1, windows.sizes().get(dim));
      int which = windows.indexed().indexOf(dim);
      if (which >= 0) {
        sum = plus(name, sum, seen(name + ".seen" + dim, parts.get(which), rank), stride);
      }
      int along = windows.batches().indexOf(dim);
      if (along >= 0) {
        int at = (int) windows.indexBatches().get(along);
        int place = at > windows.vector() ? at - 1 : at;
        sum =
            plus(
                name, sum, count(name + ".b" + dim, windows.sizes().get(dim), place, rank), stride);
      }
      if (windows.isInWindow(dim)) {
        if (windows.counts().get(dim) > 1) {
          sum =
              plus(
                  name,
                  sum,
                  count(name + ".w" + dim, windows.counts().get(dim), next, rank),
                  stride);
        }
        next++;
      }
    }
    return sum;
  }

  /** Zeros with all dimensions of the index. */
  private Value sizesOf(String name, Windows windows, Value starts, int rank) {
    var sizes = ImmutableLongArray.builder(rank);
    for (int dim = 0; dim < starts.tensor().rank(); dim++) {
      if (dim != windows.vector()) {
        sizes.add(starts.tensor().size(dim));
      }
    }
    windows.lead().stream()
        .filter(windows::isInWindow)
        .forEach(dim -> sizes.add(windows.counts().get(dim)));
    return emitter.op(
        name,
        "aten::full",
        GraphEmitter.integers(sizes.build()),
        new Arg.Int(0),
        new Arg.Dtype(DType.I64));
  }

  private Value plus(String name, Value sum, Value more, long stride) {
    return emitter.op(
        name + ".sum",
        "aten::add.Tensor",
        new Arg.Ref(sum),
        new Arg.Ref(more),
        new Arg.Int(stride));
  }

  /** 0, 1, 2, … along one of several dimensions. */
  private Value count(String name, long size, int dim, int rank) {
    var numbers =
        emitter.op(
            name + ".numbers",
            "aten::arange.start",
            new Arg.Int(0),
            new Arg.Int(size),
            new Arg.Dtype(DType.I64));
    var sizes =
        LongStream.concat(LongStream.of(size), LongStream.generate(() -> 1).limit(rank - dim - 1L));
    return emitter.reshaped(numbers, ImmutableLongArray.copyOf(sizes), name);
  }

  /** A value with more dimensions after its own. */
  private Value seen(String name, Value value, int rank) {
    var sizes = value.tensor().sizes();
    return emitter.reshaped(
        value,
        ImmutableLongArray.copyOf(
            LongStream.concat(
                sizes.stream(), LongStream.generate(() -> 1).limit(rank - sizes.length()))),
        name);
  }

  private Value flat(String name, Value index) {
    return emitter.reshaped(index, ImmutableLongArray.of(index.tensor().numel()), name);
  }

  private Value op(String name, String op, Value left, Value right) {
    return emitter.op(name, op, new Arg.Ref(left), new Arg.Ref(right));
  }

  private Value compared(String name, String op, Value value, long with) {
    return emitter.op(name, op, new Arg.Ref(value), new Arg.Int(with));
  }

  private static ImmutableIntArray inverse(ImmutableIntArray order) {
    int[] inverse = new int[order.length()];
    IntStream.range(0, order.length()).forEach(i -> inverse[order.get(i)] = i);
    return ImmutableIntArray.copyOf(inverse);
  }
}
