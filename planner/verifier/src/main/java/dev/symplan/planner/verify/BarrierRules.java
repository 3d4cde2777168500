package dev.symplan.planner.verify;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableListMultimap;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.plan.Barrier;
import dev.symplan.planner.plan.Barrier.Edge;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/**
 * {@link Rule#RACE} with peers. Between the two barriers of a collective, peers touch this rank's
 * operand or result, and {@link MemoryRun} sees to it that this rank does not. Where a collective
 * has no barrier of its own, the plan names another one of its group that stands in: from that one
 * on, peers may already be at this rank's memory; until that one, they may still be. So nothing may
 * touch that memory between the two.
 *
 * <p>Nor may a collective of another group lie between: if both groups have barriers that stand in,
 * a peer of the one may pass its barrier while a peer of the other has not come to its own.
 *
 * <p>Every rank has the same collectives in the same order, so what one rank may rely on all may.
 */
final class BarrierRules {
  /** How many steps may lie between a collective and what stands in for its barrier. */
  private static final int MAX_STEPS = 256;

  private final Plan plan;
  private final AliasModel facts;
  private final Findings findings;
  private final ImmutableList<CollectivePlan> collectives;
  private final int[] start;

  /** By what storages have in common that one tensor may be in, these, as they are defined. */
  private final ImmutableListMultimap<Integer, Integer> families;

  private BarrierRules(Plan plan, AliasModel facts, Findings findings) {
    this.plan = plan;
    this.facts = facts;
    this.findings = findings;
    this.collectives = facts.plan.collectives();
    this.start = new int[collectives.size()];
    var shared = ImmutableListMultimap.<Integer, Integer>builder();
    for (int storage = 0; storage < facts.storageCount(); storage++) {
      int id = facts.storage(storage).id();
      if (facts.mayAlias().isShared(storage) && facts.plan.placements().get(id).exists()) {
        shared.put(facts.mayAlias().familyOf(storage), id);
      }
    }
    this.families = shared.build();
  }

  static void check(Plan plan, AliasModel facts, Findings findings) {
    new BarrierRules(plan, facts, findings).check();
  }

  private void check() {
    var steps = facts.plan.steps();
    for (int s = 0; s < steps.size(); s++) {
      if (steps.get(s) instanceof Step.Start(int k)) {
        start[k] = s;
      }
    }
    for (int k = 0; k < start.length; k++) {
      check(k, Edge.START, collectives.get(k).start());
      check(k, Edge.END, collectives.get(k).end());
    }
  }

  private void check(int k, Edge edge, Barrier barrier) {
    switch (barrier) {
      case Barrier.Own _ -> {}
      case Barrier.None _ -> {
        if (!remote(k, false).isEmpty() || !remote(k, true).isEmpty()) {
          race(k, edge, "", lacking(k, edge));
        }
      }
      case Barrier.StandIn(int witness, var of) -> {
        var wrong = wrong(k, edge, witness, of);
        if (wrong.isPresent()) {
          race(k, edge, ", and " + wrong.get(), lacking(k, edge));
        } else {
          checkWindow(k, edge, witness, of);
        }
      }
    }
  }

  /** {@return why a barrier is none that could stand in, whatever lies between, if so} */
  private Optional<String> wrong(int k, Edge edge, int witness, Edge of) {
    if (witness < 0 || witness >= start.length) {
      return Optional.of(
          "collective %s, which should stand in for it, does not exist".formatted(witness));
    }
    var own = collectives.get(k);
    var other = collectives.get(witness);
    var name = "the %s of %s".formatted(of.text(), facts.words.text(other.op()));
    if (edge == Edge.START ? witness >= k : witness <= k) {
      return Optional.of(
          name + " does not come " + (edge == Edge.START ? "before it" : "after it"));
    }
    if (!own.group().equals(other.group())) {
      return Optional.of(
          "%s belongs to group %s, not %s".formatted(name, other.group(), own.group()));
    }
    if (!isPlanned(own) || !isPlanned(other)) {
      return Optional.of(
          "%s is %s on the %s stream: only the plan's own barriers on the compute stream can"
                  .formatted(
                      isPlanned(own) ? facts.words.text(other.op()) : "it",
                      (isPlanned(own) ? other : own).variant().text(),
                      (isPlanned(own) ? other : own).stream().text())
              + " stand in for each other");
    }
    return (of == Edge.START ? other.startBarrier() : other.endBarrier())
        ? Optional.empty()
        : Optional.of(name + " has no barrier of its own");
  }

