package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.check.Reference;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A call whose numbers are not allowed names the op, the number and its bounds. */
class KernelErrorsTest {
  private static final Pattern INPUT =
      Pattern.compile("(f8e5m2|f32|i64|i32|b8|c64|f64)\\[[\\d, ]*\\]");

  /** A graph of one call; its inputs are the tensors that stand in it. */
  private static String program(String call) {
    var inputs = new StringBuilder();
    Matcher matcher = INPUT.matcher(call);
    var text = new StringBuilder();
    for (int i = 0; matcher.find(); i++) {
      inputs.append(i > 0 ? ", " : "").append("x").append(i).append(": ").append(matcher.group());
      matcher.appendReplacement(text, "x" + i);
    }
    matcher.appendTail(text);
    return "graph g(%s) {\n  y = %s\n  return y\n}\n".formatted(inputs, text);
  }

  private static void run(String call, long number) {
    var plan = Programs.plan(program(call), CompileOptions.DEFAULT.withRanks(1));
    try (var session = Session.open(plan, new HostBackend())) {
      for (int i = 0; i < session.inputNames().size(); i++) {
        session.input(0, i).ifPresent(tensor -> fill(tensor, number));
      }
      session.run();
    }
  }

  private static void fill(HostTensor tensor, long number) {
    var flat = tensor.as(TensorType.contiguous(tensor.dtype(), tensor.type().numel()));
    for (long i = 0; i < flat.type().numel(); i++) {
      if (tensor.dtype().isFloat()) {
        flat.set(1, i);
      } else if (tensor.dtype().kind() != DType.Kind.COMPLEX) {
        flat.setLong(number, i);
      }
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "aten::index.Tensor(f32[4, 6], [i64[3]])|4|index 4 is out of range for dimension 0 of size"
            + " 4",
        "aten::index.Tensor(f32[4, 6], [None, i64[3]])|-7|index -7 is out of range for dimension 1"
            + " of size 6",
        "aten::_unsafe_index.Tensor(f32[4, 6], [i64[3]])|9|index 9 is out of range for dimension 0"
            + " of size 4",
        "aten::index_put(f32[4, 6], [i64[3]], f32[3, 6])|4|index 4 is out of range for dimension 0"
            + " of size 4",
        "aten::index_put(f32[4, 6], [i64[3]], f32[6], True)|-5|index -5 is out of range for"
            + " dimension 0 of size 4",
        "aten::index_put(f32[3, 4], [b8[3], i64[2]], f32[3], True)|1|[3] and [2] do not broadcast",
        "aten::gather(f32[4, 6], 1, i64[4, 2])|6|index 6 is out of range for dimension 1 of size 6",
        "aten::gather(f32[4, 6], 1, i64[4, 2])|-1|index -1 is out of range for dimension 1 of size"
            + " 6",
        "aten::scatter.src(f32[4, 6], 0, i64[2, 6], f32[2, 6])|4|index 4 is out of range for"
            + " dimension 0 of size 4",
        "aten::scatter.value(f32[4, 6], 1, i64[2, 6], 1.5)|6|index 6 is out of range for dimension"
            + " 1 of size 6",
        "aten::scatter_add(f32[4, 6], 0, i64[2, 6], f32[2, 6])|-1|index -1 is out of range for"
            + " dimension 0 of size 4",
        "aten::scatter_reduce.two(f32[4, 6], 0, i64[2, 6], f32[2, 6], 'amax')|4|index 4 is out of"
            + " range for dimension 0 of size 4",
        "aten::index_select(f32[4, 6], 1, i64[3])|6|index 6 is out of range for dimension 1 of size"
            + " 6",
        "aten::index_select(f32[4, 6], 0, i32[3])|-1|index -1 is out of range for dimension 0 of"
            + " size 4",
        "aten::index_add(f32[4, 6], 0, i64[3], f32[3, 6])|4|index 4 is out of range for dimension 0"
            + " of size 4",
        "aten::index_copy(f32[4, 6], 0, i64[3], f32[3, 6])|4|index 4 is out of range for dimension"
            + " 0 of size 4",
        "aten::index_fill.int_Scalar(f32[4, 6], 0, i64[3], 1)|-5|index -5 is out of range for"
            + " dimension 0 of size 4",
        "aten::take(f32[4, 6], i64[3])|24|index 24 is out of range for dimension 0 of size 24",
        "aten::embedding(f32[4, 6], i64[3])|4|index 4 is out of range for dimension 0 of size 4",
        "aten::embedding(f32[4, 6], i32[3])|-1|index -1 is out of range for dimension 0 of size 4",
        "aten::embedding_dense_backward(f32[3, 6], i64[3], 4, -1, False)|4|index 4 is out of range"
            + " for dimension 0 of size 4",
        "aten::one_hot(i64[3], 4)|4|index 4 is out of range for dimension 0 of size 4",
        "aten::searchsorted.Tensor(f32[5], f32[2], sorter=i64[5])|5|index 5 is out of range for"
            + " dimension 0 of size 5",
        "aten::cross_entropy_loss(f32[4, 6], i64[4])|6|target 6 is out of range for 6 classes",
        "aten::bincount(i64[4], None, 7)|7|value 7 at 0 is out of range for 7 bins",
        "aten::repeat_interleave.self_Tensor(f32[3, 2], i64[3], 0, output_size=5)|2|2 repetitions"
            + " of element 2 do not fit output_size 5",
        "aten::_grouped_mm(f32[8, 4], f32[2, 4, 6], i32[2])|9|offs ends group 0 at 9 of 8",
        "aten::floor_divide(i64[3], i64[3])|0|integer division by zero",
      })
  void outOfRange(String call, long number, String message) {
    var name = call.substring(0, call.indexOf('('));
    assertThatThrownBy(() -> run(call, number))
        .isInstanceOf(RunException.class)
        .hasMessageContaining("rank 0, " + name + " 'y' (test.graph:3)")
        .hasMessageContaining(message);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "aten::scaled_dot_product_attention(f32[1, 2, 3, 4], f32[1, 2, 3, 4], f32[1, 2, 3, 4],"
            + " None, 0.5)|attention with dropout",
        "aten::_scaled_mm(f8e5m2[3, 2], f8e5m2[2, 4], f32[], f32[], None, f32[])|with scale_result",
        "aten::atan(c64[3])|does not compute with c64",
        "aten::logcumsumexp(c64[3], 0)|does not compute with c64",
        "aten::logsumexp(c64[3, 4], [1])|does not compute with c64",
      })
  void notComputedHere(String call, String message) {
    var name = call.substring(0, call.indexOf('('));
    assertThatThrownBy(() -> run(call, 0))
        .isInstanceOf(RunException.class)
        .hasMessageContaining(name + " 'y' (test.graph:3)")
        .hasMessageContaining(message);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "aten::embedding(f32[4, 6], i64[3])|index 5 is out of range for dimension 0 of size 4",
        "aten::logsumexp(c64[3, 4], [1])|does not compute with c64",
      })
  void evaluatedWithoutAPlan(String call, String message) {
    var name = call.substring(0, call.indexOf('('));
    var plan = Programs.plan(program(call), CompileOptions.DEFAULT.withRanks(1));
    try (var session = Session.open(plan, new HostBackend())) {
      for (int i = 0; i < session.inputNames().size(); i++) {
        session.input(0, i).ifPresent(tensor -> fill(tensor, 5));
      }
      assertThatThrownBy(() -> Reference.evaluate(plan, session))
          .isInstanceOf(RunException.class)
          .hasMessageStartingWith("rank 0, %s 'y' (test.graph:3)".formatted(name))
          .hasMessageContaining(message);
    }
  }

  /** Sums of nothing are 0; what is largest among nothing, nobody knows. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "aten::max(f32[0])",
        "aten::min(i64[2, 0])",
        "aten::amax(f32[2, 0], [1])",
        "aten::amin(f32[2, 0])",
        "aten::argmax(f32[2, 0], 1)",
        "aten::aminmax(f32[0])",
      })
  void nothingToChooseFrom(String call) {
    assertThatThrownBy(() -> run(call, 0))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("has no elements to choose from");
  }
}
