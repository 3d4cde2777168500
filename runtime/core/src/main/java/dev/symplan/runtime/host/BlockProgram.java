package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.codegen.expr.Binding;
import dev.symplan.codegen.expr.Expr;
import dev.symplan.codegen.expr.Primitive;
import dev.symplan.codegen.expr.Steps;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;

/**
 * Expressions that are computed for a block of elements at a time: one step after the other, each
 * for all elements.
 *
 * <p>Rows are gone through once for each fold that needs the one before, and written only the last
 * time, so that results may lie where operands do. Short rows go together; a row that is no longer
 * than a block keeps its values from one time to the next.
 */
final class BlockProgram {

  /**
   * A primitive of earlier values.
   *
   * @param compare for a choice, the comparison of {@code a} and {@code b} that decides it; else
   *     {@code a} does
   * @param d only used by a choice that compares
   * @param full whether each element of a row has a value of its own
   * @param pass how often a row is gone through before the value is there
   */
  record Step(
      Primitive primitive,
      Optional<Primitive.Comparison> compare,
      int a,
      int b,
      int c,
      int d,
      int to,
      boolean full,
      int pass) {

    void run(BlockValues<?> values, int n) {
      if (compare.isPresent()) {
        values.select(compare.get(), a, b, c, d, to, n);
      } else {
        values.apply(primitive, a, b, c, to, n);
      }
    }
  }

  /** A fold of earlier values. */
  record Fold(Primitive.Fold fold, int from, int to) {}

  /**
   * A value of each row, repeated for each of its elements.
   *
   * @param from where it is one for each row
   * @param to where there is one for each element
   */
  record Spread(int from, int to) {}

  /**
   * The work of one pass over rows, and the work once after it.
   *
   * @param loads which operands are read
   * @param once the steps that are computed from folds, and once for each row
   */
  @SuppressWarnings("ArrayRecordComponent") // Each is gone through for each block.
  record Pass(int[] loads, Step[] elements, Fold[] folds, Step[] once, Spread[] spread) {}

  private final Binding binding;
  private final ImmutableSet<String> singles;
  private final Steps steps;
  private final ImmutableList<String> params;
  private final ImmutableList<Step> all;
  private final boolean[] full;
  private final int[] pass;

  /** Where what is one for a row is for each element; 0 if that is not used. */
  private final int[] spread;

  private int values;

  BlockProgram(Binding binding) {
    this(binding, Set.of());
  }

  /**
   * @param singles the operands that have one element for a row
   */
  BlockProgram(Binding binding, Set<String> singles) {
    this.binding = binding;
    this.singles = ImmutableSet.copyOf(singles);
    this.steps = Steps.of(binding.results());
    this.params = ImmutableList.copyOf(binding.params());
    int count = steps.nodes().size();
    this.full = new boolean[count];
    this.pass = new int[count];
    this.spread = new int[count];
    this.values = count;
    var used = new int[count];
    steps.args().forEach(args -> args.forEach(arg -> used[arg]++));
    steps.results().forEach(result -> used[result]++);
    var conditions = new HashSet<Integer>();
    for (int i = 0; i < count; i++) {
      if (primitive(i).equals(Optional.of(Primitive.Function.SELECT))
          && used[first(i)] == 1
          && comparison(first(i)).isPresent()) {
        conditions.add(first(i));
      }
    }
    var built = ImmutableList.<Step>builder();
    for (int i = 0; i < count; i++) {
      visit(i);
      if (steps.nodes().get(i) instanceof Expr.Apply && !conditions.contains(i)) {
        built.add(step(i, conditions));
      }
    }
    this.all = built.build();
  }

  private Optional<Primitive> primitive(int node) {
    return steps.nodes().get(node) instanceof Expr.Apply(var primitive, var _)
        ? Optional.of(primitive)
        : Optional.empty();
  }

  private Optional<Primitive.Comparison> comparison(int node) {
    return primitive(node)
        .filter(Primitive.Comparison.class::isInstance)
        .map(Primitive.Comparison.class::cast);
  }

  private int first(int node) {
    return steps.args().get(node).getFirst();
  }

  /** Folds are there after one more pass than what goes into them. */
  private void visit(int node) {
    for (int arg : steps.args().get(node)) {
      full[node] |= full[arg];
      pass[node] = Math.max(pass[node], pass[arg]);
    }
    switch (steps.nodes().get(node)) {
      case Expr.Param(var name) -> full[node] = !singles.contains(name);
      case Expr.Apply(var primitive, var _) -> {
        if (primitive instanceof Primitive.Fold) {
          full[node] = false;
          pass[node]++;
        }
      }
      case Expr.Int _, Expr.Float _, Expr.Text _ -> {}
    }
  }

