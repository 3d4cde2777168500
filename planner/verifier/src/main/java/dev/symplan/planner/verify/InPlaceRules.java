package dev.symplan.planner.verify;

import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * {@link Rule#OVERWRITTEN} within one op: a result lies apart from the operands and the other
 * results, unless each element is read before it is written. That is so for an elementwise op whose
 * operand has the result's layout and address, for a collective that its variant can do in place,
 * and for what is joined and lies where it belongs.
 */
final class InPlaceRules {
  private record Use(int value, boolean result) {}

  private final AliasModel facts;
  private final Findings findings;

  private InPlaceRules(AliasModel facts, Findings findings) {
    this.facts = facts;
    this.findings = findings;
  }

  static void check(AliasModel facts, Findings findings) {
    var rules = new InPlaceRules(facts, findings);
    for (int op = 0; op < facts.plan.graph().ops().size(); op++) {
      if (facts.fresh(op).length > 0) {
        int k = facts.collectiveOf(op);
        if (k >= 0) {
          rules.collective(op, facts.plan.collectives().get(k));
        } else {
          rules.compute(op);
        }
      }
    }
  }

  private void compute(int op) {
    var uses = new ArrayList<Use>();
    var fresh = facts.fresh(op);
    boolean elementwise = facts.op(op).def().has(OpTrait.ELEMENTWISE) && fresh.length == 1;
    boolean updates = facts.op(op).def().has(OpTrait.UPDATES_SELF) && fresh.length == 1;
    var joined = facts.op(op).def().has(OpTrait.CONCATENATION) ? inTheirParts(op) : Set.of();
    for (int operand : facts.reads(op)) {
      boolean mayBeReplaced = elementwise || (updates && isOnlySelf(op, operand));
      if (!(mayBeReplaced && facts.sameElements(operand, fresh[0])) && !joined.contains(operand)) {
        uses.add(new Use(operand, false));
      }
    }
    for (int result : fresh) {
      uses.add(new Use(result, true));
    }
    checkApart(op, uses);
  }

  /** Whether an op takes a value as {@code self}, and as nothing else. */
  private boolean isOnlySelf(int op, int operand) {
    var self = new Arg.Ref(facts.value(operand));
    return facts.op(op).arg("self").equals(self)
        && facts.op(op).operands().stream().filter(value -> value.id() == operand).count() == 1;
  }

  /**
   * The operands of a concatenation that lie where the result has them. Where the result alternates
   * between operands, converts them or repeats one, they move.
   */
  private Set<Integer> inTheirParts(int op) {
    var result = facts.op(op).result();
    var pieces = facts.op(op).args().getFirst().operands();
    var parts = new HashSet<Integer>();
    long rows = JoinedRules.rows(facts.op(op));
    if (!result.tensor().isContiguous() || rows == 0) {
      return parts;
    }
    long next = facts.begin(result.id());
    for (var piece : pieces) {
      long bytes = piece.tensor().numel() * result.tensor().dtype().bytes() / rows;
      if (piece.tensor().dtype() == result.tensor().dtype()
          && piece.tensor().isContiguous()
          && facts.space(piece.id()) == facts.space(result.id())
          && facts.begin(piece.id()) == next
          && (rows == 1
              ? facts.shiftAlike(piece.id(), result.id())
              : isInRows(piece, bytes, result.tensor().bytes() / rows))
          && Collections.frequency(pieces, piece) == 1) {
        parts.add(piece.id());
      }
      next += bytes;
    }
    return parts;
  }

  private boolean isInRows(Value piece, long bytes, long pitch) {
    var placement = facts.plan.placements().get(piece.id());
    return placement.isInRows() && placement.stride() == bytes && placement.pitch() == pitch;
  }

  private void collective(int op, CollectivePlan collective) {
    int same = 0;
    int count = Math.min(collective.operands().size(), collective.results().size());
    var uses = new ArrayList<Use>();
    var positions = new HashMap<Integer, Integer>();
    for (int i = 0; i < collective.operands().size(); i++) {
      positions.putIfAbsent(collective.operands().get(i), i);
    }
    for (int operand : facts.reads(op)) {
      int i = positions.getOrDefault(operand, -1);
      boolean inPlace = i >= 0 && i < count && samePlace(operand, collective.results().get(i));
      same += inPlace ? 1 : 0;
      if (!(inPlace && collective.inPlace()) && !isShard(operand, op)) {
        uses.add(new Use(operand, false));
      }
    }
    for (int result : facts.fresh(op)) {
      if (!isShard(result, op)) {
        uses.add(new Use(result, true));
      }
    }
    boolean all = count > 0 && same == collective.operands().size();
    if (all != collective.inPlace()) {
      wrong(
          Rule.REALIZATION,
          "the plan says that %s is %s, but %s"
              .formatted(
                  facts.words.text(op),
                  collective.inPlace() ? "in place" : "out of place",
                  all ? "each result lies where its operand does" : placesText(collective)));
    }
    if (collective.inPlace() && !collective.spec().allowsInPlace()) {
      wrong(
          Rule.OVERWRITTEN,
          "%s is in place, which %s cannot do"
              .formatted(facts.words.text(op), collective.variant().text()));
    }
    if (collective.inPlace()) {
      for (int i = 0; i < count; i++) {
        checkOrder(op, collective.operands().get(i), collective.results().get(i));
      }
    }
    checkApart(op, uses);
  }

  /** An element of a result in place may only take the place of the operand's element. */
  private void checkOrder(int op, int operand, int result) {
    var read = facts.value(operand).tensor();
    var written = facts.value(result).tensor();
    boolean any = written.numel() > 0;
    for (int dim = 0; any && dim < Math.min(read.rank(), written.rank()); dim++) {
      if (written.size(dim) > 1 && read.stride(dim) != written.stride(dim)) {
        wrong(
            Rule.OVERWRITTEN,
            "%s writes %s over %s, whose elements are in another order"
                .formatted(
                    facts.words.text(op), facts.value(result).name(), facts.value(operand).name()));
        return;
      }
    }
  }

  /** Whether a tensor lies in the whole that a collective makes, or takes; {@link ShardRules} */
  private boolean isShard(int value, int op) {
    var placement = facts.plan.placements().get(value);
    return placement.isShard() && placement.shardOf() == facts.collectiveOf(op);
  }

  private String placesText(CollectivePlan collective) {
    for (int i = 0; i < Math.min(collective.operands().size(), collective.results().size()); i++) {
      int operand = collective.operands().get(i);
      int result = collective.results().get(i);
      if (!samePlace(operand, result)) {
        return "%s is at %s and %s at %s"
            .formatted(
                facts.value(operand).name(),
                facts.words.address(operand),
                facts.value(result).name(),
                facts.words.address(result));
      }
    }
    return "the numbers of results and operands differ";
  }

  private boolean samePlace(int operand, int result) {
    long bytes = facts.end(operand) - facts.begin(operand);
    if (bytes == 0 && facts.end(result) == facts.begin(result)) {
      return facts.plan.placements().get(operand).equals(facts.plan.placements().get(result));
    }
    return facts.space(operand) == facts.space(result)
        && facts.shiftAlike(operand, result)
        && facts.begin(operand) == facts.begin(result)
        && facts.end(operand) == facts.end(result);
  }

  /**
   * Sweeps over the ranges, so that coalesced collectives of many tensors stay cheap. What is in
   * rows has others between them, and is compared with each.
   */
  private void checkApart(int op, List<Use> uses) {
    if (uses.size() < 2) {
      return;
    }
    uses.removeIf(use -> facts.begin(use.value()) == facts.end(use.value()));
    for (int i = 0; i < uses.size(); i++) {
      for (int j = 0; facts.isInRows(uses.get(i).value()) && j < uses.size(); j++) {
        if (j < i || !facts.isInRows(uses.get(j).value())) {
          checkApart(op, uses.get(i), uses.get(j));
        }
      }
    }
    uses.removeIf(use -> facts.isInRows(use.value()));
    uses.sort(
        Comparator.comparingInt((Use use) -> facts.space(use.value()))
            .thenComparingLong(use -> facts.begin(use.value())));
    @Nullable Use furthest = null;
    @Nullable Use furthestResult = null;
    for (var use : uses) {
      var before = use.result() ? furthest : furthestResult;
      if (before != null) {
        checkApart(op, use, before);
      }
      furthest = further(furthest, use);
      furthestResult = use.result() ? further(furthestResult, use) : furthestResult;
    }
  }

  private void checkApart(int op, Use a, Use b) {
    if ((a.result() || b.result()) && facts.overlap(a.value(), b.value())) {
      var result = a.result() ? a : b;
      var other = a.result() ? b : a;
      wrong(
          Rule.OVERWRITTEN,
          "%s writes %s at %s over its %s %s at %s"
              .formatted(
                  facts.words.text(op),
                  facts.value(result.value()).name(),
                  facts.words.address(result.value()),
                  other.result() ? "result" : "operand",
                  facts.value(other.value()).name(),
                  facts.words.address(other.value())));
    }
  }

  private Use further(@Nullable Use a, Use b) {
    return a == null
            || facts.space(a.value()) != facts.space(b.value())
            || facts.end(a.value()) < facts.end(b.value())
        ? b
        : a;
  }

  private void wrong(Rule rule, String message) {
    findings.add(rule, facts.rank(), message);
  }
}
