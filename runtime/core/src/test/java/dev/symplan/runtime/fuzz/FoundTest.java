package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.MemorySpace;
import dev.symplan.planner.CompileOptions;
import dev.symplan.planner.Target;
import org.junit.jupiter.api.Test;

/** What {@link FuzzTest} found, one test for each mistake. */
class FoundTest {
  private static void check(String text, CompileOptions options) {
    FuzzCases.check("graph version 1\n" + text, Target.H200_X4, options, 1, ImmutableMap.of());
  }

  @Test
  void aCollectiveWritesIntoATensorWithGaps() {
    check(
        """
        group g = [0, 1]
        graph fuzz(x: f32[16, 1][2, 2]) {
          r = _c10d_functional::all_reduce_(x, "sum", "g")
          return r
        }
        """,
        CompileOptions.DEFAULT);
  }

  @Test
  void anOutputThatACollectiveWroteInPlaceIsPlacedByItsName() {
    check(
        """
        group g = [0, 1]
        graph fuzz(x: f32[4]) {
          r = _c10d_functional::all_reduce_(x, "sum", "g")
          return r
        }
        """,
        CompileOptions.DEFAULT.withSpaces(ImmutableMap.of("r", MemorySpace.EXTERNAL)));
  }

  @Test
  void anOutputOfOneRanksGraphOnlyIsPlacedByItsName() {
    check(
        """
        group g = [0, 1]
        graph fuzz(x: f32[4]) ranks [0] {
          a = aten::relu(x)
          return a
        }
        graph fuzz(x: f32[4]) ranks [1] {
          b = aten::exp(x)
          return b
        }
        """,
        CompileOptions.DEFAULT.withSpaces(ImmutableMap.of("b", MemorySpace.EXTERNAL)));
  }

  @Test
  void anOffsetCountsFromTheStartOfTheStorage() {
    check(
        """
        graph fuzz(x: f32[12]) {
          s = aten::slice.Tensor(x, 0, 4, 12)
          a = aten::as_strided(s, [4], [1], 0)
          b = aten::as_strided(s, [4], [1])
          c = aten::relu(a)
          y = aten::relu(s)
          t = aten::slice.Tensor(y, 0, 2, 6)
          d = aten::as_strided(t, [3], [2], 1)
          return a, b, c, d
        }
        """,
        CompileOptions.DEFAULT);
  }

  @Test
  void normsOfNothingHaveStatistics() {
    check(
        """
        graph fuzz(x: f32[3, 0]) {
          y, mean, rstd = aten::native_layer_norm(x, [0], None, None, 1e-05)
          z, rms = aten::_fused_rms_norm(x, [0], None, 1e-05)
          return y, mean, rstd, z, rms
        }
        """,
        CompileOptions.DEFAULT);
  }

  @Test
  void whatIsUpdatedFromAViewOfItselfIsNotUpdatedInPlace() {
    var text =
        """
        graph version 1

        group world = [0, 1]

        graph fuzz(x4: f32[1, 1], x8: i64[1, 1]) {
          v4 = aten::clone(x4)
          v7 = aten::permute(v4, [0, 1])
          v13 = aten::scatter_reduce.two(v4, 0, x8, v7, "amax")
          return v13
        }
        """;
    FuzzCases.check(
        text,
        Target.H200_X4,
        CompileOptions.DEFAULT.withRanks(2),
        7,
        ImmutableMap.of("x8", new Fill(Fill.Kind.INDEX, 1)));
  }
}
