package dev.symplan.planner.simulate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Golden;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.TargetFile;
import dev.symplan.planner.machine.Topology;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.View;
import dev.symplan.planner.simulate.Scenario.Slow;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Simulated steps against times that are worked out here from the target's figures. */
class SimulationTest {
  // The figures of the target below, in µs, and in bytes per µs.
  private static final double LAUNCH = 2;
  private static final double KERNEL = 3;
  private static final double MEMORY = 1_000_000;
  private static final double RAIL = 10_000;
  private static final double LATENCY = 5;

  /** Between two domains, an all_reduce goes up a tree and down again. */
  private static final double HOPS = 2 * LATENCY;

  private static final Target TARGET = target(0);

  private static Target target(double contention) {
    return target(contention, "");
  }

  private static Target target(double contention, String network) {
    return TargetFile.read(
        new SourceFile(
            "slow.json",
            """
            {"format": "symplan-target", "version": 3, "name": "slow", "base": "h200x4",
             "gpus": 2, "launch_us": 2, "kernel_us": 3, "memory_gbps": 1000,
             "network": {"gbps": 10, "latency_us": 5%2$s},
             "sm_contention": {"compute": %1$s, "transfer": %1$s}}
            """
                .formatted(contention, network)));
  }

  /** Ranks 0 and 1 are on one host, 2 and 3 on the other; each pair has a rank of both. */
  private static final String GROUPS =
      """
      graph version 1
      group pairs = [0, 2], [1, 3]
      group all = [0, 1, 2, 3]
      """;

  private static final long BYTES_OF_X = 4 << 20;
  private static final long BYTES_OF_Y = 16 << 20;

  /** Of two ranks, each sends as much as it has; of four, two of each host share its rails. */
  private static final double RAIL_OF_X = 2 * (1 / 2.0) * BYTES_OF_X / RAIL;

  private static final double RAIL_OF_ALL = 2 * (3 / 4.0) * BYTES_OF_X / 2 / RAIL;
  private static final double RAIL_OF_Y = 2 * (1 / 2.0) * BYTES_OF_Y / RAIL;

  /** A kernel that reads and writes all of x. */
  private static final double KERNEL_OF_X = KERNEL + 2 * BYTES_OF_X / MEMORY;

  private static Plan plan(String graph) {
    return plan(TARGET, graph);
  }

  private static Plan plan(Target target, String graph) {
    return Compiler.forTarget(target)
        .with(
            CompileOptions.DEFAULT
                .withHosts(Hosts.parse("2x2").orElseThrow())
                .withRewrites(RewriteOptions.OFF))
        .compile(GraphParser.parse(new SourceFile("steps.graph", GROUPS + graph)));
  }

  private static Scenario scenario(Plan plan) {
    return Scenario.of(Job.of(plan, plan.topology()));
  }

  private static double micros(Scenario scenario) {
    return SimulatedStep.of(scenario).micros();
  }

  private static void isAbout(double actual, double expected) {
    assertThat(actual).isCloseTo(expected, within(1e-6 * expected));
  }

  private static Plan one(String group) {
    return one(group, TARGET);
  }

  private static Plan one(String group, Target target) {
    return plan(
        target,
        """
        graph g(x: f32[1048576]) {
          h = aten::neg(x)
          r = _c10d_functional::all_reduce(h, "sum", "%s")
          return r
        }
        """
            .formatted(group));
  }

  @Test
  void collectiveAlone() {
    isAbout(micros(scenario(one("pairs"))), KERNEL_OF_X + LAUNCH + RAIL_OF_X + HOPS);
    isAbout(micros(scenario(one("all"))), KERNEL_OF_X + LAUNCH + RAIL_OF_ALL + HOPS);
  }

  /** The table: a step of one collective, where a rail or a GPU is slower. */
  @ParameterizedTest
  @CsvSource({
    // group, slower, rank, share, kernels more, times the rail more
    "pairs, rail, 0, 0.5, 0, 1",
    "pairs, rail, 3, 0.25, 0, 3",
    "pairs, rail, 3, 2.0, 0, 0",
    "all, rail, 1, 0.5, 0, 1",
    "pairs, gpu, 2, 0.5, 1, 0",
    "all, gpu, 2, 0.2, 4, 0",
    "all, gpu, 1, 4.0, 0, 0"
  })
  void slowerRailOrGpu(
      String group, String slower, int rank, double share, int kernels, int rails) {
    var usual = scenario(one(group));
    var changed = slower.equals("rail") ? usual.withRail(rank, share) : usual.withGpu(rank, share);
    double rail = group.equals("pairs") ? RAIL_OF_X : RAIL_OF_ALL;
    isAbout(micros(changed), micros(usual) + kernels * KERNEL_OF_X + rails * rail);
  }

