package dev.symplan.codegen.composite;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.expr.Expr;
import dev.symplan.codegen.expr.Expressions;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpDef;
import java.util.HashMap;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Arithmetic of complex numbers: one step, which computes the parts of each element of the result
 * from the parts of operands. Real operands have imaginary parts of zero, as in PyTorch.
 */
final class ComplexNumbers {
  static final ImmutableMap<String, Composite> TABLE =
      ImmutableMap.of(
          "aten::complex", ComplexNumbers::expand,
          "aten::conj_physical", ComplexNumbers::expand,
          "aten::polar", ComplexNumbers::expand);

  static final ImmutableSet<String> NAMES = Expressions.complexOps();

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
        && switch (op.name().name()) {
          // Elements that keep their type are moved.
          case "convert_element_type", "_to_copy", "to", "type_as" ->
              !dtypes.contains(DType.BOOL) && dtypes.size() > 1;
          default -> true;
        };
  }

  static ImmutableList<Step> expand(Expansion call) {
    var result = call.results().getFirst();
    if (!call.needs(0)) {
      return ImmutableList.of();
    }
    return switch (call.call().schema().name().name()) {
      case "mm", "bmm" -> product(call);
      case "sum", "mean" -> rows(call);
      default -> {
        var sizes = result.orElseThrow().sizes();
        yield step(call, sizes, ImmutableSet.of(), (_, type) -> padded(type, sizes.length()));
      }
    };
  }

  private static ImmutableList<Step> rows(Expansion call) {
    var sizes = call.call().tensor("self").sizes();
    return step(call, sizes, rowDims(call.call(), sizes.length()), (_, type) -> type);
  }

  private static Set<Integer> rowDims(OpCall call, int rank) {
    boolean some = call.schema().hasParam("dim") && call.has("dim");
    var dims = some ? call.integers("dim") : ImmutableLongArray.of();
    // A number without dimensions may be reduced over its first one.
    return (dims.isEmpty() || rank == 0
            ? IntStream.range(0, rank)
            : dims.stream().mapToInt(dim -> Math.toIntExact(dim < 0 ? dim + rank : dim)))
        .boxed()
        .collect(ImmutableSet.toImmutableSet());
  }

  /** Rows of the left matrix, columns of the right one: a row of products for each element. */
  private static ImmutableList<Step> product(Expansion call) {
    var left = call.call().tensor("self");
    var right = call.call().tensor("mat2");
    int first = left.rank() - 2;
    var sizes =
        ImmutableLongArray.builder()
            .addAll(left.sizes().subArray(0, first + 1))
            .add(right.size(first + 1))
            .add(left.size(first + 1))
            .build();
    var turned =
        new TensorType(
            right.dtype(),
            swapped(right.sizes(), first),
            swapped(right.strides(), first),
            MemorySpace.ANY);
    return step(
        call,
        sizes,
        ImmutableSet.of(first + 2),
        (param, type) ->
            param.equals("self") ? inserted(type, first + 1) : inserted(turned, first));
  }

  /** {@return a type with a dimension of one element more} */
  private static TensorType inserted(TensorType type, int dim) {
    return new TensorType(
        type.dtype(), with(type.sizes(), dim, 1), with(type.strides(), dim, 0), MemorySpace.ANY);
  }

  private static ImmutableLongArray with(ImmutableLongArray list, int index, long value) {
    return ImmutableLongArray.builder()
        .addAll(list.subArray(0, index))
        .add(value)
        .addAll(list.subArray(index, list.length()))
        .build();
  }

  private static ImmutableLongArray swapped(ImmutableLongArray list, int first) {
    var swapped = list.toArray();
    swapped[first] = list.get(first + 1);
    swapped[first + 1] = list.get(first);
    return ImmutableLongArray.copyOf(swapped);
  }

  private static TensorType padded(TensorType type, int rank) {
    var padded = type;
    while (padded.rank() < rank) {
      padded = inserted(padded, 0);
    }
    return padded;
  }

  /**
   * @param view of an operand, by its name: its elements with the step's dimensions
   */
  private static ImmutableList<Step> step(
      Expansion call,
      ImmutableLongArray sizes,
      Set<Integer> row,
      BiFunction<String, TensorType, TensorType> view) {
    var operands = new HashMap<String, Seen>();
    var constants = new HashMap<String, Arg>(call.constants());
    for (var param : call.call().schema().params()) {
      var name = param.name();
      if (call.isTensor(name)) {
        var source = new Source.Argument(name, 0);
        var seen = view.apply(name, call.call().tensor(name));
        if (seen.dtype().kind() == DType.Kind.COMPLEX) {
          operands.put(name + "_re", Seen.part(source, seen, 0));
          operands.put(name + "_im", Seen.part(source, seen, 1));
        } else {
          var real = new Seen(source, seen, false);
          operands.put(name, real);
          operands.put(name + "_re", real);
          constants.put(name + "_im", new Arg.Int(0));
        }
      } else if (constants.get(name) instanceof Arg.Literal number) {
        constants.put(name + "_re", number);
        constants.put(name + "_im", new Arg.Int(0));
      }
    }
    return ImmutableList.of(
        Expansion.step(
            exprs(call),
            sizes,
            row,
            operands,
            constants,
            results(call, Expansion.without(sizes, row))));
  }

  /** Results that are real have the first part only. */
  private static ImmutableList<Expr> exprs(Expansion call) {
    var exprs = Expressions.ofComplex(call.call().schema().name().toString());
    return isComplex(call) ? exprs : exprs.subList(0, 1);
  }

  private static boolean isComplex(Expansion call) {
    return call.results().getFirst().orElseThrow().dtype().kind() == DType.Kind.COMPLEX;
  }

  private static ImmutableList<Seen> results(Expansion call, ImmutableLongArray sizes) {
    var seen = call.result(0, sizes);
    return isComplex(call)
        ? ImmutableList.of(
            Seen.part(seen.source(), seen.type(), 0), Seen.part(seen.source(), seen.type(), 1))
        : ImmutableList.of(seen);
  }
}
