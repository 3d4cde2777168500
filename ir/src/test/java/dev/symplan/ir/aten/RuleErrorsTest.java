package dev.symplan.ir.aten;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** That a rule refuses what PyTorch refuses is in {@link RulesTest}; here is how it says so. */
class RuleErrorsTest {

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "aten::mm(x, y)                        | aten::mm: inner sizes differ: 6 and 5",
        "aten::mm(x, y)                        | hint: f32[4, 6] times f32[5, 8]",
        "aten::mm(x, h)                        | aten::mm: self is f32, but mat2 is bf16",
        "aten::mm(x, v)                        | aten::mm: mat2 must have 2 dimensions, but is"
            + " f32[6]",
        "aten::mm(x, None)                     | aten::mm: mat2 must be a tensor",
        "aten::addmm(v, x, w)                  | self of shape [6] does not broadcast to [4, 8]",
        "aten::linear(x, w)                    | input has 6 features, but weight takes 8",
        "aten::add.Tensor(x, y)                | shapes [4, 6] and [5, 8] do not broadcast: sizes 4"
            + " and 5 at dimension -2",
        "aten::addcdiv(i, i, i)                | cannot divide integers by integers",
        "aten::roll(x, [])                     | needs a shift",
        "aten::_fused_rms_norm_backward(x, x, [6], v, None, [True, True]) | rstd is f32[6], but the"
            + " input has 4 rows",
        "aten::repeat_interleave.self_Tensor(x, i, 0, output_size=8) | but there are 4 elements to"
            + " repeat",
        "aten::select_backward(v, [4, 5], 0, 1) | grad_output has the shape [6], but the part has"
            + " [5]",
        "aten::slice_backward(x, [4, 6], 0, 0, 3, 1) | grad_output has the shape [4, 6], but the"
            + " part has [3, 6]",
        "aten::as_strided_scatter(x, v, [6], [4], 5) | reaches outside the memory of self, which"
            + " has 96 bytes",
        "aten::bitwise_and.Tensor(x, x)        | works on integers and bool, not on f32",
        "aten::gcd(u, u)                       | works on integers but u64, and bool, not on u64",
        "aten::view(x, [5, 5])                 | 24 elements do not fit the shape [5, 5]",
        "aten::view(t, [24])                   | f32[4, 6][1, 4] cannot be viewed as [24] without a"
            + " copy",
        "aten::view(t, [24])                   | hint: use aten::reshape, which copies if"
            + " necessary",
        "aten::permute(x, [0, 0])              | dims names dimension 0 twice",
        "aten::permute(x, [0, 2])              | dims is 2, but must lie in [-2, 1]",
        "aten::expand(x, [4, 7])               | f32[4, 6] does not expand to [4, 7]: dimension 1"
            + " is 6",
        "aten::select.int(x, 1, 6)             | index 6 is out of range for dimension 1 of size 6",
        "aten::slice.Tensor(x, 0, 0, 4, 0)     | step is 0, but must be positive",
        "aten::split_with_sizes(x, [1, 2])     | the parts [1, 2] add up to 3, but dimension 0 has"
            + " size 4",
        "aten::cat([x, y])                     | sizes differ at dimension 1: 'x' has 6, 'y' has 8",
        "aten::cat([s, s])                     | hint: use aten::stack",
        "aten::mean(i)                         | works on floats, not on i64",
        "aten::uniform(x, 2.0, 1.0)            | 'from' must be at most 'to', but is 2.0",
        "aten::uniform_(x, 0.0, -1.0)          | 'from' must be at most 'to', but is 0.0",
        "aten::uniform(x, nan)                 | 'from' must be at most 'to', but is NaN",
        "aten::exponential(x, 0)               | 'lambd' must be above 0, but is 0.0",
        "aten::exponential_(x, -1.5)           | 'lambd' must be above 0, but is -1.5",
        "aten::normal_functional(x, 0, -1)     | 'std' must be 0 or more, but is -1.0",
        "aten::randint(0, [2])                 | 'high' must be above 0, but is 0",
        "aten::randint.low(3, 3, [2])          | 'high' must be above 3, but is 3",
        "aten::randint_like.low_dtype(x, 5, 3) | 'high' must be above 5, but is 3",
        "aten::histc(x, 4, 5, 1)               | 'max' must be at least 5.0, but is 1.0",
        "aten::bernoulli.p(x, 1.5)             | 'p' must be between 0 and 1, but is 1.5",
        "aten::native_dropout(x, -0.1, True)   | 'p' must be between 0 and 1, but is -0.1",
        "aten::native_dropout(x, nan, None)    | 'p' must be between 0 and 1, but is NaN",
        "aten::dropout(x, 1.5, False)          | 'p' must be between 0 and 1, but is 1.5",
        "aten::dropout(i, 0.5, True)           | draws floats, not i64",
        "aten::native_dropout(i, 0.5, None)    | draws floats, not i64",
        "aten::randn([4], dtype=torch.uint8)   | draws floats, not u8",
        "aten::normal_functional(i)            | draws floats, not i64",
        "aten::linspace(0, 1, 4, dtype=torch.bool)    | gives numbers, not booleans",
        "aten::linspace(0, nan, 4, dtype=torch.int32) | 'end' is NaN, which i32 does not have",
        "aten::rand.generator([3], generator=x) | the state of a generator has one dimension, but"
            + " 'generator' is f32[4, 6]",
        "aten::sum.dim_IntList(x, [0, -2])     | dim names dimension 0 twice",
        "aten::topk(x, 7)                      | k is 7, but dimension 1 has 6 elements",
        "aten::embedding(x, v)                 | indices must be i64 or i32, not f32",
        "aten::index.Tensor(x, [m])            | 'm' is a mask, and the shape would depend on its"
            + " data",
        "aten::where.self(x, x, x)             | condition must be bool, not f32",
        "aten::native_layer_norm(x, [4], None, None, 1e-05) | the shape [4, 6] of the input does"
            + " not end with normalized_shape [4]",
        "aten::add_.Tensor(v, x)               | the result has the shape [4, 6], and does not fit"
            + " into 'v' of shape [6]",
        "aten::add_.Tensor(i, 1.5)             | the result is f32, and does not fit into 'i' of"
            + " i64",
        "aten::mean(x, dtype=torch.int32)      | works on floats, not on i32",
        "aten::sum(x, dtype=torch.bool)        | hint: use aten::any or aten::all",
        "aten::group_norm(x, 2, y)             | weight is f32[5, 8], but must have the shape [6],"
            + " an element for each channel",
        "aten::native_group_norm(x, None, None, 4, 3, 2, 1, 1e-05) | input must be [N, C, ...] of"
            + " N × C × HxW = 4 × 3 × 2 elements, but is f32[4, 6]",
        "aten::mse_loss_backward(y, x, x, 0)   | grad_output of shape [5, 8] does not broadcast to"
            + " [4, 6]",
        "aten::cross_entropy_loss(v, s)        | target has the number of a class, so it must be"
            + " i64 or u8, not f32",
        "aten::cross_entropy_loss(x, x, i)     | weight is i64[3], but must have the shape [6]",
        "aten::bucketize.Tensor(v, x)          | boundaries must have 1 dimension, but is f32[4,"
            + " 6]",
        "aten::searchsorted.Tensor(s, v)       | sorted_sequence must have 1 dimension, or all"
            + " dimensions of self but the last, not f32[]",
        "aten::searchsorted.Tensor(v, x, sorter=i) | sorter must be i64[6], like sorted_sequence,"
            + " not i64[3]",
        "aten::searchsorted.Tensor(v, x, right=True, side='left') | side is 'left', which does not"
            + " go with right",
        "aten::index_fill.int_Tensor(x, 0, i, v) | value must have no dimensions, but is f32[6]",
        "aten::scatter_add(v, 0, k, e)         | index has size 1 at dimension 0, but src has only"
            + " 0",
        "aten::arange.start_step(0, 5, -1)     | a step of -1.0 never gets from 0.0 to 5.0",
        "aten::full([1099511627776, 1099511627776], 0) | tensor of more than 2^48 bytes",
        "aten::repeat(x, [4611686018427387904, 4]) | 4611686018427387904 × 4 is too large",
      })
  void saysWhatDiffers(String call, String message) {
    var text =
        """
        graph version 1
        graph g(x: f32[4, 6], y: f32[5, 8], w: f32[6, 8], h: bf16[6, 8], t: f32[4, 6][1, 4],
                v: f32[6], i: i64[3], m: b8[4], s: f32[], e: f32[0], k: i64[], u: u64[2]) {
          %s
          return
        }
        """
            .formatted(call);

    assertThatThrownBy(() -> GraphParser.parse(new SourceFile("test", text)))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining(message);
  }
}
