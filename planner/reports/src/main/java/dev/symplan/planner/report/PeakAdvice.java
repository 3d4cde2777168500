package dev.symplan.planner.report;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Units;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.Verdict.Reason;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.Objective;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.OrderDecision.Outcome;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Rewrite.Action;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.function.Function;

/**
 * Changes that would need less memory. Each is tried by planning again, and shown only if the
 * memory of a rank, the caller's included, gets less by it.
 */
public final class PeakAdvice {
  /** So many of a kind are tried, the largest first: each takes as long as compiling. */
  private static final int TRIED = 4;

  private final Plan plan;
  private final CompileOptions options;
  private final Function<CompileOptions, Plan> planner;
  private final List<Candidate> candidates = new ArrayList<>();

  private record Candidate(String advice, String flags, CompileOptions options) {}

  private record Tried(Candidate candidate, long saved, double micros) {}

  private PeakAdvice(Plan plan, CompileOptions options, Function<CompileOptions, Plan> planner) {
    this.plan = plan;
    this.options = options;
    this.planner = planner;
  }

  /**
   * {@return a row with one below it for each change that helps, what saves most first}
   *
   * @param options the options with which the plan was compiled
   * @param planner compiles the same program with other options
   */
  public static ImmutableList<Row> of(
      Plan plan, CompileOptions options, Function<CompileOptions, Plan> planner) {
    var advice = new PeakAdvice(plan, options, planner);
    advice.collect();
    return advice.rows();
  }

  private void collect() {
    donations();
    variants();
    order();
    switches();
    boundaries();
  }

  private void donations() {
    var sizes = new LinkedHashMap<String, Long>();
    for (var rankPlan : plan.rankPlans()) {
      for (var input : rankPlan.graph().inputs()) {
        if (input.isTensor()
            && input.tensor().space() != MemorySpace.DONATED
            && options.spaces().get(input.name()) != MemorySpace.DONATED) {
          sizes.merge(input.name(), input.tensor().bytes(), Math::max);
        }
      }
    }
    sizes.entrySet().stream()
        .sorted(Comparator.comparingLong((Map.Entry<String, Long> entry) -> -entry.getValue()))
        .limit(2L * TRIED)
        .forEach(
            entry ->
                add(
                    "donate %s, if its %s are not needed after the run"
                        .formatted(entry.getKey(), Units.bytes(entry.getValue())),
                    "--donate " + entry.getKey(),
                    options.withSpaces(
                        ImmutableMap.<String, MemorySpace>builder()
                            .putAll(options.spaces())
                            .put(entry.getKey(), MemorySpace.DONATED)
                            .buildKeepingLast())));
  }

  /** Other variants of collectives whose memory is live at the peak. */
  private void variants() {
    var index = new RankIndex(plan.rankPlans().getFirst(), PlanReport.ranksOf(plan, 0));
    var live = PeakReport.live(plan, index);
    int tried = 0;
    for (var collective : index.plan().collectives()) {
      if (tried < TRIED && touches(index, collective, live)) {
        tried++;
        var name = index.name(collective);
        collective.verdicts().stream()
            .filter(verdict -> verdict.reason().eligible() && !verdict.chosen())
            .filter(verdict -> verdict.reason() != Reason.NOT_NAMED)
            .forEach(
                verdict ->
                    add(
                        "run %s as %s".formatted(name, verdict.variant().text()),
                        "--variant %s=%s".formatted(name, verdict.variant().text()),
                        options.withVariants(
                            ImmutableMap.<String, Variant>builder()
                                .putAll(options.variants())
                                .put(name, verdict.variant())
                                .buildKeepingLast())));
      }
    }
  }

  private static boolean touches(RankIndex index, CollectivePlan collective, List<Integer> live) {
    return live.contains(collective.workspace())
        || RankIndex.tensors(collective).stream()
            .anyMatch(id -> live.contains(index.plan().placements().get(id).buffer()));
  }

  private void order() {
    var reordering = plan.reordering();
    if (reordering.outcome() == Outcome.TOO_SLOW) {
      double needed = reordering.other().micros() / reordering.given().micros() - 1;
      double percent = Math.ceil(needed * 1000) / 10;
      add(
          "allow an order of the ops that takes %s %% longer".formatted(number(percent)),
          "--reorder-budget " + number(percent),
          options.withReorderBudget(OptionalDouble.of(percent / 100)));
    } else if (reordering.outcome() == Outcome.OFF) {
      add(
          "let the planner choose the order of the ops",
          "(without --no-reorder)",
          options.withReorderBudget(CompileOptions.DEFAULT.reorderBudget()));
    }
  }

