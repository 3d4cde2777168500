package dev.symplan.planner.pass;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.aten.AttentionOps;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Which attention stays as it is, which gets another bias, and which becomes products. */
class LowerAttentionTest {

  private static Plan plan(String inputs, String body) {
    var text = "graph version 1\ngraph t(%s) {\n%s}\n".formatted(inputs, body);
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withRanks(1))
        .compile(GraphParser.parse(new SourceFile("t.graph", text)));
  }

  private static Set<String> ops(Plan plan) {
    Graph graph = plan.rankPlans().getFirst().graph();
    return graph.ops().stream().map(op -> op.def().name().name()).collect(Collectors.toSet());
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          bf16, plain            | bf16 | 512 | 64  | f32[1]           | q, k, v
          f16, causal            | f16  | 512 | 64  | f32[1]           | q, k, v, is_causal=True
          a bias of each row     | bf16 | 512 | 64  | f32[512, 512]    | q, k, v, m
          f32                    | f32  | 512 | 64  | f32[1]           | q, k, v
          f32, few rows          | f32  | 31  | 64  | f32[1]           | q, k, v
          f32, a bias, causal    | f32  | 512 | 256 | f32[512, 512]    | q, k, v, m, 0.0, True
          f64, but small         | f64  | 32  | 64  | f32[1]           | q, k, v
          odd features           | bf16 | 512 | 100 | f32[1]           | q, k, v
          a negative scale       | f16  | 512 | 64  | f32[1]           | q, k, v, scale=-0.1
          a dropout              | f32  | 512 | 64  | f32[1]           | q, k, v, None, 0.5
          """)
  void staysAsItIs(
      String name, String dtype, long rows, long features, String mask, String arguments) {
    assertThat(ops(attention(dtype, rows, features, mask, arguments)))
        .as(name)
        .containsExactly("scaled_dot_product_attention");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          bools                  | bf16 | 512 | b8[512, 512]      | full scaled_dot_product_attention setup_end view where
          bools of keys          | f16  | 512 | b8[1, 1, 1, 512]  | expand full scaled_dot_product_attention setup_end where
          a bias of keys         | bf16 | 512 | bf16[1, 8, 1, 512]| clone expand scaled_dot_product_attention
          rows at odd places     | f16  | 333 | f16[1, 1, 333, 333] | clone scaled_dot_product_attention
          """)
  void getsAnotherBias(String name, String dtype, long rows, String mask, String expected) {
    assertThat(ops(attention(dtype, rows, 64, mask, "q, k, v, m")))
        .as(name)
        .containsExactlyInAnyOrder(expected.split(" "));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          f64              | f64  | 512 | 64  | q, k, v, is_causal=True
          many features    | bf16 | 512 | 320 | q, k, v
          """)
  void becomesProducts(String name, String dtype, long rows, long features, String arguments) {
    assertThat(ops(attention(dtype, rows, features, "f32[1]", arguments)))
        .as(name)
        .contains("bmm", "_safe_softmax")
        .doesNotContain("scaled_dot_product_attention");
  }

  /** Keys that are repeated without a copy, whose gradients are wanted for each. */
  @Test
  void operandsThatCudnnDoesNotLoadAreCopied() {
    var type = "bf16[1, 8, 512, 64]";
    var plan =
        plan(
            "g: %1$s, q: %1$s, k: bf16[1, 1, 512, 64], o: %1$s, l: f32[1, 8, 512], s: i64[], t: i64[]"
                .formatted(type),
            """
              e = aten::expand(k, [1, 8, 512, 64])
              dq, dk, dv, db = aten::_scaled_dot_product_efficient_attention_backward(g, q, e, e, None, o, l, s, t, 0.0, [True, True, True, False])
              return dq, dk, dv
            """);
    assertThat(ops(plan))
        .containsExactlyInAnyOrder(
            "expand", "clone", "_scaled_dot_product_efficient_attention_backward");
  }

  /**
   * cuDNN has the gradients of all heads that share one in its workspace before it adds them up.
   */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          as many as may be                | 8, 32, 512, 128   | 8, 8, 512, 128    | 1
          the same, but not shared         | 8, 32, 512, 256   | 8, 32, 512, 256   | 1
          more features                    | 8, 32, 512, 256   | 8, 8, 512, 256    | 2
          fewer rows of more keys          | 1, 16, 64, 128    | 1, 4, 16384, 128  | 2
          a head is too much               | 1, 16, 64, 128    | 1, 1, 16384, 128  | 2
          more scores                      | 1, 16, 4096, 128  | 1, 4, 4096, 128   | 4
          a head has too many scores       | 1, 16, 8192, 128  | 1, 4, 8192, 128   | 16
          half of a group                  | 1, 6, 4096, 128   | 1, 1, 5000, 128   | 2
          """)
  void gradientsInPieces(String name, String query, String key, int pieces) {
    var logs = query.substring(0, query.lastIndexOf(','));
    var plan =
        plan(
            "g: bf16[%1$s], q: bf16[%1$s], k: bf16[%2$s], o: bf16[%1$s], l: f32[%3$s], s: i64[], t: i64[]"
                .formatted(query, key, logs),
            """
              dq, dk, dv, db = aten::_scaled_dot_product_efficient_attention_backward(g, q, k, k, None, o, l, s, t, 0.0, [True, True, True, False])
              return dq, dk, dv
            """);
    assertThat(plan.rankPlans().getFirst().graph().ops())
        .as(name)
        .filteredOn(op -> AttentionOps.is(op.def()))
        .hasSize(pieces);
  }

  /** No library gives it, and pieces would each have a part of it. */
  @ParameterizedTest
  @ValueSource(strings = {"1, 1, 512, 256", "32, 32, 512, 256", "32, 1, 512, 256"})
  void gradientOfABiasStaysAsItIs(String bias) {
    var type = "bf16[32, 32, 512, 64]";
    var plan =
        plan(
            "g: %1$s, q: %1$s, k: bf16[32, 32, 256, 64], b: bf16[%2$s], o: %1$s, l: f32[32, 32, 512], s: i64[], t: i64[]"
                .formatted(type, bias),
            """
              dq, dk, dv, db = aten::_scaled_dot_product_efficient_attention_backward(g, q, k, k, b, o, l, s, t, 0.0, [True, True, True, True])
              return dq, dk, dv, db
            """);
    assertThat(ops(plan)).containsExactly("_scaled_dot_product_efficient_attention_backward");
    assertThat(plan.rankPlans().getFirst().graph().ops()).hasSize(1);
  }

  /** Nothing can be said of its scores before the caller gives the number. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          dropout | float | q, q, q, None, n
          causal  | bool  | q, q, q, None, 0.0, n
          scale   | float | q, q, q, scale=n
          """)
  void staysAsItIsWithNumbersOfTheCaller(String name, String type, String arguments) {
    for (var dtype : List.of("f32", "bf16")) {
      var plan =
          plan(
              "q: %s[1, 8, 512, 100], n: %s".formatted(dtype, type),
              "  o = aten::scaled_dot_product_attention(%s)\n  return o\n".formatted(arguments));
      assertThat(ops(plan)).as(name).containsExactly("scaled_dot_product_attention");
    }
  }

  /** Blocks of its scores would be larger than tensors can be. */
  @Test
  void staysAsItIsWhereNobodyCouldWaitForIt() {
    var plan =
        plan(
            "q: f64[2097152, 1, 1048576, 1], k: f64[2097152, 1, 2097152, 1]",
            "  o = aten::scaled_dot_product_attention(q, k, k)\n  return o\n");
    assertThat(ops(plan)).containsExactly("scaled_dot_product_attention");
  }

  @ParameterizedTest
  @ValueSource(strings = {"4096, 1, 10, 10", "1, 3, 10, 10", "4096, 1, 1, 10", "4096, 3, 10, 1"})
  void blocksHoldManyBatchesWithABias(String mask) {
    var plan =
        plan(
            "q: f64[4096, 3, 10, 80], m: f64[%s]".formatted(mask),
            "  o = aten::scaled_dot_product_attention(q, q, q, m)\n  return o\n");
    assertThat(ops(plan)).contains("bmm", "_safe_softmax");
    assertThat(plan.rankPlans().getFirst().graph().ops()).hasSizeLessThan(50);
  }

  /** All scores would be 2 GiB. */
  @Test
  void scoresAreInMemoryBlockByBlock() {
    var plan = attention("f64", 4096, 64, "f32[1]", "q, k, v");
    assertThat(plan.total().bytes()).isLessThan(200L << 20);
  }

  private static Plan attention(
      String dtype, long rows, long features, String mask, String arguments) {
    var heads = rows == 4096 ? 16 : rows == 31 ? 200 : 8;
    return plan(
        "q: %1$s[1, %2$s, %3$s, %4$s], k: %1$s[1, %2$s, %3$s, %4$s], v: %1$s[1, %2$s, %3$s, %4$s], m: %5$s"
            .formatted(dtype, heads, rows, features, mask),
        "  o = aten::scaled_dot_product_attention(%s)\n  return o\n".formatted(arguments));
  }
}
