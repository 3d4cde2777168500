package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.MemorySpace;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Merged and split collectives give the bits of those that they stand for. NCCL's symmetric kernels
 * take no several tensors in the release that the target has.
 */
class RewritesRunTest {
  private static final RewriteOptions MERGED =
      new RewriteOptions(Mode.ON, Mode.OFF, Mode.OFF, Mode.OFF, Mode.OFF);
  private static final RewriteOptions SPLIT =
      new RewriteOptions(Mode.OFF, Mode.ON, Mode.OFF, Mode.OFF, Mode.OFF);
  private static final long SEED = 20_261_121;

  private static final String REDUCED =
      """
      group g = [2, 0, 3, 1]

      graph reduced(x: DTYPE[7, 5], y: DTYPE[33], z: DTYPE[4, 64]) {
        a = aten::neg(x)
        r = _c10d_functional::all_reduce(a, "sum", "g")
        b = aten::neg(y)
        rw = _c10d_functional::wait_tensor(r)
        s = _c10d_functional::all_reduce(b, "sum", "g")
        v = aten::view(rw, [35])
        t = _c10d_functional::all_reduce(z, "sum", "g")
        sw = _c10d_functional::wait_tensor(s)
        tw = _c10d_functional::wait_tensor(t)
        o = aten::mul.Tensor(sw, sw)
        return v, o, tw
      }
      """;

  private static final String GATHERED =
      """
      group g = [2, 0, 3, 1]

      graph gathered(x: DTYPE[2, 5], w: DTYPE[8, 8]) {
        r = _c10d_functional::all_gather_into_tensor(x, 4, "g")
        rw = _c10d_functional::wait_tensor(r)
        a = aten::mul.Tensor(rw, rw)
        wv = aten::view(w, [4, 16])
        s = _c10d_functional::all_gather_into_tensor(wv, 4, "g")
        sw = _c10d_functional::wait_tensor(s)
        sv = aten::view(sw, [256])
        b = aten::neg(sv)
        return a, b
      }
      """;

  private static final String SCATTERED =
      """
      group g = [2, 0, 3, 1]

      graph scattered(x: DTYPE[8, 5], w: DTYPE[16, 8]) {
        r = _c10d_functional::reduce_scatter_tensor(x, "sum", 4, "g")
        rw = _c10d_functional::wait_tensor(r)
        a = aten::neg(w)
        s = _c10d_functional::reduce_scatter_tensor(a, "sum", 4, "g")
        sw = _c10d_functional::wait_tensor(s)
        return rw, sw
      }
      """;

  private static final String PRODUCT =
      """
      group g = [2, 0, 3, 1]

      graph product(x: DTYPE[2, 16, 24], w: DTYPE[24, 40], bias: DTYPE[40]) {
        xv = aten::view(x, [32, 24])
        y = aten::addmm(bias, xv, w)
        yv = aten::view(y, [2, 16, 40])
        r = _c10d_functional::all_reduce(yv, "sum", "g")
        rw = _c10d_functional::wait_tensor(r)
        n = aten::neg(rw)
        return n, rw
      }
      """;

  /** Every rank's outputs. */
  private static List<HostTensor> run(String text, CompileOptions options, boolean rewritten) {
    var plan = Programs.plan(text, options);
    assertThat(plan.rewrites().stream().anyMatch(Rewrite::made)).isEqualTo(rewritten);
    var outputs = new ArrayList<HostTensor>();
    try (var session = Session.open(plan, new HostBackend())) {
      Programs.fillInputs(session, new Random(SEED));
      session.run();
      for (int rank = 0; rank < session.ranks(); rank++) {
        for (int i = 0; i < session.outputCount(); i++) {
          outputs.add(Programs.copy(session.output(rank, i).orElseThrow()));
        }
      }
    }
    return outputs;
  }

