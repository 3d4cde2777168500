package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.Streams;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.cuda.RowNode.Fold;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import java.util.List;
import java.util.Optional;
import java.util.function.ToIntFunction;

/**
 * Ops that treat each row by itself, as values of a {@link RowKernel}: reductions, softmax, scans
 * and norms. Floats are added up in f32 (f64 in f64), integers in 64 bits.
 */
final class RowOps {
  private static final String FLOAT = "float";
  private static final String DOUBLE = "double";
  private static final String LONG = "long long";

  private interface Rule {
    /** {@return a value for each result, not yet rounded} */
    List<Integer> apply(RowOps op);
  }

  private static final ImmutableMap<String, Rule> TABLE = table();

  private final RowKernel kernel;
  private final Part part;
  private final ToIntFunction<Operand> values;
  private final boolean overRow;
  private final String type;

  private RowOps(
      RowKernel kernel, Part part, ToIntFunction<Operand> values, boolean overRow, String type) {
    this.kernel = kernel;
    this.part = part;
    this.values = values;
    this.overRow = overRow;
    this.type = type;
  }

  static boolean supports(String op) {
    return TABLE.containsKey(op);
  }

  /**
   * {@return a value for each of the results}
   *
   * @param values the value of an operand that is a tensor
   * @param overRow whether the op is over all elements of a row, rather than over one
   * @throws UnsupportedOnGpu when the op has no CUDA implementation
   */
  static ImmutableList<Integer> apply(
      RowKernel kernel, Part part, ToIntFunction<Operand> values, boolean overRow) {
    var rule = TABLE.get(part.def().name().toString());
    if (rule == null) {
      throw Parts.unsupported(part);
    }
    boolean floats = false;
    boolean doubles = false;
    var tensors =
        Streams.concat(part.args().stream(), part.results().stream())
            .filter(Parts::isTensor)
            .map(operand -> Parts.typeOf(operand).dtype())
            .toList();
    for (var dtype : tensors) {
      Parts.checkComputes(part, dtype);
      floats |= dtype.isFloat();
      doubles |= dtype == DType.F64;
    }
    var type = doubles ? DOUBLE : floats ? FLOAT : LONG;
    var op = new RowOps(kernel, part, values, overRow, type);
    var results = rule.apply(op);
    var rounded = ImmutableList.<Integer>builder();
    for (int i = 0; i < part.results().size(); i++) {
      var result = part.results().get(i);
      rounded.add(
          Parts.isTensor(result)
              ? op.rounded(results.get(i), Parts.typeOf(result).dtype())
              : results.get(i));
    }
    return rounded.build();
  }

  private int rounded(int node, DType dtype) {
    var value = RowKernel.name(node);
    return kernel.compute(
        CTypes.computed(dtype), Pointwise.rounded(dtype, value, type), List.of(node));
  }

  private static ImmutableMap<String, Rule> table() {
    var table = ImmutableMap.<String, Rule>builder();
    for (var name : List.of("sum", "sum.dim_IntList")) {
      table.put("aten::" + name, op -> List.of(op.sum(op.self())));
    }
    for (var name : List.of("mean", "mean.dim")) {
      table.put("aten::" + name, op -> List.of(op.mean(op.self())));
    }
    for (var name : List.of("prod", "prod.dim_int")) {
      table.put("aten::" + name, op -> List.of(op.fold(op.self(), "1", "a0 = a0 * b0;")));
    }
    for (var name : List.of("amax", "max")) {
      table.put("aten::" + name, op -> List.of(op.extreme(op.self(), true)));
    }
    for (var name : List.of("amin", "min")) {
      table.put("aten::" + name, op -> List.of(op.extreme(op.self(), false)));
    }
    table.put(
        "aten::aminmax", op -> List.of(op.extreme(op.self(), false), op.extreme(op.self(), true)));
    table.put("aten::max.dim", op -> op.best(true));
    table.put("aten::min.dim", op -> op.best(false));
    table.put("aten::argmax", op -> List.of(op.best(true).get(1)));
    table.put("aten::argmin", op -> List.of(op.best(false).get(1)));
    for (var overload : List.of("", ".dim", ".dims")) {
      table.put(
          "aten::any" + overload,
          op -> List.of(op.fold(op.isNonzero(), "0", "a0 = a0 != 0 || b0 != 0;")));
      table.put(
          "aten::all" + overload,
          op -> List.of(op.fold(op.isNonzero(), "1", "a0 = a0 != 0 && b0 != 0;")));
    }
    for (var overload : List.of("", ".dim_IntList")) {
      table.put("aten::count_nonzero" + overload, op -> List.of(op.sum(op.isNonzero())));
    }
    for (var overload : List.of("", ".dim", ".correction")) {
      table.put("aten::var" + overload, op -> op.variance(false));
      table.put("aten::std" + overload, op -> op.variance(true));
      table.put("aten::var_mean" + overload, op -> op.variance(false));
      table.put("aten::std_mean" + overload, op -> op.variance(true));
    }
    table.put("aten::logsumexp", op -> List.of(op.logSumExp()));
    table.put("aten::linalg_vector_norm", op -> List.of(op.norm()));
    table.put("prims::prepare_softmax_online", RowOps::prepareSoftmax);
    for (var name : List.of("_softmax", "softmax.int", "_safe_softmax")) {
      table.put("aten::" + name, op -> List.of(op.softmax(name.equals("_safe_softmax"))));
    }
    for (var name : List.of("_log_softmax", "log_softmax.int")) {
      table.put("aten::" + name, op -> List.of(op.logSoftmax()));
    }
    table.put("aten::_softmax_backward_data", op -> List.of(op.softmaxBackward()));
    table.put("aten::_log_softmax_backward_data", op -> List.of(op.logSoftmaxBackward()));
    table.put("aten::cumsum", op -> List.of(op.scan("0", "a0 = a0 + b0;")));
    table.put("aten::cumprod", op -> List.of(op.scan("1", "a0 = a0 * b0;")));
    table.put("aten::native_layer_norm", op -> op.norm(true));
    table.put("aten::layer_norm", op -> op.norm(true));
    table.put("aten::_fused_rms_norm", op -> op.norm(false));
    table.put("aten::rms_norm", op -> op.norm(false));
    return table.buildOrThrow();
  }

