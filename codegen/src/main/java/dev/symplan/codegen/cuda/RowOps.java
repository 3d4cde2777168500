package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.cuda.CudaExpr.NoCudaForm;
import dev.symplan.codegen.cuda.RowNode.Fold;
import dev.symplan.codegen.expr.Binding;
import dev.symplan.codegen.expr.Expr;
import dev.symplan.codegen.expr.Expressions;
import dev.symplan.codegen.expr.Primitive;
import dev.symplan.codegen.expr.Steps;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.OpDef;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.ToIntFunction;

/**
 * Ops that treat each row by itself, as values of a {@link RowKernel}: what is folded, scanned or
 * used twice is one of its own. Floats are added up in f32 (f64 in f64), integers in 64 bits.
 */
final class RowOps {
  private static final String LONG = "long long";

  private final RowKernel kernel;
  private final ToIntFunction<String> operands;
  private final boolean overRow;
  private final DType computedIn;
  private final String type;
  private final Set<Expr> shared = new HashSet<>();
  private final Map<Expr, Integer> made = new HashMap<>();

  private RowOps(
      RowKernel kernel, ToIntFunction<String> operands, boolean overRow, Binding binding) {
    this.kernel = kernel;
    this.operands = operands;
    this.overRow = overRow;
    this.computedIn = binding.computedIn();
    this.type = CTypes.computed(computedIn);
    var steps = Steps.of(binding.results());
    var seen = new HashSet<Integer>();
    steps
        .args()
        .forEach(
            args ->
                new LinkedHashSet<>(args)
                    .forEach(
                        arg -> {
                          if (!seen.add(arg)) {
                            shared.add(steps.nodes().get(arg));
                          }
                        }));
  }

  static boolean supports(OpDef def) {
    var name = def.name().toString();
    return Expressions.find(name).isPresent() && Expressions.isByRow(name);
  }

  /**
   * {@return a value for each of the results}
   *
   * @param operands the value of an operand that is a tensor
   * @param overRow whether the op is over all elements of a row, rather than over one
   * @throws UnsupportedOnGpu when the op has no CUDA implementation
   */
  static ImmutableList<Integer> apply(
      RowKernel kernel, Part part, ToIntFunction<Operand> operands, boolean overRow) {
    if (!supports(part.def())) {
      throw Parts.unsupported(part);
    }
    var call = new PartTypes(part, overRow ? kernel.elements() : 1);
    call.dtypes().forEach(dtype -> Parts.checkComputes(part, dtype));
    var binding = Parts.bind(part, Expressions.get(part.def().name().toString()), call);
    try {
      return apply(
          kernel,
          binding,
          param -> operands.applyAsInt(Parts.argument(part, param).orElseThrow()),
          overRow,
          part.results().stream()
              .map(
                  result ->
                      Parts.isTensor(result)
                          ? Optional.of(Parts.typeOf(result).dtype())
                          : Optional.<DType>empty())
              .toList());
    } catch (NoCudaForm e) {
      throw Parts.unsupported(part);
    }
  }

  /**
   * {@return a value for each of the results}
   *
   * @param operands the value of an operand
   * @param overRow whether folds are over all elements of a row, rather than over one
   * @param results the element types of the results; empty for those that do not exist
   * @throws NoCudaForm when an expression has none
   */
  static ImmutableList<Integer> apply(
      RowKernel kernel,
      Binding binding,
      ToIntFunction<String> operands,
      boolean overRow,
      List<Optional<DType>> results) {
    var op = new RowOps(kernel, operands, overRow, binding);
    var nodes = ImmutableList.<Integer>builder();
    for (int i = 0; i < results.size(); i++) {
      int node = op.node(binding.results().get(i));
      nodes.add(results.get(i).map(dtype -> op.rounded(node, dtype)).orElse(node));
    }
    return nodes.build();
  }

  private int rounded(int node, DType dtype) {
    var value = RowKernel.name(node);
    return kernel.compute(
        CTypes.computed(dtype), Pointwise.rounded(dtype, value, type), List.of(node));
  }

  /** {@return the value of an expression} */
  private int node(Expr expr) {
    var known = made.get(expr);
    if (known != null) {
      return known;
    }
    int node =
        switch (expr) {
          case Expr.Param(var name) -> tensor(name);
          case Expr.Apply(var primitive, var args) ->
              switch (primitive) {
                case Primitive.Fold fold -> fold(fold, args.getFirst());
                case Primitive.Scan scan -> scan(scan, args.getFirst());
                case Primitive.Infix _,
                    Primitive.Function _,
                    Primitive.FloatFunction _,
                    Primitive.Known _ ->
                    computed(expr);
              };
          case Expr.Int _, Expr.Float _, Expr.Text _ -> computed(expr);
        };
    made.put(expr, node);
    return node;
  }

