package dev.symplan.codegen.cuda;

import static dev.symplan.codegen.cuda.Parts.result;
import static dev.symplan.codegen.cuda.Parts.typeOf;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.Streams;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.TensorType;
import dev.symplan.planner.plan.StreamKind;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Elementwise ops of one shape as one kernel: every thread takes elements through all of them. Each
 * op's result is rounded to its type before the next one sees it, as if it had been in memory.
 */
final class ElementwiseKernel {
  private static final int THREADS = 256;

  /** Beyond this, threads take several elements each. */
  private static final int MAX_BLOCKS = 4096;

  /** From so many elements on, memory is what takes the time. */
  private static final long LONG = 1 << 15;

  private final int rank;
  private final TensorType shape;
  private final MemoryArguments memory;
  private final Map<TensorRef, String> loaded = new HashMap<>();
  private final Map<Integer, String> passed = new HashMap<>();
  private final StringBuilder reads = new StringBuilder();
  private final StringBuilder body = new StringBuilder();
  private final StringBuilder writes = new StringBuilder();
  private final boolean flat;

  /** Neighbours along the last dimension that a thread takes at once. */
  private final Vectors vectors;

  private final int width;

  /**
   * @param refs all that is read and written
   */
  private ElementwiseKernel(
      int rank, TensorType shape, List<TensorRef> refs, MemoryArguments memory, boolean wide) {
    this.rank = rank;
    this.memory = memory;
    this.shape = shape;
    this.flat = refs.stream().allMatch(this::isFlat);
    this.vectors = wide ? vectors(refs) : Vectors.NONE;
    this.width = vectors.width();
  }

  private static ElementwiseKernel of(
      int rank, ImmutableList<Part> parts, MemoryArguments memory, boolean wide) {
    var refs =
        parts.stream()
            .flatMap(part -> Streams.concat(part.args().stream(), part.results().stream()))
            .filter(Operand.Tensor.class::isInstance)
            .map(operand -> ((Operand.Tensor) operand).ref())
            .toList();
    return new ElementwiseKernel(rank, typeOf(result(parts.getFirst())), refs, memory, wide);
  }

  /** Long tensors are read and written 16 bytes at once, where they lie for that. */
  private Vectors vectors(List<TensorRef> refs) {
    if (shape.numel() < LONG || shape.rank() == 0) {
      return Vectors.NONE;
    }
    return Vectors.widest(
        refs.stream().map(ref -> ref.type().dtype()).toList(),
        wide -> refs.stream().allMatch(ref -> isWide(ref, wide)));
  }

  private boolean isWide(TensorRef ref, int wide) {
    var type = ref.type();
    if (isSpread(type)) {
      return shape.size(shape.rank() - 1) % wide == 0;
    }
    return flat
        ? Vectors.fit(
            wide,
            ref.offset(),
            type.dtype().bytes(),
            ImmutableLongArray.of(shape.numel()),
            ImmutableLongArray.of(1))
        : Vectors.fit(wide, ref);
  }

  /** Whether neighbours along the last dimension have one element in common. */
  private boolean isSpread(TensorType type) {
    return !flat
        && (type.rank() == 0
            || type.size(type.rank() - 1) == 1
            || type.stride(type.rank() - 1) == 0);
  }

  /** {@return whether parts are elementwise, of one shape, and can be such a kernel} */
  static boolean supports(ImmutableList<Part> parts) {
    return parts.stream().allMatch(Pointwise::supports) && clash(parts).isEmpty();
  }

  /**
   * {@return a launch that runs the parts}
   *
   * @throws UnsupportedOnGpu when one of them has no CUDA implementation
   */
  static DeviceStep.Launch launch(int rank, StreamKind stream, ImmutableList<Part> parts) {
    clash(parts)
        .ifPresent(
            part -> {
              throw Parts.unsupported(
                  part, part.def().name() + " over what else is read or written");
            });
    var kernel = of(rank, parts, new MemoryArguments(), true);
    for (int i = 0; i < parts.size(); i++) {
      kernel.part(i, parts.get(i));
    }
    return kernel.build(stream, parts.getLast().name());
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
    var kernel = new ElementwiseKernel(rank, result.type(), refs, new MemoryArguments(), true);
    var dtype = result.type().dtype();
    var type = CTypes.computed(dtype);
    kernel.body.append("    %s sum = 0;\n".formatted(type));
    for (var term : terms) {
      kernel.body.append("    sum += %s;\n".formatted(kernel.load(term)));
    }
    kernel.write(0, result, CTypes.narrow(dtype, "sum"));
    return kernel.build(stream, label);
  }

  /**
   * {@return statements that take the element {@code i} through the parts; empty if it is not the
   * {@code i}-th of every tensor}
   *
   * @param parts which are {@linkplain #supports supported}
   * @param memory gets what else is read and written
   * @param given tensors of which a variable has the element
   * @throws UnsupportedOnGpu when one of the parts has no CUDA implementation
   */
  static Optional<String> statements(
      int rank, ImmutableList<Part> parts, MemoryArguments memory, Map<TensorRef, String> given) {
    var kernel = of(rank, parts, memory, false);
    if (!kernel.flat) {
      return Optional.empty();
    }
    kernel.loaded.putAll(given);
    for (int i = 0; i < parts.size(); i++) {
      kernel.part(i, parts.get(i));
    }
    return Optional.of(kernel.body.toString());
  }

