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

/** Conjugate views, which have the memory of their operands in PyTorch, and their own here. */
class LazyViewsTest {
  private static Plan compile(String calls) {
    var text =
        """
        graph version 1
        op my_lib::writes(Tensor(a!) x) -> ()
        graph t(x: c64[4], y: c64[4]) {
          %s
        }
        """
            .formatted(calls.replace("; ", "\n  "));
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withRanks(1))
        .compile(GraphParser.parse(new SourceFile("views.graph", text)));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "c = aten::_conj(x); z = aten::mul_.Tensor(x, y); return c",
        "c = aten::_conj(x); z = aten::mul_.Tensor(x, y); d = aten::add.Tensor(c, y); return d",
        "c = aten::_conj(x); z = aten::mul_.Tensor(c, y); return x",
        "c = aten::_conj(x); d = aten::_conj(c); z = aten::mul_.Tensor(x, y); return d",
        "c = aten::_neg_view(x); z = aten::mul_.Tensor(x, y); return c",
        "c = aten::_conj(x); s = aten::slice.Tensor(x, 0, 1, 2); z = aten::zero_(s); return c",
        "c = aten::_conj(x); s = aten::resolve_conj(c); z = aten::zero_(s); return c, x",
        "c = aten::_conj(x); my_lib::writes(x); return c"
      })
  void writesThatShouldShowInTheOtherOneAreRefused(String calls) {
    assertThatThrownBy(() -> compile(calls))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("of which a conjugate or negative view is read afterwards");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "z = aten::mul_.Tensor(x, y); c = aten::_conj(x); return c",
        "c = aten::_conj(x); d = aten::mul.Tensor(c, y); z = aten::copy_(x, d); return d",
        "c = aten::_conj(x); z = aten::add_.Tensor(x, c); return z",
        "c = aten::_conj(x); z = aten::mul_.Tensor(y, c); return c",
        "k = aten::clone(x); c = aten::_conj(k); z = aten::mul_.Tensor(x, y); return c"
      })
  void othersAreNot(String calls) {
    assertThatCode(() -> compile(calls)).doesNotThrowAnyException();
  }
}
