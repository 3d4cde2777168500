package dev.symplan.codegen.composite;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.expr.Expr;
import dev.symplan.codegen.expr.Expressions;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.OpDef;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Arithmetic of complex numbers: one step, which computes the parts of each element of the result
 * from the parts of operands, or several where elements of a row are multiplied. Real operands have
 * imaginary parts of zero, as in PyTorch.
 */
final class ComplexNumbers {
  static final ImmutableMap<String, Composite> TABLE =
      ImmutableMap.of(
          "aten::_conj", ComplexNumbers::expand,
          "aten::complex", ComplexNumbers::expand,
          "aten::conj_physical", ComplexNumbers::expand,
          "aten::polar", ComplexNumbers::expand);

  static final ImmutableSet<String> NAMES = Expressions.complexOps();

  /** The ops that convert elements, and what they convert. */
  private static final ImmutableMap<String, String> CONVERSIONS =
      ImmutableMap.of(
          "convert_element_type", "a",
          "_to_copy", "self",
          "to", "self",
          "type_as", "self",
          "copy", "src");

  /** Operands by the names that they have in expressions. */
  static final class Operands {
    private final Map<String, Seen> seen = new HashMap<>();
    private final Map<String, Arg> constants;

    Operands(Expansion call) {
      this.constants = new HashMap<>(call.constants());
    }

    /**
     * @param name begins the names of its parts
     * @param type as the step sees it
     */
    void add(String name, Source source, TensorType type) {
      if (isComplex(type)) {
        seen.put(name + "_re", Seen.part(source, type, 0));
        seen.put(name + "_im", Seen.part(source, type, 1));
      } else {
        var real = new Seen(source, type, false);
        seen.put(name, real);
        seen.put(name + "_re", real);
        constants.put(name + "_im", new Arg.Int(0));
      }
    }

    void add(String name, Arg.Literal number) {
      constants.put(name + "_re", number);
      constants.put(name + "_im", new Arg.Int(0));
    }

    Map<String, Seen> seen() {
      return seen;
    }

    Map<String, Arg> constants() {
      return constants;
    }
  }

  private ComplexNumbers() {}

  /**
   * {@return whether a call computes with complex numbers, in a way that is known here}
   *
   * @param tensors the types of operands and results
   */
  static boolean computes(OpDef op, Stream<TensorType> tensors) {
    var dtypes = tensors.map(TensorType::dtype).distinct().collect(ImmutableSet.toImmutableSet());
    boolean complex = dtypes.stream().anyMatch(dtype -> dtype.kind() == DType.Kind.COMPLEX);
    return complex
        && NAMES.contains(op.name().toString())
        // Elements that keep their type are moved.
        && (dtypes.size() > 1 || !CONVERSIONS.containsKey(op.name().name()));
  }

  static boolean isComplex(TensorType type) {
    return type.dtype().kind() == DType.Kind.COMPLEX;
  }

  static ImmutableList<Step> expand(Expansion call) {
    if (IntStream.range(0, call.results().size()).noneMatch(call::needs)) {
      return ImmutableList.of();
    }
    return switch (call.call().schema().name().name()) {
      case "mm",
          "bmm",
          "mv",
          "dot",
          "vdot",
          "matmul",
          "outer",
          "linear",
          "addmm",
          "baddbmm",
          "addmv",
          "addbmm" ->
          ComplexProducts.expand(call);
      case "sum", "mean", "prod", "cumprod" -> ComplexRows.expand(call);
      case "any",
          "all",
          "count_nonzero",
          "var",
          "std",
          "var_mean",
          "std_mean",
          "linalg_vector_norm",
          "norm" ->
          ComplexRows.reduced(call, exprs(call));
      default -> {
        var sizes = call.results().getFirst().orElseThrow().sizes();
        yield step(
            call, exprs(call), sizes, ImmutableSet.of(), operands(call, sizes.length()), sizes);
      }
    };
  }

  /** {@return a type with a dimension of one element more} */
  static TensorType inserted(TensorType type, int dim) {
    return new TensorType(
        type.dtype(), with(type.sizes(), dim, 1), with(type.strides(), dim, 0), type.space());
  }

  private static ImmutableLongArray with(ImmutableLongArray list, int index, long value) {
    return ImmutableLongArray.builder()
        .addAll(list.subArray(0, index))
        .add(value)
        .addAll(list.subArray(index, list.length()))
        .build();
  }

  private static TensorType padded(TensorType type, int rank) {
    var padded = type;
    while (padded.rank() < rank) {
      padded = inserted(padded, 0);
    }
    return padded;
  }

  /**
   * {@return all arguments that are tensors or numbers}
   *
   * @param rank of the step
   */
  static Operands operands(Expansion call, int rank) {
    var operands = new Operands(call);
    for (var param : call.call().schema().params()) {
      var name = param.name();
      if (call.isTensor(name)) {
        operands.add(name, new Source.Argument(name, 0), padded(call.call().tensor(name), rank));
      } else if (call.constants().get(name) instanceof Arg.Literal number) {
        operands.add(name, number);
      }
    }
    return operands;
  }

  /**
   * @param all the values of all results, in order
   * @param made the sizes of results, with the step's dimensions
   */
  static ImmutableList<Step> step(
      Expansion call,
      List<Expr> all,
      ImmutableLongArray sizes,
      Set<Integer> row,
      Operands operands,
      ImmutableLongArray made) {
    var exprs = new ArrayList<Expr>();
    var results = new ArrayList<Seen>();
    int next = 0;
    int count = call.results().size();
    for (int i = 0; i < count; i++) {
      var own = all.subList(next, i == count - 1 ? all.size() : next + 1);
      next += own.size();
      if (call.needs(i)) {
        var seen = parts(call.result(i, made));
        // Results that are real have the first part only.
        exprs.addAll(own.subList(0, seen.size()));
        results.addAll(seen);
      }
    }
    return ImmutableList.of(
        Expansion.step(exprs, sizes, row, operands.seen(), operands.constants(), results));
  }

  static ImmutableList<Expr> exprs(Expansion call) {
    var name = call.call().schema().name();
    boolean truth = call.results().getFirst().map(type -> type.dtype() == DType.BOOL).orElse(false);
    return truth && CONVERSIONS.containsKey(name.name())
        ? Expressions.parse("%1$s_re != 0 || %1$s_im != 0".formatted(CONVERSIONS.get(name.name())))
        : Expressions.ofComplex(name.toString());
  }

  static List<Seen> parts(Seen seen) {
    return isComplex(seen.type())
        ? ImmutableList.of(
            Seen.part(seen.source(), seen.type(), 0), Seen.part(seen.source(), seen.type(), 1))
        : ImmutableList.of(seen);
  }
}
