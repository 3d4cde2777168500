package dev.symplan.codegen.cuda;

import static dev.symplan.codegen.cuda.Parts.result;
import static dev.symplan.codegen.cuda.Parts.typeOf;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.TensorType;
import dev.symplan.planner.plan.StreamKind;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Elementwise ops of one shape as one kernel: every thread takes elements through all of them. Each
 * op's result is rounded to its type before the next one sees it, as if it had been in memory.
 *
 * <p>Concatenations may be among the ops. The pieces that they join, and the ops that make these,
 * have other shapes: a thread computes an element of a piece where it is an element of the whole.
 */
final class ElementwiseKernel {
  private static final int THREADS = Squares.THREADS;

  /** Beyond this, threads take several elements each. */
  private static final int MAX_BLOCKS = 4096;

  private record Location(TensorRef ref, Region region) {}

  private record Made(int passed, Region region) {}

  private final int rank;
  private final TensorType shape;
  private final MemoryArguments memory;
  private final Map<Location, String> loaded = new HashMap<>();
  private final Map<Integer, String> passed = new HashMap<>();

  /** The ops that make pieces, by what they pass on. */
  private final Map<Integer, Part> pieceMakers = new HashMap<>();

  private final Map<Made, String> pieces = new HashMap<>();
  private final Region whole;
  private final StringBuilder reads = new StringBuilder();
  private final StringBuilder body = new StringBuilder();
  private final StringBuilder writes = new StringBuilder();

  /** The vectors that are written. */
  private final Map<TensorRef, String> written = new HashMap<>();

  private final Neighbours neighbours;

  /** What a thread takes at once of a tensor. */
  private final Vectors vectors;

  private final int width;

  /** What a thread takes at once, if that is not along the last dimension only. */
  private final Optional<Squares> squares;

  /**
   * @param refs all that is read and written
   * @param written what is written of that
   * @param wide whether threads take vectors, if all tensors lie for that
   * @param turned whether they may take squares
   */
  private ElementwiseKernel(
      int rank,
      TensorType shape,
      List<TensorRef> refs,
      List<TensorRef> written,
      List<Joined> joined,
      MemoryArguments memory,
      boolean wide,
      boolean turned) {
    this.rank = rank;
    this.memory = memory;
    this.shape = shape;
    this.whole = Region.whole(shape.rank());
    this.squares = turned ? Squares.of(shape.sizes(), refs) : Optional.empty();
    this.neighbours = Neighbours.of(shape, refs, written, joined, wide && squares.isEmpty());
    this.vectors = squares.map(Squares::vectors).orElseGet(neighbours::vectors);
    this.width = vectors.width();
  }

  private static ElementwiseKernel of(
      int rank, ImmutableList<Part> parts, MemoryArguments memory, boolean wide, boolean turned) {
    var joined = parts.stream().flatMap(part -> Joined.of(part).stream()).toList();
    return new ElementwiseKernel(
        rank,
        typeOf(result(parts.getLast())),
        Parts.tensors(parts),
        parts.stream().flatMap(part -> result(part).tensors()).toList(),
        joined,
        memory,
        wide,
        turned && joined.isEmpty());
  }

  /**
   * {@return a launch that runs the parts}
   *
   * @throws UnsupportedOnGpu when one of them has no CUDA implementation
   */
  static DeviceStep.Launch launch(int rank, StreamKind stream, ImmutableList<Part> parts) {
    OneShape.clash(parts)
        .ifPresent(
            part -> {
              throw Parts.unsupported(
                  part, part.def().name() + " over what else is read or written");
            });
    boolean wide = Vectors.isLong(typeOf(result(parts.getLast())));
    var ordered = wide ? inMemoryOrder(parts) : parts;
    var kernel = of(rank, ordered, new MemoryArguments(), wide, wide);
    for (int i = 0; i < ordered.size(); i++) {
      kernel.part(i, ordered.get(i));
    }
    return kernel.build(stream, parts.getLast().name());
  }

  private static ImmutableList<Part> inMemoryOrder(ImmutableList<Part> parts) {
    return parts.stream().anyMatch(part -> Joined.of(part).isPresent())
        ? parts
        : MemoryOrder.of(typeOf(result(parts.getLast())).sizes(), Parts.tensors(parts)).of(parts);
  }

  /**
   * {@return a launch that adds tensors up in their order, in the type that theirs is computed
   * with}
   *
   * @param terms of the result's shape and type, and apart from it
   */
  static DeviceStep.Launch sum(
      int rank, StreamKind stream, List<TensorRef> terms, TensorRef result, String label) {
    var refs = ImmutableList.<TensorRef>builder().addAll(terms).add(result).build();
    var kernel =
        new ElementwiseKernel(
            rank,
            result.type(),
            refs,
            List.of(result),
            List.of(),
            new MemoryArguments(),
            Vectors.isLong(result.type()),
            Vectors.isLong(result.type()));
    var dtype = result.type().dtype();
    var type = CTypes.computed(dtype);
    kernel.body.append("    %s sum = 0;\n".formatted(type));
    for (var term : terms) {
      kernel.body.append("    sum += %s;\n".formatted(kernel.load(term, kernel.whole)));
    }
    kernel.write(0, result, CTypes.narrow(dtype, "sum"));
    return kernel.build(stream, label);
  }

