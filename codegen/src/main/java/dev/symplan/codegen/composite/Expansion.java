package dev.symplan.codegen.composite;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Maps;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.expr.Binding;
import dev.symplan.codegen.expr.Call;
import dev.symplan.codegen.expr.Expr;
import dev.symplan.codegen.expr.Expressions;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.OpCall;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;

/**
 * A call that is being expanded.
 *
 * @param results the types of those that exist
 */
record Expansion(OpCall call, ImmutableList<Optional<TensorType>> results) {

  /** {@return the expression of a value of the op, as {@code expressions.txt} numbers them} */
  Expr value(int number) {
    return Expressions.ofComposite(call.schema().name().toString()).get(number);
  }

  /** {@return whether there is something to be computed for a result} */
  boolean needs(int result) {
    return result < results.size()
        && results.get(result).map(type -> type.numel() > 0).orElse(false);
  }

  /** {@return all arguments that are neither tensors nor lists} */
  Map<String, Arg> constants() {
    var constants = ImmutableMap.<String, Arg>builder();
    for (var param : call.schema().params()) {
      switch (call.arg(param.name())) {
        case Arg.Ref _, Arg.Seq _ -> {}
        case Arg.Literal constant -> constants.put(param.name(), constant);
      }
    }
    return constants.buildOrThrow();
  }

  /** {@return an argument that is a tensor, in another shape of as many elements} */
  Seen argument(String param, ImmutableLongArray sizes) {
    return Seen.of(new Source.Argument(param, 0), call.tensor(param), sizes);
  }

  /** {@return whether an argument is a tensor} */
  boolean isTensor(String param) {
    return call.arg(param) instanceof Arg.Ref(var value) && value.isTensor();
  }

  /** {@return a result in another shape of as many elements} */
  Seen result(int index, ImmutableLongArray sizes) {
    return Seen.of(new Source.Result(index), results.get(index).orElseThrow(), sizes);
  }

  static Seen temporary(int number, ImmutableLongArray sizes) {
    return new Seen(
        new Source.Temporary(number, 0),
        TensorType.contiguous(Source.Temporary.DTYPE, sizes),
        false);
  }

  /**
   * {@return a tensor of each element's index along a dimension}
   *
   * @param sizes 1 but for that dimension
   */
  static Seen index(ImmutableLongArray sizes) {
    return new Seen(new Source.Index(), TensorType.contiguous(DType.I64, sizes), false);
  }

  /**
   * {@return a step}
   *
   * @param operands more than it reads may be given
   * @param constants the values of other names in the expressions
   */
  static Step step(
      List<Expr> exprs,
      ImmutableLongArray sizes,
      Set<Integer> row,
      Map<String, Seen> operands,
      Map<String, Arg> constants,
      List<Seen> results) {
    long rowElements = row.stream().mapToLong(sizes::get).reduce(1, (a, b) -> a * b);
    var values = new Values(operands, constants, results, rowElements);
    var bound = Binding.exact(ImmutableList.copyOf(exprs), values, DType.F64);
    var used = new HashSet<String>(bound.params());
    operands.forEach(
        (name, seen) -> {
          if (used.contains(name) && seen.source() instanceof Source.Picked picked) {
            used.add(picked.target());
          }
        });
    return new Step(
            bound.results(),
            sizes,
            ImmutableSet.copyOf(row),
            ImmutableMap.copyOf(Maps.filterKeys(operands, used::contains)),
            ImmutableList.copyOf(results))
        .joined();
  }

  /** The values that expressions of a step are bound to. */
  private record Values(
      Map<String, Seen> operands, Map<String, Arg> constants, List<Seen> results, long rowElements)
      implements Call {
    @Override
    public boolean hasParam(String param) {
      return operands.containsKey(param) || constants.containsKey(param);
    }

    @Override
    public Optional<TensorType> tensor(String param) {
      return Optional.ofNullable(operands.get(param)).map(Seen::type);
    }

    @Override
    public Arg constant(String param) {
      return Optional.ofNullable(constants.get(param))
          .orElseThrow(() -> new IllegalArgumentException("no " + param));
    }

    @Override
    public List<DType> dtypes() {
      return Stream.concat(operands.values().stream(), results.stream())
          .map(seen -> seen.type().dtype())
          .toList();
    }

    @Override
    public DType result() {
      return results.getFirst().type().dtype();
    }
  }

  /** {@return sizes, but 1 for some dimensions} */
  static ImmutableLongArray without(ImmutableLongArray sizes, Set<Integer> dims) {
    var kept = sizes.toArray();
    dims.forEach(dim -> kept[dim] = 1);
    return ImmutableLongArray.copyOf(kept);
  }
}