  private static boolean isPlanned(CollectivePlan collective) {
    return collective.stream() == StreamKind.COMPUTE && collective.variant().hasPlannedBarriers();
  }

  /**
   * {@return the operands that peers read, or the results that they write, in this rank's memory}
   */
  private List<Integer> remote(int k, boolean results) {
    var collective = collectives.get(k);
    if (collective.variant() == Variant.LOCAL || !collective.spec().needsSymmetric(results)) {
      return ImmutableList.of();
    }
    return results ? collective.results() : collective.operands();
  }

  /** Looks at all steps between a collective and what stands in for one of its barriers. */
  private void checkWindow(int k, Edge edge, int witness, Edge of) {
    boolean before = edge == Edge.START;
    // The other collective's own accesses come before its end, and after its start.
    boolean inside = before == (of == Edge.START);
    int from = before ? start[witness] + (inside ? 0 : 1) : start[k] + 1;
    int to = before ? start[k] : start[witness] + (inside ? 1 : 0);
    if (to - from > MAX_STEPS) {
      race(
          k,
          edge,
          ", and the barrier that should stand in for it is too far away to check",
          List.of());
      return;
    }
    for (int s = from; s < to; s++) {
      switch (facts.plan.steps().get(s)) {
        case Step.Compute(int op) -> checkUse(k, edge, witness, s, op);
        case Step.Fused(var ops) -> {
          int step = s;
          ops.forEach(op -> checkUse(k, edge, witness, step, op));
        }
        case Step.Start(int other) -> {
          checkGroup(k, edge, other);
          checkUse(k, edge, witness, s, collectives.get(other).op());
          if (other != k && collectives.get(other).hasEpilogue()) {
            checkLocal(k, edge, witness, s + 1);
          }
        }
        case Step.Join(int other) -> checkUse(k, edge, witness, s, collectives.get(other).op());
      }
    }
    if (before && collectives.get(witness).spec().takesMakers()) {
      checkLocal(k, edge, witness, start[witness] - 1);
    }
  }

  /** Ops that run in the kernel of a collective may do so after its start, and before its end. */
  private void checkLocal(int k, Edge edge, int witness, int step) {
    if (step >= 0 && step < facts.plan.steps().size()) {
      switch (facts.plan.steps().get(step)) {
        case Step.Compute(int op) -> checkUse(k, edge, witness, step, op);
        case Step.Fused(var ops) -> ops.forEach(op -> checkUse(k, edge, witness, step, op));
        case Step.Start _, Step.Join _ -> {}
      }
    }
  }

  private void checkGroup(int k, Edge edge, int other) {
    if (isPlanned(collectives.get(other))
        && !collectives.get(other).group().equals(collectives.get(k).group())) {
      race(
          k,
          edge,
          ", and before the barrier that should stand in for it, group %s meets in %s"
              .formatted(
                  collectives.get(other).group(), facts.words.text(collectives.get(other).op())),
          List.of());
    }
  }

  private void checkUse(int k, Edge edge, int witness, int step, int op) {
    int touched = touched(k, op);
    if (touched < 0) {
      return;
    }
    boolean written = !remote(k, false).contains(touched);
    var name = facts.value(touched).name();
    var use =
        reads(op, touched) && !writes(op, touched)
            ? "reads " + used(facts.reads(op), touched)
            : "writes " + used(facts.fresh(op), touched);
    findings.add(
        Rule.RACE,
        facts.rank(),
        step,
        "%s %s without a barrier of its own, so peers may access %s %s %s, but %s uses its memory at"
                .formatted(
                    facts.words.text(collectives.get(k).op()),
                    edge == Edge.START ? "begins" : "ends",
                    name,
                    edge == Edge.START ? "from" : "until",
                    facts.words.stepText(start[witness]),
                    facts.words.stepText(step))
            + " "
            + facts.words.address(touched),
        trace(k, edge, witness, step, name, facts.words.extent(touched), use, written));
  }

