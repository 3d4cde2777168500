package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.Expressions.Expression;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.planner.Stream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * Elementwise ops of one shape as one kernel: every thread takes elements through all of them. Each
 * op's result is rounded to its type before the next one sees it, as if it had been in memory.
 */
final class ElementwiseKernel {
  private static final int THREADS = 256;

  /** Beyond this, threads take several elements each. */
  private static final int MAX_BLOCKS = 4096;

  private static final Pattern PARAM = Pattern.compile("\\{(\\w+)\\}");

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

  /** {@return whether an op can be part of such a kernel} */
  static boolean supports(Part part) {
    return Expressions.find(part.def().name().toString()).isPresent();
  }

  /**
   * {@return a launch that runs the parts}
   *
   * @throws UnsupportedOnGpu when one of them has no CUDA implementation
   */
  static DeviceStep.Launch launch(int rank, Stream stream, ImmutableList<Part> parts) {
    checkPlaces(parts);
    var kernel = new ElementwiseKernel(rank, parts);
    for (int i = 0; i < parts.size(); i++) {
      kernel.part(i, parts.get(i));
    }
    return kernel.build(stream, parts.getLast().name());
  }

  private static Operand result(Part part) {
    if (part.results().size() != 1) {
      throw unsupported(part, part.def().name() + " has no CUDA implementation");
    }
    return part.results().getFirst();
  }

