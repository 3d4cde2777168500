package dev.symplan.ir.joint;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Graph;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;

/**
 * The ties that follow from names and order.
 *
 * <p>A graph with inputs called {@code tangents_N} is AOTAutograd's backward of the graph before
 * it: its other tensors are, in order, the last tensors that the graph gives. Sizes, and the states
 * of generators from which it draws what the forward graph drew, come from the caller. An input of
 * any other graph is the output of an earlier one that has its name.
 */
final class FoundTies {
  private static final Pattern TANGENT = Pattern.compile("tangents_[0-9]+");

  /** States of generators that are tensors (functionalize_rng_ops of AOTAutograd). */
  private static final Pattern STATE = Pattern.compile("bwd_(seed|base_offset)_[0-9]+");

  private FoundTies() {}

  /**
   * {@return the ties of graphs that run in this order}
   *
   * @throws CompileException when a backward graph does not fit the graph before it
   */
  static ImmutableList<Tie> of(List<Graph> graphs) {
    if (isBackward(graphs.getFirst())) {
      throw wrong(
          graphs.getFirst().span(),
          "this is a backward graph, but there is no graph before it",
          "give the forward graph first, or --ties FILE");
    }
    var ties = ImmutableList.<Tie>builder();
    for (int to = 1; to < graphs.size(); to++) {
      ties.addAll(isBackward(graphs.get(to)) ? saved(graphs, to) : byName(graphs, to));
    }
    return ties.build();
  }

  private static boolean isBackward(Graph graph) {
    return graph.inputs().stream().anyMatch(input -> isCalled(TANGENT, input));
  }

  /** AOTAutograd's order: the last tensors of the forward graph, and then the tangents. */
  private static List<Tie> saved(List<Graph> graphs, int backward) {
    var outputs = tensors(graphs.get(backward - 1).outputValues());
    var inputs =
        tensors(graphs.get(backward).inputs()).stream()
            .filter(input -> !isCalled(TANGENT, input) && !isCalled(STATE, input))
            .toList();
    if (inputs.size() > outputs.size()) {
      throw wrong(
          graphs.get(backward).span(),
          "this backward graph takes %s besides tangents, but the graph before it gives %s"
              .formatted(
                  Units.count(inputs.size(), "tensor"), Units.count(outputs.size(), "tensor")),
          "give the forward graph of the same capture before it, or --ties FILE");
    }
    var ties = new ArrayList<Tie>();
    var last = outputs.subList(outputs.size() - inputs.size(), outputs.size());
    for (int i = 0; i < inputs.size(); i++) {
      var input = inputs.get(i);
      var name = last.get(i).name();
      // Passes rename tensors in one of both graphs, but do not give names to other tensors.
      if (!name.equals(input.name())
          && last.stream().anyMatch(output -> output.name().equals(input.name()))) {
        throw wrong(
            input.span(),
            "the forward graph saves '%s' in the place of '%s', and the latter in another one"
                .formatted(name, input.name()),
            "use --ties FILE to say which input is the output of which graph");
      }
      // The text of the forward graph does not show that Inductor saves some tensors channels-last;
      // that of the backward graph does. Both names together leave no doubt which tensor it is.
      boolean copied = name.equals(input.name());
      ties.add(new Tie(backward - 1, name, backward, input.name(), false, copied, input.span()));
    }
    return ties;
  }

  private static List<Tie> byName(List<Graph> graphs, int to) {
    var ties = new ArrayList<Tie>();
    for (var input : graphs.get(to).inputs()) {
      for (int from = to - 1; from >= 0; from--) {
        if (graphs.get(from).outputValues().stream()
            .anyMatch(output -> output.name().equals(input.name()))) {
          ties.add(new Tie(from, input.name(), to, input.name(), false, false, input.span()));
          break;
        }
      }
    }
    return ties;
  }

  private static List<Value> tensors(List<Value> values) {
    return values.stream().filter(Value::isTensor).toList();
  }

  private static boolean isCalled(Pattern pattern, Value value) {
    return pattern.matcher(value.name()).matches();
  }

  private static CompileException wrong(Span span, String message, String hint) {
    return new CompileException(Diagnostic.error(DiagnosticCode.BAD_TIES, span, message, hint));
  }
}
