package dev.symplan.codegen.cuda;

import dev.symplan.codegen.TensorRef;
import dev.symplan.planner.plan.StreamKind;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/** Copies elements between two layouts of one shape, or several such: bit by bit, or converted. */
final class CopyKernel {
  private static final int THREADS = Squares.THREADS;
  private static final int MAX_BLOCKS = 4096;

  /** A tensor, and one of the same shape that it is copied to. */
  record Move(TensorRef from, TensorRef to) {
    boolean converts() {
      return from.type().dtype() != to.type().dtype();
    }

    private String readAs() {
      return typeOf(from);
    }

    private String writtenAs() {
      return typeOf(to);
    }

    private String typeOf(TensorRef ref) {
      var dtype = ref.type().dtype();
      return converts() ? CTypes.stored(dtype) : CTypes.bits(dtype.bytes());
    }

    /** {@return what is written of an element that was read} */
    private String moved(String element) {
      var source = from.type().dtype();
      var target = to.type().dtype();
      return converts()
          ? CTypes.narrow(
              target,
              Pointwise.rounded(target, CTypes.widen(source, element), CTypes.computed(source)))
          : element;
    }

    /** {@return the same elements with their dimensions in the order in which most are near} */
    Move inOrder() {
      var order = MemoryOrder.of(to.type().sizes(), List.of(to, from));
      return new Move(order.of(from), order.of(to));
    }

    /** {@return the squares in which elements are read and written, if that is better} */
    Optional<Squares> squares() {
      return Vectors.isLong(to.type())
          ? Squares.of(to.type().sizes(), List.of(to, from))
          : Optional.empty();
    }

    /** {@return the vectors in which elements are read and written} */
    Vectors vectors() {
      return to.type().rank() == 0
          ? Vectors.NONE
          : Vectors.widest(
              List.of(from.type().dtype(), to.type().dtype()),
              List.of(to.type().dtype()),
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

  /** {@return a launch that copies a tensor in squares} */
  private static DeviceStep.Launch launch(
      int rank, StreamKind stream, Move move, Squares squares, String label) {
    var kernel = new CopyKernel(rank, squares.vectors());
    var read =
        squares.read(
            move.from(),
            move.readAs(),
            "m",
            indices -> kernel.element("const " + move.readAs(), move.from(), indices));
    var written =
        squares.write(
            move.to(),
            move.writtenAs(),
            "o",
            indices -> kernel.element(move.writtenAs(), move.to(), indices));
    var loop =
        squares.loop(
            read.before() + written.before(),
            "    %s = %s;\n".formatted(written.element(), move.moved(read.element())),
            written.after());
    return kernel.launch(stream, move.converts(), loop, squares.blocks(), label);
  }

  /**
   * {@return a launch that copies tensors at the same time}
   *
   * @param moves some, of which none writes where another one reads
   * @param vectors the vectors in which each of them is copied
   */
  static DeviceStep.Launch launch(
      int rank, StreamKind stream, List<Move> moves, Vectors vectors, String label) {
    if (moves.size() == 1 && moves.getFirst().squares().isPresent()) {
      var move = moves.getFirst();
      return launch(rank, stream, move, move.squares().orElseThrow(), label);
    }
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
    var loop =
        """
          long long step = (long long)gridDim.x * %1$s;
          for (long long i = (long long)blockIdx.x * %1$s + threadIdx.x; i < %2$s; i += step) {
        %3$s  }
        """
            .formatted(THREADS, count, body);
    return kernel.launch(
        stream, moves.stream().anyMatch(Move::converts), loop, Math.ceilDiv(count, THREADS), label);
  }

  private DeviceStep.Launch launch(
      StreamKind stream, boolean converts, String loop, long blocks, String label) {
    var text =
        (converts ? CTypes.PRELUDE : "")
            + vectors.type()
            + memory.struct()
            + """

            extern "C" __global__ void __launch_bounds__(%s) symplan_kernel(const __grid_constant__ Args args) {
            %s}
            """
                .formatted(THREADS, loop);
    return memory.launch(stream, text, blocks, MAX_BLOCKS, THREADS, label);
  }

  /** {@return statements that copy an element, or a vector, by its number} */
  private String move(Move move, String number) {
    var type = move.to().type();
    var read = move.readAs();
    var written = move.writtenAs();
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
      lines.append("%s = %s;\n".formatted(to, move.moved(from)));
      return lines.toString();
    }
    lines.append(Vectors.read(read, "m", from)).append('\n');
    if (move.converts()) {
      lines.append(
          "Vector<%s> o;\n#pragma unroll\nfor (int e = 0; e < %s; e++) {\n  o.e[e] = %s;\n}\n"
              .formatted(written, width, move.moved("m.e[e]")));
    }
    lines.append(Vectors.write(written, move.converts() ? "o" : "m", to)).append('\n');
    return lines.toString();
  }

  private String element(String type, TensorRef ref) {
    return element(
        type, ref, IntStream.range(0, ref.type().rank()).mapToObj(dim -> "i" + dim).toList());
  }

  private String element(String type, TensorRef ref, List<String> indices) {
    return memory.element(
        type, KernelArgument.Memory.of(rank, ref), Indices.offset(ref.type(), indices));
  }
}
