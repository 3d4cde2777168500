package dev.symplan.codegen.cuda;

import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.DType;
import dev.symplan.planner.plan.StreamKind;
import java.util.List;
import java.util.stream.IntStream;

/** Copies elements between two layouts of one shape, or several such: bit by bit, or converted. */
final class CopyKernel {
  private static final int THREADS = 256;
  private static final int MAX_BLOCKS = 4096;

  /** A tensor, and one of the same shape that it is copied to. */
  record Move(TensorRef from, TensorRef to) {
    boolean converts() {
      return from.type().dtype() != to.type().dtype();
    }

    /** {@return the vectors in which elements are read and written} */
    Vectors vectors() {
      return to.type().rank() == 0
          ? Vectors.NONE
          : Vectors.widest(
              List.of(from.type().dtype(), to.type().dtype()),
              wide -> Vectors.fit(wide, from) && Vectors.fit(wide, to));
    }
  }

  private final int rank;
  private final Vectors vectors;
  private final MemoryArguments memory = new MemoryArguments();

  private CopyKernel(int rank, Vectors vectors) {
    this.rank = rank;
    this.vectors = vectors;
  }

  /**
   * {@return a launch that copies tensors at the same time}
   *
   * @param moves some, of which none writes where another one reads
   * @param vectors the vectors in which each of them is copied
   */
  static DeviceStep.Launch launch(
      int rank, StreamKind stream, List<Move> moves, Vectors vectors, String label) {
    var kernel = new CopyKernel(rank, vectors);
    var body = new StringBuilder();
    long count = 0;
    for (var move : moves) {
      long start = count;
      count += move.to().type().numel() / vectors.width();
      body.append(
          moves.size() == 1
              ? kernel.move(move, "i").indent(4)
              : "    if (i < %s) {\n%s      continue;\n    }\n"
                  .formatted(count, kernel.move(move, "(i - %s)".formatted(start)).indent(6)));
    }
    var text =
        (moves.stream().anyMatch(Move::converts) ? CTypes.PRELUDE : "")
            + vectors.type()
            + kernel.memory.struct()
            + """

            extern "C" __global__ void __launch_bounds__(%1$s) symplan_kernel(const __grid_constant__ Args args) {
              long long step = (long long)gridDim.x * %1$s;
              for (long long i = (long long)blockIdx.x * %1$s + threadIdx.x; i < %2$s; i += step) {
            %3$s  }
            }
            """
                .formatted(THREADS, count, body);
    return kernel.memory.launch(
        stream, text, Math.ceilDiv(count, THREADS), MAX_BLOCKS, THREADS, label);
  }

  /** {@return statements that copy an element, or a vector, by its number} */
  private String move(Move move, String number) {
    var type = move.to().type();
    var source = move.from().type().dtype();
    var target = type.dtype();
    var read = move.converts() ? CTypes.stored(source) : CTypes.bits(source.bytes());
    var written = move.converts() ? CTypes.stored(target) : CTypes.bits(target.bytes());
    var from = element("const " + read, move.from());
    var to = element(written, move.to());
    int width = vectors.width();
    var lines = new StringBuilder();
    if (type.rank() > 0) {
      lines.append(
          "%s rest = %s%s;\n"
              .formatted(Indices.number(type.numel()), number, width == 1 ? "" : " * " + width));
    }
    lines.append(Indices.of("", "[[maybe_unused]] long long i", "rest", type.sizes()));
    if (width == 1) {
      lines.append(
          "%s = %s;\n".formatted(to, move.converts() ? converted(source, target, from) : from));
      return lines.toString();
    }
    lines.append(Vectors.read(read, "m", from)).append('\n');
    if (move.converts()) {
      lines.append(
          "Vector<%s> o;\n#pragma unroll\nfor (int e = 0; e < %s; e++) {\n  o.e[e] = %s;\n}\n"
              .formatted(written, width, converted(source, target, "m.e[e]")));
    }
    lines.append(Vectors.write(written, move.converts() ? "o" : "m", to)).append('\n');
    return lines.toString();
  }

  private String element(String type, TensorRef ref) {
    var indices = IntStream.range(0, ref.type().rank()).mapToObj(dim -> "i" + dim).toList();
    return memory.element(
        type, KernelArgument.Memory.of(rank, ref), Indices.offset(ref.type(), indices));
  }

  private static String converted(DType source, DType target, String stored) {
    return CTypes.narrow(
        target, Pointwise.rounded(target, CTypes.widen(source, stored), CTypes.computed(source)));
  }
}