  private Operand operand(String param) {
    return Parts.argument(part, param).orElseThrow();
  }

  /** A tensor, in the type that is computed in. */
  private int tensor(String param) {
    int node = values.applyAsInt(operand(param));
    return compute("(%s)%s".formatted(type, RowKernel.name(node)), node);
  }

  private int self() {
    return tensor(part.def().schema().hasParam("self") ? "self" : "a");
  }

  private Optional<Integer> optional(String param) {
    return Parts.argument(part, param).filter(Parts::isTensor).map(_ -> tensor(param));
  }

  private Optional<Double> number(String param) {
    return switch (Parts.constant(part, param).orElse(Arg.None.NONE)) {
      case Arg.Int(long number) -> Optional.of((double) number);
      case Arg.Float(double number) -> Optional.of(number);
      case Arg.Bool(boolean flag) -> Optional.of(flag ? 1.0 : 0.0);
      default -> Optional.empty();
    };
  }

  private String literal(double value) {
    return type.equals(LONG)
        ? Literals.integer((long) value)
        : Literals.floating(value, type.equals(DOUBLE));
  }

  /**
   * @param text {@code $0}, {@code $1} and so on stand for the inputs
   */
  private int compute(String text, Integer... inputs) {
    var filled = text;
    for (int i = 0; i < inputs.length; i++) {
      filled = filled.replace("$" + i, RowKernel.name(inputs[i]));
    }
    return kernel.compute(type, filled, List.of(inputs));
  }

  private int fold(int node, String start, String combine) {
    return kernel.fold(
        Fold.of(type, start, combine), List.of(RowKernel.name(node)), List.of(node), overRow);
  }

  private int sum(int node) {
    return fold(node, "0", "a0 = a0 + b0;");
  }

  private double count() {
    return overRow ? kernel.elements() : 1;
  }

  private int mean(int node) {
    return compute("$0 / " + literal(count()), sum(node));
  }

  private int isNonzero() {
    return compute("(%s)($0 != 0)".formatted(type), self());
  }

  /** A NaN is larger and smaller than all. */
  private int extreme(int node, boolean largest) {
    var start =
        type.equals(LONG)
            ? Literals.integer(largest ? Long.MIN_VALUE : Long.MAX_VALUE)
            : literal(largest ? Double.NEGATIVE_INFINITY : Double.POSITIVE_INFINITY);
    return fold(node, start, "a0 = b0 %s a0 || b0 != b0 ? b0 : a0;".formatted(largest ? ">" : "<"));
  }

