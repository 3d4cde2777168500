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
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * {@link Rule#AGREEMENT}: where ranks run different graphs, those of a stage ({@link StageModel})
 * have the same collectives in the same order with the same peers, and the same symmetric memory.
 * Ranks of different stages have the same ones where they meet. In an exchange each takes what the
 * others send it, which can be wrong where all run one graph, too.
 */
final class AgreementRules {
  private final Plan plan;
  private final List<AliasModel> ranks;
  private final StageModel stages;
  private final Findings findings;

  private AgreementRules(Plan plan, List<AliasModel> ranks, Findings findings) {
    this.plan = plan;
    this.ranks = ranks;
    this.stages = new StageModel(plan);
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
    stages.stages().forEach(this::checkStage);
    ranks.forEach(this::checkGraphs);
    stages.crossings().forEach(this::checkCrossing);
    if (findings.count() == before) {
      stages.stages().forEach(this::checkPeers);
      stages.crossings().forEach(this::checkPeers);
    }
    if (findings.count() == before) {
      RankPlayback.check(ranks, stages, findings);
    }
  }

  private void checkStage(ImmutableIntArray stage) {
    var first = ranks.get(stage.get(0));
    for (var other : stage.asList().stream().skip(1).map(ranks::get).toList()) {
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
          compare(k, first, k, other);
          compareWithinStage(k, first, other);
        }
      }
    }
  }

  /** All ranks begin a graph of the program together, whatever their stages. */
  private void checkGraphs(AliasModel other) {
    var first = ranks.getFirst();
    if (!graphs(first).equals(graphs(other))) {
      wrong(
          other,
          "the graphs of the program are %s, but those of rank %s are %s"
              .formatted(graphs(other), first.rank(), graphs(first)));
    }
  }

  private static List<String> graphs(AliasModel facts) {
    return facts.plan.borders().stream().map(op -> facts.op(op).args().toString()).toList();
  }

  private void checkCrossing(StageModel.Crossing crossing) {
    int one = crossing.collectives().firstKey();
    var first = ranks.get(one);
    var expected = crossing.collectives().values().iterator().next();
    crossing
        .collectives()
        .forEach(
            (p, found) -> {
              var other = ranks.get(p);
              if (found.size() != expected.size()) {
                wrong(
                    other,
                    "%s with ranks of other stages, but rank %s has %s"
                        .formatted(
                            Units.count(found.size(), "collective"),
                            first.rank(),
                            expected.size()));
                return;
              }
              for (int i = 0; i < found.size(); i++) {
                compare(expected.get(i), first, found.get(i), other);
                same(
                    found.get(i),
                    first,
                    other,
                    "graphs before it",
                    bordersBefore(first, expected.get(i)),
                    bordersBefore(other, found.get(i)));
              }
            });
  }

  private static long bordersBefore(AliasModel facts, int k) {
    int op = facts.plan.collectives().get(k).op();
    return facts.plan.borders().stream().filter(border -> border < op).count();
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

  private void compare(int of, AliasModel first, int k, AliasModel other) {
    var a = first.plan.collectives().get(of);
    var b = other.plan.collectives().get(k);
    same(k, first, other, "kind", a.kind(), b.kind());
    same(k, first, other, "variant", a.variant().text(), b.variant().text());
    same(k, first, other, "group size", groupSize(a), groupSize(b));
    same(k, first, other, "reduction", ReduceOp.text(a.reduceOp()), ReduceOp.text(b.reduceOp()));
    same(k, first, other, "root", a.root(), b.root());
    same(k, first, other, "pairs", permutation(first, a), permutation(other, b));
    same(k, first, other, "rows of slices", rows(first, a), rows(other, b));
    same(k, first, other, "barrier before", a.start().text(), b.start().text());
    same(k, first, other, "barrier after", a.end().text(), b.end().text());
    compareTensors(k, first, a.operands(), other, b.operands(), false);
    compareTensors(k, first, a.results(), other, b.results(), true);
  }

  /** Facts that peers count on if they do more than NCCL. */
  private void compareWithinStage(int k, AliasModel first, AliasModel other) {
    var a = first.plan.collectives().get(k);
    var b = other.plan.collectives().get(k);
    same(k, first, other, "in place", a.inPlace(), b.inPlace());
    same(k, first, other, "epilogue", a.hasEpilogue(), b.hasEpilogue());
    same(
        k,
        first,
        other,
        "workspace offset",
        WorkspaceRules.offset(first, a),
        WorkspaceRules.offset(other, b));
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

  /** Where a result lies between others: a row's bytes, and how far apart rows are. */
  private static List<Long> rows(AliasModel facts, int value) {
    var placement = facts.plan.placements().get(value);
    return placement.isInRows() ? List.of(placement.stride(), placement.pitch()) : List.of();
  }

  private static long before(Value value, int dim) {
    return value.tensor().sizes().subArray(0, dim).stream().reduce(1, (a, b) -> a * b);
  }

  private int groupSize(CollectivePlan collective) {
    return plan.group(collective.group()).size();
  }

  private void same(int k, AliasModel first, AliasModel other, String what, Object a, Object b) {
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
                  first.rank()));
    }
  }

  private void compareTensors(
      int k,
      AliasModel first,
      List<Integer> own,
      AliasModel other,
      List<Integer> theirs,
      boolean result) {
    var collective = other.plan.collectives().get(k);
    var what = result ? "result" : "operand";
    same(k, first, other, "number of " + what + "s", own.size(), theirs.size());
    boolean symmetric = collective.spec().needsSymmetric(result);
    // Ranks may send and receive different numbers of rows.
    boolean sized = collective.kind() != Kind.ALL_TO_ALL && collective.kind() != Kind.CUSTOM;
    boolean laidOut = collective.kind().keepsLayout();
    for (int i = 0; i < Math.min(own.size(), theirs.size()); i++) {
      var a = first.value(own.get(i)).tensor();
      var b = other.value(theirs.get(i)).tensor();
      same(k, first, other, what + " type", a.dtype(), b.dtype());
      if (sized) {
        same(k, first, other, what + " bytes", a.storageBytes(), b.storageBytes());
      }
      // Collectives that treat elements as they lie pair those of all ranks.
      if (laidOut && !(a.isContiguous() && b.isContiguous())) {
        same(k, first, other, what + " sizes", a.sizes(), b.sizes());
        same(k, first, other, what + " strides", a.strides(), b.strides());
      }
      // A rank finds the rows of a peer's operand where it has its own.
      if (!laidOut && symmetric && !result && !(a.isContiguous() && b.isContiguous())) {
        same(k, first, other, what + " strides", a.strides(), b.strides());
      }
      if (symmetric) {
        same(
            k, first, other, what + " offset", first.begin(own.get(i)), other.begin(theirs.get(i)));
        same(k, first, other, what + " rows", rows(first, own.get(i)), rows(other, theirs.get(i)));
      }
    }
  }

  /** All that a rank meets in a collective mean to meet it there, at the same offsets. */
  private void checkPeers(ImmutableIntArray stage) {
    var checked = new HashSet<List<String>>();
    int count = ranks.get(stage.get(0)).plan.collectives().size();
    for (int k = 0; k < count; k++) {
      int position = k;
      checkPeers(
          stages.within(stage, k).stream().boxed().collect(Collectors.toMap(p -> p, _ -> position)),
          checked);
    }
  }

  private void checkPeers(StageModel.Crossing crossing) {
    var checked = new HashSet<List<String>>();
    int count = crossing.count();
    for (int i = 0; i < count; i++) {
      var met = new TreeMap<Integer, Integer>();
      for (var own : crossing.collectives().entrySet()) {
        met.put(own.getKey(), own.getValue().get(i));
      }
      checkPeers(met, checked);
    }
  }

  /**
   * @param collectives by rank plan, the one that meets there
   * @param checked the names of the groups, of those that are known to meet
   */
  private void checkPeers(Map<Integer, Integer> collectives, Set<List<String>> checked) {
    var names = new ArrayList<String>();
    collectives.forEach((p, k) -> names.add(ranks.get(p).plan.collectives().get(k).group()));
    if (!checked.add(names)) {
      return;
    }
    // Where all ranks of a part mean that part, one of them stands for all.
    var agreed = Sets.<ImmutableIntArray>newIdentityHashSet();
    for (int rank = 0; rank < plan.worldSize(); rank++) {
      @Nullable Integer k = collectives.get(plan.planOfRank().get(rank));
      if (k == null) {
        continue;
      }
      var members = members(k, rank);
      if (!agreed.add(members)) {
        continue;
      }
      for (int i = 0; i < members.length(); i++) {
        int peer = members.get(i);
        @Nullable Integer theirs = collectives.get(plan.planOfRank().get(peer));
        if (theirs == null || !members(theirs, peer).equals(members)) {
          findings.add(
              Rule.AGREEMENT,
              rank,
              "collective %s is for the ranks %s, but on rank %s for %s"
                  .formatted(
                      k,
                      members,
                      peer,
                      theirs == null ? "none" : "the ranks " + members(theirs, peer)));
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
