package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Makes PyTorch's ops of instructions that compute each element from those at its index. */
final class Elementwise {
  private static final String SIGN = "sign";

  private static final ImmutableMap<String, String> UNARY =
      ImmutableMap.<String, String>builder()
          .put("abs", "aten::abs")
          .put("negate", "aten::neg")
          .put("exponential", "aten::exp")
          .put("exponential-minus-one", "aten::expm1")
          .put("log", "aten::log")
          .put("log-plus-one", "aten::log1p")
          .put("logistic", "aten::sigmoid")
          .put("sqrt", "aten::sqrt")
          .put("rsqrt", "aten::rsqrt")
          .put("tanh", "aten::tanh")
          .put("cosine", "aten::cos")
          .put("sine", "aten::sin")
          .put("erf", "aten::erf")
          .put("floor", "aten::floor")
          .put("ceil", "aten::ceil")
          .put(SIGN, "aten::sign")
          .put("tan", "aten::tan")
          .put("round-nearest-even", "aten::round")
          .put("is-finite", "aten::isfinite")
          .put("not", "aten::bitwise_not")
          .buildOrThrow();

  private static final ImmutableMap<String, String> BINARY =
      ImmutableMap.<String, String>builder()
          .put("add", "aten::add.Tensor")
          .put("subtract", "aten::sub.Tensor")
          .put("multiply", "aten::mul.Tensor")
          .put("divide", "aten::div.Tensor")
          .put("maximum", "aten::maximum")
          .put("minimum", "aten::minimum")
          .put("power", "aten::pow.Tensor_Tensor")
          .put("remainder", "aten::fmod.Tensor")
          .put("atan2", "aten::atan2")
          .put("and", "aten::bitwise_and.Tensor")
          .put("or", "aten::bitwise_or.Tensor")
          .put("xor", "aten::bitwise_xor.Tensor")
          .buildOrThrow();

  private static final ImmutableSet<String> COMMUTATIVE =
      ImmutableSet.of("add", "multiply", "maximum", "minimum");

  /** Forms whose second operand is one number. */
  private static final ImmutableMap<String, String> OF_NUMBER =
      ImmutableMap.of(
          "add", "aten::add.Tensor",
          "subtract", "aten::sub.Tensor",
          "multiply", "aten::mul.Tensor",
          "divide", "aten::div.Tensor",
          "maximum", "aten::clamp_min",
          "minimum", "aten::clamp_max",
          "power", "aten::pow.Tensor_Scalar");

  /** Those that PyTorch refuses for booleans, or that mean something else for them. */
  private static final ImmutableSet<String> OF_BITS = ImmutableSet.of("and", "or", "xor", "not");

  /** Those of one operand that integers have, too. */
  private static final ImmutableSet<String> OF_NUMBERS = ImmutableSet.of("abs", "negate", SIGN);

  private static final ImmutableMap<String, String> COMPARE =
      ImmutableMap.of(
          "EQ", "aten::eq.Tensor",
          "NE", "aten::ne.Tensor",
          "LT", "aten::lt.Tensor",
          "LE", "aten::le.Tensor",
          "GT", "aten::gt.Tensor",
          "GE", "aten::ge.Tensor");

  /** Opcodes of which an element of the result needs one element of each operand, at its index. */
  private static final ImmutableSet<String> POINTWISE =
      ImmutableSet.<String>builder()
          .addAll(UNARY.keySet())
          .addAll(BINARY.keySet())
          .add("compare", "select", "clamp", "convert", "copy", "reduce-precision")
          .build();

  private final GraphEmitter emitter;

  Elementwise(GraphEmitter emitter) {
    this.emitter = emitter;
  }

  static boolean isPointwise(String opcode) {
    return POINTWISE.contains(opcode);
  }

