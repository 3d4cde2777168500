package dev.symplan.planner.pass.rewrite;

import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.RankNumbers;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.pass.analysis.Aliases;
import java.util.BitSet;
import java.util.Set;

/**
 * The values of one graph that are the same on all ranks of a group: inputs that the caller vouches
 * for, what collectives of the group give to all, and what is computed from such values alone.
 */
final class ReplicatedValues {
  private final BitSet values;

  private ReplicatedValues(BitSet values) {
    this.values = values;
  }

  /**
   * The values of a graph.
   *
   * @param written the storages that ops may write over
   * @param inputs the names of those that are the same
   */
  static ReplicatedValues of(
      Graph graph, Aliases aliases, BitSet written, Set<String> inputs, String group) {
    var values = new BitSet(graph.valueCount());
    for (var input : graph.inputs()) {
      if (inputs.contains(input.name()) && isKept(input, aliases, written)) {
        values.set(input.id());
      }
    }
    for (var op : graph.ops()) {
      if (gives(op, group, values)) {
        for (var result : op.results()) {
          if (isKept(result, aliases, written)) {
            values.set(result.id());
          }
        }
      }
    }
    return new ReplicatedValues(values);
  }

  private static boolean isKept(Value value, Aliases aliases, BitSet written) {
    int storage = aliases.id(value);
    return storage < 0 || !written.get(storage) && aliases.families().isAlone(storage);
  }

  private static boolean gives(Op op, String group, BitSet values) {
    if (op.def().rule().isEmpty() || op.def().hasEffect()) {
      return false;
    }
    var collective = op.collective();
    if (collective.isPresent()) {
      return collective.get().group().equals(group)
          && switch (collective.get().kind()) {
            case ALL_REDUCE, ALL_GATHER, BROADCAST -> true;
            case REDUCE_SCATTER, ALL_TO_ALL, COLLECTIVE_PERMUTE, CUSTOM -> false;
          };
    }
    return (op.def().has(OpTrait.WAIT) || PureOps.isPure(op))
        && RankNumbers.count(op).isEmpty()
        && op.operands().stream().allMatch(operand -> values.get(operand.id()));
  }

  boolean contains(Value value) {
    return values.get(value.id());
  }
}