  /** An order of events that the barriers allow, and that goes wrong. */
  private List<String> trace(
      int k,
      Edge edge,
      int witness,
      int step,
      String name,
      String address,
      String use,
      boolean written) {
    int rank = facts.rank();
    int peer = peer(k);
    var remote =
        "rank %s, in %s, %s %s of rank %s at %s"
            .formatted(
                peer,
                facts.words.event(start[k]),
                written ? "writes" : "reads",
                name,
                rank,
                address);
    var local = "rank %s, in %s, %s there".formatted(rank, facts.words.event(step), use);
    var events = new ArrayList<String>();
    if (edge == Edge.START) {
      events.add(
          "ranks %s and %s meet in %s".formatted(rank, peer, facts.words.event(start[witness])));
      events.add(
          "rank %s goes on to %s, which starts without waiting"
              .formatted(peer, facts.words.event(start[k])));
      events.add(remote);
      events.add(
          local
              + ": "
              + (written ? "too late, it destroys the peer's data" : "too late for the peer"));
    } else {
      events.add(
          "rank %s finishes %s, which ends without waiting"
              .formatted(rank, facts.words.event(start[k])));
      events.add(local);
      events.add(remote + (written ? ", after that" : ", too late"));
      events.add(
          "only %s makes rank %s wait for rank %s"
              .formatted(facts.words.event(start[witness]), rank, peer));
    }
    return events;
  }

  /** {@return another rank of the group} */
  private int peer(int k) {
    var members = members(k);
    return members.get((members.indexOf(facts.rank()) + 1) % members.length());
  }

  private ImmutableIntArray members(int k) {
    var group = plan.group(collectives.get(k).group());
    return group.members().get(group.partOf(facts.rank()).orElseThrow());
  }

  /** The violations where nothing at all keeps peers apart. */
  private List<String> lacking(int k, Edge edge) {
    boolean reads = !remote(k, false).isEmpty();
    var tensors = remote(k, !reads);
    if (tensors.isEmpty()) {
      return List.of();
    }
    var touched = facts.value(tensors.getFirst()).name();
    var remote =
        "rank %s, in %s, %s %s of rank %s at %s"
            .formatted(
                peer(k),
                facts.words.event(start[k]),
                reads ? "reads" : "writes",
                touched,
                facts.rank(),
                facts.words.extent(tensors.getFirst()));
    return edge == Edge.START
        ? List.of(
            "rank %s reaches %s, which starts without waiting"
                .formatted(peer(k), facts.words.event(start[k])),
            remote,
            "rank %s gets there later, and %s"
                .formatted(
                    facts.rank(),
                    reads ? "has not written it yet" : "may still use the old contents"))
        : List.of(
            "rank %s finishes %s, which ends without waiting"
                .formatted(facts.rank(), facts.words.event(start[k])),
            "rank %s goes on and reuses %s".formatted(facts.rank(), touched),
            remote + ", too late");
  }

  /**
   * {@return the tensor of a collective that an op uses as long as peers may not allow it, or -1}
   */
  private int touched(int k, int op) {
    boolean anything = facts.mayDoAnything(op);
    for (int operand : remote(k, false)) {
      if (anything || writes(op, operand)) {
        return operand;
      }
    }
    for (int result : remote(k, true)) {
      if (anything || writes(op, result) || reads(op, result)) {
        return result;
      }
    }
    return -1;
  }

  private boolean writes(int op, int value) {
    return meets(value, facts.fresh(op)) || meets(value, facts.mutated(op));
  }

  private boolean reads(int op, int value) {
    return meets(value, facts.reads(op));
  }

  /** The first of some values that lies, or may lie, where another one does. */
  private String used(int[] values, int at) {
    return Arrays.stream(values)
        .filter(other -> mayMeet(at, other))
        .mapToObj(other -> facts.value(other).name())
        .findFirst()
        .orElse("its memory");
  }

  private boolean meets(int value, int[] others) {
    return Arrays.stream(others).anyMatch(other -> mayMeet(value, other));
  }

  /** Whether a tensor shares bytes with another one, or with memory that the other may be in. */
  private boolean mayMeet(int value, int other) {
    int storage = facts.storageOf(other);
    return facts.overlap(value, other)
        || (facts.mayAlias().isShared(storage)
            && families.get(facts.mayAlias().familyOf(storage)).stream()
                .anyMatch(one -> facts.overlap(value, one)));
  }

  private void race(int k, Edge edge, String why, List<String> trace) {
    findings.add(
        Rule.RACE,
        facts.rank(),
        start[k],
        "%s %s without a barrier%s"
            .formatted(
                facts.words.text(collectives.get(k).op()),
                edge == Edge.START ? "begins" : "ends",
                why.isEmpty()
                    ? edge == Edge.START
                        ? ", and no other barrier keeps peers out of its memory until then"
                        : ", and no other barrier waits until the peers are done"
                    : why),
        trace);
  }
}
