package dev.symplan.planner.machine;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.MapMaker;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveCall;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.ir.op.SliceDims;
import dev.symplan.planner.machine.Requirement.AlignedSlices;
import dev.symplan.planner.machine.Requirement.CopyEngines;
import dev.symplan.planner.machine.Requirement.EqualRows;
import dev.symplan.planner.machine.Requirement.LessThan;
import dev.symplan.planner.machine.Requirement.Multicast;
import dev.symplan.planner.machine.Requirement.Nccl;
import dev.symplan.planner.machine.Requirement.OneTensor;
import dev.symplan.planner.machine.Requirement.OneType;
import dev.symplan.planner.machine.Requirement.Reductions;
import dev.symplan.planner.machine.Requirement.Runs;
import dev.symplan.planner.machine.Requirement.SeveralTensors;
import dev.symplan.planner.machine.Requirement.Types;
import dev.symplan.planner.machine.Requirement.WorkspaceFits;
import dev.symplan.planner.machine.Verdict.Reason;
import java.util.Optional;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Supplier;

/**
 * Decides which variants can run a collective on a target, whatever the cost.
 *
 * <p>The needs of a variant are in its {@link VariantSpec}.
 */
public final class Eligibility {
  /** A rejection, with the facts for people. */
  public record Rejection(Reason reason, String detail) {}

