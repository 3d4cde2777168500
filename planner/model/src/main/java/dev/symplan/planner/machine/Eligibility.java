package dev.symplan.planner.machine;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.machine.Requirement.Candidate;
import dev.symplan.planner.machine.Verdict.Reason;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Optional;

/**
 * Which variants can carry out a collective on a target, whatever it costs.
 *
 * <p>What a variant needs is in its {@link VariantSpec}.
 */
public final class Eligibility {
  /** A rejection, with the facts for people. */
  public record Rejection(Reason reason, String detail) {}

  /**
   * What decides it of a collective.
   *
   * @param reduceOp the reduction; empty where there is none
   * @param operands the tensors that a rank brings
   */
  public record Request(
      Op op, Kind kind, Optional<ReduceOp> reduceOp, ImmutableList<Value> operands) {

    /** Of a custom op, peers reach what it registers. */
    private boolean reachesPeers(Variant variant) {
      return kind == Kind.CUSTOM
          ? !op.def().symmMemArgs().isEmpty() || !op.def().symmMemResults().isEmpty()
          : VariantSpec.of(kind, variant).reachesPeers();
    }

    public DType dtype() {
      return operands.getFirst().tensor().dtype();
    }

    /** {@return the bytes of all operands} */
    public long bytes() {
      return operands.stream().mapToLong(value -> value.tensor().bytes()).sum();
    }

    /** {@return whether each rank sends, and gets, as many rows from all} */
    boolean hasEqualRows() {
      return op.collective()
          .map(call -> areEqual(call.inputSplits()) && areEqual(call.outputSplits()))
          .orElse(true);
    }

    private static boolean areEqual(ImmutableLongArray rows) {
      return rows.stream().distinct().count() <= 1;
    }
  }

  private final Target target;
  private final boolean multicast;
  private final BackendVariants backend;

  /** By the group itself: a job's may be long, and many collectives have the same. */
  private final Map<ProcessGroup, Optional<Rejection>> apart = new IdentityHashMap<>();

  /**
   * @param multicast whether NVLink multicast may be used where the target has it
   * @param backend what carries the plan out
   */
  public Eligibility(Target target, boolean multicast, BackendVariants backend) {
    this.target = target;
    this.multicast = multicast;
    this.backend = backend;
  }

  /**
   * {@return why a variant that exists for the kind cannot be used between the ranks of a group;
   * empty if it can}
   */
  public Optional<Rejection> reject(Request collective, Variant variant, ProcessGroup group) {
    return (collective.reachesPeers(variant) ? apart(group) : Optional.<Rejection>empty())
        .or(() -> reject(collective, variant, group.size()));
  }

  /** {@return whether the ranks of each part of a group reach each other's memory} */
  public boolean isOnOneHost(ProcessGroup group) {
    return apart(group).isEmpty();
  }

  private Optional<Rejection> apart(ProcessGroup group) {
    return apart.computeIfAbsent(group, this::rejectHosts);
  }

  /** All parts of a group run the same variant, so each of them must be on one host. */
  private Optional<Rejection> rejectHosts(ProcessGroup group) {
    for (var part : group.members()) {
      int first = part.get(0);
      var elsewhere =
          part.stream().filter(rank -> target.host(rank) != target.host(first)).findFirst();
      if (elsewhere.isPresent()) {
        return rejected(
            Reason.NO_PEER_ACCESS,
            "ranks %d and %d are on different hosts, as %s has %d GPUs on each"
                .formatted(first, elsewhere.getAsInt(), target.name(), target.gpus()));
      }
    }
    return Optional.empty();
  }

  /**
   * {@return why a variant that exists for the kind cannot be used between so many ranks of one
   * host; empty if it can}
   */
  public Optional<Rejection> reject(Request collective, Variant variant, int ranks) {
    if ((ranks == 1) != (variant == Variant.LOCAL) && variant != Variant.CUSTOM) {
      return rejected(
          Reason.GROUP_SIZE,
          ranks == 1 ? "the group has one rank" : "the group has %s ranks".formatted(ranks));
    }
    var spec = VariantSpec.of(collective.kind(), variant);
    var candidate = new Candidate(spec, collective, ranks, target, multicast);
    return spec.requirements().stream()
        .flatMap(requirement -> requirement.unmet(candidate).stream())
        .findFirst()
        .or(() -> backend.lack(spec).map(detail -> new Rejection(Reason.NOT_IN_BACKEND, detail)));
  }

  /**
   * {@return the bytes of the {@link Workspace} that a collective takes: several tensors go through
   * it one after the other; 0 where the variant takes none}
   */
  public static long workspaceBytes(Request collective, VariantSpec spec, int ranks) {
    return collective.operands().stream()
        .map(Value::tensor)
        .flatMap(
            type ->
                Workspace.of(spec, collective.reduceOp(), type.dtype(), type.bytes(), ranks)
                    .stream())
        .mapToLong(Workspace::bytes)
        .max()
        .orElse(0);
  }

  /** {@return whether one launch of a variant takes several tensors} */
  public boolean takesSeveral(VariantSpec spec) {
    return spec.requirements().stream().allMatch(requirement -> requirement.allowsSeveral(target));
  }

  private static Optional<Rejection> rejected(Reason reason, String detail) {
    return Optional.of(new Rejection(reason, detail));
  }
}
