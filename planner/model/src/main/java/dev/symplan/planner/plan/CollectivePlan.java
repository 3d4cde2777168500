package dev.symplan.planner.plan;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.machine.Workspace;
import java.util.Optional;

/**
 * One collective, decided.
 *
 * @param op its index in the graph; all ranks have the same collectives in the same order
 * @param group the name of its process group
 * @param reduceOp the reduction; empty if none exists
 * @param root the group rank that a broadcast comes from; -1 if none exists
 * @param operands value ids, one for each tensor (several when coalesced), contiguous or, for
 *     all_reduce and broadcast, dense with the result's strides
 * @param results value ids, one for each operand
 * @param stream where it runs
 * @param start how the ranks know, before they touch peers' memory, that they may
 * @param end how they know, after it, that peers no longer touch theirs
 * @param inPlace whether each result lies where its operand does
 * @param workspace the buffer that is the {@link Workspace}, an index; {@link #NO_WORKSPACE} for
 *     variants that need none
 * @param verdicts one for each variant of the kind, the chosen one among them
 * @param args how each operand and result is realized
 * @param epilogue whether the step after its start runs in its kernel; empty for collectives that
 *     are not an all_reduce or reduce_scatter of one tensor
 */
public record CollectivePlan(
    int op,
    Kind kind,
    String group,
    Optional<ReduceOp> reduceOp,
    int root,
    ImmutableList<Integer> operands,
    ImmutableList<Integer> results,
    Variant variant,
    StreamKind stream,
    Barrier start,
    Barrier end,
    boolean inPlace,
    int workspace,
    ImmutableList<Verdict> verdicts,
    ImmutableList<ArgDecision> args,
    Optional<Epilogue> epilogue) {

  public static final int NO_WORKSPACE = -1;

  public CollectivePlan {
    VariantSpec.of(kind, variant);
  }

  /** {@return the row of the variant} */
  public VariantSpec spec() {
    return VariantSpec.of(kind, variant);
  }

  /** {@return the verdict on the chosen variant} */
  public Verdict verdict() {
    return verdicts.stream().filter(Verdict::chosen).findFirst().orElseThrow();
  }

  /** {@return whether the ranks of the group meet before peers' memory is touched} */
  public boolean startBarrier() {
    return start instanceof Barrier.Own;
  }

  /** {@return whether they meet after} */
  public boolean endBarrier() {
    return end instanceof Barrier.Own;
  }

  /** {@return the same with other barriers} */
  public CollectivePlan withBarriers(Barrier before, Barrier after) {
    return new CollectivePlan(
        op, kind, group, reduceOp, root, operands, results, variant, stream, before, after, inPlace,
        workspace, verdicts, args, epilogue);
  }

  /** {@return whether the step after its start runs in its kernel} */
  public boolean hasEpilogue() {
    return epilogue.isPresent() && epilogue.get().isFused();
  }

  /** {@return whether compute may run between its start and its join} */
  public boolean isAsync() {
    return stream != StreamKind.COMPUTE;
  }
}