  /** The first of the largest or smallest elements, and where it is. */
  private List<Integer> best(boolean largest) {
    int node = self();
    var fold =
        new Fold(
            ImmutableList.of(type, LONG),
            ImmutableList.of("0", "-1"),
            """
            if (b1 >= 0 && (a1 < 0 || b0 %1$s a0 || (b0 != b0 && a0 == a0) \
            || ((b0 == a0 || (b0 != b0 && a0 != a0)) && b1 < a1))) { a0 = b0; a1 = b1; }\
            """
                .formatted(largest ? ">" : "<"));
    int best =
        kernel.fold(fold, List.of(RowKernel.name(node), "(long long){c}"), List.of(node), overRow);
    return List.of(best, kernel.compute(LONG, RowKernel.name(best) + "_1", List.of(best)));
  }

  private List<Integer> variance(boolean root) {
    double correction = number("unbiased").or(() -> number("correction")).orElse(1.0);
    int node = self();
    int mean = mean(node);
    int distance = compute("($0 - $1) * ($0 - $1)", node, mean);
    double freedom = Math.max(0, count() - correction);
    return List.of(
        compute((root ? "sqrt($0 / %s)" : "$0 / %s").formatted(literal(freedom)), sum(distance)),
        mean);
  }

  private int logSumExp() {
    int node = self();
    int max = extreme(node, true);
    int sum = sum(compute("$0 == $1 ? 1 : exp($0 - $1)", node, max));
    return compute("isinf($0) ? $0 : $0 + log($1)", max, sum);
  }

  private List<Integer> prepareSoftmax() {
    int node = self();
    int max = extreme(node, true);
    return List.of(max, sum(compute("$0 == $1 ? 1 : exp($0 - $1)", node, max)));
  }

  private int norm() {
    double order = number("ord").orElse(2.0);
    int size = compute("$0 < 0 ? -$0 : $0", self());
    if (order == 2) {
      return compute("sqrt($0)", sum(compute("$0 * $0", size)));
    } else if (order == 1) {
      return sum(size);
    } else if (order == Double.POSITIVE_INFINITY) {
      return fold(size, "0", "a0 = b0 > a0 || b0 != b0 ? b0 : a0;");
    } else if (order == Double.NEGATIVE_INFINITY) {
      return extreme(size, false);
    } else if (order == 0) {
      return sum(compute("(%s)($0 != 0)".formatted(type), size));
    }
    int powers = sum(compute("pow($0, %s)".formatted(literal(order)), size));
    return compute("pow($0, %s)".formatted(literal(1 / order)), powers);
  }

  private int softmax(boolean safe) {
    int node = self();
    int max = extreme(node, true);
    // Where all is masked, safe_softmax gives 0, the others NaN.
    int part =
        compute(
            safe
                ? "$1 == %s ? 0 : exp($0 - $1)".formatted(literal(Double.NEGATIVE_INFINITY))
                : "exp($0 - $1)",
            node,
            max);
    return compute(
        safe ? "$2 == %s ? 0 : $0 / $1".formatted(literal(Double.NEGATIVE_INFINITY)) : "$0 / $1",
        part,
        sum(part),
        max);
  }

  private int logSoftmax() {
    int node = self();
    int max = extreme(node, true);
    int sum = sum(compute("exp($0 - $1)", node, max));
    return compute("$0 - $1 - log($2)", node, max, sum);
  }

  private int softmaxBackward() {
    int grad = tensor("grad_output");
    int output = tensor("output");
    return compute("($0 - $2) * $1", grad, output, sum(compute("$0 * $1", grad, output)));
  }

  private int logSoftmaxBackward() {
    int grad = tensor("grad_output");
    return compute("$0 - exp($1) * $2", grad, tensor("output"), sum(grad));
  }

  private int scan(String start, String combine) {
    int node = self();
    return kernel.scan(Fold.of(type, start, combine), RowKernel.name(node), List.of(node));
  }

  /** Layer norm, or rms norm, which takes no mean off. */
  private List<Integer> norm(boolean centred) {
    int input = tensor("input");
    boolean wide = Parts.typeOf(operand("input")).dtype() == DType.F64;
    double epsilon = number("eps").orElse(wide ? Math.ulp(1.0) : (double) Math.ulp(1f));
    int mean = centred ? mean(input) : input;
    int distance = centred ? compute("$0 - $1", input, mean) : input;
    int squares = mean(compute("$0 * $0", distance));
    int rstd = compute("1 / sqrt($0 + %s)".formatted(literal(epsilon)), squares);
    int normal = compute("$0 * $1", distance, rstd);
    var weight = optional("weight");
    int scaled = weight.isPresent() ? compute("$0 * $1", normal, weight.get()) : normal;
    var bias = centred ? optional("bias") : Optional.<Integer>empty();
    int shifted = bias.isPresent() ? compute("$0 + $1", scaled, bias.get()) : scaled;
    return centred ? List.of(shifted, mean, rstd) : List.of(shifted, rstd);
  }
}
