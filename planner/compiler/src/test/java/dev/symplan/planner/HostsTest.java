package dev.symplan.planner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.TargetFile;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.Verdict.Reason;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.plan.Plan;
import java.util.ArrayList;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Plans for ranks on several hosts. */
class HostsTest {
  /** Eight ranks: tp within pairs, dp across them. */
  private static final String MESH =
      """
      graph version 1
      group tp = [0, 1], [2, 3], [4, 5], [6, 7]
      group dp = [0, 2, 4, 6], [1, 3, 5, 7]
      graph g(x: bf16[64, 64]) {
        a = _c10d_functional::all_reduce(x, "sum", "tp")
        b = _c10d_functional::wait_tensor(a)
        c = aten::mul.Scalar(b, 2)
        d = _c10d_functional::all_reduce(c, "sum", "dp")
        e = _c10d_functional::wait_tensor(d)
        return e
      }
      """;

  private static Plan plan(Target target, String hosts) {
    return plan(target, MESH, CompileOptions.DEFAULT.withHosts(Hosts.parse(hosts).orElseThrow()));
  }

  private static Plan plan(Target target, String text, CompileOptions options) {
    return Compiler.forTarget(target)
        .with(options)
        .compile(GraphParser.parse(new SourceFile("mesh.graph", text)));
  }

  /** A group within domains has every variant, one across them has NCCL alone. */
  @ParameterizedTest
  @CsvSource({
    "8, true, true",
    "2x4, true, false",
    "4x2, true, false",
    "8x1, false, false",
    "'2,4,2', true, false",
    "'3,5', false, false"
  })
  void membersDecide(String hosts, boolean tpWithin, boolean dpWithin) {
    var collectives = plan(Target.H200_X8, hosts).rankPlans().getFirst().collectives();
    for (var collective : collectives) {
      boolean within = collective.group().equals("tp") ? tpWithin : dpWithin;
      assertThat(collective.variant() == Variant.NCCL).isEqualTo(!within);
      assertThat(
              collective.verdicts().stream()
                  .filter(verdict -> verdict.variant() == Variant.ONE_SHOT)
                  .map(verdict -> verdict.reason() == Reason.NO_PEER_ACCESS))
          .containsExactly(!within);
    }
  }

  @Test
  void domainOfSeveralHostsIsOne() {
    var target =
        TargetFile.read(
            new SourceFile(
                "pairs.json",
                """
                {"format": "symplan-target", "version": 3, "name": "pairs", "base": "h200x4",
                 "gpus": 2, "hosts_per_domain": 2}
                """));
    var plan =
        plan(
            target,
            MESH.replace("[0, 1], [2, 3], [4, 5], [6, 7]", "[0, 3], [1, 2], [4, 7], [5, 6]"),
            CompileOptions.DEFAULT);
    assertThat(plan.topology().text()).isEqualTo("4x2");
    var collectives = plan.rankPlans().getFirst().collectives();
    assertThat(collectives.getFirst().variant()).isNotEqualTo(Variant.NCCL);
    assertThat(collectives.getLast().verdicts())
        .anyMatch(
            verdict ->
                verdict
                    .detail()
                    .equals(
                        "ranks 0 and 4 are in different NVLink domains of 2 hosts; the hosts are"
                            + " 4x2"));
  }

  /** A shard is gathered, scattered and exchanged, and summed, between two hosts of four ranks. */
  private static final String WINDOWS =
      """
      graph version 1
      group all = [0:8]
      graph g(x: bf16[1024, 64]) {
        a = _c10d_functional::all_gather_into_tensor(x, 8, "all")
        b = _c10d_functional::wait_tensor(a)
        c = _c10d_functional::reduce_scatter_tensor(x, "sum", 8, "all")
        d = _c10d_functional::wait_tensor(c)
        e = _c10d_functional::all_to_all_single(x, [128, 128, 128, 128, 128, 128, 128, 128],
            [128, 128, 128, 128, 128, 128, 128, 128], "all")
        f = _c10d_functional::wait_tensor(e)
        h = _c10d_functional::all_reduce(x, "sum", "all")
        i = _c10d_functional::wait_tensor(h)
        return b, d, f, i
      }
      """;

