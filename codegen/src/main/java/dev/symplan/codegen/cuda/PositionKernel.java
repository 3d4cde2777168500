package dev.symplan.codegen.cuda;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.DType;
import dev.symplan.planner.plan.StreamKind;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Builds a kernel that does something for each element of a shape: a thread takes one after the
 * other, whose indices are {@code i0}, {@code i1} and so on. Where all that it does is to move, it
 * may take vectors along the last dimension, by the indices of their first elements.
 */
final class PositionKernel {
  private static final int THREADS = 256;

  /** Beyond this, threads take several elements each. */
  private static final int MAX_BLOCKS = 4096;

  private final int rank;
  private final ImmutableLongArray sizes;
  private final Vectors vectors;
  private final MemoryArguments memory = new MemoryArguments();
  private final StringBuilder functions = new StringBuilder();
  private final StringBuilder before = new StringBuilder();
  private final StringBuilder body = new StringBuilder();

  PositionKernel(int rank, ImmutableLongArray sizes) {
    this(rank, sizes, Vectors.NONE);
  }

  /**
   * @param vectors the vectors that are moved at once; the last dimension is one of vectors
   */
  PositionKernel(int rank, ImmutableLongArray sizes, Vectors vectors) {
    this.rank = rank;
    this.sizes = sizes;
    this.vectors = vectors;
  }

  /** {@return a pointer to where a tensor begins} */
  String pointer(TensorRef ref) {
    return memory.pointer(KernelArgument.Memory.of(rank, ref));
  }

  /** {@return an element of a tensor of any type, to be moved as it is} */
  String bits(TensorRef ref, List<String> indices) {
    return element(ref, CTypes.bits(ref.type().dtype().bytes()), indices);
  }

  /** {@return an element of a tensor in the type of the computation} */
  String value(TensorRef ref, List<String> indices) {
    var dtype = ref.type().dtype();
    return CTypes.widen(dtype, element(ref, CTypes.stored(dtype), indices));
  }

  /** {@return an element of a tensor that {@link CTypes#narrow} may be assigned to} */
  String stored(TensorRef ref, List<String> indices) {
    return element(ref, CTypes.stored(ref.type().dtype()), indices);
  }

  private String element(TensorRef ref, String type, List<String> indices) {
    return memory.element(
        type, KernelArgument.Memory.of(rank, ref), Indices.offset(ref.type(), indices));
  }

  /** {@return {@code i0}, {@code i1} and so on, for the last so many dimensions of the shape} */
  List<String> indices(int rank) {
    int first = sizes.length() - rank;
    return IntStream.range(first, sizes.length()).mapToObj(dim -> "i" + dim).toList();
  }

  /** {@return the indices of all dimensions} */
  List<String> indices() {
    return indices(sizes.length());
  }

  /** Adds a function that the lines call. */
  void function(String text) {
    functions.append('\n').append(text);
  }

  /** Adds lines to what each thread does first. */
  void once(String text) {
    text.lines().forEach(line -> before.append("  ").append(line).append('\n'));
  }

  /** Adds lines to what is done for each element. */
  void line(String text) {
    text.lines().forEach(line -> body.append("    ").append(line).append('\n'));
  }

  /** Moves an element, or a vector, as it is. */
  void move(TensorRef to, List<String> indices, TensorRef from, List<String> fromIndices) {
    if (vectors.width() == 1) {
      line("%s = %s;".formatted(bits(to, indices), bits(from, fromIndices)));
      return;
    }
    var type = CTypes.bits(to.type().dtype().bytes());
    line(Vectors.read(type, "m", bits(from, fromIndices)));
    line(Vectors.write(type, "m", bits(to, indices)));
  }

  /** Sets an element of a type to what was computed. */
  void set(TensorRef to, List<String> indices, String computed) {
    var dtype = to.type().dtype();
    line("%s = %s;".formatted(stored(to, indices), CTypes.narrow(dtype, computed)));
  }

  /** {@return a number as elements of a type are computed with} */
  static String number(DType dtype, Number value) {
    if (dtype == DType.BOOL) {
      return value.doubleValue() == 0 ? "0" : "1";
    }
    return switch (CTypes.computed(dtype)) {
      case "double" -> Literals.floating(value.doubleValue(), true);
      case "float" -> Literals.floating(value.doubleValue(), false);
      default -> Literals.integer(value.longValue());
    };
  }

  DeviceStep.Launch build(StreamKind stream, String label) {
    int width = vectors.width();
    long elements = sizes.stream().reduce(1, Math::multiplyExact);
    long count = elements / width;
    var indices = new StringBuilder();
    if (sizes.length() > 0) {
      indices.append(
          "    %s rest = i%s;\n"
              .formatted(Indices.number(elements), width == 1 ? "" : " * " + width));
    }
    indices.append(Indices.of("    ", "[[maybe_unused]] long long i", "rest", sizes));
    var text =
        CTypes.PRELUDE
            + vectors.type()
            + functions
            + memory.struct()
            + """

            extern "C" __global__ void __launch_bounds__(%s) symplan_kernel(const __grid_constant__ Args args) {
              long long step = (long long)gridDim.x * %s;
            %s  for (long long i = (long long)blockIdx.x * %s + threadIdx.x; i < %s; i += step) {
            """
                .formatted(THREADS, THREADS, before, THREADS, count)
            + indices
            + body
            + "  }\n}\n";
    return memory.launch(stream, text, Math.ceilDiv(count, THREADS), MAX_BLOCKS, THREADS, label);
  }
}
