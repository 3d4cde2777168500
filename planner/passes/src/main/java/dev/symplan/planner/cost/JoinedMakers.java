package dev.symplan.planner.cost;

import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.SliceDims;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.Launches;
import dev.symplan.planner.machine.Variant;
import java.util.List;
import java.util.function.Function;

/**
 * The elementwise steps that are one kernel with the collective right behind them, as each rank
 * sends what it computes. Code generation decides it by addresses, which are not known here: of two
 * tensors that may share memory, this takes the one that does not.
 */
public final class JoinedMakers {
  /** What stands for a value that only passes from op to op. */
  public static final Object PASSES = new Object();

  private JoinedMakers() {}

  /**
   * {@return whether a step and a collective are one kernel}
   *
   * @param makers the ops of the step before the collective, on the same stream
   * @param memory what stands for the memory of a tensor, the same for all that begin there
   */
  public static boolean join(
      List<Op> makers, Op collective, Variant variant, Function<Value, Object> memory) {
    var call = collective.collective();
    if (makers.isEmpty()
        || variant != Variant.PUSH
        || call.isEmpty()
        || call.get().kind() != Kind.ALL_GATHER
        || collective.results().size() != 1) {
      return false;
    }
    var sent = call.get().operands().getFirst();
    var last = makers.getLast().results().getFirst();
    int tensors = 0;
    boolean made = false;
    for (var op : makers) {
      if (!goesByElements(op, last)) {
        return false;
      }
      tensors += inMemory(op.operands(), memory) + inMemory(op.results(), memory);
      made |= isSent(op.result(), sent, memory);
    }
    return made && tensors <= Launches.MAX_JOINED && isInVectors(collective);
  }

  private static boolean goesByElements(Op op, Value last) {
    return (op.def().has(OpTrait.ELEMENTWISE) || op.def().has(OpTrait.CONCATENATION))
        && !op.def().schema().mutates()
        && op.results().size() == 1
        && op.result().isTensor()
        && last.isTensor()
        && op.result().tensor().sizes().equals(last.tensor().sizes());
  }

  private static int inMemory(List<Value> values, Function<Value, Object> memory) {
    return Math.toIntExact(
        values.stream().filter(value -> value.isTensor() && memory.apply(value) != PASSES).count());
  }

  /** Elements of both are in one order, if both are contiguous. */
  private static boolean isSent(Value made, Value sent, Function<Value, Object> memory) {
    return made.tensor().dtype() == sent.tensor().dtype()
        && made.tensor().numel() == sent.tensor().numel()
        && memory.apply(made).equals(memory.apply(sent));
  }

  private static boolean isInVectors(Op collective) {
    var call = collective.collective().orElseThrow();
    var result = collective.result().tensor();
    long rows = Math.max(1, SliceDims.rows(result, call.sliceDims().result()));
    return call.operands().getFirst().tensor().bytes() / rows % Alignment.VECTOR == 0;
  }
}