  /**
   * {@return what takes the vector {@code i} through the parts; empty if it is not the {@code i}-th
   * of every tensor}
   *
   * @param parts which are {@linkplain OneShape#is supported}
   * @param memory gets what else is read and written
   * @param given tensors of which an array has the vector's elements
   * @param wide whether these are several, if all tensors lie for that
   * @throws UnsupportedOnGpu when one of the parts has no CUDA implementation
   */
  static Optional<Loop> statements(
      int rank,
      ImmutableList<Part> parts,
      MemoryArguments memory,
      Map<TensorRef, String> given,
      boolean wide) {
    var kernel = of(rank, parts, memory, wide, false);
    if (!kernel.neighbours.flat()) {
      return Optional.empty();
    }
    var element = kernel.width == 1 ? "[0]" : "[e]";
    given.forEach(
        (ref, name) -> kernel.loaded.put(new Location(ref, kernel.whole), name + element));
    for (int i = 0; i < parts.size(); i++) {
      kernel.part(i, parts.get(i));
    }
    return Optional.of(kernel.loop());
  }

  /**
   * The loop of each thread over {@code i}.
   *
   * @param index the type of {@code i}
   * @param count of what the threads take in turn
   * @param vectors how many elements each of these has
   * @param written the variables with the vectors that it has written at the end
   */
  record Loop(
      String statements,
      String index,
      long count,
      Vectors vectors,
      ImmutableMap<TensorRef, String> written) {}

  /**
   * {@return a loop that takes elements through the parts}
   *
   * @param parts of one shape, which do not clash
   * @param memory gets what is read and written
   * @throws UnsupportedOnGpu when one of the parts has no CUDA implementation
   */
  static Loop loop(int rank, ImmutableList<Part> parts, MemoryArguments memory) {
    var kernel = of(rank, parts, memory, true, false);
    for (int i = 0; i < parts.size(); i++) {
      kernel.part(i, parts.get(i));
    }
    return kernel.loop();
  }

  private void part(int index, Part part) {
    var type = typeOf(result(part)).dtype();
    if (!typeOf(result(part)).sizes().equals(shape.sizes())) {
      pieceMakers.put(((Operand.Passed) result(part)).index(), part);
      return;
    }
    var text = text(part, whole);
    var value = "v" + index;
    body.append("    %s %s = %s;\n".formatted(CTypes.computed(type), value, text));
    switch (result(part)) {
      case Operand.Tensor(var ref) -> {
        write(index, ref, CTypes.narrow(type, value, text));
        loaded.put(new Location(ref, whole), value);
      }
      case Operand.Passed(int number, var _) -> passed.put(number, value);
      case Operand.Many _, Operand.Constant _ -> throw new IllegalStateException("no tensor");
    }
  }

  /** An element of what a part makes, as an expression. */
  private String text(Part part, Region region) {
    return Joined.of(part)
        .map(joined -> text(joined, region))
        .orElseGet(() -> Pointwise.value(part, operand -> operand(operand, region)));
  }

  private String text(Joined joined, Region region) {
    var count = joined.pieces().size();
    if (count == 1) {
      return operand(joined.pieces().getFirst(), region);
    }
    var index = region.indices().get(joined.dim());
    var text = new StringBuilder();
    long start = 0;
    for (int i = 0; i < count; i++) {
      var piece = joined.pieces().get(i);
      long end = start + joined.size(piece);
      var before = index + " < " + end;
      var own =
          region.piece(
              joined.dim(),
              start == 0 ? index : "(%s - %s)".formatted(index, start),
              List.of(start == 0 ? "" : index + " >= " + start, i < count - 1 ? before : ""));
      var value = operand(piece, own);
      text.append(i < count - 1 ? "%s ? %s : ".formatted(before, value) : value);
      start = end;
    }
    return "(" + text + ")";
  }

  private String operand(Operand operand, Region region) {
    return switch (operand) {
      case Operand.Tensor(var ref) -> load(ref, region);
      case Operand.Passed(int number, var _) -> {
        var value = passed.get(number);
        yield value != null && region.equals(whole) ? value : piece(number, region);
      }
      case Operand.Many _, Operand.Constant _ -> throw new IllegalStateException("no tensor");
    };
  }

