package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.MemorySpace;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import org.junit.jupiter.api.Test;

/** Mistakes that {@code FuzzTest} found, one test for each. */
class FoundTest {
  private static void check(String text, CompileOptions options) {
    check(text, options, ImmutableMap.of());
  }

  private static void check(String text, CompileOptions options, ImmutableMap<String, Fill> fills) {
    FuzzCases.check("graph version 1\n" + text, Target.H200_X4, options, 1, fills);
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

  /** An expanded view has more elements than the share, but they are not in rows. */
  @Test
  void aShareInTheWholeIsExpanded() {
    check(
        """
        group g = [0, 1]
        graph fuzz(x: f64[2, 8]) {
          r = _c10d_functional::reduce_scatter_tensor(x, "max", 2, "g")
          e = aten::expand(r, [3, 3, 8], implicit=True)
          return e
        }
        """,
        CompileOptions.DEFAULT
            .withInputs(MemorySpace.LOCAL)
            .withVariants(ImmutableMap.of("r", Variant.ONE_SHOT)));
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
  void updatesThatReadTheirOwnMemoryThroughAViewAreCopies() {
    check(
        """
        graph fuzz(x: f32[1, 1], index: i64[1, 1]) {
          a = aten::clone(x)
          b = aten::permute(a, [0, 1])
          c = aten::scatter_reduce.two(a, 0, index, b, "amax")
          return c
        }
        """,
        CompileOptions.DEFAULT,
        ImmutableMap.of("index", new Fill(Fill.Kind.INDEX, 1)));
  }

  @Test
  void elementsThatLieApartAreRowsOfOne() {
    check(
        """
        group g = [0, 1]
        graph fuzz(x: i8[3][2], y: f32[4, 3][6, 2]) {
          a = symplan::all_gather_dim(x, 0, 2, "g")
          b = _c10d_functional::all_to_all_single(y, [], [], "g")
          return a, b
        }
        """,
        CompileOptions.DEFAULT.withRewrites(
            new RewriteOptions(Mode.OFF, Mode.OFF, Mode.ON, Mode.OFF, Mode.OFF)));
  }

  /** The conversion goes through what was joined in another order than that was joined in. */
  @Test
  void aPackThatIsReadInAnotherOrderStays() {
    check(
        """
        group g = [0, 1]
        graph fuzz(x: bf16[2, 2], y: bf16[2, 4]) {
          p = aten::cat([x, y], 1)
          t = aten::t(p)
          w = aten::_to_copy(t, dtype=torch.float32, memory_format=torch.contiguous_format)
          r = _c10d_functional::reduce_scatter_tensor(w, "sum", 2, "g")
          f = aten::view(r, [6])
          a, b = aten::split_with_sizes(f, [2, 4])
          c = aten::neg(a)
          d = aten::neg(b)
          return c, d
        }
        """,
        CompileOptions.DEFAULT.withRewrites(
            new RewriteOptions(Mode.OFF, Mode.OFF, Mode.ON, Mode.OFF, Mode.OFF)));
  }

  /** The conversion leaves out what lies between the rows of the slice that it reads. */
  @Test
  void aConversionOfRowsThatAreApartIsLeftOut() {
    check(
        """
        group g = [0, 1]
        graph fuzz(x: bf16[2, 14]) {
          s = aten::slice.Tensor(x, 1, 2, 12)
          v = aten::view(s, [2, 2, 5])
          p = aten::permute(v, [1, 0, 2])
          w = aten::_to_copy(p, dtype=torch.float32)
          r = _c10d_functional::reduce_scatter_tensor(w, "sum", 2, "g")
          return r
        }
        """,
        CompileOptions.DEFAULT.withRewrites(
            new RewriteOptions(Mode.OFF, Mode.OFF, Mode.ON, Mode.OFF, Mode.OFF)));
  }

  /** A result may not take the memory of an operand whose elements are in another order. */
  @Test
  void anAllReduceIntoAnotherOrderIsNotInPlace() {
    check(
        """
        group g = [0, 1]
        graph fuzz(x: f32[64, 4, 128]) {
          a = aten::neg(x)
          p = aten::permute(a, [1, 0, 2])
          r: f32[4, 64, 128][8192, 128, 1] = _c10d_functional::all_reduce(p, "sum", "g")
          return r
        }
        """,
        CompileOptions.DEFAULT);
  }

  @Test
  void anAllReduceOfNothingIsInPlaceInAnyOrder() {
    check(
        """
        group g = [0, 1]
        graph fuzz(x: f32[0, 48]) {
          a = aten::trunc(x)
          e = aten::expand(a, [2, 0, 48])
          r = _c10d_functional::all_reduce(e, "sum", "g")
          return r
        }
        """,
        CompileOptions.DEFAULT);
  }

  /** The view's offset counts from the start of the packed result, which the part is not in. */
  @Test
  void aViewOfAPartCountsFromThePackedResult() {
    check(
        """
        group g = [0, 1]
        graph fuzz(x: f32[2, 4], y: f32[2, 8]) {
          c = aten::cat([x, y], 1)
          f = aten::view(c, [-1])
          r = _c10d_functional::reduce_scatter_tensor(f, "sum", 2, "g")
          a, b = aten::split_with_sizes(r, [4, 8])
          s = aten::as_strided(b, [2, 2], [2, 1], 4)
          o = aten::neg(s)
          p = aten::neg(a)
          return o, p
        }
        """,
        CompileOptions.DEFAULT);
  }

  @Test
  void aViewOfAPartIsOfAnotherPart() {
    check(
        """
        group g = [0, 1]
        graph fuzz(x: f32[4], y: f32[8]) {
          f = aten::cat([x, y], 0)
          r = _c10d_functional::all_gather_into_tensor(f, 2, "g")
          a = aten::slice.Tensor(r, 0, 4, 12)
          b = aten::as_strided(a, [8], [1], 16)
          o = aten::neg(a)
          p = aten::neg(b)
          return o, p
        }
        """,
        CompileOptions.DEFAULT);
  }

  @Test
  void anOpWritesIntoAPartOfAPackedResult() {
    check(
        """
        group g = [0, 1]
        graph fuzz(x: f32[2, 4], y: f32[2, 8]) {
          c = aten::cat([x, y], 1)
          f = aten::view(c, [-1])
          r = _c10d_functional::reduce_scatter_tensor(f, "sum", 2, "g")
          a, b = aten::split_with_sizes(r, [4, 8])
          s = aten::mul_.Scalar(b, 2)
          v = aten::view(s, [2, 4])
          o = aten::neg(v)
          p = aten::neg(a)
          return o, p, b
        }
        """,
        CompileOptions.DEFAULT);
  }

  /** Phases give their results row by row. */
  @Test
  void anAllReduceIntoAnotherOrderHasNoPhases() {
    check(
        """
        group g = [0, 1, 2, 3]
        graph fuzz(x: f32[12, 64]) {
          r: f32[12, 64][1, 12] = _c10d_functional::all_reduce(x, "max", "g")
          w = _c10d_functional::wait_tensor(r)
          return w
        }
        """,
        betweenHosts(Mode.ON));
  }

  @Test
  void aScatterOfSeparateRowsBetweenHostsConvertsWhatItReduces() {
    check(
        """
        group g = [0, 1, 2, 3]
        graph fuzz(x: bf16[2, 16, 3]) {
          r = symplan::reduce_scatter_dim(x, "max", 1, 4, "g", dtype=torch.float32)
          a = aten::neg(r)
          return a
        }
        """,
        betweenHosts(Mode.OFF));
  }

  private static CompileOptions betweenHosts(Mode hierarchical) {
    return CompileOptions.DEFAULT
        .withHosts(Hosts.filled(ImmutableIntArray.of(2, 2)))
        .withRewrites(RewriteOptions.AUTO.withHierarchical(hierarchical));
  }
}
