package dev.symplan.codegen.cuda;

import static dev.symplan.codegen.cuda.Pointwise.result;
import static dev.symplan.codegen.cuda.Pointwise.typeOf;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.TensorType;
import dev.symplan.planner.Stream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
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

  private final int rank;
  private final TensorType shape;
  private final Map<TensorRef, Integer> pointers = new LinkedHashMap<>();
  private final Map<TensorRef, String> loaded = new HashMap<>();
  private final Map<Integer, String> passed = new HashMap<>();
  private final StringBuilder body = new StringBuilder();
  private final boolean flat;

  private ElementwiseKernel(int rank, ImmutableList<Part> parts) {
    this.rank = rank;
    this.shape = typeOf(result(parts.getFirst()));
    this.flat =
        parts.stream()
            .allMatch(part -> isFlat(result(part)) && part.args().stream().allMatch(this::isFlat));
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
  static DeviceStep.Launch launch(int rank, Stream stream, ImmutableList<Part> parts) {
    clash(parts)
        .ifPresent(
            part -> {
              throw Pointwise.unsupported(
                  part, part.def().name() + " over what else is read or written");
            });
    var kernel = new ElementwiseKernel(rank, parts);
    for (int i = 0; i < parts.size(); i++) {
      kernel.part(i, parts.get(i));
    }
    return kernel.build(stream, parts.getLast().name());
  }

  /**
   * Threads take elements, not rows, through the parts: so all must have one shape, and a place
   * that is used twice must be used for the same elements.
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
                  .allMatch(to -> used.stream().allMatch(at -> isApart(to, at) || isSame(to, at)));
      if (!fits) {
        return Optional.of(part);
      }
    }
    return Optional.empty();
  }

  private static boolean isApart(TensorRef a, TensorRef b) {
    return a.arena() != b.arena()
        || a.index() != b.index()
        || a.offset() + a.type().storageBytes() <= b.offset()
        || b.offset() + b.type().storageBytes() <= a.offset();
  }

  private static boolean isSame(TensorRef a, TensorRef b) {
    return a.offset() == b.offset()
        && a.type().dtype().bytes() == b.type().dtype().bytes()
        && a.type().sizes().equals(b.type().sizes())
        && a.type().strides().equals(b.type().strides());
  }

  /** Whether the i-th element of the shape is the i-th in memory. */
  private boolean isFlat(Operand operand) {
    return !(operand instanceof Operand.Tensor(var ref))
        || (ref.type().sizes().equals(shape.sizes()) && ref.type().isContiguous());
  }

  private void part(int index, Part part) {
    var type = typeOf(result(part)).dtype();
    var text = Pointwise.value(part, this::operand);
    var value = "v" + index;
    body.append("    %s %s = %s;\n".formatted(CTypes.computed(type), value, text));
    switch (result(part)) {
      case Operand.Tensor(var ref) -> {
        body.append("    %s = %s;\n".formatted(element(ref, false), CTypes.narrow(type, value)));
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
                CTypes.widen(ref.type().dtype(), element(ref, true))));
    loaded.put(ref, name);
    return name;
  }

  private String element(TensorRef ref, boolean read) {
    int pointer = pointers.computeIfAbsent(ref, _ -> pointers.size());
    return "((%s%s*)args.memory[%d])[%s]"
        .formatted(
            read ? "const " : "", CTypes.stored(ref.type().dtype()), pointer, offset(ref.type()));
  }

  private String offset(TensorType type) {
    if (flat) {
      return "i";
    }
    var terms = new StringBuilder();
    for (int dim = 0; dim < type.rank(); dim++) {
      int of = dim + shape.rank() - type.rank();
      if (type.size(dim) != 1 && type.stride(dim) != 0) {
        terms
            .append(terms.isEmpty() ? "" : " + ")
            .append("i%d * %d".formatted(of, type.stride(dim)));
      }
    }
    return terms.isEmpty() ? "0" : terms.toString();
  }

  private DeviceStep.Launch build(Stream stream, String label) {
    long count = shape.numel();
    var text =
        CTypes.PRELUDE
            + """

            struct Args {
              char* memory[%d];
            };

            extern "C" __global__ void __launch_bounds__(%d) symplan_kernel(const __grid_constant__ Args args) {
              %s step = gridDim.x * %d;
              for (%s i = blockIdx.x * %d + threadIdx.x; i < %d; i += step) {
            """
                .formatted(
                    Math.max(1, pointers.size()),
                    THREADS,
                    index(count),
                    THREADS,
                    index(count),
                    THREADS,
                    count)
            + indices(count)
            + body
            + "  }\n}\n";
    var words = ImmutableList.<Word>builder();
    pointers.keySet().forEach(ref -> words.add(new Word.Memory(Address.of(rank, ref))));
    return new DeviceStep.Launch(
        stream,
        new Kernel(text),
        Math.toIntExact(Math.clamp(Math.ceilDiv(count, THREADS), 1, MAX_BLOCKS)),
        THREADS,
        words.build(),
        label);
  }

  private static String index(long count) {
    return count < 1L << 30 ? "unsigned" : "unsigned long long";
  }

  private String indices(long count) {
    if (flat || shape.rank() == 0) {
      return "";
    }
    var text = new StringBuilder("    %s rest = i;\n".formatted(index(count)));
    for (int dim = shape.rank() - 1; dim >= 0; dim--) {
      text.append("    long long i%d = rest %% %d;\n".formatted(dim, Math.max(1, shape.size(dim))));
      text.append("    rest /= %d;\n".formatted(Math.max(1, shape.size(dim))));
    }
    return text.toString();
  }
}
