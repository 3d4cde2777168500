package dev.symplan.planner.io;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SizeBoundsTest {
  private static final ImmutableMap<String, Long> NONE = ImmutableMap.of();

  @Test
  void aSumIsSharedEvenly() {
    assertThat(SizeBounds.ofEach(NONE, ImmutableMap.of("u0 + u1+u2", 1000L, "s7", 3L)))
        .isEqualTo(ImmutableMap.of("u0", 334L, "u1", 333L, "u2", 333L, "s7", 3L));
  }

  @Test
  void smallerBoundsAndValuesLeaveMoreForTheOthers() {
    assertThat(SizeBounds.ofEach(NONE, ImmutableMap.of("u0+u1+u2", 1000L, "u1", 100L)))
        .isEqualTo(ImmutableMap.of("u0", 450L, "u1", 100L, "u2", 450L));
    assertThat(SizeBounds.ofEach(ImmutableMap.of("u2", 600L), ImmutableMap.of("u0+u1+u2", 1000L)))
        .isEqualTo(ImmutableMap.of("u0", 200L, "u1", 200L));
  }

  @Test
  void boundsThatAllowLessThanTheirSumStay() {
    assertThat(SizeBounds.ofEach(NONE, ImmutableMap.of("u0+u1", 1000L, "u0", 300L, "u1", 400L)))
        .isEqualTo(ImmutableMap.of("u0", 300L, "u1", 400L));
  }

  @ParameterizedTest
  @ValueSource(strings = {"u0+u0", "u0+", "+", "u0++u1"})
  void sumsOfOtherThingsAreRefused(String sum) {
    assertThatThrownBy(() -> SizeBounds.ofEach(NONE, ImmutableMap.of(sum, 10L)))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining(
            "--dim-max " + sum + "=10: the sizes of a sum must differ, as in u0+u1");
  }

  @Test
  void whatCannotBeSharedIsRefused() {
    assertThatThrownBy(() -> SizeBounds.ofEach(NONE, ImmutableMap.of("u0+u1", 10L, "u1+u2", 10L)))
        .hasMessageContaining("'u1' is also in another sum");
    assertThatThrownBy(
            () -> SizeBounds.ofEach(ImmutableMap.of("u0", 20L), ImmutableMap.of("u0+u1", 10L)))
        .hasMessageContaining("the values that --dim gives are more");
  }

  /** Rows for experts, whose numbers only a run knows. */
  private static final String EXCHANGE =
      """
      def forward(self, x: "f32[1024, 64][64, 1]", counts: "i64[4][1]"):
          s0: "i64[][]" = torch.ops.aten.select.int(counts, 0, 0)
          u0: "Sym(u0)" = torch.ops.aten._local_scalar_dense.default(s0)
          s1: "i64[][]" = torch.ops.aten.select.int(counts, 0, 1)
          u1: "Sym(u1)" = torch.ops.aten._local_scalar_dense.default(s1)
          s2: "i64[][]" = torch.ops.aten.select.int(counts, 0, 2)
          u2: "Sym(u2)" = torch.ops.aten._local_scalar_dense.default(s2)
          s3: "i64[][]" = torch.ops.aten.select.int(counts, 0, 3)
          u3: "Sym(u3)" = torch.ops.aten._local_scalar_dense.default(s3)
          a: "f32[u2 + u3, 64][64, 1]" = torch.ops._c10d_functional.all_to_all_single.default(x, [u2, u3], [u0, u1], '0')
          w: "f32[u2 + u3, 64][64, 1]" = torch.ops._c10d_functional.wait_tensor.default(a)
          return (w,)
      """;

  @Test
  void splitsOfAnExchangeAreBoundedTogether() {
    var one = ImmutableMap.of("u0", 1024L, "u1", 1024L, "u2", 1024L, "u3", 1024L);
    assertThatThrownBy(() -> rows(one, new ArrayList<>()))
        .hasMessageContaining("input_split_sizes add up to 2048, but the input has 1024 rows")
        .hasMessageContaining("--dim-max u0+u1=1024");
    var warnings = new ArrayList<Diagnostic>();
    assertThat(rows(ImmutableMap.of("u0+u1", 1024L, "u2+u3", 1024L), warnings)).isEqualTo(1024);
    assertThat(warnings)
        .extracting(Diagnostic::message)
        .contains(
            "sizes that are bounded together have even parts: u0 = 512, u1 = 512, u2 = 512, u3 ="
                + " 512");
  }

  @Test
  void ranksMayHaveBoundsOfTheirOwn() {
    var bounds = new LinkedHashMap<String, Long>();
    bounds.putAll(Map.of("u0", 600L, "u1", 424L, "u2", 600L, "u3", 100L));
    bounds.putAll(Map.of("u0@1", 100L, "u1@1", 924L, "u2@1", 424L, "u3@1", 923L));
    assertThatThrownBy(() -> plan(ImmutableMap.copyOf(bounds), 2, new ArrayList<>()))
        .hasMessageContaining("rank 1 takes 923 rows from rank 1, which sends it 924");
    bounds.put("u3@1", 924L);
    var warnings = new ArrayList<Diagnostic>();
    var plan = plan(ImmutableMap.copyOf(bounds), 2, warnings);
    assertThat(plan.rankPlans())
        .extracting(rank -> rank.graph().outputValues().getFirst().tensor().size(0))
        .containsExactly(700L, 1348L);
    assertThat(warnings)
        .extracting(Diagnostic::message)
        .containsExactly(
            "planned at the largest sizes: u0 = 600, u0@1 = 100, u1 = 424, u1@1 = 924, u2 = 600,"
                + " u2@1 = 424, u3 = 100, u3@1 = 924");
    assertThatThrownBy(() -> plan(ImmutableMap.of("u0@5", 3L), 2, new ArrayList<>()))
        .hasMessageContaining("a size is given for rank 5, but there are 2 ranks");
  }

  private static long rows(ImmutableMap<String, Long> bounds, List<Diagnostic> warnings) {
    var plan = plan(bounds, 2, warnings);
    return plan.rankPlans().getFirst().graph().outputValues().getFirst().tensor().size(0);
  }

  private static Plan plan(
      ImmutableMap<String, Long> bounds, int ranks, List<Diagnostic> warnings) {
    var options = CompileOptions.DEFAULT.withRanks(ranks).withDims(NONE, bounds);
    var program = ProgramReader.read(new SourceFile("g.fx.txt", EXCHANGE), options, warnings::add);
    return Compiler.forTarget(Target.H200_X4).with(options).compile(program);
  }
}
