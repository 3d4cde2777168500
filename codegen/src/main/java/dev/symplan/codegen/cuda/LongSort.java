package dev.symplan.codegen.cuda;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Sorts the rows of a tensor along a dimension, stably: runs in shared memory, which are then
 * merged two by two. In each merge, every element looks for its place in the other run.
 *
 * <p>What is sorted are keys whose order as unsigned integers is that of the elements, with the
 * indices behind them, so that no two are the same. A NaN is larger than all.
 */
final class LongSort {
  /** Shorter rows are sorted by a block each, which counts what comes before each element. */
  static final long SHORTEST = 512;

  /** The elements of a run that a block sorts, and the threads of a block. */
  private static final int RUN = 256;

  private final PositionOps op;
  private final TensorRef self;
  private final int dim;
  private final long count;
  private final long rows;
  private final ImmutableLongArray rowSizes;
  private final boolean narrow;

  private LongSort(PositionOps op, TensorRef self, int dim) {
    this.op = op;
    this.self = self;
    this.dim = dim;
    this.count = self.type().size(dim);
    var sizes = self.type().sizes().toArray();
    sizes[dim] = 1;
    this.rowSizes = ImmutableLongArray.copyOf(sizes);
    this.rows = self.type().numel() / Math.max(1, count);
    this.narrow = self.type().dtype().bytes() <= Integer.BYTES && count <= 1L << Integer.SIZE;
  }

  /**
   * The order of a tensor's elements.
   *
   * @param items keys and indices, row after row
   * @param index of the item {@code %s} in the kernels that read them
   * @param functions that these kernels need
   */
  record Order(TensorRef items, String index, String functions) {
    /** {@return the index of the element that comes at a place of a row} */
    String at(PositionKernel kernel, String row, String place, long count) {
      var pointer = kernel.pointer(items);
      return index.formatted(
          "((const Item*)%s)[%s * %s + %s]".formatted(pointer, row, count, place));
    }
  }

  /** {@return the order of the elements of a tensor, which has some} */
  static Order order(PositionOps op, TensorRef self, int dim, boolean descending) {
    op.arguments.checkComputes(self);
    return new LongSort(op, self, dim).order(descending);
  }

  private Order order(boolean descending) {
    long words = narrow ? 1 : 2;
    var type = TensorType.contiguous(DType.I64, rows * count * words);
    var from = op.scratch.take(type);
    runs(from, descending);
    if (count > RUN) {
      var to = op.scratch.take(type);
      for (long run = RUN; run < count; run *= 2) {
        merge(from, to, run);
        var other = from;
        from = to;
        to = other;
      }
    }
    return new Order(from, narrow ? "(unsigned)%s" : "(long long)%s.index", functions());
  }

  private String functions() {
    return narrow
        ? """
        typedef unsigned long long Item;

        __device__ __forceinline__ bool precedes(Item a, Item b) {
          return a < b;
        }
        """
        : """
        struct Item {
          unsigned long long key, index;
        };

        __device__ __forceinline__ bool precedes(Item a, Item b) {
          return a.key < b.key || (a.key == b.key && a.index < b.index);
        }
        """;
  }

  /** {@return the key of {@code x}, an unsigned integer of 32 or 64 bits} */
  private String key() {
    var dtype = self.type().dtype();
    if (dtype == DType.F64) {
      return """
      const unsigned long long bits = (unsigned long long)__double_as_longlong(x + 0.0);
      const unsigned long long key = x != x ? ~0ULL : bits >> 63 ? ~bits : bits | 1ULL << 63;
      """;
    } else if (dtype.isFloat()) {
      return """
      const unsigned bits = __float_as_uint(x + 0.0f);
      const unsigned key = x != x ? ~0u : bits >> 31 ? ~bits : bits | 1u << 31;
      """;
    }
    boolean signed =
        switch (dtype) {
          case I64, I32, I16, I8 -> true;
          default -> false;
        };
    var type = narrow ? "unsigned" : "unsigned long long";
    return signed
        ? "const %1$s key = (%1$s)x ^ (%1$s)1 << %2$s;\n".formatted(type, narrow ? 31 : 63)
        : "const %1$s key = (%1$s)x;\n".formatted(type);
  }

  /** The indices of a row's elements, one of which is at {@code place}. */
  private List<String> indices(String place) {
    var indices = new ArrayList<String>();
    for (int i = 0; i < self.type().rank(); i++) {
      indices.add(i == dim ? place : "r" + i);
    }
    return indices;
  }

  private String declareRow(String number) {
    return "long long outer = %s;\n".formatted(number)
        + Indices.of("", "[[maybe_unused]] const long long r", "outer", rowSizes);
  }

