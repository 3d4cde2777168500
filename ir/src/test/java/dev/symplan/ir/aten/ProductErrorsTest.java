package dev.symplan.ir.aten;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import java.util.ArrayList;
import java.util.regex.Pattern;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Products and attention reach beyond their operands where types or sizes do not fit. */
class ProductErrorsTest {
  private static final Pattern TYPE = Pattern.compile("\\b\\w+\\[[\\d, ]*\\](?=[,)])");

  /** A graph with one op; its inputs are the tensors of the call. */
  private static void read(String call) {
    var inputs = new ArrayList<String>();
    var text =
        TYPE.matcher(call)
            .replaceAll(
                match -> {
                  inputs.add("t%s: %s".formatted(inputs.size(), match.group()));
                  return "t" + (inputs.size() - 1);
                });
    GraphParser.parse(
        new SourceFile(
            "test.graph",
            "graph version 1\ngraph g(%s) {\n  %s\n  return\n}\n"
                .formatted(String.join(", ", inputs), text)));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "aten::mm.dtype(f32[4, 6], f32[6, 8], torch.float64)|out_dtype must be f32, like the"
            + " operands, or f32 for operands of f16 or bf16, not f64",
        "aten::bmm.dtype(i64[2, 4, 6], i64[2, 6, 8], torch.float32)|not f32",
        "aten::addmm.dtype(f64[8], bf16[4, 6], bf16[6, 8], torch.float32)|self is f64, but the"
            + " product is f32",
        "aten::addmm(i64[8], i64[4, 6], i64[6, 8], alpha=1.5)|alpha or beta is a float, but the"
            + " operands are integers",
        "aten::baddbmm(f32[8], bf16[2, 4, 6], bf16[2, 6, 8])|self is f32, but the product is bf16",
        "aten::mv(f64[4, 6], f32[6])|self is f64, but vec is f32",
        "aten::addmv(f32[4], f64[4, 6], f64[6])|self is f32, but the product is f64",
        "aten::dot(f32[6], f64[6])|self is f32, but tensor is f64",
        "aten::linear(f32[4, 6], f64[8, 6])|input is f32, but weight is f64",
        "aten::outer(u32[4], i32[6])|no element type holds both u32 and i32",
        "aten::_scaled_mm(f32[16, 32], f8e4m3fn[32, 16], f32[], f32[])|self must be f8e4m3fn or"
            + " f8e5m2 or f8e4m3fnuz or f8e5m2fnuz, not f32",
        "aten::_scaled_mm(f8e5m2[16, 32], bf16[32, 16], f32[], f32[])|mat2 must be f8e4m3fn",
        "aten::_scaled_mm(f8e5m2[16, 32], f8e5m2[32, 16], f64[], f32[])|scale_a must be f32, or"
            + " f8e8m0fnu for blocks, but is f64[]",
        "aten::_scaled_mm(f8e5m2[16, 32], f8e5m2[32, 16], f32[16, 1], f32[1, 15])|scale_b is"
            + " f32[1, 15], but mat2 has 16 columns",
        "aten::_scaled_mm(f8e5m2[256, 32], f8e5m2[32, 16], f32[3, 1], f32[])|scale_a is f32[3, 1],"
            + " but self has 256 rows",
        "aten::_scaled_mm(f8e5m2[16, 32], f8e5m2[32, 16], f32[0], f32[])|scale_a is f32[0], but"
            + " self has 16 rows",
        "aten::_scaled_mm(f8e5m2[16, 32], f8e5m2[32, 16], f32[], f32[], f32[15])|bias of shape [15]"
            + " does not broadcast to [16, 16]",
        "aten::_scaled_mm(f8e5m2[16, 32], f8e5m2[32, 16], f32[], f32[], None, None,"
            + " torch.int32)|out_dtype must be a float type, not i32",
        "aten::_grouped_mm(bf16[8, 4], bf16[3, 4, 6], i32[])|offs must have 1 dimension, but is"
            + " i32[]",
        "aten::_grouped_mm(bf16[8, 4], bf16[3, 4, 6], i64[3])|offs must be i32, not i64",
        "aten::_grouped_mm(bf16[8, 4], bf16[3, 4, 6], i32[4])|offs ends 4 groups, but there are 3"
            + " matrices in bf16[3, 4, 6]",
        "aten::_grouped_mm(bf16[2, 8, 4], bf16[2, 4, 6], None, bf16[6])|bias must be None",
      })
  void productsThatDoNotFit(String call, String message) {
    assertThatThrownBy(() -> read(call))
        .isInstanceOf(CompileException.class)
        .hasMessageStartingWith("test.graph:3:")
        .hasMessageContaining(message);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "scaled_dot_product_attention(i32[2, 3, 4], i32[2, 3, 4], i32[2, 3, 4])|query, key and"
            + " value must be floats, not i32",
        "scaled_dot_product_attention(f32[2, 3, 4, 8], f32[1, 3, 4, 8], f32[1, 3, 4, 8])|query and"
            + " key must have the same batch sizes",
        "scaled_dot_product_attention(f32[2, 3, 4, 8], f32[2, 3, 4, 8], f32[2, 1, 4, 8])|key and"
            + " value may differ only in their features",
        "scaled_dot_product_attention(f32[3, 4, 8], f32[3, 5, 8], f32[3, 5, 8], f32[4,"
            + " 4])|attn_mask of shape [4, 4] does not broadcast to [3, 4, 5]",
        "scaled_dot_product_attention(f32[3, 4, 8], f32[3, 5, 8], f32[3, 5, 8], i64[4,"
            + " 5])|attn_mask must be f32, like query, f32 or b8, not i64",
        "_scaled_dot_product_flash_attention(f32[2, 3, 4, 8], f32[2, 3, 4, 8], f32[2, 3, 4,"
            + " 6])|value has 6 features, but query has 8",
        "_scaled_dot_product_flash_attention_for_cpu(f32[2, 3, 4, 8], f32[2, 3, 4, 8], f32[2, 3, 4,"
            + " 6])|value has 6 features, but query has 8",
        "_scaled_dot_product_flash_attention_backward(f32[1, 1, 1, 9], f32[1, 1, 1, 9], f32[1, 1,"
            + " 1, 9], f32[1, 1, 1, 1], f32[1, 1, 1, 9], f32[1, 1, 1], i64[1], i64[1], 1, 1, 0.0,"
            + " False, i64[], i64[])|value has 1 features, but query has 9",
        "_scaled_dot_product_flash_attention_for_cpu_backward(f32[2, 3, 4, 7], f32[2, 3, 4, 8],"
            + " f32[2, 3, 4, 8], f32[2, 3, 4, 8], f32[2, 3, 4, 8], f32[2, 3, 4], 0.0,"
            + " False)|grad_out must be f32[2, 3, 4, 8], like the result, but is f32[2, 3, 4, 7]",
        "_scaled_dot_product_flash_attention_for_cpu_backward(f64[2, 3, 4, 8], f32[2, 3, 4, 8],"
            + " f32[2, 3, 4, 8], f32[2, 3, 4, 8], f32[2, 3, 4, 8], f32[2, 3, 4], 0.0,"
            + " False)|grad_out must be f32[2, 3, 4, 8], like the result, but is f64[2, 3, 4, 8]",
        "_scaled_dot_product_efficient_attention_backward(f32[2, 3, 4, 8], f32[2, 3, 4, 8], f32[2,"
            + " 3, 4, 8], f32[2, 3, 4, 6], None, f32[2, 3, 4, 8], f32[2, 3, 32], i64[], i64[], 0.0,"
            + " [True, True, True, False])|grad_out_ must be f32[2, 3, 4, 6], like the result",
        "_scaled_dot_product_cudnn_attention_backward(f32[2, 3, 4, 8], f32[2, 3, 4, 8], f32[2, 3,"
            + " 4, 8], f32[2, 3, 4, 8], f32[2, 3, 4, 8], f32[2, 3, 3, 1], i64[], i64[], None, None,"
            + " None, 4, 4, 0.0, True)|logsumexp must be floats [2, 3, 4], one for each row of"
            + " query, but is f32[2, 3, 3, 1]",
      })
  void attentionThatDoesNotFit(String call, String message) {
    assertThatThrownBy(() -> read("aten::" + call))
        .isInstanceOf(CompileException.class)
        .hasMessageStartingWith("test.graph:3:")
        .hasMessageContaining(message);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "aten::outer(f64[4], f32[6])",
        "aten::outer(b8[4], i32[6])",
        "aten::_scaled_mm(f8e4m3fn[16, 32], f8e5m2[32, 16], f32[16, 1], f32[1, 16], bf16[16])",
        "aten::addmm.dtype(bf16[8], bf16[4, 6], bf16[6, 8], torch.float32)",
        "aten::_scaled_dot_product_cudnn_attention(f32[2, 3, 4, 8], f32[2, 3, 5, 8], f32[2, 3, 5,"
            + " 6], None, True)",
        "aten::_scaled_dot_product_efficient_attention_backward(f32[2, 3, 4, 6], f32[2, 3, 4, 8],"
            + " f32[2, 3, 5, 8], f32[2, 3, 5, 6], f32[4, 5], f32[2, 3, 4, 6], f32[2, 3, 32], i64[],"
            + " i64[], 0.0, [True, True, True, False])",
      })
  void whatPyTorchTakes(String call) {
    assertThatCode(() -> read(call)).doesNotThrowAnyException();
  }
}
