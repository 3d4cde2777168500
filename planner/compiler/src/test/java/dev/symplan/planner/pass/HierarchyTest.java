package dev.symplan.planner.pass;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.planner.plan.Rewrite.Action;
import dev.symplan.planner.plan.Rewrite.Reason;
import dev.symplan.planner.plan.Step;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which collectives between hosts run in phases, and of what these are made. */
class HierarchyTest {
  private static final CompileOptions OPTIONS =
      CompileOptions.DEFAULT.withRewrites(RewriteOptions.OFF.withHierarchical(Mode.ON));

  private static Plan plan(String hosts, CompileOptions options, String group, String body) {
    return compiled(hosts, options, "graph version 1\ngroup g = %s\n%s".formatted(group, body));
  }

  private static Plan compiled(String hosts, CompileOptions options, String text) {
    return Compiler.forTarget(Target.H200_X4)
        .with(options.withHosts(Hosts.parse(hosts).orElseThrow()))
        .compile(GraphParser.parse(new SourceFile("hosts.graph", text)));
  }

  private static String graph(String type, String call) {
    return """
    graph t(x: %s) {
      r = _c10d_functional::%s
      w = _c10d_functional::wait_tensor(r)
      return w
    }
    """
        .formatted(type, call);
  }

  private static ImmutableList<String> phases(Plan plan) {
    return plan.forRank(0).collectives().stream()
        .map(
            c ->
                "%s %s %s"
                    .formatted(
                        c.kind().text(), c.group(), c.variant() == Variant.NCCL ? "nccl" : ""))
        .map(String::strip)
        .collect(ImmutableList.toImmutableList());
  }

  private static Rewrite only(Plan plan) {
    assertThat(plan.rewrites()).hasSize(1);
    return plan.rewrites().getFirst();
  }