  /** {@return the result; absent if no op of PyTorch computes the same} */
  Optional<Value> read(HloInstruction instruction, List<Bound> operands, Array shape) {
    if (operands.isEmpty() || !areExact(operands)) {
      return Optional.empty();
    }
    var name = instruction.name();
    var first = operands.getFirst();
    var dtype = dtype(first);
    return switch (instruction.opcode()) {
      case "convert" ->
          Optional.of(
              emitter.fresh(
                  name,
                  shape,
                  "prims::convert_element_type",
                  ref(first, name),
                  new Arg.Dtype(shape.dtype())));
      case "copy" -> Optional.of(emitter.fresh(name, shape, "aten::clone", ref(first, name)));
      case "compare" -> compare(instruction, operands, shape);
      case "select" -> select(name, operands, shape);
      case "clamp" -> clamp(name, operands, shape);
      default -> {
        @Nullable String unary = UNARY.get(instruction.opcode());
        @Nullable String binary = BINARY.get(instruction.opcode());
        boolean bits = OF_BITS.contains(instruction.opcode());
        boolean bool = dtype == DType.BOOL;
        if (bits ? dtype.kind() == DType.Kind.FLOAT : bool) {
          yield Optional.empty();
        }
        if (unary != null && operands.size() == 1) {
          boolean takes = dtype.isFloat() || bits || OF_NUMBERS.contains(instruction.opcode());
          if (takes && dtype.isFloat() && instruction.opcode().equals(SIGN)) {
            yield Optional.of(signOfFloat(name, first, shape));
          }
          yield takes
              ? Optional.of(emitter.fresh(name, shape, unary, ref(first, name)))
              : Optional.empty();
        }
        yield binary != null && operands.size() == 2
            ? binary(instruction.opcode(), binary, name, operands, shape)
            : Optional.empty();
      }
    };
  }

  /** The sign of a NaN is a NaN, and that of -0 is -0; in PyTorch both are 0. */
  private Value signOfFloat(String name, Bound operand, Array shape) {
    var of = ref(operand, name);
    var sign = new Arg.Ref(emitter.op(name + ".sign", "aten::sign", of));
    var none = emitter.op(name + ".none", "aten::eq.Scalar", sign, new Arg.Int(0));
    return emitter.fresh(name, shape, "aten::where.self", new Arg.Ref(none), of, sign);
  }

  private Optional<Value> binary(
      String opcode, String op, String name, List<Bound> operands, Array shape) {
    var dtype = shape.dtype();
    if (dtype(operands.getLast()) != dtype(operands.getFirst())) {
      return Optional.empty();
    }
    if ((opcode.equals("power") || opcode.equals("atan2")) && !dtype.isFloat()) {
      return Optional.empty();
    }
    boolean turned = COMMUTATIVE.contains(opcode) && operands.getFirst() instanceof Bound.Splat;
    var left = turned ? operands.getLast() : operands.getFirst();
    var right = turned ? operands.getFirst() : operands.getLast();
    if (left instanceof Bound.Tensor && right instanceof Bound.Splat splat) {
      @Nullable String ofNumber = OF_NUMBER.get(opcode);
      if (ofNumber != null && (dtype.isFloat() || !opcode.equals("divide"))) {
        return Optional.of(emitter.fresh(name, shape, ofNumber, ref(left, name), splat.number()));
      }
    }
    var first = first(operands, name);
    var second = small(operands.getLast(), name + ".other");
    if (opcode.equals("divide") && !dtype.isFloat()) {
      return Optional.of(
          emitter.fresh(name, shape, "aten::div.Tensor_mode", first, second, new Arg.Str("trunc")));
    }
    return Optional.of(emitter.fresh(name, shape, op, first, second));
  }

