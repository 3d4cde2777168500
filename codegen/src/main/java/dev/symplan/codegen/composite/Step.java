package dev.symplan.codegen.composite;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Streams;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.expr.Binding;
import dev.symplan.codegen.expr.Expr;
import dev.symplan.ir.DType;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Expressions of tensors that are computed in one go.
 *
 * @param exprs one for each result, of the operands alone
 * @param sizes of what all tensors are broadcast to
 * @param row the dimensions within a row; the others count rows
 * @param operands the tensors, by their names in the expressions
 * @param results the tensors into which the values are written
 */
public record Step(
    ImmutableList<Expr> exprs,
    ImmutableLongArray sizes,
    ImmutableSet<Integer> row,
    ImmutableMap<String, Seen> operands,
    ImmutableList<Seen> results) {

  public Step {
    operands.values().forEach(seen -> checkRank(seen, sizes));
    results.forEach(seen -> checkRank(seen, sizes));
    if (exprs.size() != results.size()) {
      throw new IllegalArgumentException(exprs.size() + " values, " + results.size() + " results");
    }
  }

  private static void checkRank(Seen seen, ImmutableLongArray sizes) {
    if (seen.type().rank() != sizes.length()) {
      throw new IllegalArgumentException(seen + " of a step of " + sizes);
    }
  }

  /** {@return the expressions, to be computed in a float type} */
  public Binding bind(DType computedIn) {
    return new Binding(exprs, computedIn);
  }

  /**
   * {@return an operand}
   *
   * @throws java.util.NoSuchElementException when there is none of this name
   */
  public Seen operand(String name) {
    return Optional.ofNullable(operands.get(name)).orElseThrow();
  }

  /** {@return all tensors} */
  public Stream<Seen> tensors() {
    return Streams.concat(operands.values().stream(), results.stream());
  }

  /** {@return the same with as few dimensions as possible} */
  Step joined() {
    // For each dimension that is left, those of before that it is made of.
    var groups = new ArrayList<List<Integer>>();
    for (int dim = 0; dim < sizes.length(); dim++) {
      if (sizes.get(dim) != 1) {
        if (groups.isEmpty() || !joins(groups.getLast().getLast(), dim)) {
          groups.add(new ArrayList<>());
        }
        groups.getLast().add(dim);
      }
    }
    return new Step(
        exprs,
        product(sizes, groups),
        IntStream.range(0, groups.size())
            .filter(i -> row.contains(groups.get(i).getFirst()))
            .boxed()
            .collect(ImmutableSet.toImmutableSet()),
        operands.entrySet().stream()
            .collect(
                ImmutableMap.toImmutableMap(Map.Entry::getKey, e -> joined(e.getValue(), groups))),
        results.stream()
            .map(seen -> joined(seen, groups))
            .collect(ImmutableList.toImmutableList()));
  }

  private boolean joins(int outer, int inner) {
    return row.contains(outer) == row.contains(inner)
        && tensors().allMatch(seen -> seen.stride(outer) == seen.stride(inner) * sizes.get(inner));
  }

  private Seen joined(Seen seen, List<List<Integer>> groups) {
    var own = product(seen.type().sizes(), groups);
    var whole = product(sizes, groups);
    return seen.as(
        // A tensor that is broadcast along some of the joined dimensions has one element for all of
        // them.
        ImmutableLongArray.copyOf(
            IntStream.range(0, own.length())
                .mapToLong(i -> own.get(i) == whole.get(i) ? own.get(i) : 1)),
        ImmutableLongArray.copyOf(
            groups.stream().mapToLong(group -> seen.type().stride(group.getLast()))));
  }

  private static ImmutableLongArray product(ImmutableLongArray sizes, List<List<Integer>> groups) {
    return ImmutableLongArray.copyOf(
        groups.stream()
            .mapToLong(group -> group.stream().mapToLong(sizes::get).reduce(1, (a, b) -> a * b)));
  }
}
