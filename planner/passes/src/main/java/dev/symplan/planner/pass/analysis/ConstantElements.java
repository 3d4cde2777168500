package dev.symplan.planner.pass.analysis;

import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/**
 * The elements of tensors that depend on no input, such as masks, as {@link ConstantOps} evaluates
 * them. Long tensors are evaluated row by row and never held whole.
 */
public final class ConstantElements {

  /** Shorter tensors are held, so that any op can read them in any order. */
  private static final long MAX_HELD = 1 << 20;

  /** Longer tensors are not evaluated: that would take longer than the rest of compiling. */
  private static final long MAX_ELEMENTS = 1L << 28;

  /** Reads elements as they lie in memory. */
  private interface Source {
    void read(long from, long step, double[] into, int count);
  }

  private final Aliases aliases;
  private final Graph graph;
  private final Map<Integer, Optional<Source>> sources = new HashMap<>();

  /** By storage, whether an op may write into it. */
  private final boolean[] written;

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
    boolean visit(long row, double[] elements);
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
      var elements = new double[Math.toIntExact(type.size(type.rank() - 1))];
      long count = type.numel() / elements.length;
      for (long row = 0; row < count; row++) {
        rows.row(row, elements);
        if (!visitor.visit(row, elements)) {
          return false;
        }
      }
      return true;
    } catch (UnknownElements e) {
      return false;
    }
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
    return (row, into) -> {
      long at = begin;
      long left = row;
      for (int dim = rank - 2; dim >= 0; dim--) {
        at += left % shape.size(dim) * strides[dim];
        left /= shape.size(dim);
      }
      source.read(at, rank == 0 ? 0 : strides[rank - 1], into, into.length);
    };
  }

  private Source source(Value value) {
    var storage = aliases.of(value);
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
      int length = Math.toIntExact(type.rank() == 0 ? 1 : type.size(type.rank() - 1));
      return Optional.of(
          type.numel() <= MAX_HELD ? held(rows, type.numel(), length) : rowwise(rows, length));
    } catch (UnknownElements | ArithmeticException e) {
      return Optional.empty();
    }
  }

  private static Source held(RowFunction rows, long numel, int length) {
    var all = new double[(int) numel];
    var row = new double[length];
    for (int i = 0; i < (length == 0 ? 0 : numel / length); i++) {
      rows.row(i, row);
      System.arraycopy(row, 0, all, i * length, length);
    }
    return (from, step, into, count) -> pick(all, (int) from, step, into, count);
  }

  private static Source rowwise(RowFunction rows, int length) {
    var row = new double[length];
    var last = new long[] {-1};
    return (from, step, into, count) -> {
      int column = (int) (from % length);
      if (step != 0 && column + (count - 1) * step >= length) {
        throw new UnknownElements();
      }
      if (last[0] != from / length) {
        rows.row(from / length, row);
        last[0] = from / length;
      }
      pick(row, column, step, into, count);
    };
  }

  private static void pick(double[] all, int from, long step, double[] into, int count) {
    if (step == 1) {
      System.arraycopy(all, from, into, 0, count);
    } else if (step == 0 && count > 0) {
      Arrays.fill(into, 0, count, all[from]);
    } else {
      for (int i = 0; i < count; i++) {
        into[i] = all[(int) (from + i * step)];
      }
    }
  }

  /** {@return all elements of a tensor that is not long} */
  double[] held(Value value) {
    var type = value.tensor();
    if (type.numel() > MAX_HELD) {
      throw new UnknownElements();
    }
    int length = ConstantOps.lastSize(type);
    var rows = reader(value, type);
    var all = new double[(int) type.numel()];
    var row = new double[length];
    for (int i = 0; i < (length == 0 ? 0 : all.length / length); i++) {
      rows.row(i, row);
      System.arraycopy(row, 0, all, i * length, length);
    }
    return all;
  }
}
