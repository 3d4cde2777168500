package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.cuda.RowLowering.View;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.planner.plan.StreamKind;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * Ops one after the other for each row, by all threads of a block, which keeps what they pass on to
 * itself: for ops over a part of a row, and for those that sort.
 *
 * <p>Sorting counts for each element those that come before it, so that equal ones stay in order.
 */
final class SharedMemoryKernel {
  private static final int THREADS = 256;
  private static final int MAX_BLOCKS = 1 << 16;

  /** The shared memory that a block has without asking for more. */
  private static final long SHARED_BYTES = 48 << 10;

  private final int rank;
  private final int rows;
  private final MemoryArguments memory = new MemoryArguments();
  private final Map<Integer, TensorType> passed = new LinkedHashMap<>();
  private final StringBuilder body = new StringBuilder();

  private SharedMemoryKernel(int rank, int rows) {
    this.rank = rank;
    this.rows = rows;
  }

  /** {@return whether an op sorts} */
  static boolean sorts(String op) {
    return switch (op) {
      case "aten::topk",
          "aten::sort",
          "aten::sort.stable",
          "aten::argsort",
          "aten::argsort.stable" ->
          true;
      default -> false;
    };
  }

  /**
   * {@return a launch that runs the parts}
   *
   * @param rows the leading dimensions that make a row
   * @throws UnsupportedOnGpu when one of them has no CUDA implementation, or rows are too long
   */
  static DeviceStep.Launch launch(
      int rank, StreamKind stream, int rows, ImmutableList<Part> parts) {
    var kernel = new SharedMemoryKernel(rank, rows);
    parts.forEach(kernel::part);
    return kernel.build(stream, parts);
  }

  /** {@return whether a block has the memory for what the parts pass on} */
  static boolean fits(int rows, ImmutableList<Part> parts) {
    return parts.stream()
            .flatMap(part -> part.results().stream())
            .filter(Operand.Passed.class::isInstance)
            .map(Parts::typeOf)
            .mapToLong(type -> Math.max(1, inner(type, rows)) * type.dtype().bytes())
            .sum()
        <= SHARED_BYTES;
  }

  private View view(Operand operand) {
    return switch (operand) {
      case Operand.Tensor(var ref) -> View.of(rank, ref);
      case Operand.Passed(int index, var type) -> {
        passed.put(index, type);
        yield new View(ofBlock(type), Optional.empty(), "passed" + index);
      }
      case Operand.Many _, Operand.Constant _ -> throw new IllegalStateException("no tensor");
    };
  }

  /** One row after the other is in the same memory. */
  private TensorType ofBlock(TensorType type) {
    var strides = new long[type.rank()];
    long stride = 1;
    for (int dim = type.rank() - 1; dim >= rows; dim--) {
      strides[dim] = stride;
      stride *= type.size(dim);
    }
    return type.withStrides(ImmutableLongArray.copyOf(strides));
  }

  private static long inner(TensorType type, int rows) {
    return IntStream.range(rows, type.rank()).mapToLong(type::size).reduce(1, (a, b) -> a * b);
  }

  private void part(Part part) {
    if (sorts(part.def().name().toString())) {
      sort(part);
    } else if (Pointwise.supports(part)) {
      var type = Parts.typeOf(Parts.result(part));
      body.append(
          RowLowering.elements(part, this::view).fragment(inner(type, rows), THREADS, memory));
    } else {
      var over = Parts.main(part);
      var dims = Parts.dims(part, over.rank());
      long together =
          IntStream.range(rows, over.rank())
              .filter(dim -> !dims.contains(dim))
              .mapToLong(over::size)
              .reduce(1, (a, b) -> a * b);
      body.append(RowLowering.over(part, this::view).fragment(together, THREADS, memory));
    }
    body.append("    __syncthreads();\n");
  }

