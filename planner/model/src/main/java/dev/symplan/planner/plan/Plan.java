package dev.symplan.planner.plan;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.op.OpDef;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Topology;
import java.util.OptionalLong;

/**
 * A compiled program: where every tensor lives, and which algorithm each collective runs.
 *
 * <p>Immutable, and verified: {@code Compiler} never gives out a plan that breaks a rule, and a
 * plan read from a file is verified again.
 *
 * @param name the graph's name
 * @param topology the hosts on which its ranks are
 * @param multicast whether its collectives may go through NVLink multicast
 * @param declarations the ops that the program declared itself
 * @param rankPlans one for each different graph; a single one where all ranks run the same
 * @param planOfRank for each rank, an index into {@code rankPlans}
 * @param symmetric the symmetric arena, the same on every rank; its bound counts what peers need at
 *     the same offset, though local values may lie in it, too
 * @param digest SHA-256 of what the ranks must agree on, in hexadecimal: arena size, symmetric
 *     buffers, and the order, variants, groups and offsets of the collectives
 * @param rewrites which collectives of the source became others, or could have, and why
 * @param replicated the inputs that the caller vouches for to be the same on all ranks, by name: if
 *     they are not, results may be wrong; empty if no rewrite relies on any
 * @param reordering the decision about the order of the ops
 * @param frontier the plans between which the caller could choose
 * @param least the least memory that would do, in bytes, as the caller's limit counts it: arenas in
 *     device memory, inputs and outputs of the rank that needs most; empty where no limit was short
 * @param warnings the warnings of the compiler; not part of the plan file
 */
public record Plan(
    String name,
    Target target,
    Topology topology,
    boolean multicast,
    ImmutableList<ProcessGroup> groups,
    ImmutableList<OpDef> declarations,
    ImmutableList<RankPlan> rankPlans,
    ImmutableIntArray planOfRank,
    ArenaSize symmetric,
    String digest,
    ImmutableList<Rewrite> rewrites,
    ImmutableSet<String> replicated,
    OrderDecision reordering,
    Frontier frontier,
    OptionalLong least,
    ImmutableList<Diagnostic> warnings) {

  public Plan {
    if (rankPlans.isEmpty() || planOfRank.isEmpty()) {
      throw new IllegalArgumentException("a plan needs at least one rank");
    }
    if (topology.ranks() != planOfRank.length()) {
      throw new IllegalArgumentException(
          "the hosts have %s ranks, but the plan has %s"
              .formatted(topology.ranks(), planOfRank.length()));
    }
  }

  /**
   * {@return the size of both arenas together, on the rank that needs most, and the most bytes that
   * are live there at one step}
   */
  public ArenaSize total() {
    long bytes = 0;
    long bound = 0;
    for (var rankPlan : rankPlans) {
      bytes = Math.max(bytes, symmetric.bytes() + rankPlan.local().bytes());
      bound = Math.max(bound, rankPlan.maxLive());
    }
    // Buffers that follow each other in place are both live in a step, and still one memory.
    return new ArenaSize(bytes, Math.min(bound, bytes));
  }

  /** {@return the number of ranks} */
  public int worldSize() {
    return planOfRank.length();
  }

  /** {@return the plan of the graph that a rank runs} */
  public RankPlan forRank(int rank) {
    return rankPlans.get(planOfRank.get(rank));
  }

  /** {@return bytes from a value's {@link Placement#offset} to where it is on a rank} */
  public long shift(int rank, Placement placement) {
    if (!placement.isShard()) {
      return 0;
    }
    var group = group(forRank(rank).collectives().get(placement.shardOf()).group());
    var members = group.members().get(group.partOf(rank).orElseThrow());
    return members.indexOf(rank) * placement.stride();
  }

  /**
   * {@return the type of a value in the memory of a rank: with other strides than in the graph if
   * rows of other ranks, or of other pieces, are between its own}
   */
  public TensorType typeInMemory(int rank, Value value) {
    var type = value.tensor();
    var placement = forRank(rank).placement(value);
    int item = type.dtype().bytes();
    if (placement.isInRows()) {
      return type.withRowsApart(placement.stride() / item, placement.pitch() / item);
    }
    if (!placement.isShard() || placement.stride() >= type.storageBytes()) {
      return type;
    }
    var collective = forRank(rank).collectives().get(placement.shardOf());
    long row = placement.stride() / item;
    return type.withRowsApart(row, row * group(collective.group()).size());
  }

  /**
   * {@return the group with this name}
   *
   * @throws IllegalArgumentException when none exists
   */
  public ProcessGroup group(String groupName) {
    return groups.stream()
        .filter(g -> g.name().equals(groupName))
        .findFirst()
        .orElseThrow(() -> new IllegalArgumentException("no group " + groupName));
  }
}
