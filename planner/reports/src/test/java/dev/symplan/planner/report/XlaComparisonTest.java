package dev.symplan.planner.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.hlo.BufferAssignment;
import dev.symplan.ir.hlo.CollectiveCopies;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.ProgramReader;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.report.page.HtmlRenderer;
import dev.symplan.planner.report.render.Format;
import dev.symplan.planner.report.render.TextRenderer;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;

class XlaComparisonTest {
  /** Two large values of which one can die before the other is made, and a small one of each. */
  private static final String MODULE =
      """
      HloModule jit_f, is_scheduled=true, num_partitions=2

      ENTRY %main (x: f32[64]) -> f32[64] {
        %x = f32[64]{0} parameter(0)
        %a = f32[4096]{0} custom-call(%x), custom_call_target="widen"
        %b = f32[4096]{0} custom-call(%x), custom_call_target="widen"
        %c = f32[64]{0} custom-call(%a), custom_call_target="narrow"
        %d = f32[64]{0} custom-call(%b), custom_call_target="narrow"
        ROOT %e = f32[64]{0} custom-call(%c, %d), custom_call_target="join"
      }
      """;

  private static final String ASSIGNMENT =
      """
      BufferAssignment:
      allocation 0: size 256, page 0, parameter 0, shape |f32[64]| at ShapeIndex {}:
       value: <0 x @0> (size=256,offset=0): f32[64]{0}
      allocation 1: size 256, page 0, output shape is |f32[64]|, maybe-live-out:
       value: <5 e @0> (size=256,offset=0): f32[64]{0}
      allocation 2: size 256, color 1, page 0, preallocated-temp:
       value: <3 c @0> (size=256,offset=0): f32[64]{0}
      allocation 3: size 33024, page 0, preallocated-temp:
       value: <1 a @0> (size=16384,offset=0): f32[4096]{0}
       value: <2 b @0> (size=16384,offset=16384): f32[4096]{0}
       value: <4 d @0> (size=256,offset=32768): f32[64]{0}
      """;

  private static Plan plan(CompileOptions options) {
    return plan(MODULE, options);
  }

  private static Plan plan(String module, CompileOptions options) {
    var program = ProgramReader.read(new SourceFile("m.hlo", module), options, warning -> {});
    return Compiler.forTarget(Target.H200_X4).with(options).compile(program);
  }

  @Test
  void putsXlasSumsBesideThePlans() {
    var same = plan(CompileOptions.DEFAULT.withReorderBudget(OptionalDouble.empty()));
    var own = plan(CompileOptions.DEFAULT.withReorderBudget(OptionalDouble.of(1)));

    // Both large values are live at once in XLA's order, with one small one.
    assertThat(same.total().bytes()).isEqualTo(2 * 16384 + 256);
    assertThat(own.total().bytes()).isLessThan(same.total().bytes());
    var text =
        TextRenderer.rows(
            XlaComparison.of(
                BufferAssignment.read(new SourceFile("a.txt", ASSIGNMENT)),
                new CollectiveCopies(1, 256),
                same,
                own));
    assertThat(text)
        .containsPattern("together +XLA 32.8 KiB \\(33536 bytes\\)")
        .contains("plan in XLA's order 32.3 KiB (33024 bytes)")
        .contains("(%s bytes)".formatted(own.total().bytes()))
        .containsPattern("for collectives +XLA 256 B \\(256 bytes\\)")
        .contains("XLA needs 512 B (512 bytes) beyond what is live at once in its order")
        .containsPattern(
            "order +another order of the instructions and collectives saves .*\\(%s bytes\\)"
                .formatted(same.total().bytes() - own.total().bytes()))
        .contains(
            "XLA has 1 value in memory for collectives, and copies 1 there or from there, 256 B"
                + " (256 bytes); the plan has 0 arguments of its 0 collectives there, and copies"
                + " 0, 0 B (0 bytes): 256 B (256 bytes) less")
        .contains("allocation 3")
        .contains("3 values, the largest a of 16.0 KiB");
  }

  /**
   * Neither counts what is in the host's memory as the device's, nor the caller's tensors there.
   */
  @Test
  void theHostsMemoryCountsByItself() {
    var module =
        """
        HloModule jit_f, is_scheduled=true, num_partitions=2

        ENTRY %main (x: f32[64], h: f32[512]) -> f32[64] {
          %x = f32[64]{0} parameter(0)
          %h = f32[512]{0:S(5)} parameter(1)
          %a = f32[4096]{0} custom-call(%x), custom_call_target="widen"
          %b = f32[4096]{0:S(5)} copy(%a)
          %c = f32[4096]{0} copy(%b)
          ROOT %d = f32[64]{0} custom-call(%c), custom_call_target="narrow"
        }
        """;
    var assignment =
        """
        BufferAssignment:
        allocation 0: size 256, page 0, parameter 0, shape |f32[64]| at ShapeIndex {}:
         value: <0 x @0> (size=256,offset=0): f32[64]{0}
        allocation 1: size 2048, color 5, page 0, parameter 1, shape |f32[512]| at ShapeIndex {}:
         value: <1 h @0> (size=2048,offset=0): f32[512]{0:S(5)}
        allocation 2: size 256, page 0, output shape is |f32[64]|, maybe-live-out:
         value: <5 d @0> (size=256,offset=0): f32[64]{0}
        allocation 3: size 20480, color 5, page 0, preallocated-temp:
         value: <3 b @0> (size=16384,offset=0): f32[4096]{0:S(5)}
        allocation 4: size 16384, page 0, preallocated-temp:
         value: <2 a @0> (size=16384,offset=0): f32[4096]{0}
         value: <4 c @0> (size=16384,offset=0): f32[4096]{0}
        """;
    var plan = plan(module, CompileOptions.DEFAULT);

    assertThat(
            TextRenderer.rows(
                XlaComparison.of(
                    BufferAssignment.read(new SourceFile("a.txt", assignment)),
                    new CollectiveCopies(0, 0),
                    plan,
                    plan)))
        .containsPattern("together +XLA 16.3 KiB \\(16640 bytes\\)")
        .containsPattern(
            "on the host +XLA 20.0 KiB \\(20480 bytes\\) · plan in XLA's order 16.0 KiB \\(16384")
        .contains("XLA needs no more than what is live at once in its order");
  }

  @Test
  void comparisonStandsAboveThePlansOfAPage() {
    var report = PlanReport.of(plan(CompileOptions.DEFAULT), Format.HTML.views());

    assertThat(HtmlRenderer.render(report, report, "a < b\n"))
        .contains("<summary>Comparison</summary><pre>a &lt; b\n</pre>");
    assertThat(HtmlRenderer.render(report, report)).doesNotContain("<summary>Comparison</summary>");
  }
}