  private String element(View view, List<String> indices) {
    return MemoryArguments.element(
        CTypes.stored(view.type().dtype()),
        view.memory().map(memory::pointer).orElse(view.shared()),
        Indices.offset(view.type(), indices));
  }

  private static boolean flag(Part part, String param, boolean otherwise) {
    return Parts.constant(part, param).orElse(Arg.None.NONE) instanceof Arg.Bool(boolean value)
        ? value
        : otherwise;
  }

  private void sort(Part part) {
    var self = view(Parts.argument(part, "self").orElseThrow());
    var type = self.type();
    var dtype = type.dtype();
    Parts.checkComputes(part, dtype);
    boolean descending = flag(part, "descending", flag(part, "largest", false));
    int dim = type.rank() == 0 ? 0 : Parts.dims(part, type.rank()).getFirst();
    long count = type.rank() == 0 ? 1 : type.size(dim);
    var own = IntStream.range(0, type.rank()).mapToObj(i -> "i" + i).toList();
    var other = new ArrayList<>(own);
    var target = new ArrayList<>(own);
    if (type.rank() > 0) {
      other.set(dim, "j");
      target.set(dim, "position");
    }
    var index = type.rank() == 0 ? "0" : "i" + dim;
    long elements = inner(type, rows);
    body.append(
        """
            for (long long own = threadIdx.x; own < %s; own += %s) {
              long long left = outer * %s + own;
        """
            .formatted(elements, THREADS, elements));
    body.append(Indices.of("      ", "const long long i", "left", type.sizes()));
    var computed = CTypes.computed(dtype);
    body.append(
        """
              const %1$s x = %2$s;
              long long position = 0;
              for (long long j = 0; j < %3$s; j++) {
                const %1$s y = %4$s;
                const bool same = y == x || (y != y && x != x);
                position += same ? j < %5$s : %6$s;
              }
        """
            .formatted(
                computed,
                CTypes.widen(dtype, element(self, own)),
                count,
                CTypes.widen(dtype, element(self, other)),
                index,
                // A NaN is larger than all.
                descending ? "x == x && (y > x || y != y)" : "y == y && (y < x || x != x)"));
    for (var result : part.results()) {
      if (Parts.isTensor(result)) {
        var view = view(result);
        boolean indices = result == part.results().getLast();
        long taken = view.type().rank() == 0 ? 1 : view.type().size(dim);
        body.append(
            "      if (position < %s) {\n        %s = %s;\n      }\n"
                .formatted(
                    taken,
                    element(view, target),
                    CTypes.narrow(view.type().dtype(), indices ? index : "x")));
      }
    }
    body.append("    }\n");
  }

  private DeviceStep.Launch build(StreamKind stream, ImmutableList<Part> parts) {
    var first = Parts.typeOf(parts.getFirst().results().getLast());
    long blocks = IntStream.range(0, rows).mapToLong(first::size).reduce(1, Math::multiplyExact);
    long bytes = 0;
    var shared = new StringBuilder();
    for (var entry : passed.entrySet()) {
      var dtype = entry.getValue().dtype();
      long count = Math.max(1, inner(entry.getValue(), rows));
      bytes += count * dtype.bytes();
      shared.append(
          "  __shared__ %s passed%s[%s];\n".formatted(CTypes.stored(dtype), entry.getKey(), count));
    }
    if (bytes > SHARED_BYTES) {
      throw new IllegalArgumentException(bytes + " bytes of a row are passed on");
    }
    var text =
        CTypes.PRELUDE
            + memory.struct()
            + """

            extern "C" __global__ void __launch_bounds__(%s) symplan_kernel(const __grid_constant__ Args args) {
            %s  for (long long outer = blockIdx.x; outer < %s; outer += gridDim.x) {
            """
                .formatted(THREADS, shared, blocks)
            + body
            + "  }\n}\n";
    return memory.launch(stream, text, blocks, MAX_BLOCKS, THREADS, parts.getLast().name());
  }
}
