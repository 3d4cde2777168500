package dev.symplan.planner.pass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.joint.ProgramGraph;
import dev.symplan.ir.testkit.LeastMemory;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.ir.text.GraphPrinter;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Rewrite;
import java.util.List;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What a session computes once, and what each run computes. */
class FoldConstantsTest {
  private static final CompileOptions OPTIONS = CompileOptions.DEFAULT.withRanks(2);

  /** A kernel of constants, whose result a kernel with an input reads. */
  private static final String TABLE =
      """
        p = aten::arange(64, dtype=torch.float32)
        a = aten::mul.Tensor(p, 0.1)
        c = aten::cos(a)
        s = aten::cumsum(c, 0)
      """;

  private static Plan plan(String body, CompileOptions options) {
    var text =
        """
        graph version 1
        group all = [0, 1]
        op test::op(Tensor a, Tensor b) -> Tensor
        graph t(x: f32[64, 64], v: f32[64, 64], w: f32[64, 64] @donated, n: int) {
        %s}
        """
            .formatted(body);
    return Compiler.forTarget(Target.H200_X4)
        .with(options)
        .compile(GraphParser.parse(new SourceFile("t.graph", text)));
  }

  /** {@return the names of what is made once} */
  private static List<String> setup(Plan plan) {
    var graph = plan.rankPlans().getFirst().graph();
    return graph.ops().subList(0, Math.max(0, ProgramGraph.setupEnd(graph))).stream()
        .map(op -> op.result().name())
        .toList();
  }

  private static List<String> setup(String body) {
    return setup(plan(body, OPTIONS));
  }

  @Test
  void constantsAreMadeOnce() {
    var plan =
        plan(TABLE + "  y = aten::mm(x, v)\n  o = aten::mul.Tensor(y, s)\n  return o\n", OPTIONS);
    assertThat(setup(plan)).containsExactly("p", "a", "c", "s");
    var kept = plan.rankPlans().getFirst().buffers().stream().filter(b -> b.name().equals("s"));
    int steps = plan.rankPlans().getFirst().steps().size();
    assertThat(kept).singleElement().satisfies(b -> assertThat(b.last()).isEqualTo(steps));
  }