  /** NCCL's windows between hosts, by its version: only where the target says that it has them. */
  @ParameterizedTest
  @CsvSource({
    "2.28.9, true, false, ''",
    "2.30.2, true, true, ''",
    "2.30.3, false, true, ''",
    "2.30.3, true, false, 'reduce_scatter nccl_symm'",
    "2.30.3, true, true, 'all_gather nccl_symm, reduce_scatter nccl_symm'",
    "2.30.7, true, false, 'all_gather nccl_ce, reduce_scatter nccl_symm, all_to_all nccl_ce'",
  })
  void windowsBetweenHosts(String nccl, boolean windows, boolean multicast, String expected) {
    var target =
        TargetFile.read(
            new SourceFile(
                "far.json",
                """
                {"format": "symplan-target", "version": 3, "name": "far", "base": "h200x4",
                 "nccl": "%s", "multicast": true,
                 "network": {"gbps": 50, "latency_us": 5, "windows": %s}}
                """
                    .formatted(nccl, windows)));
    var options =
        CompileOptions.DEFAULT
            .withHosts(Hosts.parse("2x4").orElseThrow())
            .withMulticast(multicast)
            .withRewrites(RewriteOptions.OFF);
    var plan = plan(target, WINDOWS, options);
    var possible = new ArrayList<String>();
    for (var collective : plan.forRank(0).collectives()) {
      for (var verdict : collective.verdicts()) {
        boolean plain = verdict.variant() == Variant.NCCL;
        if (verdict.reason().eligible() && !plain) {
          possible.add(collective.kind().text() + " " + verdict.variant().text());
          var named =
              options.withVariants(ImmutableMap.of(collective.kind().text(), verdict.variant()));
          var forced = plan(target, WINDOWS, named);
          assertThat(forced.forRank(0).collectives())
              .anyMatch(own -> own.variant() == verdict.variant());
          var json = PlanFile.toJson(forced);
          var read = PlanFile.read(new SourceFile("windows.plan", json));
          assertThat(PlanFile.toJson(read)).isEqualTo(json);
          refused(
              json.replace("\"windows\" : true", "\"windows\" : false"), "in the NVLink domains");
        }
      }
    }
    assertThat(String.join(", ", possible)).isEqualTo(expected);
  }

  @Test
  void hostsAreInThePlanFileAndItsDigest() {
    var whole = plan(Target.H200_X8, "8");
    var halves = plan(Target.H200_X8, "2x4");
    var quarters = plan(Target.H200_X8, "4x2");
    assertThat(halves.digest()).isNotEqualTo(whole.digest());
    assertThat(halves.digest()).isNotEqualTo(quarters.digest());
    var json = PlanFile.toJson(halves);
    assertThat(json).contains("\"hosts\" : \"2x4\"");
    var read = PlanFile.read(new SourceFile("halves.plan", json));
    assertThat(read.topology()).isEqualTo(halves.topology());
    assertThat(PlanFile.toJson(read)).isEqualTo(json);
    assertThat(PlanFile.toJson(whole)).doesNotContain("\"hosts\"");
  }

  @Test
  void changedHostsAreRefused() {
    var json = PlanFile.toJson(plan(Target.H200_X8, "2x4"));
    var hosts = "\"hosts\" : \"2x4\"";
    refused(json.replace(hosts, "\"hosts\" : \"8x1\""), "NVLink domains [0, 1] of the hosts 8x1");
    refused(json.replace(hosts, "\"hosts\" : \"4x2\""), "digest");
    refused(json.replace(hosts, "\"hosts\" : \"3x4\""), "the hosts have 12 ranks");
    refused(json.replace(hosts, "\"hosts\" : \"many\""), "these are not hosts");
    refused(json.replace("\"gpus\" : 8", "\"gpus\" : 2"), "host 0 has 4 ranks");
  }

  private static void refused(String json, String message) {
    assertThatThrownBy(() -> PlanFile.read(new SourceFile("changed.plan", json)))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining(message);
  }

  @Test
  void hostsThatDoNotFitAreRefused() {
    assertThatThrownBy(() -> plan(Target.H200_X4, "8"))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("a host has 8 ranks, but a host of h200x4 has 4 GPUs");
    var options = CompileOptions.DEFAULT.withRanks(8).withHosts(Hosts.parse("2x8").orElseThrow());
    assertThatThrownBy(() -> plan(Target.H200_X8, MESH, options))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("the hosts have 16 ranks, but the number of ranks is 8");
  }

  /** The largest host decides which target is the default. */
  @Test
  void defaultTargetHasAsManyGpusAsAHost() {
    var graph = GraphParser.parse(new SourceFile("mesh.graph", MESH));
    var options = CompileOptions.DEFAULT.withHosts(Hosts.parse("2x4").orElseThrow());
    var plan = Compiler.forDefaultTarget().with(options).compile(graph);
    assertThat(plan.target()).isEqualTo(Target.H200_X4);
    assertThat(plan.topology().text()).isEqualTo("2x4");
  }

  /** Ranks of one graph share its plan: a rank adds only the number of its plan. */
  @Test
  void plansOfManyHostsStaySmall() {
    var few = planOfWorld(8, "2x4");
    var many = planOfWorld(1024, "128x8");
    assertThat(many.rankPlans()).hasSize(1);
    assertThat(many.rankPlans().getFirst().steps())
        .hasSameSizeAs(few.rankPlans().getFirst().steps());
    assertThat(many.rankPlans().getFirst().collectives()).hasSize(3);
    // The number of a plan has one digit, a comma and a space; groups and hosts have longer texts.
    assertThat(PlanFile.toJson(many).length() - PlanFile.toJson(few).length())
        .isLessThan(1024 * 3 + 200);
  }

  private static Plan planOfWorld(int ranks, String hosts) {
    var text =
        """
        graph version 1
        group all = %s
        graph g(x: bf16[64, 64]) {
          r = _c10d_functional::all_reduce(x, "sum", "all")
          return r
        }
        """
            .formatted(ProcessGroup.world("all", ranks).members().getFirst());
    var phases = RewriteOptions.OFF.withHierarchical(RewriteOptions.Mode.ON);
    return plan(
        Target.H200_X8,
        text,
        CompileOptions.DEFAULT.withHosts(Hosts.parse(hosts).orElseThrow()).withRewrites(phases));
  }
}