  /**
   * The properties of a collective that decide which variants can run it.
   *
   * @param reduceOp the reduction; empty if the collective has none
   * @param operands the tensors that a rank brings
   */
  public record Request(
      Op op, Kind kind, Optional<ReduceOp> reduceOp, ImmutableList<Value> operands) {

    /** {@return whether peers reach a tensor; of a custom op, they reach what it registers} */
    public boolean reachesPeers(Variant variant) {
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
    public boolean hasEqualRows() {
      return op.collective()
          .map(call -> areEqual(call.inputSplits()) && areEqual(call.outputSplits()))
          .orElse(true);
    }

    /** {@return whether each slice that a rank sends or gets is contiguous} */
    public boolean hasRuns() {
      return kind == Kind.CUSTOM
          || op.collective()
              .map(CollectiveCall::sliceDims)
              .filter(dims -> !dims.equals(SliceDims.FIRST))
              .map(
                  dims ->
                      dims.areRuns(operands.getFirst().tensor(), op.results().getFirst().tensor()))
              .orElse(true);
    }

    /** {@return whether it converts elements before it reduces them} */
    public boolean converts() {
      return op.collective()
          .flatMap(CollectiveCall::dtype)
          .filter(dtype -> dtype != dtype())
          .isPresent();
    }

    private static boolean areEqual(ImmutableLongArray rows) {
      return rows.stream().distinct().count() <= 1;
    }
  }

  private final Target target;
  private final boolean multicast;
  private final BackendVariants backend;

  /** By the group itself: a job's may be long, and many collectives have the same. */
  private final ConcurrentMap<ProcessGroup, Optional<Rejection>> apart =
      new MapMaker().weakKeys().makeMap();

  /**
   * @param multicast whether NVLink multicast may be used where the target has it
   * @param backend the backend that carries the plan out
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
  public Optional<Rejection> reject(
      Request collective, Variant variant, ProcessGroup group, Topology topology) {
    return (collective.reachesPeers(variant) ? apart(group, topology) : Optional.<Rejection>empty())
        .flatMap(rejection -> unlessOverNetwork(collective.kind(), variant, rejection))
        .or(() -> reject(collective, variant, group.size()));
  }

  private Optional<Rejection> unlessOverNetwork(Kind kind, Variant variant, Rejection apart) {
    return OverNetwork.of(kind, variant)
        .map(
            needs ->
                needs.isMet(target, multicast)
                    ? Optional.<Rejection>empty()
                    : rejected(apart.reason(), apart.detail() + "; " + needs.words()))
        .orElse(Optional.of(apart));
  }

  private Optional<Rejection> apart(ProcessGroup group, Topology topology) {
    return apart.computeIfAbsent(group, own -> rejectDomains(own, topology));
  }

  /** All parts of a group run the same variant, so each of them must be in one domain. */
  private static Optional<Rejection> rejectDomains(ProcessGroup group, Topology topology) {
    for (var part : group.members()) {
      int first = part.get(0);
      int domain = topology.domain(first);
      var elsewhere = part.stream().filter(rank -> topology.domain(rank) != domain).findFirst();
      if (elsewhere.isPresent()) {
        return rejected(
            Reason.NO_PEER_ACCESS,
            "ranks %s and %s are %s; the hosts are %s"
                .formatted(
                    first,
                    elsewhere.getAsInt(),
                    topology.hostsPerDomain() == 1
                        ? "on different hosts"
                        : "in different NVLink domains of %s hosts"
                            .formatted(topology.hostsPerDomain()),
                    topology.text()));
      }
    }
    return Optional.empty();
  }

  /**
   * {@return why a variant that exists for the kind cannot be used between so many ranks of one
   * NVLink domain; empty if it can}
   */
  public Optional<Rejection> reject(Request collective, Variant variant, int ranks) {
    if ((ranks == 1) != (variant == Variant.LOCAL) && variant != Variant.CUSTOM) {
      return rejected(
          Reason.GROUP_SIZE,
          ranks == 1 ? "the group has one rank" : "the group has %s ranks".formatted(ranks));
    }
    var spec = VariantSpec.of(collective.kind(), variant);
    for (var requirement : spec.requirements()) {
      var rejection = unmet(requirement, spec, collective, ranks);
      if (rejection.isPresent()) {
        return rejection;
      }
    }
    return ignoresDemand(collective, spec)
        .or(() -> backend.lack(spec).map(detail -> new Rejection(Reason.NOT_IN_BACKEND, detail)));
  }

  /** A group of one has no peers that could access anything. */
  private static Optional<Rejection> ignoresDemand(Request collective, VariantSpec spec) {
    var def = collective.op().def();
    if (collective.kind() == Kind.CUSTOM || spec.variant() == Variant.LOCAL) {
      return Optional.empty();
    }
    boolean operand = !def.symmMemArgs().isEmpty() && !spec.needsSymmetricOperand();
    boolean result = !def.symmMemResults().isEmpty() && !spec.needsSymmetricResult();
    return unless(
        !operand && !result,
        Reason.NOT_SYMMETRIC,
        () ->
            "%s is registered to have its %s in symmetric memory"
                .formatted(def.name(), operand ? "operand" : "result"));
  }

  private Optional<Rejection> unmet(
      Requirement requirement, VariantSpec spec, Request collective, int ranks) {
    int tensors = collective.operands().size();
    return switch (requirement) {
      case Multicast _ ->
          target.multicast()
              ? unless(
                  multicast, Reason.MULTICAST_OFF, () -> "multicast is off; add --multicast=on")
              : rejected(Reason.NO_MULTICAST, "the target has no multicast");
      case CopyEngines _ ->
          unless(
              target.copyEngines(),
              Reason.NO_COPY_ENGINE,
              () -> "the target's copy engines cannot access peers");
      case Reductions(var supported, var detail) ->
          unless(
              collective.reduceOp().filter(supported::contains).isPresent(),
              Reason.REDUCTION,
              () -> detail.formatted(ReduceOp.text(collective.reduceOp())));
      case Types(var supported, var detail) ->
          unless(
              supported.contains(collective.dtype()),
              Reason.DTYPE,
              () -> detail.formatted(collective.dtype().shortName()));
      case Nccl(int version, var what, var reductions, var dtypes) ->
          unless(
              target.nccl() >= version
                  || !(reductions.isEmpty()
                      || collective.reduceOp().filter(reductions::contains).isPresent())
                  || !(dtypes.isEmpty() || dtypes.contains(collective.dtype())),
              Reason.LIBRARY,
              () ->
                  "%s needs NCCL %s, %s has %s"
                      .formatted(
                          what.formatted(collective.dtype().shortName()),
                          Target.shortNcclVersion(version),
                          target.name(),
                          target.ncclVersion()));
      case SeveralTensors(int grouped, int ordered) ->
          target.nccl() < grouped
              ? unless(
                  tensors == 1,
                  Reason.LIBRARY_GROUP,
                  () ->
                      "%s collectives in one group; NCCL %s allows one, %s more"
                          .formatted(
                              tensors, target.ncclVersion(), Target.shortNcclVersion(grouped)))
              : unless(
                  tensors == 1 || target.nccl() >= ordered,
                  Reason.LIBRARY_RACE,
                  () ->
                      "%s collectives in one captured group race in NCCL %s; %s orders them"
                          .formatted(
                              tensors, target.ncclVersion(), Target.shortNcclVersion(ordered)));
      case OneTensor _ ->
          unless(
              tensors == 1,
              Reason.LIBRARY_GROUP,
              () ->
                  "%s collectives in one group; NCCL's copy engines allow one".formatted(tensors));
      case AlignedSlices _ ->
          unless(
              collective.operands().stream()
                  .allMatch(
                      value -> value.tensor().bytes() % ((long) ranks * Alignment.VECTOR) == 0),
              Reason.ALIGNMENT,
              () ->
                  "slices that are not a multiple of %s bytes; NCCL's symmetric kernel adds them up"
                          .formatted(Alignment.VECTOR)
                      + " wrongly");
      case EqualRows _ ->
          unless(
              collective.hasEqualRows(),
              Reason.ROWS,
              () -> "the ranks send unequal parts; NCCL's copy engines need equal ones");
      case Runs _ ->
          unless(
              collective.hasRuns(),
              Reason.LAYOUT,
              () ->
                  "each rank's slice consists of separate rows; %s moves only contiguous slices"
                      .formatted(spec.variant().text()));
      case OneType _ ->
          unless(
              !collective.converts(),
              Reason.DTYPE,
              () ->
                  "it reduces %s as %s; %s does not convert"
                      .formatted(
                          collective.dtype().shortName(),
                          collective.op().results().getFirst().tensor().dtype().shortName(),
                          spec.variant().text()));
      case LessThan(int gibibytes) -> {
        double all = (double) collective.bytes() * ranks;
        yield unless(
            all < (double) gibibytes * (1L << 30),
            Reason.SIZE,
            () ->
                "%s on all ranks together; NCCL's symmetric kernels are limited to %s GiB"
                    .formatted(Units.bytes((long) all), gibibytes));
      }
      case WorkspaceFits _ -> {
        long bytes = workspaceBytes(collective, spec, ranks);
        yield unless(
            bytes <= target.workspaceBytes(),
            Reason.WORKSPACE,
            () ->
                "a workspace of %s; %s allows %s"
                    .formatted(
                        Units.bytes(bytes), target.name(), Units.bytes(target.workspaceBytes())));
      }
    };
  }

  /**
   * {@return the bytes of the {@link Workspace} that a collective takes: several tensors go through
   * it one after the other; 0 if the variant takes none}
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
    return spec.requirements().stream()
        .noneMatch(
            requirement ->
                requirement instanceof OneTensor
                    || (requirement instanceof SeveralTensors(_, int ordered)
                        && target.nccl() < ordered));
  }

  private static Optional<Rejection> unless(boolean met, Reason reason, Supplier<String> detail) {
    return met ? Optional.empty() : rejected(reason, detail.get());
  }

  private static Optional<Rejection> rejected(Reason reason, String detail) {
    return Optional.of(new Rejection(reason, detail));
  }
}
