package dev.symplan.planner.verify;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.BackendVariants;
import dev.symplan.planner.machine.Eligibility;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.plan.ArgDecision;
import dev.symplan.planner.plan.ArgDecision.Realization;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/**
 * {@link Rule#REALIZATION}: the plan's collectives are the graph's, their variants work on the
 * target, and each tensor is where, and as, its variant needs it.
 */
final class CollectiveRules {
  private final Plan plan;
  private final AliasModel facts;
  private final Findings findings;
  private final BitSet staged = new BitSet();
  private final BitSet demanded = new BitSet();

  private final HostModel hosts;

  /** Groups whose parts were found to be in one NVLink domain each. */
  private final Set<String> together = new HashSet<>();

  private CollectiveRules(Plan plan, AliasModel facts, Findings findings) {
    this.plan = plan;
    this.facts = facts;
    this.findings = findings;
    this.hosts = new HostModel(plan);
  }

  static void check(Plan plan, AliasModel facts, Findings findings) {
    new CollectiveRules(plan, facts, findings).check();
  }

  private void wrong(int k, String message) {
    findings.add(
        Rule.REALIZATION,
        facts.rank(),
        "collective %s (%s) %s"
            .formatted(k, facts.words.text(facts.plan.collectives().get(k).op()), message));
  }

  private void check() {
    for (int op = 0; op < facts.plan.graph().ops().size(); op++) {
      if (isStage(op)) {
        for (int value : facts.reads(op)) {
          staged.set(facts.storageOf(value));
        }
      }
    }
    checkComplete();
    for (int k = 0; k < facts.plan.collectives().size(); k++) {
      var collective = facts.plan.collectives().get(k);
      if (checkSame(k, collective)) {
        checkVariant(k, collective);
        checkTensors(k, collective);
        checkVerdicts(k, collective);
        checkArgs(k, collective);
      }
    }
    checkDemand();
  }

  private boolean isStage(int op) {
    var name = facts.op(op).def().name();
    return name.namespace().equals("symplan") && name.name().equals("stage");
  }

  private static boolean isCollective(Op op) {
    return op.def().collective().isPresent();
  }

  /** The plan's list is the graph's collectives, in its order. */
  private void checkComplete() {
    var expected = new ArrayList<Integer>();
    for (int op = 0; op < facts.plan.graph().ops().size(); op++) {
      if (isCollective(facts.op(op))) {
        expected.add(op);
      }
    }
    var listed = facts.plan.collectives().stream().map(CollectivePlan::op).toList();
    if (!expected.equals(listed)) {
      findings.add(
          Rule.REALIZATION,
          facts.rank(),
          "the graph's collectives are the ops %s, but the plan has %s"
              .formatted(expected, listed));
    }
  }

  private boolean checkSame(int k, CollectivePlan collective) {
    var op = facts.op(collective.op());
    if (!isCollective(op)) {
      wrong(k, "is not a collective");
      return false;
    }
    int before = findings.count();
    var call = op.collective().orElseThrow();
    same(k, "kind", collective.kind(), call.kind());
    same(k, "group", collective.group(), call.group());
    long stated = call.groupSize().orElse(groupSize(collective));
    same(k, "number of ranks", (long) groupSize(collective), stated);
    same(k, "reduction", ReduceOp.text(collective.reduceOp()), ReduceOp.text(call.reduceOp()));
    int root = call.root().orElse(-1);
    same(k, "root", collective.root(), root);
    same(k, "operands", collective.operands(), operands(op));
    same(k, "results", collective.results(), results(op));
    if (call.kind() == Kind.BROADCAST && (root < 0 || root >= groupSize(collective))) {
      wrong(k, "has root %s in a group of %s".formatted(root, groupSize(collective)));
    }
    if (call.permutation().maxRank() >= groupSize(collective)) {
      wrong(
          k, "has pairs %s in a group of %s".formatted(call.permutation(), groupSize(collective)));
    }
    if (call.kind() != Kind.CUSTOM
        && (op.def().schema().mutates()
            || collective.operands().size() != collective.results().size())) {
      wrong(k, "is not functional: it must have one new result for each operand");
    }
    return findings.count() == before;
  }

  private void same(int k, String what, Object planned, Object graph) {
    if (!Objects.equals(planned, graph)) {
      wrong(k, "has %s %s in the plan, but %s in the graph".formatted(what, planned, graph));
    }
  }

