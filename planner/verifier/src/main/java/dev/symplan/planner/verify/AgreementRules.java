package dev.symplan.planner.verify;

import com.google.common.collect.Sets;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.RankAgreement;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.Permutation;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.verify.Violation.Rule;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;

/**
 * {@link Rule#AGREEMENT}: where ranks run different graphs, they have the same collectives in the
 * same order with the same peers, and the same symmetric memory. In an exchange each takes what the
 * others send it, which can be wrong where all run one graph, too.
 */
final class AgreementRules {
  private final Plan plan;
  private final List<AliasModel> ranks;
  private final Findings findings;

  private AgreementRules(Plan plan, List<AliasModel> ranks, Findings findings) {
    this.plan = plan;
    this.ranks = ranks;
    this.findings = findings;
  }

  static void check(Plan plan, List<AliasModel> ranks, Findings findings) {
    if (ranks.size() > 1) {
      new AgreementRules(plan, ranks, findings).check();
    }
    // The rows are the graphs' own, whose collectives must be the plans'.
    if (findings.count() == 0) {
      var sink = new DiagnosticSink();
      RankAgreement.checkExchanges(
          plan.groups(), plan.rankPlans().stream().map(RankPlan::graph).toList(), sink);
      sink.diagnostics().forEach(wrong -> findings.add(Rule.AGREEMENT, wrong.message()));
    }
  }

  private void wrong(AliasModel facts, String message) {
    findings.add(Rule.AGREEMENT, facts.rank(), message);
  }

  private void check() {
    int before = findings.count();
    var first = ranks.getFirst();
    for (var other : ranks.subList(1, ranks.size())) {
      compareBuffers(first, other);
      if (!borders(first).equals(borders(other))) {
        wrong(
            other,
            "the graphs of the program are %s, but those of rank %s are %s"
                .formatted(borders(other), first.rank(), borders(first)));
      }
      if (first.plan.collectives().size() != other.plan.collectives().size()) {
        wrong(
            other,
            "%s, but rank %s has %s"
                .formatted(
                    Units.count(other.plan.collectives().size(), "collective"),
                    first.rank(),
                    first.plan.collectives().size()));
      } else {
        for (int k = 0; k < first.plan.collectives().size(); k++) {
          compare(k, first, other);
        }
      }
    }
    if (findings.count() == before) {
      checkPeers();
      RankPlayback.check(ranks, findings);
    }
  }

  private void compareBuffers(AliasModel first, AliasModel other) {
    var own = symmetric(first);
    var theirs = symmetric(other);
    if (own.size() != theirs.size()) {
      wrong(
          other,
          "%s symmetric buffers, but rank %s has %s"
              .formatted(theirs.size(), first.rank(), own.size()));
      return;
    }
    for (int i = 0; i < own.size(); i++) {
      var a = own.get(i);
      var b = theirs.get(i);
      if (a.offset() != b.offset() || a.bytes() != b.bytes()) {
        wrong(
            other,
            "the symmetric buffer %s has %s at %s, but %s of rank %s has %s at %s"
                .formatted(
                    b.name(),
                    Units.count(b.bytes(), "byte"),
                    b.offset(),
                    a.name(),
                    first.rank(),
                    a.bytes(),
                    a.offset()));
        return;
      }
    }
  }

  /** After how many collectives which graph begins, and with which inputs and outputs. */
  private static List<String> borders(AliasModel facts) {
    return facts.plan.borders().stream()
        .map(
            border ->
                "%s behind %s"
                    .formatted(
                        facts.op(border).args(),
                        Units.count(
                            (int)
                                facts.plan.collectives().stream()
                                    .filter(collective -> collective.op() < border)
                                    .count(),
                            "collective")))
        .toList();
  }

  private static List<Buffer> symmetric(AliasModel facts) {
    return facts.plan.buffers().stream()
        .filter(Buffer::symmetric)
        .sorted(Comparator.comparingLong(Buffer::offset).thenComparingLong(Buffer::bytes))
        .toList();
  }

  private void compare(int k, AliasModel first, AliasModel other) {
    var a = first.plan.collectives().get(k);
    var b = other.plan.collectives().get(k);
    same(k, other, "kind", a.kind(), b.kind());
    same(k, other, "variant", a.variant().text(), b.variant().text());
    same(k, other, "group size", groupSize(a), groupSize(b));
    same(k, other, "reduction", ReduceOp.text(a.reduceOp()), ReduceOp.text(b.reduceOp()));
    same(k, other, "root", a.root(), b.root());
    same(k, other, "pairs", permutation(first, a), permutation(other, b));
    same(k, other, "rows of slices", rows(first, a), rows(other, b));
    same(k, other, "barrier before", a.start().text(), b.start().text());
    same(k, other, "barrier after", a.end().text(), b.end().text());
    same(k, other, "in place", a.inPlace(), b.inPlace());
    same(k, other, "epilogue", a.hasEpilogue(), b.hasEpilogue());
    same(
        k,
        other,
        "workspace offset",
        WorkspaceRules.offset(first, a),
        WorkspaceRules.offset(other, b));
    compareTensors(k, first, a.operands(), other, b.operands(), false);
    compareTensors(k, first, a.results(), other, b.results(), true);
  }

