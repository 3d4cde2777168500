package dev.symplan.runtime.check;

import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.Case;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.Weights;
import dev.symplan.runtime.failure.RunException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;

/**
 * Finds the decisions of a plan that make a case's check fail: turns them off by halves, and runs
 * the case each time.
 *
 * <p>Decisions are what collectives are rewritten to, each by itself, where inputs and outputs are
 * realized, and what fusion, overlap, reordering, bucketing and chunking do. The search is for one
 * smallest set that fails by itself; so of several that fail together all are found, of several
 * that fail each by itself one.
 */
public final class Bisection {

  /**
   * A decision.
   *
   * @param text its description, for people
   * @param flag the option that turns it off
   */
  public record Decision(String text, String flag, UnaryOperator<CompileOptions> off) {}

  /** The result of a bisection. */
  public sealed interface Outcome {

    /** The check does not fail. */
    record Agrees() implements Outcome {}

    /** The check fails with every decision turned off, too: it is not the plan. */
    record FailsAnyway() implements Outcome {}

    /** The check fails with these decisions alone, and with none of them left out. */
    record Found(ImmutableList<Decision> decisions) implements Outcome {}
  }

  private final Path input;
  private final Compiler compiler;
  private final Backend backend;
  private final Consumer<String> progress;
  private int runs;

  private Bisection(Path input, Compiler compiler, Backend backend, Consumer<String> progress) {
    this.input = input;
    this.compiler = compiler;
    this.backend = backend;
    this.progress = progress;
  }

  /**
   * {@return which decisions break the check of a case}
   *
   * @param input a case directory with expected outputs
   * @param progress gets a line about each run
   * @throws dev.symplan.ir.diag.CompileException when the case is wrong
   */
  public static Outcome run(
      Path input, Compiler compiler, Backend backend, Consumer<String> progress) {
    return new Bisection(input, compiler, backend, progress).search();
  }

  private Outcome search() {
    if (agrees("as planned", compiler.options())) {
      return new Outcome.Agrees();
    }
    var switches = switches();
    var plain = without(switches);
    var all = new ArrayList<>(switches);
    all.addAll(variants(compiler.with(plain).compile(input)));
    if (!agrees("with all turned off", without(all))) {
      return new Outcome.FailsAnyway();
    }
    var needed = new ArrayList<Decision>();
    var candidates = List.copyOf(all);
    while (agreesWith(needed, all)) {
      int fails = candidates.size();
      int holds = 0;
      while (fails - holds > 1) {
        int middle = (fails + holds) / 2;
        var some = new ArrayList<>(needed);
        some.addAll(candidates.subList(0, middle));
        if (agreesWith(some, all)) {
          holds = middle;
        } else {
          fails = middle;
        }
      }
      needed.add(candidates.get(fails - 1));
      candidates = candidates.subList(0, fails - 1);
    }
    return new Outcome.Found(ImmutableList.copyOf(needed));
  }

  /** {@return whether the check holds with some of the decisions alone} */
  private boolean agreesWith(List<Decision> on, List<Decision> all) {
    var off = new ArrayList<>(all);
    off.removeAll(on);
    return agrees("%s of %s decisions on".formatted(on.size(), all.size()), without(off));
  }

  private CompileOptions without(List<Decision> decisions) {
    var options = compiler.options();
    for (var decision : decisions) {
      options = decision.off().apply(options);
    }
    return options;
  }

  private List<Decision> switches() {
    return List.of(
        new Decision("fusion of ops", "--no-fusion", o -> o.withFusion(false)),
        new Decision("epilogues of collectives", "--no-epilogues", o -> o.withEpilogues(false)),
        new Decision("collectives beside compute", "--no-overlap", o -> o.withOverlap(false)),
        new Decision(
            "another order of the ops",
            "--no-reorder",
            o -> o.withReorderBudget(OptionalDouble.empty())),
        new Decision(
            "merging of collectives",
            "--bucket off",
            o -> o.withRewrites(o.rewrites().withBucket(Mode.OFF))),
        new Decision(
            "splitting of products",
            "--chunk off",
            o -> o.withRewrites(o.rewrites().withChunk(Mode.OFF))),
        new Decision(
            "collectives of rows",
            "--layouts off",
            o -> o.withRewrites(o.rewrites().withLayouts(Mode.OFF))),
        new Decision(
            "ops on shares of the rows",
            "--sequence-parallel off",
            o -> o.withRewrites(o.rewrites().withSequenceParallel(Mode.OFF))),
        new Decision(
            "collectives in phases",
            "--hierarchical off",
            o -> o.withRewrites(o.rewrites().withHierarchical(Mode.OFF))),
        new Decision(
            "realization of inputs", "--inputs external", o -> o.withInputs(MemorySpace.EXTERNAL)),
        new Decision(
            "realization of outputs",
            "--results external",
            o -> o.withOutputs(MemorySpace.EXTERNAL)));
  }

  /** One decision for each collective that plain NCCL can carry out, too. */
  private static List<Decision> variants(Plan plan) {
    var decisions = new LinkedHashMap<String, Decision>();
    var rankPlan = plan.rankPlans().getFirst();
    for (var collective : rankPlan.collectives()) {
      var results = rankPlan.graph().ops().get(collective.op()).results();
      var plainest = plainest(collective);
      if (!results.isEmpty() && plainest.isPresent()) {
        var name = results.getFirst().name();
        if (isKind(name)
            && !rankPlan.collectives().stream().allMatch(c -> plainest(c).isPresent())) {
          // An option of this name speaks of all of the kind, and some have no other variant.
          continue;
        }
        var other = plainest.get();
        decisions.putIfAbsent(
            name,
            new Decision(
                "%s as %s".formatted(name, collective.variant().text()),
                "--variant %s=%s".formatted(name, other.text()),
                o ->
                    o.withVariants(
                        ImmutableMap.<String, Variant>builder()
                            .putAll(o.variants())
                            .put(name, other)
                            .buildKeepingLast())));
      }
    }
    return List.copyOf(decisions.values());
  }

  private static boolean isKind(String name) {
    return Arrays.stream(Kind.values()).anyMatch(k -> Ascii.toLowerCase(k.name()).equals(name));
  }

  private static Optional<Variant> plainest(CollectivePlan collective) {
    return collective.verdicts().stream()
        .filter(verdict -> verdict.reason().eligible() && verdict.variant() == Variant.NCCL)
        .map(verdict -> verdict.variant())
        .findFirst();
  }

  private boolean agrees(String what, CompileOptions options) {
    runs++;
    boolean agrees = check(compiler.with(options).compile(input));
    progress.accept("run %s, %s: %s".formatted(runs, what, agrees ? "agrees" : "fails"));
    return agrees;
  }

  private boolean check(Plan plan) {
    var data = new Case(input);
    data.checkRanks(plan);
    var multicast = SessionOptions.DEFAULT.withMulticast(plan.multicast());
    try (var session = Session.open(plan, backend, multicast)) {
      data.fillInputs(session, plan, Weights.NONE);
      session.run();
      return session.localRanks().stream()
          .flatMap(
              rank ->
                  OutputCheck.of(
                      plan, session, rank, data.expected(rank, plan.forRank(rank).graph()))
                      .stream())
          .allMatch(OutputCheck::agrees);
    } catch (RunException _) {
      // A run that fails does not agree.
      return false;
    }
  }
}
