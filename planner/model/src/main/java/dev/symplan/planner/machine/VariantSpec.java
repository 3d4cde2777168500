package dev.symplan.planner.machine;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.ReduceOp;
import java.util.Optional;

/**
 * One variant of one kind of collective: all that is known of it but its time, which is a curve of
 * the {@link Target}. The rows are in {@link VariantTable}.
 *
 * @param protocol the accesses of ranks to their own and their peers' tensors
 * @param wire the traffic on the links
 * @param numerics the facts on which the bits of the result depend
 * @param sharesMemory whether an all_reduce's operand and result may be one buffer, as each element
 *     is read before it is written; and whether what a rank brings to an all_gather may lie in its
 *     part of the result, and what it gets from a reduce_scatter in its part of the operand: no
 *     peer touches it there, nor does the library ask for the same offset everywhere
 * @param requirements its other needs, in the order in which reasons are given
 */
public record VariantSpec(
    Kind kind,
    Variant variant,
    Protocol protocol,
    Wire wire,
    Numerics numerics,
    boolean sharesMemory,
    ImmutableList<Requirement> requirements) {

  public VariantSpec {
    if (variant.needsWorkspace() == protocol.pushes().isEmpty()) {
      throw new IllegalArgumentException(variant + " pushes into workspaces, or does not");
    }
  }

  /**
   * {@return the row of a variant}
   *
   * @throws IllegalArgumentException when the variant does not exist for the kind
   */
  public static VariantSpec of(Kind kind, Variant variant) {
    return find(kind, variant)
        .orElseThrow(
            () ->
                new IllegalArgumentException("%s is not a variant of %s".formatted(variant, kind)));
  }

  /** {@return the row of a variant, if it exists for the kind} */
  public static Optional<VariantSpec> find(Kind kind, Variant variant) {
    return Optional.ofNullable(VariantTable.ROWS.get(kind, variant));
  }

  /** {@return the rows of a kind, in the order of {@link Variant}} */
  public static ImmutableList<VariantSpec> ofKind(Kind kind) {
    return ImmutableList.copyOf(VariantTable.ROWS.row(kind).values());
  }

  /** {@return the rows of a variant, in the order of {@link Kind}} */
  public static ImmutableList<VariantSpec> ofVariant(Variant variant) {
    return ImmutableList.copyOf(VariantTable.ROWS.column(variant).values());
  }

  /**
   * {@return whether each operand must be symmetric: because peers touch it, or because the library
   * asks for a window. A custom op's are those that it registers}
   */
  public boolean needsSymmetricOperand() {
    return variant.needsWindow() || protocol.readsOf().isRemote();
  }

  /** {@return whether peers touch each result, so that it must be symmetric} */
  public boolean needsSymmetricResult() {
    return protocol.writesOf().isRemote();
  }

  /** {@return the same of an operand or a result} */
  public boolean needsSymmetric(boolean result) {
    return result ? needsSymmetricResult() : needsSymmetricOperand();
  }

  /** {@return whether operand and result may be one buffer} */
  public boolean allowsInPlace() {
    return sharesMemory && kind == Kind.ALL_REDUCE;
  }

  /**
   * {@return whether its kernel can take its result on through other ops, in an order that the
   * kernel chooses}
   */
  public boolean takesEpilogues() {
    return switch (variant) {
      case ONE_SHOT -> mayTakeEpilogues(kind);
      case ONE_SHOT_PUSH, TWO_SHOT, TWO_SHOT_PUSH -> kind == Kind.ALL_REDUCE;
      case LOCAL,
          PUSH,
          COPY_ENGINE,
          MULTIMEM,
          MULTIMEM_ONE_SHOT,
          NCCL_SYMM,
          NCCL_CE,
          NCCL,
          CUSTOM ->
          false;
    };
  }

  /** {@return whether some variant of a kind takes what it reduces on through other ops} */
  public static boolean mayTakeEpilogues(Kind kind) {
    return kind == Kind.ALL_REDUCE || kind == Kind.REDUCE_SCATTER;
  }

  /**
   * {@return whether each rank reduces a slice for all before an epilogue, so that slices must be
   * whole rows, as many on each rank: the blocks of one number on all ranks take the same rows}
   */
  public boolean slicesBeforeEpilogue() {
    return takesEpilogues() && (variant == Variant.TWO_SHOT || variant == Variant.TWO_SHOT_PUSH);
  }

  /**
   * {@return whether an epilogue comes after the end barrier, rather than before it: peers store
   * the rows, which must be as many on each rank, to the result, where the kernel reads them}
   */
  public boolean meetsBeforeEpilogue() {
    return takesEpilogues() && needsSymmetricResult();
  }

  /**
   * {@return whether the local step right before it may run in its kernel, where ranks have met
   * before that step is done}
   */
  public boolean takesMakers() {
    return (kind == Kind.ALL_GATHER && variant == Variant.PUSH)
        || (kind == Kind.REDUCE_SCATTER && variant == Variant.ONE_SHOT);
  }

  /**
   * {@return whether an operand may be rows with other memory between them: the kernels of this
   * project, and copies by the copy engines, go through it row by row}
   */
  public boolean readsRows() {
    boolean moves = !kind.reduces() && kind != Kind.CUSTOM;
    return switch (variant) {
      case ONE_SHOT -> moves || kind.reduces();
      case TWO_SHOT -> moves || kind.reduces();
      case ONE_SHOT_PUSH, TWO_SHOT_PUSH -> kind.reduces();
      case PUSH, COPY_ENGINE -> moves;
      case LOCAL, MULTIMEM, MULTIMEM_ONE_SHOT, NCCL_SYMM, NCCL_CE, NCCL, CUSTOM -> false;
    };
  }

  /**
   * {@return whether those rows may lie in any order, at several distances: each rank goes through
   * all that it moves, so that no slice begins among them, and needs no copy engine}
   */
  public boolean readsRowsInAnyOrder() {
    return readsRows()
        && (variant == Variant.ONE_SHOT
            || variant == Variant.ONE_SHOT_PUSH
            || variant == Variant.PUSH);
  }

  /**
   * {@return whether a result may be rows with other memory between them: what goes through an
   * operand row by row can write so, too} {@link ResultRows} says which rows.
   */
  public boolean writesRows() {
    return readsRows();
  }

  /** {@return whether an operand may lie so} */
  public boolean reads(TensorType.Rows rows) {
    return rows.areEven() ? readsRows() : readsRowsInAnyOrder();
  }

  /** {@return whether a rank's part of the whole may lie in the whole} */
  public boolean allowsShardInPlace() {
    return sharesMemory && kind != Kind.ALL_REDUCE;
  }

  /**
   * {@return whether ranks touch each other's memory, so that they must be in one NVLink domain}
   */
  public boolean reachesPeers() {
    return needsSymmetricOperand() || needsSymmetricResult() || variant.needsWorkspace();
  }

  /** {@return whether the switch reduces or replicates for it} */
  public boolean needsMulticast() {
    return requirements.contains(new Requirement.Multicast());
  }

  /** {@return the reductions that it supports; empty if nothing is reduced} */
  public ImmutableSet<ReduceOp> reductions() {
    for (var requirement : requirements) {
      if (requirement instanceof Requirement.Reductions(var supported, _)) {
        return supported;
      }
    }
    return kind.reduces() ? ImmutableSet.copyOf(ReduceOp.values()) : ImmutableSet.of();
  }

  /** {@return the element types that it supports} */
  public ImmutableSet<DType> dtypes() {
    for (var requirement : requirements) {
      if (requirement instanceof Requirement.Types(var supported, _)) {
        return supported;
      }
    }
    return ImmutableSet.copyOf(DType.values());
  }

  /** {@return its needs, in words, without those in the other columns} */
  public ImmutableList<String> needs() {
    var needs = ImmutableList.<String>builder();
    if (variant == Variant.LOCAL) {
      needs.add("a group of one rank");
    }
    if (reachesPeers()) {
      needs.add("ranks in one NVLink domain");
    }
    requirements.stream()
        .map(Requirement::words)
        .filter(words -> !words.isEmpty())
        .forEach(needs::add);
    if (!numerics.isSameOnAllRanks()) {
      needs.add("only if named, as ranks may get different bits");
    }
    return needs.build();
  }
}