  /**
   * Threads take elements, not rows, through the parts: so all must have one shape, and memory that
   * is used twice must be used for the same elements.
   */
  private static Optional<Part> clash(ImmutableList<Part> parts) {
    var used = new ArrayList<TensorRef>();
    var written = new ArrayList<TensorRef>();
    var shape = typeOf(result(parts.getFirst())).sizes();
    for (var part : parts) {
      part.args().stream()
          .filter(Operand.Tensor.class::isInstance)
          .forEach(arg -> used.add(((Operand.Tensor) arg).ref()));
      if (result(part) instanceof Operand.Tensor(var ref)) {
        used.add(ref);
        written.add(ref);
      }
      boolean fits =
          typeOf(result(part)).sizes().equals(shape)
              && written.stream()
                  .allMatch(
                      to -> used.stream().allMatch(at -> Moves.isApart(to, at) || isSame(to, at)));
      if (!fits) {
        return Optional.of(part);
      }
    }
    return Optional.empty();
  }

  private static boolean isSame(TensorRef a, TensorRef b) {
    return a.offset() == b.offset()
        && a.type().dtype().bytes() == b.type().dtype().bytes()
        && a.type().sizes().equals(b.type().sizes())
        && a.type().strides().equals(b.type().strides());
  }

  /** Whether the i-th element of the shape is the i-th in memory. */
  private boolean isFlat(TensorRef ref) {
    return ref.type().sizes().equals(shape.sizes()) && ref.type().isContiguous();
  }

  private void part(int index, Part part) {
    var type = typeOf(result(part)).dtype();
    var text = Pointwise.value(part, this::operand);
    var value = "v" + index;
    body.append("    %s %s = %s;\n".formatted(CTypes.computed(type), value, text));
    switch (result(part)) {
      case Operand.Tensor(var ref) -> {
        write(index, ref, CTypes.narrow(type, value, text));
        loaded.put(ref, value);
      }
      case Operand.Passed(int number, var _) -> passed.put(number, value);
      case Operand.Many _, Operand.Constant _ -> throw new IllegalStateException("no tensor");
    }
  }

  private String operand(Operand operand) {
    return switch (operand) {
      case Operand.Tensor(var ref) -> load(ref);
      case Operand.Passed(int number, var _) -> {
        var value = passed.get(number);
        if (value == null) {
          throw new IllegalStateException("%" + number + " is not passed yet");
        }
        yield value;
      }
      case Operand.Many _, Operand.Constant _ -> throw new IllegalStateException("no tensor");
    };
  }

  private String load(TensorRef ref) {
    var known = loaded.get(ref);
    if (known != null) {
      return known;
    }
    var name = "x" + loaded.size();
    body.append(
        "    %s %s = %s;\n"
            .formatted(
                CTypes.computed(ref.type().dtype()),
                name,
                CTypes.widen(ref.type().dtype(), read(ref, "m" + loaded.size()))));
    loaded.put(ref, name);
    return name;
  }

  private String read(TensorRef ref, String vector) {
    if (width == 1) {
      return element(ref, true);
    }
    var type = CTypes.stored(ref.type().dtype());
    if (isSpread(ref.type())) {
      reads.append("    %s %s = %s;\n".formatted(type, vector, element(ref, true)));
      return vector;
    }
    reads.append("    " + Vectors.read(type, vector, element(ref, true)) + "\n");
    return vector + ".e[e]";
  }

  private void write(int index, TensorRef ref, String value) {
    if (width == 1) {
      body.append("    %s = %s;\n".formatted(element(ref, false), value));
      return;
    }
    var type = CTypes.stored(ref.type().dtype());
    reads.append("    Vector<%s> o%s;\n".formatted(type, index));
    body.append("    o%s.e[e] = %s;\n".formatted(index, value));
    writes.append("    " + Vectors.write(type, "o" + index, element(ref, false)) + "\n");
  }

  private String element(TensorRef ref, boolean read) {
    return memory.element(
        (read ? "const " : "") + CTypes.stored(ref.type().dtype()),
        KernelArgument.Memory.of(rank, ref),
        offset(ref.type()));
  }

  private String offset(TensorType type) {
    if (flat) {
      return width == 1 ? "i" : "i * " + width;
    }
    var terms = new StringBuilder();
    for (int dim = 0; dim < type.rank(); dim++) {
      int of = dim + shape.rank() - type.rank();
      if (type.size(dim) != 1 && type.stride(dim) != 0) {
        terms
            .append(terms.isEmpty() ? "" : " + ")
            .append("i%s * %s".formatted(of, type.stride(dim)));
      }
    }
    return terms.isEmpty() ? "0" : terms.toString();
  }

  private DeviceStep.Launch build(StreamKind stream, String label) {
    long count = shape.numel() / width;
    var text =
        CTypes.PRELUDE
            + vectors.type()
            + memory.struct()
            + """

            extern "C" __global__ void __launch_bounds__(%s) symplan_kernel(const __grid_constant__ Args args) {
              %s step = gridDim.x * %s;
              for (%s i = blockIdx.x * %s + threadIdx.x; i < %s; i += step) {
            """
                .formatted(THREADS, index(), THREADS, index(), THREADS, count)
            + indices()
            + reads
            + (width == 1
                ? body.toString()
                : "    #pragma unroll\n    for (int e = 0; e < %s; e++) {\n%s    }\n"
                    .formatted(width, body.toString().indent(2)))
            + writes
            + "  }\n}\n";
    return memory.launch(stream, text, Math.ceilDiv(count, THREADS), MAX_BLOCKS, THREADS, label);
  }

  /** The type of what counts elements, up to one step beyond the last. */
  private String index() {
    return shape.numel() < 1L << 30 ? "unsigned" : "unsigned long long";
  }

  private String indices() {
    if (flat || shape.rank() == 0) {
      return "";
    }
    return "    %s rest = i%s;\n".formatted(index(), width == 1 ? "" : " * " + width)
        + Indices.of("    ", "long long i", "rest", shape.sizes());
  }
}
