package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.TargetFile;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.doctor.Diagnosis.Finding;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The answers of a machine of eight GPUs and NCCL 2.28.9 to plans; none of it needs a GPU. */
class PlanNeedsTest {
  private static final PlanNeeds EIGHT = new PlanNeeds(8, 22809, PlanNeedsTest::unasked);

  private static final String GRAPH =
      """
      graph version 1
      group tp = [0, 1, 2, 3, 4, 5, 6, 7]
      graph g(x: bf16[1024], y: bf16[1024]) {
        a = aten::relu(x)
        r, s = _c10d_functional::all_reduce_coalesced([a, y], "sum", "tp")
        return r, s
      }
      """;

  /** As it comes out of a plan file, which is read where nobody has the graph. */
  private static Plan plan(Target target, CompileOptions options) {
    var plan =
        Compiler.forTarget(target)
            .with(options)
            .compile(GraphParser.parse(new SourceFile("dir/mlp.graph", GRAPH)));
    return PlanFile.read(new SourceFile("plan.json", PlanFile.toJson(plan)));
  }

  private static Finding unasked() {
    throw new AssertionError("asked");
  }

  private static CompileOptions forced(Variant variant) {
    return CompileOptions.DEFAULT.withVariants(ImmutableMap.of("all_reduce", variant));
  }

  @Test
  void moreGpusThanThereAre() {
    var plan = plan(Target.H200_X8, CompileOptions.DEFAULT);
    assertThat(new PlanNeeds(4, 22809, PlanNeedsTest::unasked).lacking(plan, true))
        .contains(
            "the plan is for 8 ranks, but there are 4 GPUs; make a new plan, with the same other"
                + " options: symplan compile dir/mlp.graph --ranks 4 -o PLAN");
    assertThat(new PlanNeeds(1, 22809, PlanNeedsTest::unasked).lacking(plan, true).orElseThrow())
        .startsWith("the plan is for 8 ranks, but there is one GPU; ");
    // A process of its own for each rank may see its own GPU only.
    assertThat(new PlanNeeds(1, 22809, PlanNeedsTest::unasked).lacking(plan, false)).isEmpty();
  }

  /** NCCL would run it all the same, and the results could be wrong without an error. */
  @Test
  void newerNccl() {
    var newer =
        TargetFile.read(
            new SourceFile(
                "t.json",
                """
                {"format": "symplan-target", "version": 1, "name": "lab", "base": "h200x8",
                 "nccl": "2.30.7"}
                """));
    var plan = plan(newer, forced(Variant.NCCL_SYMM));
    assertThat(new PlanNeeds(8, 23007, PlanNeedsTest::unasked).lacking(plan, true)).isEmpty();
    assertThat(EIGHT.lacking(plan, true))
        .contains(
            "all_reduce 'r' (mlp.graph:5) is planned as nccl_symm, but 2 collectives in one"
                + " captured group race in NCCL 2.28.9; 2.30.7 orders them; put \"nccl\":"
                + " \"2.28.9\" in a target file, and make a new plan, with the same other options:"
                + " symplan compile dir/mlp.graph --ranks 8 --target FILE -o PLAN");
  }

  @Test
  void multicast() {
    var plan = plan(Target.H200_X8, forced(Variant.MULTIMEM).withMulticast(true));
    var off = new Finding(false, "the GPUs have it, but it is off: NCCL_NVLS_ENABLE=0");
    assertThat(new PlanNeeds(8, 22809, () -> off).lacking(plan, false))
        .contains(
            "all_reduce 'r' (mlp.graph:5) is planned as multimem, which needs NVLink multicast: the"
                + " GPUs have it, but it is off: NCCL_NVLS_ENABLE=0; make a new plan, with the same"
                + " other options: symplan compile dir/mlp.graph --ranks 8 --multicast=off -o"
                + " PLAN");
    var on = new Finding(true, "all GPUs have it");
    assertThat(new PlanNeeds(8, 22809, () -> on).lacking(plan, false)).isEmpty();
  }

  @Test
  void nothingElse() {
    for (var target : List.of(Target.H200_X8, Target.H100_X8, Target.B200_X8)) {
      assertThat(EIGHT.lacking(plan(target, CompileOptions.DEFAULT), true)).isEmpty();
    }
    for (var variant : new Variant[] {Variant.ONE_SHOT, Variant.TWO_SHOT, Variant.NCCL}) {
      assertThat(EIGHT.lacking(plan(Target.H200_X8, forced(variant)), true)).isEmpty();
    }
  }
}
