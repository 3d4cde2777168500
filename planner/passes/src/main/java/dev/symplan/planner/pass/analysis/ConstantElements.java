package dev.symplan.planner.pass.analysis;

import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.stream.LongStream;

/**
 * The elements of tensors that depend on no input, such as masks, as {@link ConstantOps} evaluates
 * them. Long tensors are evaluated row by row and never held whole.
 */
public final class ConstantElements {

  /** Shorter tensors are held, so that any op can read them in any order. */
  private static final long MAX_HELD = 1 << 20;

  /** Longer tensors are not evaluated. */
  private static final long MAX_ELEMENTS = 1L << 36;

  /** Runs of all rows that are evaluated: more would take longer than the rest of compiling. */
  private static final long MAX_RUNS = 1L << 24;

  /** Runs that are kept: each layer of a model may make its mask of the same rows. */
  private static final long MAX_KEPT = 1L << 18;

  /** Reads elements as they lie in memory. */
  private interface Source {
    Runs read(long from, long step, int count);
  }

  private final Aliases aliases;
  private final Graph graph;
  private final Map<Integer, Optional<Source>> sources = new HashMap<>();

  /** By storage, whether an op may write into it. */
  private final boolean[] written;

  private long runs = 0;
  private long keptRuns = 0;

  public ConstantElements(Graph graph, Aliases aliases) {
    this.graph = graph;
    this.aliases = aliases;
    this.written = new boolean[aliases.count()];
    for (var op : graph.ops()) {
      if (op.def().schema().mutates() || op.def().isUnbounded()) {
        op.operands().stream()
            .filter(Value::isTensor)
            .forEach(value -> written[aliases.id(value)] = true);
      }
    }
  }

  /** Sees the elements of a tensor row by row, and says whether it wants more. */
  public interface Visitor {

    /**
     * @param row the number of the row, in the order of indices
     * @param elements of the row; a bool is 1 or 0
     */
    boolean visit(long row, Runs elements);
  }

  /**
   * {@return whether the elements are known, and the visitor wanted all of them}
   *
   * @param tensor with at least one dimension
   */
  public boolean all(Value tensor, Visitor visitor) {
    var type = tensor.tensor();
    if (type.rank() == 0 || type.numel() == 0 || type.numel() > MAX_ELEMENTS) {
      return false;
    }
    try {
      var rows = reader(tensor, type);
      long count = type.numel() / type.size(type.rank() - 1);
      for (long row = 0; row < count; row++) {
        if (!visitor.visit(row, counted(rows.row(row)))) {
          return false;
        }
      }
      return true;
    } catch (UnknownElements | ArithmeticException e) {
      return false;
    }
  }

  private Runs counted(Runs row) {
    runs += row.count();
    if (runs > MAX_RUNS) {
      throw new UnknownElements();
    }
    return row;
  }

  /** {@return a reader of a tensor's rows as it is broadcast to a shape} */
  RowFunction reader(Value value, TensorType shape) {
    var type = value.tensor();
    var source = source(value);
    int rank = shape.rank();
    var strides = new long[rank];
    for (int dim = 0; dim < type.rank(); dim++) {
      strides[rank - type.rank() + dim] = type.size(dim) == 1 ? 0 : type.stride(dim);
    }
    long begin = aliases.offset(value) / type.dtype().bytes();
    int length = ConstantOps.lastSize(shape);
    return row -> {
      long at = begin;
      long left = row;
      for (int dim = rank - 2; dim >= 0; dim--) {
        at += left % shape.size(dim) * strides[dim];
        left /= shape.size(dim);
      }
      return source.read(at, rank == 0 ? 0 : strides[rank - 1], length);
    };
  }

  private Source source(Value value) {
    var storage = aliases.of(value);
    if (value.tensor().dtype() != storage.value().tensor().dtype()) {
      // A view takes the same bytes for other elements.
      throw new UnknownElements();
    }
    var known = sources.get(storage.id());
    if (known == null) {
      sources.put(storage.id(), Optional.empty());
      known = evaluated(storage);
      sources.put(storage.id(), known);
    }
    return known.orElseThrow(UnknownElements::new);
  }

  private Optional<Source> evaluated(Aliases.Storage storage) {
    var value = storage.value();
    if (storage.isInput()
        || written[storage.id()]
        || !aliases.families().isAlone(storage.id())
        || !value.isTensor()
        || !value.tensor().isContiguous()
        || value.tensor().numel() > MAX_ELEMENTS
        || value.tensor().dtype().bytes() * value.tensor().numel() > storage.bytes()
        || aliases.offset(value) != 0) {
      return Optional.empty();
    }
    try {
      var type = value.tensor();
      var rows = new ConstantOps(this).rows(graph.ops().get(storage.def()), type);
      int length = ConstantOps.lastSize(type);
      return Optional.of(
          type.numel() <= MAX_HELD ? held(rows, type.numel(), length) : rowwise(rows, length));
    } catch (UnknownElements | ArithmeticException e) {
      return Optional.empty();
    }
  }

  private Source held(RowFunction rows, long numel, int length) {
    var all = joined(rows, numel, length);
    return (from, step, count) -> all.slice((int) from, (int) step, count);
  }

  private Runs joined(RowFunction rows, long numel, int length) {
    return Runs.join(
        LongStream.range(0, length == 0 ? 0 : numel / length)
            .mapToObj(row -> counted(rows.row(row)))
            .toList());
  }

  private Source rowwise(RowFunction rows, int length) {
    return new Source() {
      private final Map<Long, Runs> kept = new HashMap<>();
      private long last = -1;
      private Runs row = Runs.of(0, 0);

      @Override
      public Runs read(long from, long step, int count) {
        int column = (int) (from % length);
        if (step != 0 && column + (count - 1) * step >= length) {
          throw new UnknownElements();
        }
        long wanted = from / length;
        if (last != wanted) {
          row = Optional.ofNullable(kept.get(wanted)).orElseGet(() -> made(wanted));
          last = wanted;
        }
        return row.slice(column, (int) step, count);
      }

      private Runs made(long wanted) {
        var made = counted(rows.row(wanted));
        if (keptRuns + made.count() <= MAX_KEPT) {
          keptRuns += made.count();
          kept.put(wanted, made);
        }
        return made;
      }
    };
  }

  /** {@return all elements of a tensor that is not long, as they are in a contiguous one} */
  Runs held(Value value) {
    var type = value.tensor();
    if (type.numel() > MAX_HELD) {
      throw new UnknownElements();
    }
    return joined(reader(value, type), type.numel(), ConstantOps.lastSize(type));
  }
}
