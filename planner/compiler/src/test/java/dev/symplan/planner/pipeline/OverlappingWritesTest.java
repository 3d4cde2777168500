package dev.symplan.planner.pipeline;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Ops that write over what they read. */
class OverlappingWritesTest {
  private static Plan compile(String calls) {
    var text =
        """
        graph version 1
        op aten::_foreach_copy_(Tensor(a!)[] self, Tensor[] src, bool non_blocking=False) -> ()
        graph t(x: f32[4, 4], y: f32[4, 4], v: f32[16], i: i64[4], m: b8[16], b: f32[4, 4, 4], x1: f32[4, 2]) {
          %s
          return x, y, v, i, m, b, x1
        }
        """
            .formatted(calls.replace("; ", "\n  "));
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withRanks(1))
        .compile(GraphParser.parse(new SourceFile("overlaps.graph", text)));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "t = aten::t(x); z = aten::copy_(x, t)",
        "t = aten::t(x); z = aten::add_.Tensor(x, t)",
        "t = aten::t(x); z = aten::addcmul_(x, y, t)",
        "t = aten::t(x); z = aten::eq_.Tensor(x, t)",
        "t = aten::t(x); aten::_foreach_copy_([y, x], [x, t])",
        "r = aten::select.int(x, 0, 0); z = aten::copy_(x, r)",
        "r = aten::select.int(v, 0, 5); z = aten::mul_.Tensor(v, r)",
        "a = aten::slice.Tensor(x, 0, 1, 4); c = aten::slice.Tensor(x, 0, 0, 3); z = aten::copy_(a,"
            + " c)",
        "a = aten::slice.Tensor(v, 0, 0, 6, 2); c = aten::slice.Tensor(v, 0, 2, 8, 2); z ="
            + " aten::copy_(a, c)",
        "a = aten::slice.Tensor(m, 0, 1, 16); c = aten::slice.Tensor(m, 0, 0, 15); z ="
            + " aten::masked_fill_.Scalar(a, c, 0)",
        "z = aten::index_put_(x, [i], x)",
        "z = aten::index_put_(i, [i], i)",
        "z = aten::index_add_(x, 0, i, x)",
        "z = aten::index_copy_(x, 0, i, x)",
        "z = aten::addmm_(x, x, y)",
        "r = aten::select.int(b, 0, 1); z = aten::addbmm_(r, b, b)",
        "s = aten::slice.Tensor(v, 0, 0, 1); e = aten::expand(s, [4]); z = aten::relu_(e)",
        "e = aten::as_strided(v, [4, 2], [1, 1], 0); z = aten::copy_(e, x1)",
        "e = aten::as_strided(v, [4, 2], [1, 1], 0); z = aten::add_.Tensor(e, 1)"
      })
  void whatDependsOnAnOrderIsRefused(String calls) {
    assertThatThrownBy(() -> compile(calls))
        .isInstanceOf(CompileException.class)
        .hasMessageMatching("(?s).*(some elements that it also reads|several indices are one).*");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "z = aten::copy_(x, x)",
        "z = aten::add_.Tensor(x, x)",
        "w = aten::view(x, [16]); s = aten::as_strided(x, [16], [1], 0); z = aten::mul_.Tensor(w,"
            + " s)",
        "a = aten::select.int(x, 1, 0); c = aten::select.int(x, 1, 1); z = aten::add_.Tensor(a, c)",
        "a = aten::slice.Tensor(x, 1, 0, 2); c = aten::slice.Tensor(x, 1, 2, 4); z = aten::copy_(a,"
            + " c)",
        "a = aten::slice.Tensor(v, 0, 0, 16, 2); c = aten::slice.Tensor(v, 0, 1, 16, 2); z ="
            + " aten::copy_(a, c)",
        "a = aten::select.int(x, 0, 0); c = aten::select.int(x, 1, 0); z = aten::add_.Tensor(a, c)",
        "a = aten::as_strided(v, [1, 4], [7, 1], 0); c = aten::slice.Tensor(v, 0, 0, 4); z ="
            + " aten::add_.Tensor(a, c)",
        "a = aten::as_strided(v, [2, 2], [3, 2], 0); z = aten::relu_(a)",
        "a = aten::slice.Tensor(x, 0, 0, 0); c = aten::slice.Tensor(x, 0, 2, 2); z = aten::copy_(a,"
            + " c)",
        "s = aten::slice.Tensor(v, 0, 0, 1); e = aten::expand(s, [4]); z = aten::fill_.Scalar(e,"
            + " 3)",
        "r = aten::select.int(v, 0, 5); z = aten::fill_.Tensor(v, r)",
        "a = aten::select.int(b, 0, 1); c = aten::select.int(b, 0, 2); z = aten::addmm_(a, c, c)",
        "z = aten::cumsum_(x, 0)"
      })
  void othersAreNot(String calls) {
    assertThatCode(() -> compile(calls)).doesNotThrowAnyException();
  }
}