  private static ImmutableList<Integer> operands(Op op) {
    var spec = op.def().collective().orElseThrow();
    var ids = ImmutableList.<Integer>builder();
    var params =
        spec.kind() == Kind.CUSTOM ? op.def().symmMemArgs() : ImmutableList.of(spec.operand());
    for (var param : params) {
      op.arg(param).operands().forEach(value -> ids.add(value.id()));
    }
    return ids.build();
  }

  private static ImmutableList<Integer> results(Op op) {
    boolean custom = op.def().collective().orElseThrow().kind() == Kind.CUSTOM;
    var schema = op.def().schema().results();
    var registered = op.def().symmMemResults();
    var ids = ImmutableList.<Integer>builder();
    for (int i = 0; i < op.results().size(); i++) {
      boolean named =
          i < schema.size()
              && (registered.contains(Integer.toString(i))
                  || registered.contains(schema.get(i).name()));
      if (!custom || (named && op.results().get(i).isTensor())) {
        ids.add(op.results().get(i).id());
      }
    }
    return ids.build();
  }

  private int groupSize(CollectivePlan collective) {
    return plan.group(collective.group()).size();
  }

  private void checkVariant(int k, CollectivePlan collective) {
    var variant = collective.variant();
    var operands =
        collective.operands().stream().map(facts::value).collect(ImmutableList.toImmutableList());
    checkDomains(k, collective);
    // The row states what a variant is and needs; whether that holds is checked here.
    new Eligibility(plan.target(), plan.multicast(), BackendVariants.ANY)
        .reject(
            new Eligibility.Request(
                facts.op(collective.op()), collective.kind(), collective.reduceOp(), operands),
            variant,
            groupSize(collective))
        .ifPresent(
            rejection -> wrong(k, "is %s, but %s".formatted(variant.text(), rejection.detail())));
    if (collective.isAsync()
        && (collective.stream() == StreamKind.COPY) != variant.usesCopyEngines()) {
      wrong(k, "is %s on the %s stream".formatted(variant.text(), collective.stream().text()));
    }
    if (collective.isAsync() && variant == Variant.CUSTOM) {
      wrong(k, "is a custom op, which can only run on the compute stream");
    }
  }

  /** Memory that peers touch is in their NVLink domain. */
  private void checkDomains(int k, CollectivePlan collective) {
    boolean touchesPeers =
        collective.variant() == Variant.CUSTOM
            ? !collective.operands().isEmpty() || !collective.results().isEmpty()
            : collective.spec().reachesPeers();
    if (!touchesPeers
        || together.contains(collective.group())
        || HostModel.allowsWindows(plan, collective)) {
      return;
    }
    for (var part : plan.group(collective.group()).members()) {
      var domains = hosts.apart(part);
      if (domains.isPresent()) {
        wrong(
            k,
            "is %s, but its ranks %s are in the NVLink domains %s of the hosts %s"
                .formatted(
                    collective.variant().text(), part, domains.get(), plan.topology().text()));
        return;
      }
    }
    together.add(collective.group());
  }

  private void checkTensors(int k, CollectivePlan collective) {
    for (int i = 0; i < collective.operands().size(); i++) {
      var operand = facts.value(collective.operands().get(i));
      checkLocation(k, collective, operand, false);
      if (collective.kind().keepsLayout()) {
        var result = facts.value(collective.results().get(i));
        if (!OperandRows.movesAsOne(operand.tensor(), result.tensor())
            && !(result.tensor().isContiguous() && movesRows(collective, operand))) {
          wrong(k, "has %s, but its result is laid out as %s".formatted(operand, result));
        }
      } else if (!movesRows(collective, operand)) {
        checkContiguous(k, operand);
      }
    }
    for (int id : collective.results()) {
      checkLocation(k, collective, facts.value(id), true);
      if (!collective.kind().keepsLayout()) {
        checkContiguous(k, facts.value(id));
      }
    }
  }

  private boolean movesRows(CollectivePlan collective, Value operand) {
    return OperandRows.moves(
        collective, facts.op(collective.op()), operand.tensor(), groupSize(collective));
  }

  private void checkContiguous(int k, Value value) {
    if (!value.tensor().isContiguous()) {
      wrong(k, "moves %s, which is not contiguous".formatted(value));
    }
  }