  @Test
  void theTimeOfARunIsWithoutThem() {
    var body = TABLE + "  y = aten::mm(x, v)\n  o = aten::mul.Tensor(y, s)\n  return o\n";
    assertThat(plan(body, OPTIONS).frontier().balanced().micros())
        .isLessThan(plan(body, OPTIONS.withFoldConstants(false)).frontier().balanced().micros());
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          the caller may change it        | return s, x
          a view of it is the caller's    | u = aten::view(s, [8, 8]); return u
          it is written                   | u = aten::mul_.Scalar(s, 2); y = aten::mul.Tensor(x, s); return y
          a view of it is written         | u = aten::slice.Tensor(s, 0, 0, 8); u = aten::mul_.Scalar(u, 2); y = aten::mul.Tensor(x, s); return y
          a collective may work in place  | r = _c10d_functional::all_reduce(s, "sum", "all"); y = aten::mul.Tensor(x, r); return y
          an op without a rule reads it   | y: f32[64] = test::op(s, x); return y
          """)
  void whatMayChangeIsMadeInEachRun(String why, String rest) {
    var lines = new StringBuilder(TABLE);
    for (var line : rest.split("; ")) {
      lines
          .append("  ")
          .append(line.replace("u = aten::mul_.Scalar(u", "q = aten::mul_.Scalar(u"))
          .append('\n');
    }
    assertThat(setup(lines.toString())).as(why).doesNotContain("s");
  }

  @Test
  void piecesOfConcatenationsAreMadeWhereTheyBelong() {
    var rest =
        "  r = aten::view(s, [1, 64])\n  o = aten::cat([r, x])\n  y = aten::mm(o, v)\n  return y\n";
    assertThat(setup(TABLE + rest)).doesNotContain("s");
  }

  /** Neither what is random, nor what only passes through a kernel that needs an input. */
  @Test
  void someOpsStay() {
    assertThat(
            setup(
                """
                  p = aten::full([64, 64], 0.5)
                  q = aten::exp(p)
                  o = aten::mul.Tensor(x, q)
                  return o
                """))
        .containsExactly("p");
    assertThat(
            setup(
                """
                  p = aten::rand([64, 64])
                  q = aten::cumsum(p, 0)
                  y = aten::mm(x, q)
                  return y
                """))
        .isEmpty();
  }

  /** Only its arguments say whether an op draws random numbers. */
  @ParameterizedTest
  @CsvSource({
    "'aten::dropout(p, 0.5, True)', false",
    "'aten::dropout(p, 0.5, False)', true",
    "'aten::scaled_dot_product_attention(p, p, p, None, 0.5)', false",
    "'aten::scaled_dot_product_attention(p, p, p)', true"
  })
  void whatIsDroppedIsDrawnInEachRun(String op, boolean moves) {
    var body =
        """
          p = aten::full([2, 64, 64], 0.5)
          d = %s
          s = aten::sum.dim_IntList(d, [0])
          y = aten::mm(x, s)
          return y
        """;
    var names = setup(body.formatted(op));
    assertThat(names.contains("s")).as("%s: %s", op, names).isEqualTo(moves);
  }

  /** What is too large to be kept is made in both. */
  @Test
  void whatBothNeedIsMadeInBoth() {
    var plan =
        plan(
            """
              p = aten::full([2048, 2048], 0.5)
              s = aten::sum.dim_IntList(p, [0])
              r = aten::slice.Tensor(s, 0, 0, 64)
              t = aten::slice.Tensor(p, 0, 0, 64)
              o = aten::mm(x, t)
              q = aten::slice.Tensor(o, 1, 0, 64)
              z = aten::mul.Tensor(q, r)
              return z
            """,
            OPTIONS);
    assertThat(setup(plan)).containsExactly("p_1", "s");
    assertThat(GraphPrinter.print(plan.rankPlans().getFirst().graph()))
        .contains("p = aten::full([2048, 2048], 0.5)");
  }

  @Test
  void largeOnesStay() {
    var body =
        """
          p = aten::arange(2048, dtype=torch.float32)
          c = aten::unsqueeze(p, 1)
          m = aten::sub.Tensor(p, c)
          s = aten::cumsum(m, 0)
          t = aten::slice.Tensor(s, 1, 0, 64)
          y = aten::mm(t, x)
          return y
        """;
    assertThat(setup(body)).doesNotContain("s");
    assertThat(setup(body.replace("2048", "256"))).contains("s");
  }

  @Test
  void memoryComesFirstWhereTheCallerSaysSo() {
    var body = TABLE + "  o = aten::mul.Tensor(x, s)\n  return o\n";
    assertThat(setup(plan(body, OPTIONS))).isNotEmpty();
    assertThat(setup(plan(body, OPTIONS.withMemoryLimit(OptionalLong.of(1 << 30))))).isEmpty();
    assertThat(setup(plan(body, OPTIONS.withFoldConstants(false)))).isEmpty();
  }

  /** The setup has no copies between device and host. */
  @Test
  void whatTheSetupReadsAndMakesStaysOnTheDevice() {
    var body =
        """
          b = prims::convert_element_type(v, torch.float64)
          p = aten::mm(x, x)
          q = aten::mm(p, p)
          r = aten::mm(q, p)
          h = prims::convert_element_type(r, torch.float64)
          y = aten::mm(h, b)
          t = aten::sum(v)
          z = aten::mul.Tensor(y, t)
          return z
        """;
    var folding = OPTIONS.withFoldWeights(ImmutableSet.of("v"));
    var least = LeastMemory.of(bytes -> plan(body, limited(folding, bytes)));
    assertThat(least).isPresent();
    var plan = plan(body, limited(folding, least.getAsLong()));
    assertThat(setup(plan)).contains("b");
    assertThat(plan.rewrites())
        .filteredOn(rewrite -> rewrite.action() == Rewrite.Action.OFFLOADED)
        .flatExtracting(Rewrite::members)
        .extracting(Rewrite.Member::name)
        .doesNotContain("v", "b");
  }

  private static CompileOptions limited(CompileOptions options, long bytes) {
    return options.withMemoryLimit(OptionalLong.of(bytes));
  }

  @Test
  void namedWeightsCountAsConstants() {
    var body =
        """
          b = prims::convert_element_type(v, torch.bfloat16)
          h = prims::convert_element_type(x, torch.bfloat16)
          y = aten::mm(h, b)
          return y
        """;
    assertThat(setup(plan(body, OPTIONS))).isEmpty();
    var folding = OPTIONS.withFoldWeights(ImmutableSet.of("v"));
    assertThat(setup(plan(body, folding))).containsExactly("b");
    assertThat(setup(plan(body, folding.withFoldConstants(false)))).containsExactly("b");
    assertThat(setup(plan(body, OPTIONS.withFoldWeights(ImmutableSet.of("*v*")))))
        .containsExactly("b");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          w | 'w' is donated, so it changes
          n | 'n' is not a tensor
          q | 'q' is not an input of 't'
          q* | 'q*' is not an input of 't'
          * | 'v' may change in a run
          v | 'v' may change in a run
          """)
  void otherWeightsAreRefused(String name, String message) {
    var body =
        """
          b = aten::mm(x, w)
          u = aten::mul_.Scalar(v, 2)
          y = aten::mul.Tensor(b, n)
          return y
        """;
    assertThatThrownBy(() -> plan(body, OPTIONS.withFoldWeights(ImmutableSet.of(name))))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining(message);
  }

  /** The planned graph may be compiled again; what runs once is decided anew. */
  @Test
  void plannedGraphsCanBePlanned() {
    var body = TABLE + "  y = aten::mm(x, v)\n  o = aten::mul.Tensor(y, s)\n  return o\n";
    var planned = plan(body, OPTIONS);
    var text = GraphPrinter.print(planned.rankPlans().getFirst().graph());
    var again =
        Compiler.forTarget(Target.H200_X4)
            .with(OPTIONS)
            .compile(GraphParser.parse(new SourceFile("t.graph", "graph version 1\n" + text)));
    assertThat(setup(again)).isEqualTo(setup(planned));
  }
}