  private static String number(double value) {
    return String.format(Locale.ROOT, "%.1f", value);
  }

  private void switches() {
    boolean beside =
        plan.rankPlans().stream()
            .anyMatch(
                rankPlan -> rankPlan.collectives().stream().anyMatch(CollectivePlan::isAsync));
    var frontier = plan.frontier();
    if (frontier.memory().peakBytes() < frontier.of(frontier.chosen()).peakBytes()) {
      add("plan for the lowest peak", "--optimize memory", options.withObjective(Objective.MEMORY));
    }
    if (options.overlap() && beside) {
      add("run no collective beside compute", "--no-overlap", options.withOverlap(false));
    }
    var rewrites = options.rewrites();
    if (plan.rewrites().stream().anyMatch(rewrite -> rewrite.action() == Action.MERGED)) {
      add(
          "merge no collectives",
          "--bucket off",
          options.withRewrites(rewrites.withBucket(Mode.OFF)));
    }
    if (plan.rewrites().stream().anyMatch(rewrite -> rewrite.action() == Action.CHUNKED)) {
      add("split no products", "--chunk off", options.withRewrites(rewrites.withChunk(Mode.OFF)));
    }
    if (plan.rewrites().stream().anyMatch(rewrite -> rewrite.action() == Action.UNFOLDED)) {
      add(
          "let collectives put slices where they belong",
          "--layouts on",
          options.withRewrites(rewrites.withLayouts(Mode.ON)));
    }
    if (!options.fusion()) {
      add("fuse ops", "(without --no-fusion)", options.withFusion(true));
    }
  }

  private void boundaries() {
    for (var space : List.of(MemorySpace.EXTERNAL, MemorySpace.LOCAL)) {
      if (options.inputs() != space) {
        add(
            "place inputs " + space.keyword(),
            "--inputs " + space.keyword(),
            options.withInputs(space));
      }
    }
    for (var space : List.of(MemorySpace.EXTERNAL, MemorySpace.ANY)) {
      if (options.outputs() != space) {
        var word = space == MemorySpace.ANY ? "auto" : space.keyword();
        add("place outputs " + word, "--results " + word, options.withOutputs(space));
      }
    }
  }

  private void add(String advice, String flags, CompileOptions changed) {
    candidates.add(new Candidate(advice, flags, changed));
  }

  private ImmutableList<Row> rows() {
    long now = needs(plan);
    double micros = micros(plan);
    var helpful = new ArrayList<Tried>();
    for (var candidate : candidates) {
      try {
        var other = planner.apply(candidate.options());
        if (needs(other) < now) {
          helpful.add(new Tried(candidate, now - needs(other), micros(other)));
        }
      } catch (CompileException _) {
        // Options that cannot be planned are not worth mentioning.
        continue;
      }
    }
    helpful.sort(
        Comparator.comparingLong((Tried tried) -> -tried.saved()).thenComparing(Tried::micros));
    if (helpful.isEmpty()) {
      return ImmutableList.of(
          Row.of(
              "advice: none of %s that were tried would save memory"
                  .formatted(Units.count(candidates.size(), "change"))));
    }
    return ImmutableList.of(
        Row.titled(
                "advice: of %s tried by planning again, these save memory (now %s)"
                    .formatted(Units.count(candidates.size(), "change"), Units.bytes(now)))
            .rows(helpful.stream().map(tried -> row(tried, micros)).toList())
            .build());
  }

  private static Row row(Tried tried, double micros) {
    double more = tried.micros() - micros;
    var time =
        Math.abs(more) < 0.05
            ? "as fast"
            : "%s %s".formatted(Units.micros(Math.abs(more)), more > 0 ? "slower" : "faster");
    return Row.titled(Units.bytes(tried.saved()))
        .details(
            "%s: %s (%s)".formatted(tried.candidate().flags(), tried.candidate().advice(), time))
        .fact("advice", tried.candidate().advice())
        .fact("saved_bytes", tried.saved())
        .fact("slower_us", more)
        .fact("flags", tried.candidate().flags())
        .build();
  }

  /** Both arenas and the caller's memory, so that moves between them do not count as savings. */
  private static long needs(Plan plan) {
    return plan.rankPlans().stream()
        .mapToLong(
            rankPlan ->
                plan.symmetric().bytes()
                    + rankPlan.local().bytes()
                    + SummarySection.externalBytes(rankPlan))
        .max()
        .orElse(0);
  }

  private static double micros(Plan plan) {
    return plan.rankPlans().stream()
        .mapToDouble(rankPlan -> PredictedTimes.of(plan, rankPlan).total())
        .max()
        .orElse(0);
  }
}