  /**
   * Threads take elements, not rows, through the parts: so all must have one shape, and a place
   * that is used twice must be used for the same elements.
   */
  private static void checkPlaces(ImmutableList<Part> parts) {
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
        throw unsupported(part, part.def().name() + " fused by rows (try --no-fusion)");
      }
    }
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

  private static TensorType typeOf(Operand operand) {
    return switch (operand) {
      case Operand.Tensor(var ref) -> ref.type();
      case Operand.Passed(var _, var type) -> type;
      case Operand.Many _, Operand.Constant _ -> throw new IllegalStateException("no tensor");
    };
  }

  /** Whether the i-th element of the shape is the i-th in memory. */
  private boolean isFlat(Operand operand) {
    return !(operand instanceof Operand.Tensor(var ref))
        || (ref.type().sizes().equals(shape.sizes()) && ref.type().isContiguous());
  }

  private void part(int index, Part part) {
    if (part.def().name().base().equals("aten::gelu")
        && part.args().get(part.def().schema().indexOf("approximate"))
            instanceof Operand.Constant(Arg.Str(String how))
        && !how.equals("none")) {
      throw unsupported(part, "%s by %s".formatted(part.def().name(), how));
    }
    var expression =
        Expressions.find(part.def().name().toString())
            .orElseThrow(
                () -> unsupported(part, part.def().name() + " has no CUDA implementation"));
    var type = typeOf(result(part)).dtype();
    var computed = computedIn(part, type);
    var text = (computed.equals("long long") ? ofIntegers(expression, part) : expression.floats());
    if (text.isEmpty()) {
      throw unsupported(
          part,
          "%s of %s has no CUDA implementation".formatted(part.def().name(), type.shortName()));
    }
    var matcher = PARAM.matcher(text);
    var filled = new StringBuilder();
    while (matcher.find()) {
      matcher.appendReplacement(filled, argument(part, matcher.group(1), computed));
    }
    matcher.appendTail(filled);
    var value = "v" + index;
    body.append(
        "    %s %s = %s;\n"
            .formatted(
                CTypes.computed(type),
                value,
                rounded(type, "((%s)(%s))".formatted(computed, filled), computed)));
    switch (result(part)) {
      case Operand.Tensor(var ref) -> {
        body.append("    %s = %s;\n".formatted(element(ref, false), CTypes.narrow(type, value)));
        loaded.put(ref, value);
      }
      case Operand.Passed(int number, var _) -> passed.put(number, value);
      case Operand.Many _, Operand.Constant _ -> throw new IllegalStateException("no tensor");
    }
  }

  private static String ofIntegers(Expression expression, Part part) {
    boolean bool = typeOf(result(part)).dtype() == DType.BOOL;
    return expression.integers().equals("{self!}")
        ? (bool ? "{self} == 0" : "~{self}")
        : expression.integers();
  }

  private static UnsupportedOnGpu unsupported(Part part, String what) {
    return new UnsupportedOnGpu(what, part.name(), part.span());
  }

  /** The type that PyTorch computes in: float for 16-bit floats, 64 bits for integers. */
  private static String computedIn(Part part, DType result) {
    if (!CTypes.computes(result)) {
      throw unsupported(part, "%s of %s".formatted(part.def().name(), result.shortName()));
    }
    boolean floats = result.isFloat();
    boolean doubles = result == DType.F64;
    for (var arg : part.args()) {
      switch (arg) {
        case Operand.Tensor _, Operand.Passed _ -> {
          var dtype = typeOf(arg).dtype();
          if (!CTypes.computes(dtype)) {
            throw unsupported(part, "%s of %s".formatted(part.def().name(), dtype.shortName()));
          }
          floats |= dtype.isFloat();
          doubles |= dtype == DType.F64 && !result.isFloat();
        }
        case Operand.Constant(var value) -> floats |= value instanceof Arg.Float;
        case Operand.Many _ ->
            throw unsupported(part, part.def().name() + " with a list of tensors");
      }
    }
    return doubles ? "double" : floats ? "float" : "long long";
  }

  /** An expression as a value of a type has it, in what such values are computed with. */
  private static String rounded(DType type, String value, String computed) {
    return switch (type) {
      case F16 -> "from_f16(to_f16((float)" + value + "))";
      case BF16 -> "from_bf16(to_bf16((float)" + value + "))";
      case F64, F32 -> "(" + CTypes.computed(type) + ")" + value;
      case BOOL -> "(" + value + " != 0)";
      default ->
          "(%s)(%s)%s"
              .formatted(
                  CTypes.computed(type),
                  CTypes.stored(type),
                  computed.equals("long long") ? value : "(long long)" + value);
    };
  }

  private String argument(Part part, String param, String computed) {
    if (param.equals("C")) {
      return computed;
    }
    int position = part.def().schema().indexOf(param);
    return switch (part.args().get(position)) {
      case Operand.Tensor(var ref) -> "(%s)%s".formatted(computed, load(ref));
      case Operand.Passed(int number, var _) -> {
        var value = passed.get(number);
        if (value == null) {
          throw new IllegalStateException("%" + number + " is not passed yet");
        }
        yield "(%s)%s".formatted(computed, value);
      }
      case Operand.Constant(var value) ->
          literal(value, computed)
              .orElseThrow(
                  () ->
                      unsupported(
                          part, "%s with %s = %s".formatted(part.def().name(), param, value)));
      case Operand.Many _ -> throw new IllegalStateException("a list");
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

  private static Optional<String> literal(Arg arg, String computed) {
    return switch (arg) {
      case Arg.Int(long value) ->
          Optional.of(
              computed.equals("long long")
                  ? (value == Long.MIN_VALUE ? "(-9223372036854775807LL - 1)" : value + "LL")
                  : literal((double) value, computed));
      case Arg.Float(double value) -> Optional.of(literal(value, computed));
      case Arg.Bool(boolean value) -> Optional.of(value ? "1" : "0");
      case Arg.Ref _, Arg.Str _, Arg.Dtype _, Arg.Symbol _, Arg.Device _, Arg.Seq _, Arg.None _ ->
          Optional.empty();
    };
  }

  private static String literal(double value, String computed) {
    boolean wide = computed.equals("double");
    if (Double.isNaN(value)) {
      return wide ? "__longlong_as_double(0x7ff8000000000000LL)" : "__int_as_float(0x7fc00000)";
    }
    if (Double.isInfinite(wide ? value : (float) value)) {
      var infinity =
          wide ? "__longlong_as_double(0x7ff0000000000000LL)" : "__int_as_float(0x7f800000)";
      return value > 0 ? infinity : "(-" + infinity + ")";
    }
    return wide
        ? "(" + Double.toHexString(value) + ")"
        : "(" + Float.toHexString((float) value) + "f)";
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