  private Optional<Value> compare(HloInstruction instruction, List<Bound> operands, Array shape) {
    var attributes = instruction.attributes();
    @Nullable String op = COMPARE.get(attributes.text("direction").orElse(""));
    boolean total = attributes.text("type").orElse("").equals("TOTALORDER");
    boolean same = operands.size() == 2 && dtype(operands.getFirst()) == dtype(operands.getLast());
    if (op == null || !same || (total && dtype(operands.getFirst()).isFloat())) {
      return Optional.empty();
    }
    var name = instruction.name();
    if (operands.getFirst() instanceof Bound.Tensor
        && operands.getLast() instanceof Bound.Splat splat
        && splat.shape().dtype() != DType.BOOL) {
      return Optional.of(
          emitter.fresh(
              name,
              shape,
              op.replace(".Tensor", ".Scalar"),
              ref(operands.getFirst(), name),
              splat.number()));
    }
    return Optional.of(
        emitter.fresh(
            name, shape, op, first(operands, name), small(operands.getLast(), name + ".other")));
  }

  private Optional<Value> select(String name, List<Bound> operands, Array shape) {
    if (operands.size() != 3
        || dtype(operands.getFirst()) != DType.BOOL
        || dtype(operands.get(1)) != dtype(operands.get(2))) {
      return Optional.empty();
    }
    return Optional.of(
        emitter.fresh(
            name,
            shape,
            "aten::where.self",
            small(operands.getFirst(), name + ".if"),
            isWhole(operands.getFirst(), shape) || isWhole(operands.get(2), shape)
                ? small(operands.get(1), name + ".then")
                : ref(operands.get(1), name + ".then"),
            small(operands.get(2), name + ".else")));
  }

  private Optional<Value> clamp(String name, List<Bound> operands, Array shape) {
    if (operands.size() != 3 || operands.stream().anyMatch(o -> dtype(o) != shape.dtype())) {
      return Optional.empty();
    }
    var above =
        emitter.fresh(
            name + ".above",
            shape,
            "aten::maximum",
            ref(operands.get(1), name),
            small(operands.getFirst(), name + ".min"));
    return Optional.of(
        emitter.fresh(
            name,
            shape,
            "aten::minimum",
            new Arg.Ref(above),
            small(operands.getLast(), name + ".max")));
  }

  /** At least one operand must have the sizes of the result. */
  private Arg first(List<Bound> operands, String name) {
    return operands.getLast() instanceof Bound.Tensor
        ? small(operands.getFirst(), name)
        : ref(operands.getFirst(), name);
  }

  private static boolean isWhole(Bound bound, Array shape) {
    return bound instanceof Bound.Tensor(Value value)
        && value.tensor().sizes().equals(shape.tensor().sizes());
  }

  /** A tensor without dimensions where all elements are one number, as ops broadcast it. */
  private Arg small(Bound bound, String name) {
    return switch (bound) {
      case Bound.Splat splat -> new Arg.Ref(emitter.scalar(splat, name));
      case Bound.ByRank numbers -> new Arg.Ref(emitter.rankNumber(numbers, name));
      case Bound.Tensor _,
          Bound.Table _,
          Bound.Tuple _,
          Bound.Hosted _,
          Bound.Pending _,
          Bound.Nothing _ ->
          ref(bound, name);
    };
  }

  private Arg ref(Bound bound, String name) {
    return new Arg.Ref(emitter.value(bound, name));
  }

  static boolean areExact(List<Bound> operands) {
    for (var operand : operands) {
      if (!isExact(operand)) {
        return false;
      }
    }
    return true;
  }

  static boolean isExact(Bound bound) {
    return switch (bound) {
      case Bound.Tensor _ -> true;
      case Bound.Splat splat -> splat.shape().exact();
      case Bound.ByRank numbers -> numbers.shape().exact();
      case Bound.Table table -> table.shape().exact();
      case Bound.Tuple _, Bound.Hosted _, Bound.Pending _, Bound.Nothing _ -> false;
    };
  }

  static DType dtype(Bound bound) {
    return switch (bound) {
      case Bound.Tensor(Value value) -> value.tensor().dtype();
      case Bound.Splat splat -> splat.shape().dtype();
      case Bound.ByRank numbers -> numbers.shape().dtype();
      case Bound.Table table -> table.shape().dtype();
      case Bound.Tuple _, Bound.Hosted _, Bound.Pending _, Bound.Nothing _ ->
          throw new IllegalStateException("a tuple has no element type");
    };
  }
}