  private void checkLocation(int k, CollectivePlan collective, Value value, boolean result) {
    if (!collective.spec().needsSymmetric(result)) {
      return;
    }
    int index = facts.plan.placements().get(value.id()).buffer();
    demanded.set(index);
    var verb = result ? "writes" : "reads";
    if (!result && facts.mayAlias().mayHaveMoved(facts.storageOf(value.id()), collective.op())) {
      wrong(
          k,
          "reads %s of every rank as %s, but an op that may do anything may have moved it"
              .formatted(value.name(), collective.variant().text()));
    } else if (!facts.plan.buffers().get(index).symmetric()) {
      wrong(
          k,
          "%s %s of every rank as %s, but the buffer at %s is not symmetric"
              .formatted(
                  verb,
                  value.name(),
                  collective.variant().text(),
                  facts.words.address(value.id())));
    } else if (facts.spread(value.id()) != 0) {
      wrong(
          k,
          "%s %s of every rank as %s, but its offset differs between ranks, from %s"
              .formatted(
                  verb,
                  value.name(),
                  collective.variant().text(),
                  facts.words.address(value.id())));
    } else if (facts.begin(value.id()) % Alignment.VECTOR != 0) {
      wrong(
          k,
          "%s %s at %s, which is not a multiple of %s bytes"
              .formatted(verb, value.name(), facts.words.address(value.id()), Alignment.VECTOR));
    }
  }

  private void checkVerdicts(int k, CollectivePlan collective) {
    var variants = new HashSet<Variant>();
    var chosen = new ArrayList<Variant>();
    for (Verdict verdict : collective.verdicts()) {
      if (!variants.add(verdict.variant())
          || !verdict.variant().implementsKind(collective.kind())) {
        wrong(k, "has a surplus verdict on " + verdict.variant().text());
      }
      if (verdict.chosen()) {
        chosen.add(verdict.variant());
      }
    }
    for (var variant : Variant.values()) {
      if (variant.implementsKind(collective.kind()) && !variants.contains(variant)) {
        wrong(k, "has no verdict on " + variant.text());
      }
    }
    if (!chosen.equals(List.of(collective.variant()))) {
      wrong(
          k,
          "is %s, but the verdicts choose %s"
              .formatted(collective.variant().text(), chosen.stream().map(Variant::text).toList()));
    }
  }

  private void checkArgs(int k, CollectivePlan collective) {
    int operands = collective.operands().size();
    int count = operands + collective.results().size();
    if (collective.args().size() != count) {
      wrong(
          k,
          "has %s, but %s"
              .formatted(
                  Units.count(count, "tensor"), Units.count(collective.args().size(), "decision")));
      return;
    }
    for (int i = 0; i < count; i++) {
      boolean result = i >= operands;
      int id = result ? collective.results().get(i - operands) : collective.operands().get(i);
      checkArg(k, collective, facts.value(id), result, collective.args().get(i));
    }
  }

  private void checkArg(
      int k, CollectivePlan collective, Value value, boolean result, ArgDecision decision) {
    if (decision.result() != result || decision.bytes() != value.tensor().bytes()) {
      wrong(k, "has a decision on %s that describes another tensor".formatted(value.name()));
      return;
    }
    boolean needed = collective.spec().needsSymmetric(result);
    boolean copied =
        result
            ? staged.get(facts.storageOf(value.id()))
            : facts.opOf(value.id()) >= 0 && isStage(facts.opOf(value.id()));
    boolean fits =
        switch (decision.realization()) {
          case ZERO_COPY -> needed;
          case NOT_NEEDED -> !needed;
          case STAGED -> copied;
        };
    if (!fits) {
      wrong(
          k,
          "has %s %s, but %s"
              .formatted(
                  value.name(),
                  decision.realization().text(),
                  decision.realization() == Realization.STAGED
                      ? "nothing copies it"
                      : collective.variant().text()
                          + (needed ? " needs it symmetric" : " takes it anywhere")));
    }
  }

  /** A symmetric buffer takes room on every rank; something must ask for it. */
  private void checkDemand() {
    for (var input : facts.plan.graph().inputs()) {
      note(input);
    }
    facts.plan.graph().outputValues().forEach(this::note);
    for (int i = 0; i < facts.plan.buffers().size(); i++) {
      if (facts.plan.buffers().get(i).symmetric() && !demanded.get(i) && !facts.isWorkspace(i)) {
        findings.add(
            Rule.REALIZATION,
            facts.rank(),
            "nothing needs the buffer %s to be symmetric"
                .formatted(facts.plan.buffers().get(i).name()));
      }
    }
  }

  private void note(Value value) {
    if (value.isTensor()) {
      demanded.set(facts.plan.placements().get(value.id()).buffer());
    }
  }
}