  /** A large collective beside a kernel and a small one, which both need the rails. */
  private static Plan two() {
    return two(TARGET);
  }

  private static Plan two(Target target) {
    return plan(
        target,
        """
        graph g(x: f32[1048576], y: f32[4194304]) {
          a = _c10d_functional::all_reduce(y, "sum", "pairs")
          h = aten::neg(x)
          b = _c10d_functional::all_reduce(h, "sum", "all")
          c = _c10d_functional::wait_tensor(b)
          d = _c10d_functional::wait_tensor(a)
          return c, d
        }
        """);
  }

  /**
   * Both have half of each rail while both are on it. The small one is done after twice its time;
   * the large one has lost as much as the small one needed.
   */
  @Test
  void collectivesShareRails() {
    var plan = two();
    var collectives = plan.rankPlans().getFirst().collectives();
    assertThat(collectives.get(0).stream()).isEqualTo(StreamKind.COMM);
    assertThat(collectives.get(1).stream()).isEqualTo(StreamKind.COMPUTE);

    var step = SimulatedStep.of(scenario(plan));
    var large = step.collectives().get(0);
    var small = step.collectives().get(1);
    isAbout(small.alone(), LAUNCH + RAIL_OF_ALL + HOPS);
    isAbout(small.micros(), LAUNCH + 2 * RAIL_OF_ALL + HOPS);
    isAbout(small.shared(), 2 * RAIL_OF_ALL);
    isAbout(large.micros(), LAUNCH + RAIL_OF_Y + RAIL_OF_ALL + HOPS);
    // Compute waits for it, and for the event behind it.
    isAbout(step.micros(), large.micros() + LAUNCH);
    isAbout(step.computeMicros(), KERNEL_OF_X);
    isAbout(step.exposedMicros(), large.micros() + LAUNCH - KERNEL_OF_X);
    var gpu = step.gpus().getFirst();
    assertThat(step.gpus()).hasSize(1);
    isAbout(gpu.rail(), RAIL_OF_Y + RAIL_OF_ALL);
    isAbout(gpu.shared(), 2 * RAIL_OF_ALL);
  }

  /** A rail that one collective uses half of has room for a second one, but not on half of it. */
  @Test
  void collectivesShareOnlyWhatOneCannotUseAlone() {
    var plan = two(target(0, ", \"rail_gbps\": 20"));
    var apart = SimulatedStep.of(scenario(plan));
    isAbout(apart.collectives().get(0).micros(), LAUNCH + RAIL_OF_Y + HOPS);
    isAbout(apart.collectives().get(1).micros(), LAUNCH + RAIL_OF_ALL + HOPS);
    var halves = SimulatedStep.of(scenario(plan).withRail(0, 0.5));
    isAbout(halves.collectives().get(1).micros(), LAUNCH + 2 * RAIL_OF_ALL + HOPS);
  }

  /** A curve per hop, of which an all_reduce between two domains has two. */
  @Test
  void curvesOfTheNetworkCount() {
    var curve =
        ", \"curves\": {\"all_reduce\": {\"points\": [[0, 7], [%s, 107]], \"gbps\": 1}}"
            .formatted(BYTES_OF_X);
    var step = SimulatedStep.of(scenario(one("pairs", target(0, curve))));
    isAbout(step.collectives().getFirst().micros(), LAUNCH + 2 * (7 + 100 / 2.0));
  }

  /**
   * The small collective takes no SMs from the large one, as a kernel does: it is not local work.
   */
  @Test
  void onlyKernelsSlowCollectivesDown() {
    var plan = two(target(0.5));
    var collectives = plan.rankPlans().getFirst().collectives();
    assertThat(collectives.get(0).stream()).isEqualTo(StreamKind.COMM);
    assertThat(collectives.get(1).stream()).isEqualTo(StreamKind.COMPUTE);
    var step = SimulatedStep.of(scenario(plan));
    isAbout(step.micros(), step.collectives().getFirst().micros() + LAUNCH + 0.5 * KERNEL_OF_X);
  }