  /** A tensor, in the type that is computed in. */
  private int tensor(String param) {
    int node = operands.applyAsInt(param);
    var value = RowKernel.name(node);
    return kernel.compute(
        type,
        Pointwise.isShort(computedIn)
            ? Pointwise.rounded(computedIn, value, type)
            : "(%s)%s".formatted(type, value),
        List.of(node));
  }

  /** A part of an expression that is not a value of its own is written where it is used. */
  private int computed(Expr expr) {
    var inputs = new ArrayList<Integer>();
    var inlined =
        expr instanceof Expr.Apply(var primitive, var args)
            ? new Expr.Apply(
                primitive,
                args.stream()
                    .map(arg -> inlined(arg, inputs))
                    .collect(ImmutableList.toImmutableList()))
            : expr;
    var text = CudaExpr.print(inlined, type, name -> name);
    return kernel.compute(type, isTruth(expr) ? "(%s)(%s)".formatted(type, text) : text, inputs);
  }

  private Expr inlined(Expr expr, List<Integer> inputs) {
    return switch (expr) {
      case Expr.Int _, Expr.Float _, Expr.Text _ -> expr;
      case Expr.Apply(var primitive, var args)
          when !primitive.isByRow() && !shared.contains(expr) ->
          new Expr.Apply(
              primitive,
              args.stream()
                  .map(arg -> inlined(arg, inputs))
                  .collect(ImmutableList.toImmutableList()));
      case Expr.Param _, Expr.Apply _ -> {
        int node = node(expr);
        inputs.add(node);
        yield new Expr.Param(RowKernel.name(node));
      }
    };
  }

  private static boolean isTruth(Expr expr) {
    return expr instanceof Expr.Apply(Primitive.Comparison _, var _);
  }

  private int fold(Primitive.Fold fold, Expr arg) {
    int node = node(arg);
    return switch (fold) {
      case SUM -> fold(sum(), node);
      case PROD -> fold(product(), node);
      case ANY -> fold(Fold.of(type, "0", "a0 = a0 != 0 || b0 != 0;"), node);
      case ALL -> fold(Fold.of(type, "1", "a0 = a0 != 0 && b0 != 0;"), node);
      case AMAX -> fold(extreme(">", Long.MIN_VALUE, Double.NEGATIVE_INFINITY), node);
      case AMIN -> fold(extreme("<", Long.MAX_VALUE, Double.POSITIVE_INFINITY), node);
      case FIRST_MAX, FIRST_MIN -> best(fold == Primitive.Fold.FIRST_MAX, arg, node);
      case ARGMAX, ARGMIN -> {
        int best = best(fold == Primitive.Fold.ARGMAX, arg, node);
        yield kernel.compute(LONG, RowKernel.name(best) + "_1", List.of(best));
      }
    };
  }

  private int fold(Fold fold, int node) {
    return kernel.fold(fold, List.of(RowKernel.name(node)), List.of(node), overRow);
  }

  private Fold sum() {
    return Fold.of(type, "0", "a0 = a0 + b0;");
  }

  private Fold product() {
    return Fold.of(type, "1", "a0 = a0 * b0;");
  }

  /** A NaN is larger and smaller than all. */
  private Fold extreme(String compares, long ofIntegers, double ofFloats) {
    return Fold.of(
        type,
        type.equals(LONG)
            ? Literals.integer(ofIntegers)
            : Literals.floating(ofFloats, type.equals("double")),
        "a0 = b0 %s a0 || b0 != b0 ? b0 : a0;".formatted(compares));
  }

  /** The first of the largest or smallest elements, and where it is. */
  private int best(boolean largest, Expr arg, int node) {
    var first = Expr.of(largest ? Primitive.Fold.FIRST_MAX : Primitive.Fold.FIRST_MIN, arg);
    var known = made.get(first);
    if (known != null) {
      return known;
    }
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
    made.put(first, best);
    return best;
  }

  private int scan(Primitive.Scan scan, Expr arg) {
    int node = node(arg);
    var fold =
        switch (scan) {
          case CUMSUM -> sum();
          case CUMPROD -> product();
        };
    return kernel.scan(fold, RowKernel.name(node), List.of(node));
  }
}
