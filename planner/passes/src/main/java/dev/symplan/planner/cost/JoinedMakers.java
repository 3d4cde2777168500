package dev.symplan.planner.cost;

import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveCall;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.SliceDims;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.Launches;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import java.util.List;
import java.util.function.Function;

/**
 * The elementwise steps that are one kernel with the collective right behind them: each rank sends
 * what it computes to all, or computes its own slice while it reads its peers' ones. Code
 * generation decides it by addresses, which are not known here: of two tensors that may share
 * memory, this takes the one that does not.
 */
public final class JoinedMakers {
  /** Stands for a value that only passes from op to op. */
  public static final Object PASSES = new Object();

  private JoinedMakers() {}

  /**
   * {@return the part of a step that runs while data is on the links, if it is one kernel with a
   * collective: all of it in a gather, but only a rank's own slice in a reduce_scatter; 0 if they
   * are two kernels}
   *
   * @param makers the ops of the step before the collective, on the same stream
   * @param memory the memory of a tensor, as any object that is the same for all that begin there
   */
  public static double share(
      List<Op> makers, Op collective, Variant variant, Function<Value, Object> memory) {
    var call = collective.collective();
    if (makers.isEmpty()
        || call.isEmpty()
        || call.get().groupSize().isEmpty()
        || collective.results().size() != 1) {
      return 0;
    }
    long ranks = call.get().groupSize().getAsLong();
    return mayJoin(call.get().kind(), variant, ranks)
            && join(makers, call.get(), memory)
            && isInVectors(collective, ranks)
        ? call.get().kind().reduces() ? 1.0 / ranks : 1
        : 0;
  }

  private static boolean join(
      List<Op> makers, CollectiveCall call, Function<Value, Object> memory) {
    if (makers.getLast().results().isEmpty()) {
      return false;
    }
    var sent = call.operands().getFirst();
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
    return made && tensors <= Launches.MAX_JOINED;
  }

  private static boolean mayJoin(Kind kind, Variant variant, long ranks) {
    return VariantSpec.of(kind, variant).takesMakers()
        && (kind != Kind.REDUCE_SCATTER || ranks <= Launches.MAX_RANKS_OF_SCATTER);
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

  private static boolean isInVectors(Op collective, long ranks) {
    var call = collective.collective().orElseThrow();
    boolean gathers = call.kind() == Kind.ALL_GATHER;
    var operand = call.operands().getFirst().tensor();
    var whole = gathers ? collective.result().tensor() : operand;
    int dim = gathers ? call.sliceDims().result() : call.sliceDims().operand();
    long share = gathers ? operand.bytes() : operand.bytes() / ranks;
    return share / Math.max(1, SliceDims.rows(whole, dim)) % Alignment.VECTOR == 0;
  }
}
