package dev.symplan.planner.report;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.planner.plan.ArgDecision;
import dev.symplan.planner.plan.ArgDecision.Realization;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeSet;

/** The locations of values, and their uses, in the plan of one graph's ranks. */
final class RankIndex {

  /** The purpose of a buffer; of several, the first in this order counts. */
  enum Role {
    WORKSPACE,
    INPUT,
    OUTPUT,
    STAGING,
    COLLECTIVE,
    TEMPORARY
  }

  /**
   * An op that reads a buffer.
   *
   * @param name its first result
   */
  record Use(int step, int op, String name) {}

  /** {@return a value's or buffer's name; {@code _} for what has none, as in the graph language} */
  static String printable(String name) {
    return name.isEmpty() ? "_" : name;
  }

  private final RankPlan plan;
  private final ImmutableList<Integer> ranks;
  private final ImmutableList<Value> values;
  private final int[] stepOfOp;
  private final int[] endOfCollective;
  private final int[] collectiveOfOp;
  private final int[] opOfValue;
  private final List<List<Value>> valuesOf = new ArrayList<>();
  private final List<List<Use>> usesOf = new ArrayList<>();
  private final Map<Integer, ArgDecision> decisions = new HashMap<>();
  private final Map<String, Op> producers = new HashMap<>();
  private final Role[] roles;

  RankIndex(RankPlan plan, ImmutableList<Integer> ranks) {
    this.plan = plan;
    this.ranks = ranks;
    this.values = plan.graph().values();
    int ops = plan.graph().ops().size();
    this.stepOfOp = new int[ops];
    this.collectiveOfOp = new int[ops];
    this.opOfValue = new int[values.size()];
    this.endOfCollective = new int[plan.collectives().size()];
    this.roles = new Role[plan.buffers().size()];
    Arrays.fill(stepOfOp, -1);
    Arrays.fill(collectiveOfOp, -1);
    Arrays.fill(opOfValue, -1);
    for (int b = 0; b < plan.buffers().size(); b++) {
      valuesOf.add(new ArrayList<>());
      usesOf.add(new ArrayList<>());
    }
    indexSteps();
    indexValues();
    indexDecisions();
    indexRoles();
  }

  private void indexSteps() {
    for (int k = 0; k < plan.collectives().size(); k++) {
      collectiveOfOp[plan.collectives().get(k).op()] = k;
    }
    for (int i = 0; i < plan.steps().size(); i++) {
      int step = i;
      switch (plan.steps().get(i)) {
        case Step.Compute(int op) -> stepOfOp[op] = step;
        case Step.Fused(var ops) -> ops.forEach(op -> stepOfOp[op] = step);
        case Step.Start(int k) -> {
          stepOfOp[plan.collectives().get(k).op()] = step;
          endOfCollective[k] = step;
        }
        case Step.Join(int k) -> endOfCollective[k] = step;
      }
    }
  }

  private void indexValues() {
    values.forEach(value -> at(valuesOf, value).ifPresent(own -> own.add(value)));
    for (int i = 0; i < plan.graph().ops().size(); i++) {
      int index = i;
      var op = plan.graph().ops().get(i);
      for (var value : op.results()) {
        opOfValue[value.id()] = index;
        producers.putIfAbsent(value.name(), op);
      }
      if (stepOfOp[i] >= 0) {
        var read = new HashSet<Integer>();
        for (var value : op.operands()) {
          int buffer = plan.placement(value).buffer();
          if (buffer >= 0 && read.add(buffer)) {
            usesOf.get(buffer).add(new Use(stepOfOp[index], index, op.label()));
          }
        }
      }
    }
  }

  private <T> Optional<List<T>> at(List<List<T>> lists, Value value) {
    int buffer = plan.placement(value).buffer();
    return buffer < 0 ? Optional.empty() : Optional.of(lists.get(buffer));
  }

  /** Of the decisions on a buffer's tensors, the first one counts that needs symmetric memory. */
  private void indexDecisions() {
    for (var collective : plan.collectives()) {
      var tensors = tensors(collective);
      for (int i = 0; i < tensors.size(); i++) {
        decisions.merge(
            plan.placements().get(tensors.get(i)).buffer(),
            collective.args().get(i),
            (a, b) -> a.realization() == Realization.NOT_NEEDED ? b : a);
      }
    }
  }

  /** {@return the ids of operands, then results: one for each decision} */
  static List<Integer> tensors(CollectivePlan collective) {
    var tensors = new ArrayList<>(collective.operands());
    tensors.addAll(collective.results());
    return tensors;
  }

  private void indexRoles() {
    for (int b = 0; b < roles.length; b++) {
      roles[b] = valuesOf.get(b).isEmpty() ? Role.WORKSPACE : Role.TEMPORARY;
    }
    for (var collective : plan.collectives()) {
      tensors(collective).forEach(id -> raise(plan.placements().get(id).buffer(), Role.COLLECTIVE));
    }
    for (var op : plan.graph().ops()) {
      if (op.def().name().toString().equals("symplan::stage")) {
        op.results().forEach(value -> raise(plan.placement(value).buffer(), Role.STAGING));
      }
    }
    plan.graph()
        .outputValues()
        .forEach(value -> raise(plan.placement(value).buffer(), Role.OUTPUT));
    plan.graph().inputs().forEach(value -> raise(plan.placement(value).buffer(), Role.INPUT));
  }