  /**
   * On a rail of half the rate, everything that uses it takes twice as long on all of its rails.
   */
  @Test
  void slowRailIsSharedToo() {
    var step = SimulatedStep.of(scenario(two()).withRail(0, 0.5));
    // The pair of ranks 1 and 3 has the rate that the collective of all four leaves of its rails.
    isAbout(step.collectives().get(0).micros(), LAUNCH + 2 * (RAIL_OF_Y + RAIL_OF_ALL) + HOPS);
    isAbout(step.collectives().get(1).micros(), LAUNCH + 4 * RAIL_OF_ALL + HOPS);
    assertThat(step.lastRank()).isIn(0, 2);
    // Rank 0 has the slow rail, and rank 2 meets it; ranks 1 and 3 are alike.
    assertThat(step.gpus()).extracting(SimulatedStep.Gpu::ranks).containsExactly(1, 2, 1);
  }

  @Test
  void sensitivityIsOfEachKindOfRank() {
    var scenario = scenario(one("pairs")).withRail(0, 0.5);
    var step = SimulatedStep.of(scenario);
    var losses = Sensitivity.of(scenario, step);
    var worst = losses.rails().getFirst();
    // The slow rail once more, or that of its peer, which it waits for anyway.
    assertThat(worst.rank()).isZero();
    isAbout(worst.micros(), 2 * RAIL_OF_X);
    assertThat(losses.rails().getLast().micros()).isZero();
    assertThat(losses.rails().stream().mapToInt(Sensitivity.Loss::ranks).sum()).isEqualTo(4);
  }

  /** Within a domain, nothing is shared and ranks are alike: the step is the plan's prediction. */
  @ParameterizedTest
  @ValueSource(strings = {"tp_mlp", "data_parallel", "fsdp_layer"})
  void oneDomainTakesWhatThePlanPredicts(String sample) {
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .with(CompileOptions.DEFAULT.withRanks(4))
            .compile(
                Path.of(System.getProperty("symplan.root"), "samples").resolve(sample + ".graph"));
    double predicted =
        PlanReport.of(plan, ImmutableList.of(View.SUMMARY)).sections().getFirst().rows().stream()
            .filter(row -> row.title().equals("time"))
            .findFirst()
            .orElseThrow()
            .real("predicted_us");
    isAbout(micros(scenario(plan)), predicted);
  }

  @Test
  void hostsThatDoNotFitAreRefused() {
    var plan = one("all");
    refused(plan, "2x3", "the hosts have 6 ranks, but the plan has 4");
    refused(plan, "4", "a host has 4 ranks, but a host of slow has 2 GPUs");
    isAbout(
        micros(Scenario.of(Job.of(plan, topology(plan, "4x1")))),
        KERNEL_OF_X + LAUNCH + 2 * RAIL_OF_ALL + 2 * HOPS);
  }

  private static void refused(Plan plan, String hosts, String message) {
    var topology = topology(plan, hosts);
    assertThatThrownBy(() -> Job.of(plan, topology))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining(message);
  }

  private static Topology topology(Plan plan, String hosts) {
    return Topology.ofHosts(Hosts.parse(hosts).orElseThrow(), plan.target());
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"1:0", "1*0.5", "1:0*0", "1:0*-1", "1:0*x", ":0*1", "1:0*1e3", "a:0*1", ""})
  void slowRailsHaveOneForm(String text) {
    assertThat(Slow.parse(text)).isEmpty();
  }

  @Test
  void slowRailsNameRanks() {
    var scenario = scenario(one("all"));
    var slow = Slow.parse("1:0*0.25").orElseThrow();
    assertThat(slow).isEqualTo(new Slow(1, 0, 0.25));
    assertThat(scenario.rank(slow)).hasValue(2);
    assertThat(scenario.gpu(3)).isEqualTo("1:1");
    assertThat(scenario.rank(new Slow(2, 0, 1))).isEmpty();
    assertThat(scenario.rank(new Slow(0, 2, 1))).isEmpty();
  }

  @Test
  void reportIsForPeopleAndPrograms() {
    var report = SimulationReport.of(scenario(two()).withGpu(1, 0.5));
    Golden.check("simulate/two.txt", report.text());
    Golden.check("simulate/two.json", report.json());
  }
}