  private String piece(int number, Region region) {
    var made = new Made(number, region);
    var known = pieces.get(made);
    if (known != null) {
      return known;
    }
    var part = pieceMakers.get(number);
    if (part == null) {
      throw new IllegalStateException("%" + number + " is not passed yet");
    }
    var text = text(part, region);
    var name = "p" + pieces.size();
    body.append(
        "    %s %s = %s;\n".formatted(CTypes.computed(typeOf(result(part)).dtype()), name, text));
    pieces.put(made, name);
    return name;
  }

  private String load(TensorRef ref, Region region) {
    var location = new Location(ref, region);
    var known = loaded.get(location);
    if (known != null) {
      return known;
    }
    var name = "x" + loaded.size();
    var dtype = ref.type().dtype();
    var value = CTypes.widen(dtype, read(location, "m" + loaded.size()));
    body.append((width == 1 ? region : whole).declare(CTypes.computed(dtype), name, value));
    loaded.put(location, name);
    return name;
  }

  private String read(Location location, String vector) {
    var ref = location.ref();
    if (squares.isPresent()) {
      var access =
          squares
              .get()
              .read(
                  ref,
                  CTypes.stored(ref.type().dtype()),
                  vector,
                  indices -> element(ref, new Region(indices, ""), true));
      reads.append(access.before());
      return access.element();
    }
    var element = element(ref, location.region(), true);
    if (width == 1) {
      return element;
    }
    var type = CTypes.stored(ref.type().dtype());
    if (neighbours.isSpread(ref.type())) {
      reads.append(location.region().declare(type, vector, element));
      return vector;
    }
    var declared =
        "%sVector<%s>".formatted(location.region().inside().isEmpty() ? "const " : "", type);
    reads.append(location.region().declare(declared, vector, Vectors.read(type, element)));
    return vector + ".e[e]";
  }

  private void write(int index, TensorRef ref, String value) {
    if (squares.isPresent()) {
      var access =
          squares
              .get()
              .write(
                  ref,
                  CTypes.stored(ref.type().dtype()),
                  "o" + index,
                  indices -> element(ref, new Region(indices, ""), false));
      reads.append(access.before());
      body.append("    %s = %s;\n".formatted(access.element(), value));
      writes.append(access.after());
      return;
    }
    if (width == 1) {
      body.append("    %s = %s;\n".formatted(element(ref, whole, false), value));
      return;
    }
    var type = CTypes.stored(ref.type().dtype());
    reads.append("    Vector<%s> o%s;\n".formatted(type, index));
    body.append("    o%s.e[e] = %s;\n".formatted(index, value));
    writes.append("    " + Vectors.write(type, "o" + index, element(ref, whole, false)) + "\n");
    written.put(ref, "o" + index);
  }

  private String element(TensorRef ref, Region region, boolean read) {
    return memory.element(
        (read ? "const " : "") + CTypes.stored(ref.type().dtype()),
        KernelArgument.Memory.of(rank, ref),
        neighbours.offset(ref.type(), region));
  }

  private Loop loop() {
    var statements =
        indices()
            + reads
            + (width == 1
                ? body.toString()
                : "    #pragma unroll\n    for (int e = 0; e < %s; e++) {\n%s    }\n"
                    .formatted(width, body.toString().indent(2)))
            + writes;
    return new Loop(
        statements, index(), shape.numel() / width, vectors, ImmutableMap.copyOf(written));
  }

  private DeviceStep.Launch build(StreamKind stream, String label) {
    long blocks =
        squares
            .map(Squares::blocks)
            .orElseGet(() -> Math.ceilDiv(shape.numel() / width, (long) THREADS));
    var text =
        CTypes.PRELUDE
            + vectors.type()
            + memory.struct()
            + """

            extern "C" __global__ void __launch_bounds__(%s) symplan_kernel(const __grid_constant__ Args args) {
            """
                .formatted(THREADS)
            + squares
                .map(all -> all.loop(reads.toString(), body.toString(), writes.toString()))
                .orElseGet(this::overAll)
            + "}\n";
    return memory.launch(stream, text, blocks, MAX_BLOCKS, THREADS, label);
  }

  private String overAll() {
    var loop = loop();
    return """
      %2$s step = gridDim.x * %1$s;
      for (%2$s i = blockIdx.x * %1$s + threadIdx.x; i < %3$s; i += step) {
    """
            .formatted(THREADS, loop.index(), loop.count())
        + loop.statements()
        + "  }\n";
  }

  /** The type of what counts elements, up to one step beyond the last. */
  private String index() {
    return shape.numel() < 1L << 30 ? "unsigned" : "unsigned long long";
  }

  private String indices() {
    if (neighbours.flat() || shape.rank() == 0) {
      return "";
    }
    return "    %s rest = i%s;\n".formatted(index(), width == 1 ? "" : " * " + width)
        + Indices.of("    ", "long long i", "rest", shape.sizes());
  }
}
