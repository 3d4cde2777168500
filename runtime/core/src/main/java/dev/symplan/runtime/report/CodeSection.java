package dev.symplan.runtime.report;

import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.cuda.DeviceLowering;
import dev.symplan.codegen.cuda.DeviceText;
import dev.symplan.codegen.cuda.UnsupportedOnGpu;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.report.Section;
import dev.symplan.planner.report.View;
import java.util.stream.IntStream;

/** The section of what the ranks execute: the instructions, and the GPU code that they become. */
public final class CodeSection {
  private CodeSection() {}

  /** {@return instructions of all ranks, and the launches and kernels of the first one} */
  public static Section of(Plan plan) {
    var executable = Lowering.lower(plan);
    var text = new StringBuilder(executable.toText()).append("\ncuda\n");
    try {
      text.append(DeviceText.of(DeviceLowering.lower(executable), 1));
    } catch (UnsupportedOnGpu e) {
      text.append("none: ").append(e.getMessage()).append('\n');
    }
    return new Section(
        View.CODE,
        IntStream.range(0, plan.worldSize()).boxed().collect(ImmutableList.toImmutableList()),
        "",
        ImmutableList.of(),
        ImmutableList.of(),
        ImmutableList.copyOf(Splitter.on('\n').split(text.toString().stripTrailing())));
  }
}