  private static final String EIGHT = "[0, 1, 2, 3, 4, 5, 6, 7]";

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          all_reduce(x, "sum", "g") | reduce_scatter g.within, all_reduce g.across nccl, all_gather g.within
          all_gather_into_tensor(x, 8, "g") | all_gather g.across nccl, all_gather g.within
          reduce_scatter_tensor(x, "max", 8, "g") | reduce_scatter g.within, reduce_scatter g.across nccl
          all_to_all_single(x, [], [], "g") | all_to_all g.within, all_to_all g.across nccl
          broadcast(x, 6, "g") | broadcast g.across nccl, broadcast g.within
          """)
  void phasesAreWithinDomainsAndAcrossThem(String call, String phases) {
    var options = OPTIONS.withRewrites(OPTIONS.rewrites().withLayouts(Mode.AUTO));
    var plan = plan("2x4", options, EIGHT, graph("f32[64, 64]", call));
    assertThat(String.join(", ", phases(plan))).isEqualTo(phases);
    assertThat(only(plan).action()).isEqualTo(Action.HIERARCHICAL);
    assertThat(only(plan).pieces()).isEqualTo(phases.split(", ").length);
    assertThat(plan.groups())
        .containsExactly(
            group("g", "[0, 1, 2, 3, 4, 5, 6, 7]"),
            group("g.within", "[0, 1, 2, 3], [4, 5, 6, 7]"),
            group("g.across", "[0, 4], [1, 5], [2, 6], [3, 7]"));
    // Collectives took the copies over that put slices in order.
    assertThat(plan.forRank(0).graph().ops())
        .noneMatch(op -> op.def().name().toString().equals("aten::clone"));
  }

  private static ProcessGroup group(String name, String parts) {
    return GraphParser.parse(
            new SourceFile("g", "graph version 1\ngroup \"%s\" = %s\n".formatted(name, parts)))
        .groups()
        .getFirst();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          2x4   | [0, 1, 2, 3, 4, 5, 6, 7]     | all_reduce(x, "sum", "g") |
          4x2   | [0, 1, 2, 3], [4, 5, 6, 7]   | all_reduce(x, "sum", "g") |
          4x2   | [0, 3, 2, 1], [4, 6, 5, 7]   | all_reduce(x, "sum", "g") |
          4x2   | [2, 3, 0, 1], [6, 7, 4, 5]   | all_gather_into_tensor(x, 4, "g") |
          3,1,4 | [0, 1, 2, 3, 4, 5, 6, 7]     | all_reduce(x, "sum", "g") | UNEQUAL_DOMAINS
          2x3,2 | [0, 1, 3, 4], [2, 5, 6, 7]   | all_reduce(x, "sum", "g") | UNEQUAL_DOMAINS
          2x4   | [0, 4, 1, 5], [2, 6, 3, 7]   | all_gather_into_tensor(x, 4, "g") | RANK_ORDER
          2x4   | [0, 4, 1, 5], [2, 6, 3, 7]   | all_reduce(x, "sum", "g") |
          2x4   | [0, 4, 1, 5], [2, 6, 3, 7]   | broadcast(x, 2, "g") | RANK_ORDER
          4x2   | [0, 1, 2, 3], [4, 5, 6, 7]   | broadcast(x, 3, "g") |
          """)
  void membersDecide(String hosts, String parts, String call, @Nullable Reason reason) {
    var plan = plan(hosts, OPTIONS, parts, graph("f32[64, 64]", call));
    if (reason == null) {
      assertThat(only(plan).action()).isEqualTo(Action.HIERARCHICAL);
    } else {
      assertThat(only(plan).action()).isEqualTo(Action.FLAT);
      assertThat(only(plan).reason()).isEqualTo(reason);
      assertThat(phases(plan)).hasSize(1).allMatch(phase -> phase.endsWith(" g nccl"));
      assertThat(plan.groups()).hasSize(1);
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          f32[3, 3]    | all_reduce(x, "sum", "g") | the 9 elements of x do not divide into slices for 4 ranks
          f32[4, 4][1, 4] | all_reduce(x, "sum", "g") | x is not contiguous
          """)
  void unevenOnesStayFlat(String type, String call, String detail) {
    var rewrite = only(plan("2x4", OPTIONS, EIGHT, graph(type, call)));
    assertThat(rewrite.reason()).isEqualTo(Reason.UNEVEN);
    assertThat(rewrite.detail()).isEqualTo(detail);
  }

  /** Rank 6 is at position 2 of the second domain. */
  @Test
  void phasesOfABroadcastHaveRootsOfTheirOwn() {
    var plan = plan("2x4", OPTIONS, EIGHT, graph("f32[64, 64]", "broadcast(x, 6, \"g\")"));
    assertThat(plan.forRank(0).collectives()).extracting(c -> c.root()).containsExactly(1, 2);
  }

  @Test
  void groupsWithOneRankOnEachHostHaveNoPhases() {
    var plan =
        plan(
            "4x2",
            OPTIONS,
            "[0, 2, 4, 6], [1, 3, 5, 7]",
            graph("f32[64]", "all_reduce(x, \"sum\", \"g\")"));
    assertThat(plan.rewrites()).isEmpty();
  }

  @Test
  void variantsOfTheWholeAreKept() {
    var call = graph("f32[64, 64]", "all_reduce(x, \"sum\", \"g\")");
    var named = OPTIONS.withVariants(ImmutableMap.of("r", Variant.NCCL));
    assertThat(only(plan("2x4", named, EIGHT, call)).reason()).isEqualTo(Reason.FORCED_VARIANT);
    // NCCL can run all phases.
    var kind = OPTIONS.withVariants(ImmutableMap.of("all_reduce", Variant.NCCL));
    assertThat(only(plan("2x4", kind, EIGHT, call)).action()).isEqualTo(Action.HIERARCHICAL);
  }

  /** Even where that is predicted to be slower: only the plan with phases has the name. */
  @Test
  void variantsOfPhasesAreTaken() {
    var call = graph("f32[64, 64]", "all_reduce(x, \"sum\", \"g\")");
    var options =
        CompileOptions.DEFAULT.withVariants(ImmutableMap.of("r_within", Variant.NCCL_SYMM));
    var plan = plan("2x4", options, EIGHT, call);
    assertThat(only(plan).reason()).isEqualTo(Reason.WANTED);
    assertThat(plan.forRank(0).collectives().getFirst().variant()).isEqualTo(Variant.NCCL_SYMM);
  }

  @Test
  void offMeansOff() {
    var call = graph("f32[64, 64]", "all_reduce(x, \"sum\", \"g\")");
    assertThat(
            plan("2x4", CompileOptions.DEFAULT.withRewrites(RewriteOptions.OFF), EIGHT, call)
                .rewrites())
        .isEmpty();
  }

  /** Large messages between many hosts gain, since a ring between all ranks has many hops. */
  @Test
  void timesDecide() {
    var call = graph("f32[64, 64]", "all_gather_into_tensor(x, %s, \"g\")");
    var world = ProcessGroup.world("g", 32).members().getFirst().asList().toString();
    var many = only(plan("8x4", CompileOptions.DEFAULT, world, call.formatted(32)));
    assertThat(many.reason()).isEqualTo(Reason.FASTER);
    assertThat(many.afterMicros()).isLessThan(many.beforeMicros() * 0.97);
    var few = only(plan("2x2", CompileOptions.DEFAULT, "[0, 1, 2, 3]", call.formatted(4)));
    assertThat(few.reason()).isEqualTo(Reason.NO_GAIN);
    assertThat(few.afterMicros()).isGreaterThan(few.beforeMicros() * 0.97);
  }

  /** The rows of several tensors go through each phase together. */
  @Test
  void mergedOnesHavePhasesTogether() {
    var plan =
        plan(
            "2x4",
            OPTIONS,
            EIGHT,
            """
            graph t(x: f32[64, 64], y: f32[32]) {
              r, s = _c10d_functional::all_reduce_coalesced([x, y], "sum", "g")
              a = _c10d_functional::wait_tensor(r)
              b = _c10d_functional::wait_tensor(s)
              return a, b
            }
            """);
    assertThat(phases(plan)).hasSize(3);
    assertThat(plan.forRank(0).collectives()).allMatch(c -> c.operands().size() == 2);
  }

  /** Compute of the program runs beside the phase between hosts. */
  @Test
  void computeRunsBesideThePhaseAcross() {
    var plan =
        plan(
            "2x4",
            OPTIONS,
            EIGHT,
            """
            graph t(x: bf16[4096, 4096], y: f32[2097152]) {
              r = _c10d_functional::all_reduce(y, "sum", "g")
              p = aten::mm(x, x)
              w = _c10d_functional::wait_tensor(r)
              return w, p
            }
            """);
    var rank = plan.forRank(0);
    int start = rank.steps().indexOf(new Step.Start(1));
    int join = rank.steps().indexOf(new Step.Join(1));
    int product = -1;
    for (int i = 0; i < rank.steps().size(); i++) {
      if (rank.steps().get(i) instanceof Step.Compute(int op)
          && rank.graph().ops().get(op).def().name().toString().equals("aten::mm")) {
        product = i;
      }
    }
    assertThat(start).isLessThan(product);
    assertThat(product).isLessThan(join);
    assertThat(rank.steps().indexOf(new Step.Start(2))).isGreaterThan(join);
  }

  /** Ranks may run other graphs, and name their group differently. */
  @Test
  void graphsOfTheirOwnHavePhasesTogether() {
    var text =
        """
        graph version 1
        group a = [0, 1, 2, 3]
        group b = [0, 1, 2, 3]
        graph t(x: f32[64]) ranks [0, 1] {
          r = _c10d_functional::all_reduce(x, "sum", "a")
          return r
        }

        graph t(x: f32[64]) ranks [2, 3] {
          y = aten::relu(x)
          r = _c10d_functional::all_reduce(y, "sum", "b")
          return r
        }
        """;
    var plan = compiled("2x2", OPTIONS, text);
    assertThat(only(plan).action()).isEqualTo(Action.HIERARCHICAL);
    assertThat(plan.groups()).hasSize(6);
  }

  /** A declared group is never replaced by one of the planner's. */
  @Test
  void takenNamesKeepTheCollectiveFlat() {
    var text =
        """
        graph version 1
        group g = [0, 1, 2, 3]
        group "g.across" = [0, 1], [2, 3]
        graph t(x: f32[64]) {
          r = _c10d_functional::all_reduce(x, "sum", "g")
          return r
        }
        """;
    var plan = compiled("2x2", OPTIONS, text);
    assertThat(only(plan).action()).isEqualTo(Action.FLAT);
    assertThat(plan.groups()).hasSize(2);
  }
}
