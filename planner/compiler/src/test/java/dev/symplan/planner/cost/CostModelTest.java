package dev.symplan.planner.cost;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.TargetFile;
import dev.symplan.planner.machine.Topology.Reach;
import dev.symplan.planner.machine.Variant;
import org.assertj.core.data.Offset;
import org.assertj.core.data.Percentage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class CostModelTest {
  private static final CostModel COSTS = new CostModel(Target.H200_X4);

  /** A part of so many columns of images. */
  private static final String CONVOLUTION =
      """
      graph t(x0: %1$s[64, 64, 56, %2$s], w: %1$s[64, 64, 3, 3]) {
        x = aten::slice.Tensor(x0, 3, 0, 56)
        y = aten::convolution(x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
        return y
      }
      """;

  private static double micros(String text) {
    return COSTS.computeMicros(last(text));
  }

  private static Op last(String text) {
    return GraphParser.parse(new SourceFile("t.graph", "graph version 1\n" + text))
        .graphs()
        .getFirst()
        .ops()
        .getLast();
  }

  /** The rest of the table is not read. */
  @ParameterizedTest
  @ValueSource(ints = {100, 100_000})
  void gathersCostTheirRows(int table) {
    double gathered =
        micros(
            """
            graph t(w: bf16[%s, 4096], i: i64[2048]) {
              e = aten::embedding(w, i)
              return e
            }
            """
                .formatted(table));
    assertThat(gathered)
        .isCloseTo(
            COSTS.kernelMicros(Math.min(table, 2048) * 8192L + 2048 * 8L + 2048 * 8192L),
            Offset.offset(1e-9));
  }

  /** A pair moves what two ranks of an all_to_all move of twice as much, however many pairs are. */
  @ParameterizedTest
  @EnumSource(
      value = Variant.class,
      names = {"ONE_SHOT", "PUSH", "COPY_ENGINE", "NCCL"})
  void pairsCostWhatTwoRanksExchange(Variant variant) {
    for (long bytes : new long[] {64, 1 << 16, 1 << 26}) {
      for (int ranks : new int[] {2, 4, 8}) {
        double exchanged =
            COSTS.transferMicros(Kind.ALL_TO_ALL, variant, 2 * bytes, 2)
                - COSTS.fixedMicros(variant, 2);
        assertThat(COSTS.transferMicros(Kind.COLLECTIVE_PERMUTE, variant, bytes, ranks))
            .isCloseTo(COSTS.fixedMicros(variant, ranks) + exchanged, Offset.offset(1e-9));
        assertThat(COSTS.isMeasured(Kind.COLLECTIVE_PERMUTE, variant, ranks)).isFalse();
      }
    }
  }

  /**
   * By hand, of 64 MiB: what crosses a rail at 1 GB/s, and 5 µs for each hop. Of 16 ranks on two
   * hosts, a library spreads 2 · 15/16 of an all_reduce over 8 rails; one rank on each of four
   * hosts has its own.
   */
  @ParameterizedTest
  @CsvSource({
    "ALL_REDUCE, 16, 2, 8, 10, 15728640",
    "ALL_REDUCE, 4, 4, 1, 20, 100663296",
    "ALL_GATHER, 4, 4, 1, 15, 201326592",
    "REDUCE_SCATTER, 8, 2, 4, 5, 14680064",
    "ALL_TO_ALL, 16, 2, 8, 5, 33554432",
    "BROADCAST, 8, 8, 1, 15, 67108864",
    "COLLECTIVE_PERMUTE, 16, 2, 8, 5, 67108864"
  })
  void railsBoundWhatCrossesThem(
      Kind kind, int ranks, int domains, int fewest, double hops, double bytes) {
    var slow = new CostModel(withRail(1));
    double micros =
        slow.transferMicros(kind, Variant.NCCL, 1 << 26, 1, new Reach(ranks, domains, fewest));
    double fixed = slow.fixedMicros(Variant.NCCL, ranks);
    assertThat(micros).isCloseTo(fixed + bytes / 1e3 + hops, Offset.offset(1e-6));
    // A rail that is never in the way leaves what the curve says.
    double within = slow.transferMicros(kind, Variant.NCCL, 1 << 26, ranks);
    assertThat(
            new CostModel(withRail(1_000_000))
                .transferMicros(kind, Variant.NCCL, 1 << 26, 1, new Reach(ranks, domains, fewest)))
        .isCloseTo(within + hops, Offset.offset(1e-6));
    assertThat(slow.isMeasured(kind, Variant.NCCL, new Reach(ranks, domains, fewest))).isFalse();
  }

  private static Target withRail(double rate) {
    return TargetFile.read(
        new SourceFile(
            "rail.json",
            """
            {"format": "symplan-target", "version": 3, "name": "rail", "base": "h200x8",
             "network": {"gbps": %s, "latency_us": 5}}
            """
                .formatted(rate)));
  }

  @Test
  void opsCostWhatTheyReadAndWrite() {
    assertThat(
            micros(
                """
                graph t(x: f32[1024, 1024], y: f32[1024, 1024]) {
                  z = aten::add.Tensor(x, y)
                  return z
                }
                """))
        .isCloseTo(COSTS.kernelMicros(3L << 22), Offset.offset(1e-9));
  }

  /** As measured on an H100, which computes in f32 as fast: blocks share the keys of few rows. */
  @ParameterizedTest
  @CsvSource({"16, 75", "31, 120"})
  void fewRowsOfAttentionKeepAllMultiprocessorsBusy(int rows, double measured) {
    assertThat(
            micros(
                """
                graph t(q: f32[1, 16, %s, 128], k: f32[1, 16, 8192, 128]) {
                  o = aten::scaled_dot_product_attention(q, k, k)
                  return o
                }
                """
                    .formatted(rows)))
        .isCloseTo(measured, Percentage.withPercentage(15));
  }

  /** As measured on an H100, in microseconds: 64 images of 56 × 56, channels last or not. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          bf16 |  64 |  64 | 3 | 1 | true  |  46 |   47 |  48
          bf16 |  64 |  64 | 3 | 1 | false |  99 |  103 |  99
          bf16 | 256 | 512 | 1 | 2 | false | 176 |  222 | 184
          f32  |  64 |  64 | 3 | 1 | false | 365 |  628 | 578
          f32  | 128 | 128 | 3 | 2 | false | 491 | 1066 | 834
          """)
  void convolutionsCostWhatTheirProductsDo(
      String dtype,
      long in,
      long out,
      long window,
      long stride,
      boolean last,
      double forward,
      double ofInput,
      double ofWeight) {
    long padding = window / 2;
    long size = (56 + 2 * padding - window) / stride + 1;
    var windows = "[%1$s, %1$s], [%2$s, %2$s], [1, 1], False, [0, 0], 1".formatted(stride, padding);
    var text =
        """
        graph t(x0: %1$s[64, %2$s], w: %1$s[%3$s], g0: %1$s[64, %4$s]) {
          x = aten::permute(x0, %5$s)
          g = aten::permute(g0, %5$s)
          %%s = %%s
          return y
        }
        """
            .formatted(
                dtype,
                last ? "56, 56, " + in : in + ", 56, 56",
                "%s, %s, %s, %s".formatted(out, in, window, window),
                last
                    ? "%s, %s, %s".formatted(size, size, out)
                    : "%s, %s, %s".formatted(out, size, size),
                last ? "[0, 3, 1, 2]" : "[0, 1, 2, 3]");
    var gradient = "aten::convolution_backward(g, x, w, None, %s, [%s, False])";
    var h100 = new CostModel(Target.H100_X4);
    var near = Percentage.withPercentage(35);
    assertThat(micros(h100, text, "y", "aten::convolution(x, w, None, %s)".formatted(windows)))
        .isCloseTo(forward, near);
    assertThat(micros(h100, text, "y, q, r", gradient.formatted(windows, "True, False")))
        .isCloseTo(ofInput, near);
    assertThat(micros(h100, text, "p, y, r", gradient.formatted(windows, "False, True")))
        .isCloseTo(ofWeight, near);
  }

  private static double micros(CostModel costs, String text, String results, String call) {
    return costs.computeMicros(last(text.formatted(results, call)));
  }

  @Test
  void gapsOfConvolutionsAreCopied() {
    double copied = COSTS.copyMicros(64L * 64 * 56 * 56 * 2) - COSTS.kernelMicros(0);
    assertThat(micros(CONVOLUTION.formatted("bf16", 57)))
        .isGreaterThan(micros(CONVOLUTION.formatted("bf16", 56)) + copied);
  }

  /** cuDNN does not know the type, and our kernels take long. */
  @Test
  void convolutionsWithoutCudnnAreSlow() {
    assertThat(micros(CONVOLUTION.formatted("f8e5m2", 56)))
        .isGreaterThan(20 * micros(CONVOLUTION.formatted("bf16", 56)));
  }
}
