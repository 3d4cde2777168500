package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.expr.Binding;
import dev.symplan.codegen.expr.Blocks;
import dev.symplan.codegen.expr.Expr;
import dev.symplan.codegen.expr.Primitive;
import dev.symplan.codegen.expr.Steps;
import dev.symplan.ir.DType;
import dev.symplan.runtime.host.Pointwise.Doubles;
import dev.symplan.runtime.host.Pointwise.Longs;
import java.util.Arrays;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * An expression that is computed for a block of elements at a time: one step after the other, each
 * for all elements.
 */
final class BlockProgram {

  /**
   * A primitive of earlier values.
   *
   * @param compare for a choice, the comparison that decides it, of the first two arguments; else
   *     the first argument does
   * @param d only used by a choice that compares
   */
  private record Step(
      Primitive primitive, Optional<Primitive> compare, int a, int b, int c, int d, int to) {}

  private final Steps values;
  private final DType type;
  private final ImmutableList<String> params;
  private final ImmutableList<Step> steps;
  private final int result;

  /** A program for the only result of a call. */
  BlockProgram(Binding binding) {
    this.values = Steps.of(binding.results());
    this.type = binding.computedIn();
    this.params = ImmutableList.copyOf(binding.params());
    this.result = values.results().getFirst();
    var used = new int[values.nodes().size()];
    values.args().forEach(args -> args.forEach(arg -> used[arg]++));
    this.steps =
        IntStream.range(0, used.length)
            .filter(i -> values.nodes().get(i) instanceof Expr.Apply)
            .filter(i -> !(used[i] == 1 && compares(i) && isCondition(i)))
            .mapToObj(i -> step(i, used))
            .collect(ImmutableList.toImmutableList());
  }

  /** {@return the operands, in the order in which they are given} */
  ImmutableList<String> params() {
    return params;
  }

  private Primitive primitive(int node) {
    return ((Expr.Apply) values.nodes().get(node)).primitive();
  }

  private boolean compares(int node) {
    return values.nodes().get(node) instanceof Expr.Apply(var primitive, var _)
        && Blocks.compares(primitive)
        && type.isFloat();
  }

  private boolean isCondition(int node) {
    return IntStream.range(0, values.nodes().size())
        .anyMatch(
            i ->
                values.nodes().get(i) instanceof Expr.Apply(var primitive, var _)
                    && primitive == Primitive.SELECT
                    && values.args().get(i).getFirst() == node
                    && values.args().get(i).lastIndexOf(node) == 0);
  }

  private Step step(int node, int[] used) {
    var args = values.args().get(node);
    int first = args.getFirst();
    if (primitive(node) == Primitive.SELECT && used[first] == 1 && compares(first)) {
      var compared = values.args().get(first);
      return new Step(
          Primitive.SELECT,
          Optional.of(primitive(first)),
          compared.getFirst(),
          compared.getLast(),
          args.get(1),
          args.getLast(),
          node);
    }
    return new Step(
        primitive(node),
        Optional.empty(),
        first,
        args.get(args.size() > 1 ? 1 : 0),
        args.getLast(),
        first,
        node);
  }

  /**
   * {@return the program, with memory for as many elements}
   *
   * <p>What is returned is for one thread.
   */
  Doubles doubles(int size) {
    var at = new double[values.nodes().size()][];
    for (int i = 0; i < at.length; i++) {
      switch (values.nodes().get(i)) {
        case Expr.Int _, Expr.Float _ -> {
          at[i] = new double[size];
          Arrays.fill(at[i], Blocks.number(values.nodes().get(i)));
        }
        case Expr.Param _, Expr.Text _, Expr.Apply _ -> {}
      }
    }
    for (var step : steps) {
      at[step.to()] = step.to() == result ? at[step.to()] : new double[size];
    }
    return (in, out, n) -> {
      for (int i = 0; i < params.size(); i++) {
        at[values.nodes().indexOf(new Expr.Param(params.get(i)))] = in[i];
      }
      if (!steps.isEmpty()) {
        at[result] = out;
      }
      for (int i = 0; i < steps.size(); i++) {
        var step = steps.get(i);
        var to = at[step.to];
        if (step.compare.isPresent()) {
          Blocks.select(step.compare.get(), at[step.a], at[step.b], at[step.c], at[step.d], to, n);
        } else {
          Blocks.doubles(step.primitive, type, at[step.a], at[step.b], at[step.c], to, n);
        }
      }
      if (at[result] != out) {
        System.arraycopy(at[result], 0, out, 0, n);
      }
    };
  }

  /** {@return as {@link #doubles}, of integers} */
  Longs longs(int size) {
    var at = new long[values.nodes().size()][];
    for (int i = 0; i < at.length; i++) {
      switch (values.nodes().get(i)) {
        case Expr.Int _, Expr.Float _ -> {
          at[i] = new long[size];
          Arrays.fill(at[i], Blocks.whole(values.nodes().get(i)));
        }
        case Expr.Param _, Expr.Text _, Expr.Apply _ -> {}
      }
    }
    for (var step : steps) {
      at[step.to()] = step.to() == result ? at[step.to()] : new long[size];
    }
    return (in, out, n) -> {
      for (int i = 0; i < params.size(); i++) {
        at[values.nodes().indexOf(new Expr.Param(params.get(i)))] = in[i];
      }
      if (!steps.isEmpty()) {
        at[result] = out;
      }
      for (int i = 0; i < steps.size(); i++) {
        var step = steps.get(i);
        Blocks.longs(step.primitive, at[step.a], at[step.b], at[step.c], at[step.to], n);
      }
      if (at[result] != out) {
        System.arraycopy(at[result], 0, out, 0, n);
      }
    };
  }
}
