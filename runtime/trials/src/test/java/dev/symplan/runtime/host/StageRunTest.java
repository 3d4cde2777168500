package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.DType;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.testkit.StageProgram;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.pass.analysis.GraphChoice;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.runtime.Session;
import java.util.EnumSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Stages with different collectives, on hosts with different numbers of ranks. */
@Tag("random")
class StageRunTest {
  private static final long SEED = Fuzz.seed(22_900_000);

  private final Set<Verdict.Reason> verdicts = EnumSet.noneOf(Verdict.Reason.class);
  private final Set<Rewrite.Reason> rewrites = EnumSet.noneOf(Rewrite.Reason.class);
  private final Set<Variant> variants = EnumSet.noneOf(Variant.class);
  private int unequal;

  @Test
  void stagesGiveTheSameBits() {
    Fuzz.each(200, number -> check(SEED + number));
    assertThat(verdicts).contains(Verdict.Reason.OTHER_STAGE, Verdict.Reason.NO_PEER_ACCESS);
    assertThat(rewrites)
        .contains(
            Rewrite.Reason.OTHER_STAGE, Rewrite.Reason.UNEQUAL_DOMAINS, Rewrite.Reason.WANTED);
    assertThat(variants).contains(Variant.NCCL, Variant.ONE_SHOT_PUSH, Variant.LOCAL);
    assertThat(unequal).isPositive();
  }

  private void check(long seed) {
    var random = new Random(seed);
    var program = StageProgram.draw(random, 4, List.of(DType.F32, DType.I32, DType.BF16));
    var what = "seed %s%n%s%n%s".formatted(seed, program.hosts(), program.text());
    var parsed = GraphParser.parse(new SourceFile("stages.graph", program.text()));
    var modes = Mode.values();
    var options =
        CompileOptions.DEFAULT
            .withHosts(new Hosts(program.hosts()))
            .withRewrites(
                new RewriteOptions(
                    modes[random.nextInt(3)],
                    modes[random.nextInt(3)],
                    modes[random.nextInt(3)],
                    modes[random.nextInt(3)],
                    modes[random.nextInt(3)]))
            .withOverlap(random.nextInt(4) > 0);
    Plan plan;
    try {
      plan = Compiler.forTarget(Target.H200_X4).with(options).compile(parsed);
    } catch (RuntimeException e) {
      throw new AssertionError(what, e);
    }
    note(plan);
    var json = PlanFile.toJson(plan);
    assertThat(PlanFile.toJson(PlanFile.read(new SourceFile("read.plan", json)))).isEqualTo(json);
    try (var session = Session.open(plan, new HostBackend())) {
      Programs.fillExactly(session, random);
      Programs.runsAsReference(session, GraphChoice.of(parsed, options), plan, what);
    }
  }

  private void note(Plan plan) {
    unequal +=
        plan.rankPlans().stream().map(own -> own.collectives().size()).distinct().count() > 1
            ? 1
            : 0;
    plan.rewrites().forEach(rewrite -> rewrites.add(rewrite.reason()));
    var hosts =
        IntStream.range(0, plan.worldSize()).map(rank -> plan.topology().host(rank)).toArray();
    for (var rankPlan : plan.rankPlans()) {
      for (var collective : rankPlan.collectives()) {
        variants.add(collective.variant());
        collective.verdicts().forEach(verdict -> verdicts.add(verdict.reason()));
        boolean apart =
            plan.group(collective.group()).members().stream()
                .anyMatch(part -> part.stream().map(rank -> hosts[rank]).distinct().count() > 1);
        assertThat(apart && collective.variant() != Variant.NCCL).isFalse();
      }
    }
  }
}
