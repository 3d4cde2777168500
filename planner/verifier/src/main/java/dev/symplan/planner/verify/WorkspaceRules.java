package dev.symplan.planner.verify;

import dev.symplan.ir.diag.Units;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.Workspace;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Workspaces: each collective that pushes has one, large enough, which nothing else uses as long as
 * the plan is, as peers may store there at any time. Only collectives of one group and stream share
 * one: then each comes when all ranks are done with the one before the last.
 */
final class WorkspaceRules {
  private final Plan plan;
  private final AliasModel facts;
  private final Findings findings;
  private final Map<Integer, CollectivePlan> owners = new HashMap<>();

  private WorkspaceRules(Plan plan, AliasModel facts, Findings findings) {
    this.plan = plan;
    this.facts = facts;
    this.findings = findings;
  }

  static void check(Plan plan, AliasModel facts, Findings findings) {
    var rules = new WorkspaceRules(plan, facts, findings);
    facts.plan.collectives().forEach(rules::check);
    if (!rules.owners.isEmpty()) {
      rules.checkUnused();
      rules.checkApart();
    }
  }

  /** {@return where a collective's workspace begins in the symmetric arena; -1 if it has none} */
  static long offset(AliasModel facts, CollectivePlan collective) {
    return collective.workspace() == CollectivePlan.NO_WORKSPACE
        ? -1
        : facts.plan.buffers().get(collective.workspace()).offset();
  }

  private void wrong(Rule rule, String message) {
    findings.add(rule, facts.rank(), message);
  }

  private void check(CollectivePlan collective) {
    var name = facts.words.text(collective.op());
    boolean has = collective.workspace() != CollectivePlan.NO_WORKSPACE;
    if (has != collective.variant().needsWorkspace()) {
      wrong(
          Rule.REALIZATION,
          "%s is %s, which needs %s workspace"
              .formatted(name, collective.variant().text(), has ? "no" : "a"));
      return;
    }
    if (!has) {
      return;
    }
    var buffer = facts.plan.buffers().get(collective.workspace());
    checkBuffer(buffer);
    long needed = needed(collective);
    if (needed > buffer.bytes()) {
      wrong(
          Rule.REALIZATION,
          "%s needs a workspace of %s, but %s has %s"
              .formatted(name, Units.count(needed, "byte"), buffer.name(), buffer.bytes()));
    }
    @Nullable CollectivePlan owner = owners.putIfAbsent(collective.workspace(), collective);
    if (owner != null
        && (!owner.group().equals(collective.group()) || owner.stream() != collective.stream())) {
      wrong(
          Rule.RACE,
          "%s of group %s on the %s stream and %s of group %s on the %s stream share %s: one may push"
                  .formatted(
                      facts.words.text(owner.op()),
                      owner.group(),
                      owner.stream().text(),
                      name,
                      collective.group(),
                      collective.stream().text(),
                      buffer.name())
              + " while a peer still needs the other's data");
    }
  }

  private long needed(CollectivePlan collective) {
    int ranks = plan.group(collective.group()).size();
    long needed = 0;
    for (int id : collective.operands()) {
      var type = facts.value(id).tensor();
      // Of groups of one, the variant is wrong already.
      long bytes =
          ranks < 2
              ? 0
              : Workspace.of(
                      collective.spec(), collective.reduceOp(), type.dtype(), type.bytes(), ranks)
                  .map(Workspace::bytes)
                  .orElse(0L);
      needed = Math.max(needed, bytes);
    }
    return needed;
  }

  private void checkBuffer(Buffer buffer) {
    int end = facts.plan.steps().size();
    if (!buffer.symmetric()) {
      wrong(
          Rule.REALIZATION,
          "%s, in %s memory, is not a symmetric buffer: peers cannot push there"
              .formatted(buffer.name(), buffer.arena().text()));
    }
    if (buffer.first() != -1 || buffer.last() != end) {
      wrong(
          Rule.LIFETIME,
          "the plan says that %s lives from step %s to %s, but peers may push there from -1 to %s"
              .formatted(buffer.name(), buffer.first(), buffer.last(), end));
    }
    if (buffer.offset() % Alignment.BYTES != 0
        || buffer.bytes() % (Workspace.HALVES * Alignment.BYTES) != 0) {
      wrong(
          Rule.PLACEMENT,
          "the halves of %s, %s at %s, do not begin at multiples of %s"
              .formatted(
                  buffer.name(),
                  Units.count(buffer.bytes(), "byte"),
                  buffer.offset(),
                  Alignment.BYTES));
    }
  }

  private void checkUnused() {
    for (int id = 0; id < facts.plan.placements().size(); id++) {
      int buffer = facts.plan.placements().get(id).buffer();
      if (owners.containsKey(buffer)) {
        wrong(
            Rule.PLACEMENT,
            "%s lies in %s, where peers push"
                .formatted(facts.value(id).name(), facts.plan.buffers().get(buffer).name()));
      }
    }
  }

  private void checkApart() {
    List<Buffer> workspaces = new ArrayList<>();
    owners.keySet().forEach(index -> workspaces.add(facts.plan.buffers().get(index)));
    workspaces.sort(Comparator.comparingLong(Buffer::offset));
    for (int i = 0; i < facts.plan.buffers().size(); i++) {
      var buffer = facts.plan.buffers().get(i);
      if (buffer.arena() == ArenaKind.SYMMETRIC) {
        for (var workspace : workspaces) {
          if (workspace != buffer
              && buffer.offset() < workspace.end()
              && workspace.offset() < buffer.end()) {
            wrong(
                Rule.RACE,
                "%s overlaps %s in symmetric memory, where peers push at any time"
                    .formatted(buffer.name(), workspace.name()));
          }
        }
      }
    }
  }
}