  private void raise(int buffer, Role role) {
    if (buffer >= 0 && role.compareTo(roles[buffer]) < 0) {
      roles[buffer] = role;
    }
  }

  RankPlan plan() {
    return plan;
  }

  ImmutableList<Integer> ranks() {
    return ranks;
  }

  ImmutableList<Value> values() {
    return values;
  }

  Role role(int buffer) {
    return roles[buffer];
  }

  /** {@return the values in a buffer, by id} */
  List<Value> valuesOf(int buffer) {
    return valuesOf.get(buffer);
  }

  /** {@return the ops that read a buffer, in the graph's order} */
  List<Use> usesOf(int buffer) {
    return usesOf.get(buffer);
  }

  Optional<ArgDecision> decision(int buffer) {
    return Optional.ofNullable(decisions.get(buffer));
  }

  /** {@return how a tensor of a collective is realized, as a sentence} */
  String text(ArgDecision decision) {
    return DecisionText.of(decision, Optional.ofNullable(producers.get(decision.value())));
  }

  /** {@return the step that runs an op; -1 for views and waits, which nothing runs} */
  int stepOfOp(int op) {
    return stepOfOp[op];
  }

  /** {@return the step after which a collective is finished} */
  int endOfCollective(int collective) {
    return endOfCollective[collective];
  }

  Optional<CollectivePlan> collectiveOf(int op) {
    return collectiveOfOp[op] < 0
        ? Optional.empty()
        : Optional.of(plan.collectives().get(collectiveOfOp[op]));
  }

  /** {@return the op that gives a value; empty for inputs} */
  Optional<Op> opOf(Value value) {
    return opOfValue[value.id()] < 0
        ? Optional.empty()
        : Optional.of(plan.graph().ops().get(opOfValue[value.id()]));
  }

  int opIndex(Value value) {
    return opOfValue[value.id()];
  }

  /** {@return where the source has what first writes a buffer} */
  String source(int buffer) {
    return valuesOf.get(buffer).stream()
        .findFirst()
        .map(value -> opOf(value).map(Op::span).orElse(value.span()).shortForm())
        .orElse("");
  }

  /** {@return for example {@code at step 3, y = aten::mm}} */
  String when(int step) {
    return step < 0
        ? "before the first step"
        : step >= plan.steps().size()
            ? "after the last step"
            : "at step %s, %s".formatted(step, stepText(step));
  }

  private String stepText(int step) {
    return switch (plan.steps().get(step)) {
      case Step.Compute(int op) -> opText(op);
      case Step.Fused(var ops) ->
          "%s, first of %s fused".formatted(opText(ops.get(0)), ops.length());
      case Step.Start(int k) -> opText(plan.collectives().get(k).op());
      case Step.Join(int k) -> "wait for " + name(plan.collectives().get(k));
    };
  }

  private String opText(int index) {
    var op = plan.graph().ops().get(index);
    return "%s = %s".formatted(op.label(), op.def().name());
  }

  String name(CollectivePlan collective) {
    return plan.graph().ops().get(collective.op()).label();
  }

  /**
   * {@return for example {@code symm+0x400}, {@code in3}, {@code symm+0x0+rank*0x100}, or {@code
   * local+0x0+row*0x300} of a piece in rows}
   */
  String address(Value value) {
    var placement = plan.placement(value);
    if (!placement.exists()) {
      return "no memory";
    }
    var first = address(plan.buffers().get(placement.buffer()), placement.offset());
    if (placement.isInRows()) {
      return first + "+row*0x" + Long.toHexString(placement.pitch());
    }
    return placement.isShard() ? first + "+rank*0x" + Long.toHexString(placement.stride()) : first;
  }

  static String address(Buffer buffer, long offset) {
    return switch (buffer.arena()) {
      case HOST -> "host+0x" + Long.toHexString(buffer.offset() + offset);
      case SYMMETRIC -> "symm+0x" + Long.toHexString(buffer.offset() + offset);
      case LOCAL -> "local+0x" + Long.toHexString(buffer.offset() + offset);
      case EXTERNAL_INPUT -> "in" + buffer.offset() + plus(offset);
      case EXTERNAL_OUTPUT -> "out" + buffer.offset() + plus(offset);
    };
  }

  private static String plus(long offset) {
    return offset == 0 ? "" : "+0x" + Long.toHexString(offset);
  }

  /** {@return the bytes of a collective's operands on one rank} */
  long operandBytes(CollectivePlan collective) {
    return collective.operands().stream().mapToLong(id -> values.get(id).tensor().bytes()).sum();
  }

  /** {@return the ops that read a value, by index} */
  TreeSet<Integer> readers(Value value) {
    var readers = new TreeSet<Integer>();
    for (int i = 0; i < plan.graph().ops().size(); i++) {
      int index = i;
      for (var operand : plan.graph().ops().get(i).operands()) {
        if (operand.id() == value.id()) {
          readers.add(index);
        }
      }
    }
    return readers;
  }
}
