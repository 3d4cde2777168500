package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.pass.analysis.Aliases;
import java.util.Arrays;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * Finds what heads are copies of, as one goes through the ops of a graph in their order. What was
 * copied must still be the same: no op may have written since, nor the caller between two graphs of
 * a program.
 */
final class RepeatedHeads {

  /** Ops that return their operand in another shape or in new memory. */
  private static final ImmutableSet<String> MOVES =
      ImmutableSet.of(
          "aten::clone", "aten::contiguous", "aten::reshape", "aten::view", "aten::_unsafe_view");

  private static final int NONE = -1;

  /**
   * Heads that are repeated.
   *
   * @param of the tensor that has a dimension of stride 0
   * @param dim that dimension
   */
  record Repeated(Value of, int dim) {
    long times() {
      return of.tensor().size(dim);
    }
  }

  private final Graph graph;
  private final Supplier<Aliases> aliases;

  /** By value, the op that gives it; {@link #NONE} for inputs, and until it is reached. */
  private final int[] makers;

  private int lastWrite = NONE;
  private int lastBorder = NONE;

  RepeatedHeads(Graph graph, Supplier<Aliases> aliases) {
    this.graph = graph;
    this.aliases = aliases;
    this.makers = new int[graph.valueCount()];
    Arrays.fill(makers, NONE);
  }

  /** {@return whether an op only gives its operand in another shape or in new memory} */
  static boolean isMove(Op op) {
    return MOVES.contains(op.def().name().toString());
  }

  /** {@return whether it is [batch, shared heads, group, rows, features] of [batch, heads, ...]} */
  static boolean hasGroups(TensorType type, TensorType heads) {
    return type.rank() == 5
        && type.size(0) == heads.size(0)
        && type.size(1) * type.size(2) == heads.size(1)
        && type.size(3) == heads.size(2)
        && type.size(4) == heads.size(3);
  }

  /** Takes in the next op. */
  void visit(int index) {
    var op = graph.ops().get(index);
    op.results().forEach(result -> makers[result.id()] = index);
    if (op.def().has(OpTrait.BORDER)) {
      lastBorder = index;
    } else if (op.def().rule().isEmpty() || op.def().hasEffect()) {
      lastWrite = index;
    }
  }

  /** Follows copies back, unless what they are of may have changed since. */
  Optional<Repeated> of(Value heads) {
    var type = heads.tensor();
    if (type.rank() != 4) {
      return Optional.empty();
    }
    if (type.size(1) > 1 && type.stride(1) == 0) {
      return Optional.of(new Repeated(heads, 1));
    }
    var value = heads;
    while (true) {
      int maker = makers[value.id()];
      if (maker <= lastWrite || !isMove(graph.ops().get(maker))) {
        return Optional.empty();
      }
      value = graph.ops().get(maker).call().value("self");
      if (isRepeated(value.tensor(), type)) {
        return maker > lastBorder || isOfProgram(value)
            ? Optional.of(new Repeated(value, 2))
            : Optional.empty();
      }
      if (!value.tensor().sizes().equals(type.sizes()) && !hasGroups(value.tensor(), type)) {
        return Optional.empty();
      }
    }
  }

  private static boolean isRepeated(TensorType type, TensorType heads) {
    return hasGroups(type, heads) && type.size(2) > 1 && type.stride(2) == 0;
  }

  /** Whether the caller has no part in a tensor, and so leaves it as it is between two graphs. */
  private boolean isOfProgram(Value value) {
    int storage = aliases.get().id(value);
    return !aliases.get().storage(storage).isInput()
        && aliases.get().families().isAlone(storage)
        && graph.outputValues().stream().noneMatch(output -> aliases.get().id(output) == storage);
  }
}