  private static void check(
      String text, RewriteOptions rewrites, String kind, List<Variant> variants) {
    for (var dtype : List.of("f32", "bf16")) {
      var program = text.replace("DTYPE", dtype);
      for (var variant : variants) {
        for (var space : List.of(MemorySpace.ANY, MemorySpace.EXTERNAL)) {
          var options =
              CompileOptions.DEFAULT
                  .withVariants(ImmutableMap.of(kind, variant))
                  .withInputs(space)
                  .withOutputs(space);
          var expected = run(program, options.withRewrites(RewriteOptions.OFF), false);
          var actual = run(program, options.withRewrites(rewrites), true);
          assertThat(actual).hasSameSizeAs(expected);
          for (int i = 0; i < expected.size(); i++) {
            assertThat(Programs.same(actual.get(i), expected.get(i)))
                .as("seed %s, %s as %s, %s, output %s", SEED, kind, variant, dtype, i)
                .isTrue();
          }
        }
      }
    }
  }

  @Test
  void mergedReductionsGiveTheSameBits() {
    check(REDUCED, MERGED, "all_reduce", List.of(Variant.ONE_SHOT, Variant.TWO_SHOT, Variant.NCCL));
  }

  @Test
  void mergedGathersGiveTheSameBits() {
    check(
        GATHERED,
        MERGED,
        "all_gather",
        List.of(Variant.ONE_SHOT, Variant.PUSH, Variant.COPY_ENGINE, Variant.NCCL));
  }

  @Test
  void mergedScattersGiveTheSameBits() {
    check(SCATTERED, MERGED, "reduce_scatter", List.of(Variant.ONE_SHOT, Variant.NCCL));
  }

  /** A rank's result of the one may not lie where peers still read the other. */
  @Test
  void mergedScattersOfOneMemoryGiveTheSameBits() {
    check(
        SCATTERED
            .replace("DTYPE[8, 5]", "DTYPE[32, 8]")
            .replace("aten::neg(w)", "aten::neg(x)")
            .replace("  r =", "  b = aten::neg(x)\n  v = aten::slice.Tensor(b, 0, 0, 16)\n  r =")
            .replace("tensor(x,", "tensor(b,")
            .replace("tensor(a,", "tensor(v,"),
        MERGED,
        "reduce_scatter",
        List.of(Variant.ONE_SHOT, Variant.NCCL));
  }

  @Test
  void mergedGathersOfOneMemoryGiveTheSameBits() {
    check(
        """
        group g = [2, 0, 3, 1]

        graph gathered(x: DTYPE[32, 8]) {
          a = aten::neg(x)
          v = aten::slice.Tensor(a, 0, 0, 8)
          r = _c10d_functional::all_gather_into_tensor(v, 4, "g")
          s = _c10d_functional::all_gather_into_tensor(a, 4, "g")
          return r, s
        }
        """,
        MERGED,
        "all_gather",
        List.of(Variant.ONE_SHOT, Variant.PUSH, Variant.NCCL));
  }

  @Test
  void splitProductsKeepTheShapeTheyAreSeenIn() {
    check(
        PRODUCT.replace("[2, 16, 40]", "[64, 20]"),
        SPLIT,
        "all_reduce",
        List.of(Variant.ONE_SHOT, Variant.NCCL));
  }

  @ParameterizedTest
  @ValueSource(strings = {"mm", "addmm", "linear"})
  void splitProductsGiveTheSameBits(String op) {
    var call =
        switch (op) {
          case "mm" -> "aten::mm(xv, w)";
          case "linear" -> "aten::linear(xv, wt, bias)";
          default -> "aten::addmm(bias, xv, w)";
        };
    var program =
        PRODUCT
            .replace("aten::addmm(bias, xv, w)", call)
            .replace("  y =", "  wt = aten::permute(w, [1, 0])\n  y =");
    check(
        program,
        SPLIT,
        "all_reduce",
        List.of(Variant.ONE_SHOT, Variant.TWO_SHOT, Variant.NCCL_SYMM, Variant.NCCL));
  }
}