  private static Permutation permutation(AliasModel facts, CollectivePlan collective) {
    return facts.op(collective.op()).collective().orElseThrow().permutation();
  }

  /** Of how many runs of bytes a slice is that is sent, and one that is received. */
  private static List<Long> rows(AliasModel facts, CollectivePlan collective) {
    var dims = facts.op(collective.op()).collective().orElseThrow().sliceDims();
    return dims.operand() == 0 && dims.result() == 0
        ? List.of(1L, 1L)
        : List.of(
            before(facts.value(collective.operands().getFirst()), dims.operand()),
            before(facts.value(collective.results().getFirst()), dims.result()));
  }

  private static long before(Value value, int dim) {
    return value.tensor().sizes().subArray(0, dim).stream().reduce(1, (a, b) -> a * b);
  }

  private int groupSize(CollectivePlan collective) {
    return plan.group(collective.group()).size();
  }

  private void same(int k, AliasModel other, String what, Object a, Object b) {
    if (!Objects.equals(a, b)) {
      wrong(
          other,
          "collective %s (%s) has %s %s, but %s on rank %s"
              .formatted(
                  k,
                  other.words.text(other.plan.collectives().get(k).op()),
                  what,
                  b,
                  a,
                  ranks.getFirst().rank()));
    }
  }

  private void compareTensors(
      int k,
      AliasModel first,
      List<Integer> own,
      AliasModel other,
      List<Integer> theirs,
      boolean result) {
    var collective = first.plan.collectives().get(k);
    var what = result ? "result" : "operand";
    same(k, other, "number of " + what + "s", own.size(), theirs.size());
    boolean symmetric = collective.spec().needsSymmetric(result);
    // Ranks may send and receive different numbers of rows.
    boolean sized = collective.kind() != Kind.ALL_TO_ALL && collective.kind() != Kind.CUSTOM;
    boolean laidOut = collective.kind().keepsLayout();
    for (int i = 0; i < Math.min(own.size(), theirs.size()); i++) {
      var a = first.value(own.get(i)).tensor();
      var b = other.value(theirs.get(i)).tensor();
      same(k, other, what + " type", a.dtype(), b.dtype());
      if (sized) {
        same(k, other, what + " bytes", a.storageBytes(), b.storageBytes());
      }
      // Collectives that treat elements as they lie pair those of all ranks.
      if (laidOut && !(a.isContiguous() && b.isContiguous())) {
        same(k, other, what + " sizes", a.sizes(), b.sizes());
        same(k, other, what + " strides", a.strides(), b.strides());
      }
      if (symmetric) {
        same(k, other, what + " offset", first.begin(own.get(i)), other.begin(theirs.get(i)));
      }
    }
  }

  /** All that a rank meets in a collective mean to meet it there, at the same offsets. */
  private void checkPeers() {
    var checked = new HashSet<List<String>>();
    for (int k = 0; k < ranks.getFirst().plan.collectives().size(); k++) {
      var names = new ArrayList<String>();
      for (var facts : ranks) {
        names.add(facts.plan.collectives().get(k).group());
      }
      if (checked.add(names)) {
        checkPeers(k);
      }
    }
  }

  private void checkPeers(int k) {
    // Where all ranks of a part mean that part, one of them stands for all.
    var agreed = Sets.<ImmutableIntArray>newIdentityHashSet();
    for (int rank = 0; rank < plan.worldSize(); rank++) {
      var members = members(k, rank);
      if (!agreed.add(members)) {
        continue;
      }
      for (int i = 0; i < members.length(); i++) {
        int peer = members.get(i);
        if (!members(k, peer).equals(members)) {
          findings.add(
              Rule.AGREEMENT,
              rank,
              "collective %s is for the ranks %s, but on rank %s for the ranks %s"
                  .formatted(k, members, peer, members(k, peer)));
          return;
        }
      }
    }
  }

  private ImmutableIntArray members(int k, int rank) {
    var group = plan.group(plan.forRank(rank).collectives().get(k).group());
    return group.members().get(group.partOf(rank).orElseThrow());
  }
}
