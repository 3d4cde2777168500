package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.cuda.Kernel;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.machine.LibraryAttention;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.check.OutputCheck;
import dev.symplan.runtime.check.Reference;
import dev.symplan.runtime.host.HostBackend;
import dev.symplan.runtime.profile.Profile.Activity;
import dev.symplan.runtime.tensor.HostTensor;
import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Attention of 16-bit floats, by cuDNN where that has it, against the host backend. */
@Tag("gpu")
class AttentionOnGpuTest {
  private static final String GENERATED = Kernel.ENTRY + "|generated.*";
  private static final Duration TIMEOUT = Duration.ofSeconds(20);

  @BeforeEach
  void requireGpu() {
    Gpus.require(1);
  }

  /**
   * Rows of queries and keys that no tile divides, all usual head sizes, keys that several heads
   * share, queries whose heads are inside, and short queries of long keys.
   */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          bf16 | 1 | 4 | 4 |  512 |  512 |  64 | false | dense
          bf16 | 1 | 4 | 4 |  512 |  512 | 128 | true  | dense
          f16  | 2 | 4 | 2 |  333 |  333 |  64 | true  | dense
          bf16 | 2 | 4 | 1 |  100 |  257 |  80 | false | dense
          f16  | 3 | 2 | 2 |  129 |  129 |  96 | true  | heads_inside
          bf16 | 1 | 2 | 2 |  200 |  200 | 256 | true  | heads_inside
          bf16 | 4 | 8 | 2 |    1 | 1000 | 128 | false | dense
          bf16 | 64| 2 | 2 |   17 |   17 |  64 | true  | dense
          bf16 | 1 | 2 | 2 |  300 |  100 |  64 | true  | dense
          bf16 | 1 | 2 | 2 |    1 |    1 |  64 | true  | dense
          """)
  void forward(
      String dtype,
      long batch,
      long heads,
      long groups,
      long rows,
      long keys,
      long features,
      boolean causal,
      String layout) {
    boolean inside = layout.equals("heads_inside");
    var text =
        """
        graph version 1
        graph t(q0: %1$s[%2$s], k0: %1$s[%3$s], v0: %1$s[%3$s]) {
          q = aten::permute(q0, [%4$s])
          k = aten::permute(k0, [%4$s])
          v = aten::permute(v0, [%4$s])
          o = aten::scaled_dot_product_attention(q, k, v, is_causal=%5$s, enable_gqa=True)
          p = aten::scaled_dot_product_attention(q, k, v, is_causal=%5$s, scale=0.3, enable_gqa=True)
          return o, p
        }
        """
            .formatted(
                dtype,
                sizes(inside, batch, heads, rows, features),
                sizes(inside, batch, groups, keys, features),
                inside ? "0, 2, 1, 3" : "0, 1, 2, 3",
                causal ? "True" : "False");
    agrees(text);
  }

  /** A negative scale turns the order of scores around, which cuDNN's kernels do not expect. */
  @Test
  void negativeScale() {
    agrees(
        """
        graph version 1
        graph t(q: bf16[1, 2, 64, 64], k: bf16[1, 2, 64, 64], v: bf16[1, 2, 64, 64]) {
          n = aten::scaled_dot_product_attention(q, k, v, is_causal=True, scale=-0.3)
          o = aten::scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3)
          return n, o
        }
        """);
  }

  /** Rows that see nothing are 0, and those that see one key are its value. */
  @ParameterizedTest
  @CsvSource({"-inf", "-65536.0", "-1e30"})
  void rowsThatSeeNothing(String masked) {
    agrees(
        """
        graph version 1
        graph t(q: bf16[1, 2, 64, 64], k: bf16[1, 2, 64, 64], v: bf16[1, 2, 64, 64], z: bf16[64, 64]) {
          a = aten::zeros_like(z)
          m = aten::full_like(z, %s)
          n = aten::full_like(z, 1)
          d = aten::tril(n, -2)
          e = aten::ne.Scalar(d, 0)
          f = aten::where.self(e, a, m)
          o = aten::scaled_dot_product_attention(q, k, v, f)
          return o
        }
        """
            .formatted(masked));
  }

  private static String sizes(boolean inside, long batch, long heads, long rows, long features) {
    return inside
        ? "%s, %s, %s, %s".formatted(batch, rows, heads, features)
        : "%s, %s, %s, %s".formatted(batch, heads, rows, features);
  }

  /** A bias for all heads or each, with rows that begin at multiples of 16 bytes. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          bf16 | bf16 | 1 | 4 |  256 |  256 | 128 | 1, 1
          f16  | f16  | 2 | 4 |  100 |  200 |  64 | 2, 4
          bf16 | bf16 | 2 | 4 |   77 |  120 |  64 | 1, 4
          bf16 | f32  | 2 | 2 |  120 |  333 |  64 | 2, 1
          """)
  void bias(
      String dtype,
      String ofBias,
      long batch,
      long heads,
      long rows,
      long keys,
      long features,
      String shared) {
    long padded = Math.ceilDiv(keys, 8) * 8;
    agrees(
        """
        graph version 1
        graph t(q: %1$s[%3$s, %4$s, %5$s, %7$s], k: %1$s[%3$s, %4$s, %6$s, %7$s], v: %1$s[%3$s, %4$s, %6$s, %7$s], b: %2$s[%8$s, %5$s, %9$s]) {
          c = aten::slice.Tensor(b, 3, 0, %6$s)
          o = aten::scaled_dot_product_attention(q, k, v, c)
          p = aten::scaled_dot_product_attention(q, k, v, c, scale=0.7)
          return o, p
        }
        """
            .formatted(dtype, ofBias, batch, heads, rows, keys, features, shared, padded));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          bf16 | 1 | 4 | 4 | 512 |  64 | false | false
          bf16 | 1 | 4 | 4 | 256 | 128 | true  | false
          f16  | 2 | 2 | 2 | 333 |  64 | true  | false
          bf16 | 2 | 2 | 2 | 100 |  80 | false | false
          bf16 | 1 | 2 | 2 | 200 | 128 | false | true
          f16  | 2 | 3 | 3 | 129 |  96 | true  | false
          bf16 | 1 | 2 | 2 | 130 | 256 | true  | false
          bf16 | 1 | 4 | 1 | 512 |  64 | false | false
          bf16 | 1 | 8 | 2 | 256 | 128 | true  | false
          f16  | 2 | 6 | 2 | 333 |  80 | true  | false
          bf16 | 2 | 4 | 2 | 200 | 128 | false | true
          f16  | 1 | 8 | 1 | 130 | 256 | true  | false
          """)
  void backward(
      String dtype,
      long batch,
      long heads,
      long groups,
      long rows,
      long features,
      boolean causal,
      boolean biased) {
    long padded = Math.ceilDiv(rows, 8) * 8;
    agrees(
        """
        graph version 1
        graph t(q: %1$s[%2$s, %3$s, %4$s, %5$s], k: %1$s[%2$s, %9$s, %4$s, %5$s], v: %1$s[%2$s, %9$s, %4$s, %5$s], b: %1$s[1, 1, %4$s, %6$s], g: %1$s[%2$s, %3$s, %4$s, %5$s]) {
          c = aten::slice.Tensor(b, 3, 0, %4$s)
          o, l, cq, ck, mq, mk, ps, po, dm = aten::_scaled_dot_product_cudnn_attention(q, k, v, %8$s, True, 0.0, %7$s)
          dq, dk, dv = aten::_scaled_dot_product_cudnn_attention_backward(g, q, k, v, o, l, ps, po, %8$s, None, None, %4$s, %4$s, 0.0, %7$s)
          return o, l, dq, dk, dv, c
        }
        """
            .formatted(
                dtype,
                batch,
                heads,
                rows,
                features,
                padded,
                causal ? "True" : "False",
                biased ? "c" : "None",
                groups),
        kernels -> areCudnn(kernels, "o|dq|dk|dv"));
  }

  /** Heads that the graph repeats; it adds the gradients of the copies up, each after rounding. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          bf16 | 1 | 4 | 4 | 512 | 128 | True
          f16  | 2 | 2 | 3 | 200 |  64 | False
          """)
  void repeatedHeads(
      String dtype, long batch, long groups, long times, long rows, long features, String causal) {
    var text =
        """
        graph version 1
        graph t(q: %1$s[%2$s, %5$s, %6$s, %7$s], k0: %1$s[%2$s, %6$s, %3$s, %7$s], v0: %1$s[%2$s, %6$s, %3$s, %7$s], g: %1$s[%2$s, %5$s, %6$s, %7$s]) {
          k1 = aten::permute(k0, [0, 2, 1, 3])
          k2 = aten::unsqueeze(k1, 2)
          k3 = aten::expand(k2, [%2$s, %3$s, %4$s, %6$s, %7$s])
          k4 = aten::clone(k3, memory_format=torch.contiguous_format)
          k = aten::view(k4, [%2$s, %5$s, %6$s, %7$s])
          v1 = aten::permute(v0, [0, 2, 1, 3])
          v2 = aten::unsqueeze(v1, 2)
          v3 = aten::expand(v2, [%2$s, %3$s, %4$s, %6$s, %7$s])
          v = aten::reshape(v3, [%2$s, %5$s, %6$s, %7$s])
          o, l, cq, ck, mq, mk, ps, po, dm = aten::_scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, %8$s)
          dq, dk, dv = aten::_scaled_dot_product_cudnn_attention_backward(g, q, k, v, o, l, ps, po, None, None, None, %6$s, %6$s, 0.0, %8$s)
          wk = aten::view(dk, [%2$s, %3$s, %4$s, %6$s, %7$s])
          sk = aten::sum.dim_IntList(wk, [2], True)
          wv = aten::view(dv, [%2$s, %3$s, %4$s, %6$s, %7$s])
          sv = aten::sum.dim_IntList(wv, [2])
          return o, dq, sk, sv
        }
        """
            .formatted(dtype, batch, groups, times, groups * times, rows, features, causal);
    agrees(
        text,
        kernels -> {
          areCudnn(kernels, "o|dq|dk|dv");
          assertThat(kernels).allMatch(activity -> activity.label().matches("o|dq|dk|dv"));
        });
    var plan = LocalPrograms.plan(text);
    try (var gpu = CudaSession.open(Lowering.lower(plan), TIMEOUT)) {
      LocalPrograms.fill(gpu, 1);
      gpu.run();
      var graph = GraphParser.parse(new SourceFile("t.graph", text)).graphs().getFirst();
      var expected = Reference.evaluate(List.of(graph), List.of(), gpu::input).outputs().getFirst();
      for (var check : OutputCheck.of(plan, gpu, 0, expected)) {
        assertThat(check.agrees()).as("output %s%n%s", check, text).isTrue();
      }
    }
  }

  /** One head that the graph repeats without a copy. */
  @Test
  void repeatedHeadWithoutCopies() {
    agrees(
        """
        graph version 1
        graph t(q: bf16[2, 4, 256, 64], k0: bf16[2, 256, 1, 64], v0: bf16[2, 1, 256, 64], g: bf16[2, 4, 256, 64]) {
          k1 = aten::permute(k0, [0, 2, 1, 3])
          k = aten::expand(k1, [2, 4, 256, 64])
          v = aten::expand(v0, [2, 4, 256, 64])
          o, l, cq, ck, mq, mk, ps, po, dm = aten::_scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, True)
          dq, dk, dv = aten::_scaled_dot_product_cudnn_attention_backward(g, q, k, v, o, l, ps, po, None, None, None, 256, 256, 0.0, True)
          sk = aten::sum.dim_IntList(dk, [1], True)
          sv = aten::sum.dim_IntList(dv, [1])
          return o, dq, sk, sv
        }
        """,
        kernels -> {
          areCudnn(kernels, "o|dq|dk|dv");
          assertThat(kernels).allMatch(activity -> activity.label().matches("o|dq|dk|dv"));
        });
  }

  /** cuDNN's workspace is the largest where the planner still gives it all heads at once. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          8  | 32 | 8 |  512 | 128 | True
          16 | 16 | 1 |  512 | 128 | False
          4  | 16 | 4 | 1024 | 256 | True
          """)
  void mostSharedHeads(
      long batch, long heads, long groups, long rows, long features, String causal) {
    assertThat(batch * heads * rows * rows).isEqualTo(LibraryAttention.MAX_GRADIENT_SCORES);
    assertThat(2 * batch * heads * rows * features)
        .isEqualTo(LibraryAttention.MAX_UNSUMMED_GRADIENTS);
    var text =
        """
        graph version 1
        graph t(q: bf16[%1$s, %2$s, %4$s, %5$s], k: bf16[%1$s, %3$s, %4$s, %5$s], v: bf16[%1$s, %3$s, %4$s, %5$s], g: bf16[%1$s, %2$s, %4$s, %5$s]) {
          o, l, cq, ck, mq, mk, ps, po, dm = aten::_scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, %6$s)
          dq, dk, dv = aten::_scaled_dot_product_cudnn_attention_backward(g, q, k, v, o, l, ps, po, None, None, None, %4$s, %4$s, 0.0, %6$s)
          return o, dq, dk, dv
        }
        """
            .formatted(batch, heads, groups, rows, features, causal);
    try (var gpu = CudaSession.open(Lowering.lower(LocalPrograms.plan(text)), TIMEOUT)) {
      gpu.run();
      var kernels = gpu.profile().activities();
      areCudnn(kernels, "o|dq|dk|dv");
      assertThat(kernels).allMatch(activity -> activity.label().matches("o|dq|dk|dv"));
    }
  }

  /** Masks that cuDNN does not know: of bools, for all rows, or with rows that it cannot load. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          bf16 | 1 | 512 | 512 | b8   | 1, 1, 512, 512
          f16  | 2 | 333 | 300 | b8   | 2, 1, 1, 300
          bf16 | 3 | 256 | 333 | b8   | 3, 1, 256, 333
          f16  | 2 | 256 | 333 | f16  | 2, 4, 1, 333
          bf16 | 1 | 400 | 257 | bf16 | 1, 4, 400, 257
          """)
  void otherMasks(
      String dtype, long batch, long rows, long keys, String ofMask, String sizesOfMask) {
    agrees(
        """
        graph version 1
        graph t(q: %1$s[%2$s, 4, %3$s, 64], k: %1$s[%2$s, 4, %4$s, 64], v: %1$s[%2$s, 4, %4$s, 64], m: %5$s[%6$s]) {
          o = aten::scaled_dot_product_attention(q, k, v, m)
          return o
        }
        """
            .formatted(dtype, batch, rows, keys, ofMask, sizesOfMask));
  }

  /** Attention without a cuDNN kernel, or few rows of few heads, with all that our kernels know. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          f32  | 1 | 4 | 4 | 512 | 512 |  64 | False | none
          f32  | 2 | 4 | 2 | 333 | 517 | 128 | True  | none
          f32  | 1 | 2 | 2 | 300 | 300 |  80 | True  | b8
          f32  | 1 | 2 | 2 | 100 | 257 |  96 | False | f32
          f32  | 1 | 2 | 1 | 200 | 200 | 256 | True  | none
          f32  | 3 | 2 | 2 | 129 |  65 |  65 | False | f32
          bf16 | 1 | 2 | 2 | 300 | 200 | 100 | True  | b8
          f16  | 2 | 2 | 2 |  64 |  64 |  33 | False | none
          f32  | 1 |16 |16 |   1 |4096 |  64 | False | none
          f32  | 2 | 8 | 2 |   1 |1000 | 128 | False | f32
          f32  | 1 | 4 | 2 |   7 |3000 |  80 | True  | none
          f32  | 1 | 4 | 4 |  31 |2000 |  96 | False | b8
          f32  | 1 | 8 | 1 |   4 |2000 | 256 | False | none
          f32  | 3 | 2 | 2 |   5 | 777 |  65 | False | f32
          f16  | 1 |16 | 4 |   1 |3000 | 100 | False | none
          f16  | 2 | 2 | 2 |  17 | 900 |  33 | False | b8
          bf16 | 1 | 8 | 8 |  16 |4096 | 128 | False | bf16
          bf16 | 1 | 8 | 2 |   4 |2048 |  64 | False | none
          """)
  void generated(
      String dtype,
      long batch,
      long heads,
      long groups,
      long rows,
      long keys,
      long features,
      String causal,
      String ofMask) {
    boolean masked = !ofMask.equals("none");
    agrees(
        """
        graph version 1
        graph t(q: %1$s[%2$s, %3$s, %5$s, %7$s], k: %1$s[%2$s, %4$s, %6$s, %7$s], v: %1$s[%2$s, %4$s, %6$s, %7$s], m: %8$s[1, 1, %5$s, %6$s]) {
          o = aten::scaled_dot_product_attention(q, k, v, %9$s, 0.0, %10$s, enable_gqa=True)
          return o
        }
        """
            .formatted(
                dtype,
                batch,
                heads,
                groups,
                rows,
                keys,
                features,
                masked ? ofMask : "f32",
                masked ? "m" : "None",
                causal),
        kernels ->
            assertThat(kernels)
                .filteredOn(activity -> activity.label().equals("o"))
                .isNotEmpty()
                .allSatisfy(activity -> assertThat(activity.kernel()).matches(GENERATED)));
  }

  /** Gradients without a cuDNN kernel run as products, and so does the rest. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          f32  | 1 | 4 | 1100 | 64 | True
          f32  | 2 | 3 |  500 | 96 | False
          f64  | 1 | 2 |  300 | 64 | True
          bf16 | 1 | 4 |  300 | 100 | True
          f32  | 1 | 2 |  150 | 320 | True
          """)
  void asProducts(String dtype, long batch, long heads, long rows, long features, String causal) {
    agrees(
        """
        graph version 1
        graph t(q: %1$s[%2$s, %3$s, %4$s, %5$s], k: %1$s[%2$s, %3$s, %4$s, %5$s], v: %1$s[%2$s, %3$s, %4$s, %5$s], g: %1$s[%2$s, %3$s, %4$s, %5$s]) {
          o, l, cq, ck, mq, mk, ps, po, dm = aten::_scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, %6$s)
          dq, dk, dv = aten::_scaled_dot_product_cudnn_attention_backward(g, q, k, v, o, l, ps, po, None, None, None, %4$s, %4$s, 0.0, %6$s)
          return o, l, dq, dk, dv
        }
        """
            .formatted(dtype, batch, heads, rows, features, causal),
        kernels -> assertThat(kernels).noneMatch(activity -> activity.kernel().contains("cudnn")));
  }

  /**
   * Rows that see nothing have no gradients, and add none to keys and values, whatever a backend
   * writes as the logarithms of their sums.
   */
  @ParameterizedTest
  @CsvSource({
    "64, -inf, l",
    "64, -65536.0, l",
    "512, -inf, l",
    "64, -inf, least",
    "64, -inf, most",
    "512, -inf, least",
    "512, -inf, most",
    "512, -65536.0, l"
  })
  void gradientsOfRowsThatSeeNothing(long rows, String masked, String logs) {
    agrees(
        """
        graph version 1
        graph t(q: bf16[1, 2, %1$s, 64], k: bf16[1, 2, %1$s, 64], v: bf16[1, 2, %1$s, 64], z: bf16[%1$s, %1$s], g: bf16[1, 2, %1$s, 64]) {
          a = aten::zeros_like(z)
          m = aten::full_like(z, %2$s)
          n = aten::full_like(z, 1)
          d = aten::tril(n, -2)
          e = aten::ne.Scalar(d, 0)
          f = aten::where.self(e, a, m)
          c = aten::expand(f, [1, 1, %1$s, %1$s])
          o, l, cq, ck, mq, mk, ps, po, dm = aten::_scaled_dot_product_cudnn_attention(q, k, v, c, True, 0.0, False)
          seen = aten::any.dim(e, 1, True)
          least = aten::where.ScalarOther(seen, l, -inf)
          most = aten::where.ScalarOther(seen, l, inf)
          dq, dk, dv = aten::_scaled_dot_product_cudnn_attention_backward(g, q, k, v, o, %3$s, ps, po, c, None, None, %1$s, %1$s, 0.0, False)
          return o, dq, dk, dv
        }
        """
            .formatted(rows, masked, logs),
        kernels -> areCudnn(kernels, "o|dq|dk|dv"));
  }

  private static void agrees(String text) {
    agrees(text, kernels -> areCudnn(kernels, "[op]"));
  }

  private static void areCudnn(List<Activity> kernels, String labels) {
    assertThat(kernels)
        .filteredOn(activity -> activity.label().matches(labels))
        .isNotEmpty()
        .allSatisfy(activity -> assertThat(activity.kernel()).contains("cudnn"));
  }

  private static void agrees(String text, Consumer<List<Activity>> check) {
    var plan = LocalPrograms.plan(text);
    try (var gpu = CudaSession.open(Lowering.lower(plan), TIMEOUT);
        var host = Session.open(plan, new HostBackend())) {
      LocalPrograms.fill(gpu, 1);
      LocalPrograms.fill(host, 1);
      host.run();
      gpu.run();
      LocalPrograms.compare(plan, gpu, host, text);
      var first =
          IntStream.range(0, gpu.outputCount())
              .mapToObj(i -> gpu.output(0, i).orElseThrow())
              .map(HostTensor::contiguous)
              .toList();
      gpu.run();
      for (int i = 0; i < first.size(); i++) {
        var again = gpu.output(0, i).orElseThrow().contiguous();
        Bits.assertSame(again, first.get(i), "output %s again".formatted(i));
      }
      check.accept(gpu.profile().activities());
    }
  }
}
