package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.planner.plan.Rewrite.Action;
import dev.symplan.runtime.Session;
import java.util.Collections;
import java.util.EnumMap;
import java.util.EnumSet;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Collectives in phases give the same bits as others where no sum is rounded. */
class HierarchyRunTest {
  private static final long SEED = Fuzz.seed(22_000_000);

  private final Map<Rewrite.Reason, Integer> reasons = new EnumMap<>(Rewrite.Reason.class);
  private final Set<Kind> kinds = EnumSet.noneOf(Kind.class);
  private final Set<String> made = new TreeSet<>();

  @Test
  void phasesGiveTheSameBits() {
    Fuzz.each(200, number -> check(SEED + number));
    assertThat(reasons.keySet())
        .contains(
            Rewrite.Reason.FASTER,
            Rewrite.Reason.WANTED,
            Rewrite.Reason.UNEQUAL_DOMAINS,
            Rewrite.Reason.RANK_ORDER,
            Rewrite.Reason.UNEVEN);
    assertThat(kinds)
        .contains(
            Kind.ALL_REDUCE, Kind.ALL_GATHER, Kind.REDUCE_SCATTER, Kind.ALL_TO_ALL, Kind.BROADCAST);
    assertThat(made)
        .contains("2 domains of 2", "3 domains of 2", "2 domains of 4", "4 domains of 4");
  }

  /** From every rank: across from its domain, then within from its position. */
  @ParameterizedTest
  @ValueSource(strings = {"2x2", "3x2", "2x4", "4x4"})
  void broadcastsComeFromEachRoot(String hosts) {
    var options =
        CompileOptions.DEFAULT
            .withHosts(Hosts.parse(hosts).orElseThrow())
            .withRewrites(RewriteOptions.OFF.withHierarchical(Mode.ON));
    int ranks = Hosts.parse(hosts).orElseThrow().ranks();
    var all = ProcessGroup.world("all", ranks).members().getFirst();
    for (int root = 0; root < ranks; root++) {
      var text =
          """
          graph version 1
          group all = %s
          graph g(x: i32[5, 7]) {
            r = _c10d_functional::broadcast(x, %s, "all")
            w = _c10d_functional::wait_tensor(r)
            return w
          }
          """
              .formatted(all, root);
      var plan =
          Compiler.forTarget(Target.H200_X4)
              .with(options)
              .compile(GraphParser.parse(new SourceFile("broadcast.graph", text)));
      assertThat(plan.forRank(0).collectives())
          .extracting(CollectivePlan::group)
          .containsExactly("all.across", "all.within");
      try (var session = Session.open(plan, new HostBackend())) {
        for (int rank = 0; rank < ranks; rank++) {
          var input = Programs.flat(session.input(rank, 0).orElseThrow());
          for (long i = 0; i < input.type().numel(); i++) {
            input.set(100 * rank + i, i);
          }
        }
        session.run();
        for (int rank = 0; rank < ranks; rank++) {
          var output = Programs.flat(session.output(rank, 0).orElseThrow());
          for (long i = 0; i < output.type().numel(); i++) {
            assertThat(output.get(i)).as("root %s, rank %s", root, rank).isEqualTo(100 * root + i);
          }
        }
      }
    }
  }

  private void check(long seed) {
    var random = new Random(seed);
    var program = DomainProgram.draw(random);
    var what = "seed %s%n%s%n%s".formatted(seed, program.hosts(), program.text());
    var parsed = GraphParser.parse(new SourceFile("domains.graph", program.text()));
    var modes = Mode.values();
    var rewrites =
        new RewriteOptions(
            modes[random.nextInt(3)],
            modes[random.nextInt(3)],
            modes[random.nextInt(3)],
            random.nextInt(4) == 0 ? Mode.AUTO : Mode.ON,
            modes[random.nextInt(3)]);
    var options =
        CompileOptions.DEFAULT
            .withHosts(Hosts.filled(program.hosts()))
            .withRewrites(rewrites)
            .withOverlap(random.nextInt(4) > 0);
    var plan = Compiler.forTarget(Target.H200_X4).with(options).compile(parsed);
    note(plan);
    var json = PlanFile.toJson(plan);
    assertThat(PlanFile.toJson(PlanFile.read(new SourceFile("read.plan", json)))).isEqualTo(json);
    staysWithinDomains(plan, what);
    try (var session = Session.open(plan, new HostBackend())) {
      Programs.fillExactly(session, random);
      Programs.runsAsReference(
          session, Collections.nCopies(plan.worldSize(), parsed.graphs().getFirst()), plan, what);
    }
  }

  private void note(Plan plan) {
    for (var rewrite : plan.rewrites()) {
      if (rewrite.action() == Action.HIERARCHICAL || rewrite.action() == Action.FLAT) {
        reasons.merge(rewrite.reason(), 1, Integer::sum);
      }
      if (rewrite.action() == Action.HIERARCHICAL) {
        made.add(rewrite.detail().replace(" ranks", ""));
      }
    }
    plan.forRank(0).collectives().stream()
        .filter(collective -> collective.group().endsWith(".across"))
        .forEach(collective -> kinds.add(collective.kind()));
  }

  /** By the hosts alone, as they were drawn. */
  private static void staysWithinDomains(Plan plan, String what) {
    var topology = plan.topology();
    for (var collective : plan.forRank(0).collectives()) {
      boolean apart =
          plan.group(collective.group()).members().stream()
              .anyMatch(part -> part.stream().map(topology::host).distinct().count() > 1);
      assertThat(apart && collective.variant() != Variant.NCCL).as(what).isFalse();
    }
  }

  @Test
  void mesh() {
    var text =
        """
        graph version 1
        group tp = [0, 1, 2, 3], [4, 5, 6, 7]
        group dp = [0, 4], [1, 5], [2, 6], [3, 7]
        graph g(x: f32[64, 64]) {
          a = _c10d_functional::all_reduce(x, "sum", "tp")
          b = _c10d_functional::wait_tensor(a)
          c = _c10d_functional::all_reduce(b, "max", "dp")
          d = _c10d_functional::wait_tensor(c)
          return d
        }
        """;
    var options =
        CompileOptions.DEFAULT
            .withHosts(Hosts.parse("2x4").orElseThrow())
            .withRewrites(RewriteOptions.OFF.withHierarchical(Mode.ON));
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .with(options)
            .compile(GraphParser.parse(new SourceFile("mesh.graph", text)));
    // One group is within hosts, the other has one rank on each: neither has phases.
    assertThat(plan.rewrites()).isEmpty();
    assertThat(plan.groups()).hasSize(2);
    assertThat(plan.forRank(0).collectives().getFirst().variant()).isNotEqualTo(Variant.NCCL);
    assertThat(plan.forRank(0).collectives().getLast().variant()).isEqualTo(Variant.NCCL);
  }
}