  private Step step(int node, Set<Integer> conditions) {
    var primitive = ((Expr.Apply) steps.nodes().get(node)).primitive();
    boolean elements = full[node] || primitive instanceof Primitive.Fold;
    var args = steps.args().get(node);
    int first = args.getFirst();
    if (primitive == Primitive.Function.SELECT && conditions.contains(first)) {
      var compared = steps.args().get(first);
      return new Step(
          primitive,
          comparison(first),
          value(compared.getFirst(), elements),
          value(compared.getLast(), elements),
          value(args.get(1), elements),
          value(args.getLast(), elements),
          node,
          full[node],
          pass[node]);
    }
    return new Step(
        primitive,
        Optional.empty(),
        value(first, elements),
        value(args.get(args.size() > 1 ? 1 : 0), elements),
        value(args.getLast(), elements),
        value(first, elements),
        node,
        full[node],
        pass[node]);
  }

  /**
   * {@return where a node's value is}
   *
   * @param elements whether one for each element is wanted
   */
  private int value(int node, boolean elements) {
    var expr = steps.nodes().get(node);
    if (!elements || full[node] || !(expr instanceof Expr.Apply || expr instanceof Expr.Param)) {
      return node;
    }
    if (spread[node] == 0) {
      spread[node] = values++;
    }
    return spread[node];
  }

  /** {@return the operands, in the order in which they are given} */
  ImmutableList<String> params() {
    return params;
  }

  /** {@return where each operand's values go} */
  ImmutableList<Integer> loads() {
    return params.stream()
        .map(param -> steps.nodes().indexOf(new Expr.Param(param)))
        .collect(ImmutableList.toImmutableList());
  }

  /** {@return all steps, where there are no folds} */
  ImmutableList<Step> steps() {
    return all;
  }

  /** {@return where each result's values are} */
  ImmutableList<Integer> results() {
    return steps.results();
  }

  /** {@return whether each element of a row has a result of its own} */
  boolean isFull(int step) {
    return full[step];
  }

  /**
   * {@return the work that comes before, once: the operands that it reads have one element for a
   * row}
   */
  Pass before() {
    var loads = loads();
    var once = all.stream().filter(step -> !step.full() && step.pass() == 0).toList();
    var read = IntStream.range(0, loads.size()).filter(i -> !full[loads.get(i)]).toArray();
    return new Pass(
        read,
        new Step[0],
        new Fold[0],
        once.toArray(Step[]::new),
        spreads(
            IntStream.concat(
                IntStream.of(read).map(loads::get), once.stream().mapToInt(Step::to))));
  }

  private Spread[] spreads(IntStream nodes) {
    return nodes
        .filter(node -> spread[node] != 0)
        .mapToObj(node -> new Spread(node, spread[node]))
        .toArray(Spread[]::new);
  }

  /**
   * {@return the passes over a row}
   *
   * @param keeps whether what was computed in one pass is there in the next ones
   */
  ImmutableList<Pass> passes(boolean keeps) {
    int count = 0;
    for (int result : steps.results()) {
      count = Math.max(count, pass[result] + (full[result] ? 1 : 0));
    }
    var passes = ImmutableList.<Pass>builder();
    var computed = new HashSet<Integer>();
    for (int number = 0; number < count; number++) {
      var needed = keeps ? computed : new HashSet<Integer>();
      var before = Set.copyOf(needed);
      var folds = new ArrayList<Fold>();
      var once = new ArrayList<Step>();
      for (var step : all) {
        if (step.pass() == number + 1 && !step.full()) {
          if (step.primitive() instanceof Primitive.Fold fold) {
            folds.add(new Fold(fold, step.a(), step.to()));
            need(steps.args().get(step.to()).getFirst(), needed);
          } else {
            once.add(step);
          }
        }
      }
      if (number == count - 1) {
        steps.results().stream().filter(this::isFull).forEach(result -> need(result, needed));
      }
      var loads = loads();
      var elements = all.stream().filter(step -> isNew(step.to(), needed, before)).toList();
      passes.add(
          new Pass(
              IntStream.range(0, loads.size())
                  .filter(i -> isNew(loads.get(i), needed, before))
                  .toArray(),
              elements.toArray(Step[]::new),
              folds.toArray(Fold[]::new),
              once.toArray(Step[]::new),
              spreads(
                  IntStream.concat(
                      folds.stream().mapToInt(Fold::to), once.stream().mapToInt(Step::to)))));
    }
    return passes.build();
  }

  private static boolean isNew(int node, Set<Integer> needed, Set<Integer> before) {
    return needed.contains(node) && !before.contains(node);
  }

  private void need(int node, Set<Integer> needed) {
    if (full[node] && needed.add(node)) {
      steps.args().get(node).forEach(arg -> need(arg, needed));
    }
  }

  /**
   * {@return memory for blocks, with all numbers in it; for one thread}
   *
   * @param rows the most rows of a block
   * @param size the most elements of a block
   */
  BlockValues<?> memory(int rows, int size) {
    var memory = BlockValues.of(binding.computedIn(), values, rows, size);
    for (int i = 0; i < steps.nodes().size(); i++) {
      switch (steps.nodes().get(i)) {
        case Expr.Int _, Expr.Float _ -> memory.fill(i, steps.nodes().get(i));
        case Expr.Param _, Expr.Text _, Expr.Apply _ -> {}
      }
    }
    return memory;
  }
}