  /** Sorts runs: all threads of a block go on together, as their number is that of elements. */
  private void runs(TensorRef to, boolean descending) {
    long tiles = Math.ceilDiv(count, RUN);
    var sizes = ImmutableLongArray.of(rows * tiles, RUN);
    var kernel = op.kernel(sizes);
    kernel.function(functions());
    kernel.once("__shared__ Item items[%s];".formatted(RUN));
    kernel.line("const long long first = i0 %% %s * %s;".formatted(tiles, RUN));
    kernel.line("const long long row = i0 / %s;".formatted(tiles));
    kernel.line(
        "const int length = %1$s - first < %2$s ? (int)(%1$s - first) : %2$s;"
            .formatted(count, RUN));
    kernel.line(declareRow("row").stripTrailing());
    kernel.line("Item own = {};");
    kernel.line("if (i1 < length) {");
    kernel.line(
        "  const %s x = %s;"
            .formatted(
                CTypes.computed(self.type().dtype()), kernel.value(self, indices("(first + i1)"))));
    kernel.line(key().stripTrailing().indent(2).stripTrailing());
    var ordered = descending ? "~key" : "key";
    kernel.line(
        narrow
            ? "  own = (unsigned long long)(%s) << 32 | (unsigned)(first + i1);".formatted(ordered)
            : "  own = {%s, (unsigned long long)(first + i1)};"
                .formatted("(unsigned long long)(" + ordered + ")"));
    kernel.line("  items[i1] = own;");
    kernel.line("}");
    kernel.line("__syncthreads();");
    kernel.line("if (i1 < length) {");
    kernel.line("  int before = 0;");
    kernel.line("  for (int j = 0; j < length; j++) {");
    kernel.line("    before += precedes(items[j], own);");
    kernel.line("  }");
    kernel.line(
        "  ((Item*)%s)[row * %s + first + before] = own;".formatted(kernel.pointer(to), count));
    kernel.line("}");
    kernel.line("__syncthreads();");
    op.launch(kernel, sizes);
  }

  private void merge(TensorRef from, TensorRef to, long run) {
    var sizes = ImmutableLongArray.of(rows, count);
    var kernel = op.kernel(sizes);
    kernel.function(functions());
    kernel.line(
        "const Item* const row = (const Item*)%s + i0 * %s;"
            .formatted(kernel.pointer(from), count));
    kernel.line("const Item own = row[i1];");
    kernel.line("const long long pair = i1 / %1$s * %1$s;".formatted(2 * run));
    kernel.line(
        "const long long middle = pair + %1$s < %2$s ? pair + %1$s : %2$s;".formatted(run, count));
    kernel.line(
        "const long long end = pair + %1$s < %2$s ? pair + %1$s : %2$s;".formatted(2 * run, count));
    kernel.line("const bool left = i1 < middle;");
    kernel.line("long long low = left ? middle : pair;");
    kernel.line("long long high = left ? end : middle;");
    kernel.line("const long long others = low;");
    kernel.line("while (low < high) {");
    kernel.line("  const long long half = (low + high) / 2;");
    kernel.line("  if (precedes(row[half], own)) {");
    kernel.line("    low = half + 1;");
    kernel.line("  } else {");
    kernel.line("    high = half;");
    kernel.line("  }");
    kernel.line("}");
    kernel.line("const long long place = pair + (i1 - (left ? pair : middle)) + (low - others);");
    kernel.line("((Item*)%s)[i0 * %s + place] = own;".formatted(kernel.pointer(to), count));
    op.launch(kernel, sizes);
  }

  /** {@return the indices of a result as those of its row, without the one along a dimension} */
  private static String row(TensorRef result, int dim, List<String> indices) {
    var text = new StringBuilder("0LL");
    for (int i = 0; i < result.type().rank(); i++) {
      if (i != dim) {
        text.insert(0, "(").append(" * %s + %s)".formatted(result.type().size(i), indices.get(i)));
      }
    }
    return text.toString();
  }

  /** Writes the first elements in order, and their indices: as many as the results have. */
  static void take(
      PositionOps op,
      TensorRef self,
      int dim,
      boolean descending,
      Optional<TensorRef> values,
      Optional<TensorRef> indices) {
    var either = values.or(() -> indices);
    if (either.isEmpty() || either.get().type().numel() == 0) {
      return;
    }
    var order = order(op, self, dim, descending);
    var sizes = either.get().type().sizes();
    var kernel = op.kernel(sizes);
    kernel.function(order.functions());
    var own = kernel.indices();
    kernel.line(
        "const long long at = %s;"
            .formatted(
                order.at(
                    kernel, row(either.get(), dim, own), own.get(dim), self.type().size(dim))));
    values.ifPresent(ref -> kernel.move(ref, own, self, IndexedOps.with(own, dim, "at")));
    indices.ifPresent(ref -> kernel.set(ref, own, "at"));
    op.launch(kernel, sizes);
  }
}
