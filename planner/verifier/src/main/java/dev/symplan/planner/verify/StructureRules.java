package dev.symplan.planner.verify;

import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.RankNumbers;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Placement;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** {@link Rule#STRUCTURE}: every index points at something, every value is defined once. */
final class StructureRules {
  /** Beyond any address space, and small enough to add without overflow. */
  private static final long LIMIT = 1L << 56;

  private final Plan plan;
  private final RankPlan rankPlan;
  private final int rank;
  private final Findings findings;
  private final @Nullable Value[] defined;
  private final Set<String> checkedGroups = new HashSet<>();

  private StructureRules(Plan plan, RankPlan rankPlan, int rank, Findings findings) {
    this.plan = plan;
    this.rankPlan = rankPlan;
    this.rank = rank;
    this.findings = findings;
    this.defined = new @Nullable Value[rankPlan.graph().valueCount()];
  }

  static void check(Plan plan, Findings findings) {
    var groups = new HashMap<String, ProcessGroup>();
    for (var group : plan.groups()) {
      if (groups.put(group.name(), group) != null) {
        findings.add(Rule.STRUCTURE, "there are two groups '%s'".formatted(group.name()));
      }
      if (group.maxRank() >= plan.worldSize()) {
        findings.add(
            Rule.STRUCTURE,
            "group '%s' names rank %s, but there are %s ranks"
                .formatted(group.name(), group.maxRank(), plan.worldSize()));
      }
    }
    HostModel.check(plan, findings);
    var used = new BitSet();
    for (int r = 0; r < plan.worldSize(); r++) {
      int index = plan.planOfRank().get(r);
      if (index < 0 || index >= plan.rankPlans().size()) {
        findings.add(Rule.STRUCTURE, r, "rank plan %s does not exist".formatted(index));
        continue;
      }
      if (!plan.rankPlans().get(index).graph().runsOn(r)) {
        findings.add(
            Rule.STRUCTURE,
            r,
            "the graph of rank plan %s does not run on this rank".formatted(index));
      }
      if (!used.get(index)) {
        used.set(index);
        new StructureRules(plan, plan.rankPlans().get(index), r, findings).check(groups);
      }
    }
    if (used.cardinality() < plan.rankPlans().size()) {
      findings.add(Rule.STRUCTURE, "no rank runs rank plan %s".formatted(used.nextClearBit(0)));
    }
  }

  private void wrong(String message) {
    findings.add(Rule.STRUCTURE, rank, message);
  }

  private void check(Map<String, ProcessGroup> groups) {
    rankPlan.graph().inputs().forEach(this::define);
    for (var op : rankPlan.graph().ops()) {
      op.operands().forEach(value -> checkUse(value, op));
      op.results().forEach(this::define);
      checkRankNumbers(op);
    }
    rankPlan.graph().outputValues().forEach(value -> checkUse(value, null));
    checkPlacements();
    for (var buffer : rankPlan.buffers()) {
      if (buffer.offset() > LIMIT || buffer.bytes() > LIMIT) {
        wrong("the buffer %s exceeds any memory".formatted(buffer.name()));
      }
    }
    for (var step : rankPlan.steps()) {
      checkStep(step);
    }
    for (int k = 0; k < rankPlan.collectives().size(); k++) {
      checkCollective(k, rankPlan.collectives().get(k), groups);
    }
  }

  private void checkRankNumbers(Op op) {
    var count = RankNumbers.count(op);
    if (count.isPresent() && count.getAsInt() != plan.worldSize()) {
      wrong(
          "%s has %s, but there are %s"
              .formatted(
                  op.label(),
                  Units.count(count.getAsInt(), "number"),
                  Units.count(plan.worldSize(), "rank")));
    }
  }

  private void define(Value value) {
    if (value.id() < 0 || value.id() >= defined.length) {
      wrong(
          "%s has id %s, but the graph has %s"
              .formatted(value.name(), value.id(), Units.count(defined.length, "value")));
    } else if (defined[value.id()] != null) {
      wrong("%s has the same id as %s".formatted(value.name(), defined[value.id()].name()));
    } else {
      defined[value.id()] = value;
    }
  }

  private void checkUse(Value value, @Nullable Op user) {
    if (!isDefined(value) || !value.equals(defined[value.id()])) {
      wrong(
          "%s reads %s, which is not defined before"
              .formatted(user == null ? "an output" : user.def().name(), value));
    }
  }

  /** The values that ops of one fused step alone make and read: these need no memory. */
  private BitSet passing() {
    int opCount = rankPlan.graph().ops().size();
    var stepOf = new int[opCount];
    Arrays.fill(stepOf, -1);
    for (int s = 0; s < rankPlan.steps().size(); s++) {
      if (rankPlan.steps().get(s) instanceof Step.Fused(var ops)) {
        int step = s;
        ops.stream().filter(op -> op >= 0 && op < opCount).forEach(op -> stepOf[op] = step);
      }
    }
    var madeIn = new int[defined.length];
    Arrays.fill(madeIn, -1);
    var passing = new BitSet();
    for (int i = 0; i < opCount; i++) {
      int step = stepOf[i];
      var op = rankPlan.graph().ops().get(i);
      for (var value : op.operands()) {
        if (isDefined(value) && madeIn[value.id()] != step) {
          passing.clear(value.id());
        }
      }
      for (var result : op.results()) {
        if (step >= 0 && isDefined(result)) {
          madeIn[result.id()] = step;
          passing.set(result.id());
        }
      }
    }
    for (var value : rankPlan.graph().outputValues()) {
      if (isDefined(value)) {
        passing.clear(value.id());
      }
    }
    return passing;
  }

  private boolean isDefined(Value value) {
    return value.id() >= 0 && value.id() < defined.length;
  }

  private void checkPlacements() {
    var passing = passing();
    for (int id = 0; id < defined.length; id++) {
      var placement = rankPlan.placements().get(id);
      @Nullable Value value = defined[id];
      boolean tensor = value != null && value.isTensor();
      var name = value == null ? "value " + id : value.name();
      if (placement.buffer() >= rankPlan.buffers().size()) {
        wrong("%s is in buffer %s, which does not exist".formatted(name, placement.buffer()));
      } else if (placement.shardOf() >= rankPlan.collectives().size()) {
        wrong(
            "%s is a shard of collective %s, which does not exist"
                .formatted(name, placement.shardOf()));
      } else if (Math.max(placement.offset(), Math.max(placement.stride(), placement.pitch()))
          > LIMIT) {
        wrong("%s exceeds any memory".formatted(name));
      } else if (tensor && !placement.exists() && !passing.get(id)) {
        wrong("%s has no memory".formatted(name));
      } else if (!tensor && !placement.equals(Placement.NONE)) {
        wrong("%s is not a tensor, but has memory".formatted(name));
      }
    }
  }

  private void checkStep(Step step) {
    switch (step) {
      case Step.Compute(int op) -> inRange(op, rankPlan.graph().ops().size(), "op");
      case Step.Fused(var ops) ->
          ops.forEach(op -> inRange(op, rankPlan.graph().ops().size(), "op"));
      case Step.Start(int k) -> inRange(k, rankPlan.collectives().size(), "collective");
      case Step.Join(int k) -> inRange(k, rankPlan.collectives().size(), "collective");
    }
  }

  private boolean inRange(int index, int count, String what) {
    if (index < 0 || index >= count) {
      wrong("%s %s does not exist; there are %s".formatted(what, index, count));
      return false;
    }
    return true;
  }

  private void checkCollective(int k, CollectivePlan collective, Map<String, ProcessGroup> groups) {
    inRange(collective.op(), rankPlan.graph().ops().size(), "op");
    if (collective.workspace() != CollectivePlan.NO_WORKSPACE) {
      inRange(collective.workspace(), rankPlan.buffers().size(), "buffer");
    }
    checkTensors(k, collective.operands());
    checkTensors(k, collective.results());
    @Nullable ProcessGroup group = groups.get(collective.group());
    if (group == null) {
      wrong("collective %s uses group '%s', which does not exist".formatted(k, collective.group()));
      return;
    }
    if (!checkedGroups.add(group.name())) {
      return;
    }
    for (int r = 0; r < plan.worldSize(); r++) {
      if (plan.planOfRank().get(r) == plan.planOfRank().get(rank) && group.partOf(r).isEmpty()) {
        findings.add(
            Rule.STRUCTURE,
            r,
            "collective %s uses group '%s', but this rank is not in it"
                .formatted(k, collective.group()));
        return;
      }
    }
  }

  private void checkTensors(int k, List<Integer> ids) {
    for (int id : ids) {
      if (inRange(id, defined.length, "value")) {
        @Nullable Value value = defined[id];
        if (value == null || !value.isTensor() || !rankPlan.placements().get(id).exists()) {
          wrong("collective %s moves value %s, which is not a tensor in memory".formatted(k, id));
        }
      }
    }
  }
}
