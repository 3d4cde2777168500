package dev.symplan.planner.pass;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.ir.text.GraphPrinter;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Masks that hide nothing, or what is above the diagonal, and those that only look like it. */
class FoldMasksTest {

  private static final String POSITIONS =
      """
        i = aten::arange(%1$s)
        col = aten::unsqueeze(i, 0)
        j = aten::arange(%2$s)
        row = aten::unsqueeze(j, 1)
      """;

  private static String plan(String inputs, String body) {
    return GraphPrinter.print(
        plan("graph version 1\ngraph t(%s) {\n%s}\n".formatted(inputs, body)));
  }

  private static Graph plan(String text) {
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withRanks(1))
        .compile(GraphParser.parse(new SourceFile("t.graph", text)))
        .rankPlans()
        .getFirst()
        .graph();
  }

  private static String attended(String dtype, int rows, int keys, String mask) {
    return plan(
        "q: %1$s[1, 2, %2$s, 16], k: %1$s[1, 2, %3$s, 16], v: %1$s[1, 2, %3$s, 16], x: b8[%2$s, %3$s]"
            .formatted(dtype, rows, keys),
        POSITIONS.formatted(keys, rows)
            + mask.replace("; ", "\n").indent(2)
            + "  o = aten::scaled_dot_product_attention(q, k, v, m)\n  return o\n");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          bool                  | m = aten::le.Tensor(col, row)
          turned                | m = aten::ge.Tensor(row, col)
          not                   | a = aten::gt.Tensor(col, row); m = aten::logical_not(a)
          infinity              | a = aten::le.Tensor(col, row); m = aten::where.ScalarOther(a, 0.0, -inf)
          the least of f16      | a = aten::le.Tensor(col, row); m = aten::where.ScalarOther(a, 0.0, -65504.0)
          a triangle of ones    | a = aten::ones([32, 32], dtype=torch.bool); m = aten::tril(a)
          what is above         | a = aten::full([32, 32], -inf); m = aten::triu(a, 1)
          filled                | z = aten::zeros([32, 32]); a = aten::gt.Tensor(col, row); m = aten::masked_fill.Scalar(z, a, -inf)
          two conditions        | a = aten::le.Tensor(col, row); b = aten::ge.Scalar(row, 0); m = aten::bitwise_and.Tensor(a, b)
          documents, only one   | a = aten::le.Tensor(col, row); c = aten::zeros([32], dtype=torch.int64); d = aten::cumsum(c, 0); e = aten::index.Tensor(d, [col]); f = aten::index.Tensor(d, [row]); g = aten::eq.Tensor(e, f); m = aten::bitwise_and.Tensor(a, g)
          of a longer one       | n = aten::ones([40, 48], dtype=torch.bool); t = aten::tril(n); u = aten::slice.Tensor(t, 0, 0, 32); m = aten::slice.Tensor(u, 1, 0, 32)
          """)
  void masksThatHideWhatIsBehindTheDiagonal(String name, String mask) {
    assertThat(attended("f32", 32, 32, mask))
        .contains("o = aten::scaled_dot_product_attention(q, k, v, None, 0.0, True)")
        .doesNotContain("arange", "m =");
  }

  /** It has more elements than fit an array. */
  @Test
  void longMask() {
    assertThat(attended("bf16", 50000, 50000, "m = aten::le.Tensor(col, row)"))
        .contains("o = aten::scaled_dot_product_attention(q, k, v, None, 0.0, True)");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          all true            | m = aten::ones([32, 48], dtype=torch.bool)
          all zero            | m = aten::zeros([1, 1, 32, 48])
          broadcast           | m = aten::ge.Scalar(col, 0)
          negative numbers    | a = aten::le.Tensor(col, row); b = aten::_to_copy(a, dtype=torch.int64); c = aten::mul.Scalar(b, 2); d = aten::sub.Scalar(c, 1); z = aten::sub.Tensor(col, col); m = aten::logical_or(d, z)
          sums of bools       | a = aten::ge.Scalar(col, 0); b = aten::add.Tensor(a, a); m = aten::eq.Tensor(b, a)
          where nothing is    | a = aten::lt.Scalar(col, 0); m = aten::where.ScalarOther(a, -inf, 0.0)
          """)
  void masksThatHideNothing(String name, String mask) {
    assertThat(attended("f32", 32, 48, mask))
        .contains("o = aten::scaled_dot_product_attention(q, k, v)")
        .doesNotContain("arange");
  }

  /** One element more or less decides. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          too little          | 32 | m = aten::lt.Tensor(col, row)
          too much            | 32 | a = aten::sub.Tensor(col, row); m = aten::le.Scalar(a, 1)
          other way           | 32 | m = aten::le.Tensor(row, col)
          aligned at the end  | 48 | a = aten::sub.Tensor(col, row); m = aten::le.Scalar(a, 16)
          a window            | 32 | a = aten::le.Tensor(col, row); s = aten::sub.Tensor(row, col); b = aten::lt.Scalar(s, 31); m = aten::bitwise_and.Tensor(a, b)
          not low enough      | 32 | a = aten::le.Tensor(col, row); m = aten::where.ScalarOther(a, 0.0, -1000.0)
          not zero            | 32 | a = aten::le.Tensor(col, row); m = aten::where.ScalarOther(a, 1.0, -inf)
          rounded first       | 32 | z = aten::full([32, 32], -65504.0, dtype=torch.bfloat16); y = aten::_to_copy(z, dtype=torch.int64); a = aten::sub.Tensor(col, row); b = aten::le.Scalar(a, 0); w = aten::eq.Scalar(y, -65504); m = aten::bitwise_and.Tensor(b, w)
          with a float        | 32 | a = aten::sub.Tensor(col, row); m = aten::le.Scalar(a, 0.1)
          from a fraction     | 32 | n = aten::arange.start_step(0.5, 32, 1, dtype=torch.int64); c = aten::unsqueeze(n, 0); r = aten::unsqueeze(n, 1); m = aten::le.Tensor(c, r)
          not for every row   | 32 | a = aten::le.Scalar(col, 4); m = aten::expand(a, [32, 32])
          given               | 32 | m = aten::logical_not(x)
          partly given        | 32 | a = aten::le.Tensor(col, row); m = aten::bitwise_and.Tensor(a, x)
          random              | 32 | r = aten::rand([32, 32]); m = aten::ge.Scalar(r, 0.0)
          by floats           | 32 | f = aten::_to_copy(col, dtype=torch.float32); g = aten::_to_copy(row, dtype=torch.float32); m = aten::le.Tensor(f, g)
          written             | 32 | m = aten::le.Tensor(col, row); w = aten::copy_(m, x)
          written in a view   | 32 | m = aten::le.Tensor(col, row); u = aten::select.int(m, 0, 0); w = aten::fill_.Scalar(u, 1)
          seen as others      | 32 | f = aten::full([32, 32], 1.0); e = aten::view.dtype(f, torch.int32); b = aten::eq.Scalar(e, 1); a = aten::lt.Tensor(col, row); m = aten::logical_or(a, b)
          beyond its type     | 32 | n = aten::arange.start_step(2147483632, 2147483664, 1, dtype=torch.int32); a = aten::ge.Scalar(n, 0); m = aten::expand(a, [32, 32])
          its operand written | 32 | w = aten::zero_(i); m = aten::le.Tensor(col, row)
          too long            | 32 | b = aten::full([32, 32], 4611686018427387904); c = aten::sub.Tensor(col, row); d = aten::add.Tensor(b, c); m = aten::le.Tensor(d, b)
          """)
  void otherMasksStay(String name, int keys, String mask) {
    assertThat(attended("f32", 32, keys, mask)).contains("attention(q, k, v, m)");
  }

  /** Only the schema says that the result of an op without a rule is a view. */
  @Test
  void writtenInWhatMayBeAView() {
    var graph =
        GraphPrinter.print(
            plan(
                """
                graph version 1
                op mylib::part(Tensor(a) x) -> Tensor(a)

                graph t(q: f32[1, 2, 8, 16], x: b8[8, 8]) {
                  m = aten::ones([8, 8], dtype=torch.bool)
                  p: b8[8, 8] = mylib::part(m)
                  w = aten::copy_(p, x)
                  o = aten::scaled_dot_product_attention(q, q, q, m)
                  return o
                }
                """));
    assertThat(graph).contains("attention(q, q, q, m)");
  }

  /** The gradient of a mask, which the efficient kernel can give, needs it. */
  @ParameterizedTest
  @CsvSource({"True, True", "False, False"})
  void backward(String gradient, boolean stays) {
    var graph =
        plan(
            "q: f32[1, 2, 32, 16], k: f32[1, 2, 32, 16], v: f32[1, 2, 32, 16], g: f32[1, 2, 32,"
                + " 16]",
            """
              n = aten::full([1, 2, 32, 32], -inf)
              m = aten::triu(n, 1)
              o, l, s, t = aten::_scaled_dot_product_efficient_attention(q, k, v, m, True)
              dq, dk, dv, db = aten::_scaled_dot_product_efficient_attention_backward(g, q, k, v, m, o, l, s, t, 0.0, [True, True, True, %s])
              return o, dq, dk, dv
            """
                .formatted(gradient));
    assertThat(graph.contains("triu")).isEqualTo(stays);
  }
}
