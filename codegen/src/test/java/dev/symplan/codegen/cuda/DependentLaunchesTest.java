package dev.symplan.codegen.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.cuda.DeviceStep.HopperLaunch;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.DeviceStep.Mark;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.StreamKind;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Which kernels begin early, and that those wait before they touch what others write. */
class DependentLaunchesTest {
  private static final String AWAIT = "  " + Kernel.AWAIT_BEFORE + "\n";

  private static final Kernel KERNEL =
      new Kernel(
          "struct Args { char* memory[1]; };\n"
              + "extern \"C\" __global__ void symplan_kernel(const __grid_constant__ Args args) {\n"
              + "}\n");

  private static Launch launch(StreamKind stream, KernelArgument... words) {
    return new Launch(stream, KERNEL, 1, 32, ImmutableList.copyOf(words), "k");
  }

  private static Launch local() {
    return launch(StreamKind.COMPUTE, memory(0));
  }

  private static HopperLaunch hopper(DeviceStep... otherwise) {
    return new HopperLaunch(local(), ImmutableList.copyOf(otherwise), false);
  }

  private static KernelArgument memory(int rank) {
    return new KernelArgument.Memory(new Address(rank, ArenaKind.LOCAL, 0, 0), 16);
  }

  private static List<Boolean> dependent(ImmutableIntArray begins, DeviceStep... steps) {
    var program = new DeviceProgram(0, ImmutableList.copyOf(steps), begins, 1, 1);
    return DependentLaunches.in(program).steps().stream()
        .map(
            step ->
                step instanceof HopperLaunch both
                    ? both.launch().dependent()
                    : step instanceof Launch launch && launch.dependent())
        .toList();
  }

  private static List<Boolean> dependent(DeviceStep... steps) {
    return dependent(ImmutableIntArray.of(0), steps);
  }

  @Test
  void kernelsOfOneStreamFollowEachOther() {
    assertThat(dependent(local(), local(), local())).containsExactly(false, true, true);
    assertThat(dependent(launch(StreamKind.COMM), local(), local()))
        .containsExactly(false, false, true);
  }

  @Test
  void kernelsForHopperGpusFollowOthersAndAreFollowed() {
    assertThat(dependent(local(), hopper(local()), local())).containsExactly(false, true, true);
    assertThat(dependent(hopper(new Mark(StreamKind.COMPUTE, 0)), local()))
        .containsExactly(false, true);
  }

  /** What a library does there may have ended with something that no launch can depend on. */
  @Test
  void kernelsOnOtherGpusFollowKernelsOnly() {
    var byLibrary = hopper(local(), new Mark(StreamKind.COMPUTE, 0));
    var byKernels = hopper(new Mark(StreamKind.COMPUTE, 0), local());
    var program =
        new DeviceProgram(
            0,
            ImmutableList.of(local(), byLibrary, local(), byKernels, local(), local()),
            ImmutableIntArray.of(0),
            1,
            1);
    var steps = DependentLaunches.in(program).steps();
    var elsewhere = DependentLaunches.elsewhere(steps);
    assertThat(((Launch) steps.get(2)).dependent()).isTrue();
    assertThat(((Launch) elsewhere.get(2)).dependent()).isFalse();
    assertThat(((Launch) elsewhere.get(2)).kernel()).isEqualTo(((Launch) steps.get(2)).kernel());
    for (int i : new int[] {0, 1, 3, 4, 5}) {
      assertThat(elsewhere.get(i)).isEqualTo(steps.get(i));
    }
  }

  @Test
  void theFirstKernelOfAGraphBeginsAlone() {
    assertThat(dependent(ImmutableIntArray.of(0, 1), local(), local(), local()))
        .containsExactly(false, false, true);
  }

  @Test
  void kernelsThatMeetPeersOrTouchTheirMemoryBeginAfterAllBefore() {
    var words =
        List.of(
            memory(1),
            new KernelArgument.Multicast(ImmutableIntArray.of(0, 1), 0, 16),
            new KernelArgument.Flags(0, 1),
            new KernelArgument.Meetings(0),
            KernelArgument.Failure.FAILURE,
            KernelArgument.Timeout.TIMEOUT);
    for (var word : words) {
      assertThat(dependent(local(), launch(StreamKind.COMPUTE, memory(0), word), local()))
          .as("%s", word)
          .containsExactly(false, false, true);
    }
  }

  @Test
  void kernelsThatMeetPeersAllowNoneToWaitForThem() {
    var meeting = launch(StreamKind.COMPUTE, new KernelArgument.Flags(0, 1));
    var program =
        new DeviceProgram(0, ImmutableList.of(meeting, local()), ImmutableIntArray.of(0), 0, 1);
    assertThat(DependentLaunches.in(program).steps().getFirst()).isEqualTo(meeting);
  }

  @Test
  void othersThanKernelsStayApart() {
    assertThat(dependent(local(), new Mark(StreamKind.COMPUTE, 0), local()))
        .containsExactly(false, false, false);
  }

  @Test
  void everyThreadWaitsFirst() {
    var program =
        new DeviceProgram(
            0,
            ImmutableList.of(local(), local(), new Mark(StreamKind.COMPUTE, 0), local()),
            ImmutableIntArray.of(0),
            1,
            0);
    var steps = DependentLaunches.in(program).steps();
    for (var step : steps.subList(0, 2)) {
      assertThat(((Launch) step).kernel().text())
          .contains("Args args) {\n" + AWAIT + "  allow_next_launch();\n}")
          .contains("void await_launches_before() {", "void allow_next_launch() {");
    }
    assertThat(steps.getLast()).isEqualTo(local());
  }

  private static DeviceProgram lower(String ops) {
    var text =
        """
        graph version 1
        group g = [0]
        graph t(x: bf16[4, 1024], w: bf16[4096, 1024]) {
          %s
          return r
        }
        """
            .formatted(ops);
    return DependentLaunches.in(
        DeviceLowering.lower(
                Lowering.lower(
                    Compiler.forTarget(Target.H200_X4)
                        .with(CompileOptions.DEFAULT)
                        .compile(GraphParser.parse(new SourceFile("test.graph", text)))))
            .getFirst());
  }

  private static String product(DeviceProgram program) {
    return program.steps().stream()
        .flatMap(step -> step.launches().stream())
        .map(launch -> launch.kernel().text())
        .filter(text -> text.contains("mma.sync"))
        .findFirst()
        .orElseThrow();
  }

  private static final String NORM = "n = aten::_softmax(x, 1, False)\n  t = aten::t(w)\n  ";

  @Test
  void weightsAreReadAheadOfTheWait() {
    var text = product(lower(NORM + "r = aten::mm(n, t)"));
    int ahead = text.indexOf("next[j][i] = streamed(");
    int await = text.indexOf(AWAIT);
    assertThat(ahead).isPositive().isLessThan(await);
    assertThat(text.indexOf(AWAIT, await + 1)).isNegative();
    // Nothing of the vectors before.
    assertThat(text.indexOf("*(const Eight*)(vectors[t]")).isGreaterThan(await);
    assertThat(text).contains("Args args) {\n  allow_next_launch();\n");
  }

  @Test
  void aMatrixThatAStepWritesIsReadAfterTheWait() {
    for (var ops :
        List.of(
            "n = aten::_softmax(x, 1, False)\n  d = aten::_softmax(w, 1, False)\n"
                + "  t = aten::t(d)\n  r = aten::mm(n, t)",
            "n = aten::_softmax(x, 1, False)\n  d = aten::mul_.Scalar(w, 2)\n"
                + "  t = aten::t(d)\n  r = aten::mm(n, t)")) {
      var program = lower(ops);
      var text = product(program);
      assertThat(text).contains("Args args) {\n" + AWAIT + "  allow_next_launch();\n");
      assertThat(text.indexOf("next[j][i] = streamed(")).isGreaterThan(text.indexOf(AWAIT));
    }
  }

  @Test
  void compiles() {
    Nvcc.check(List.copyOf(Nvcc.kernels(List.of(lower(NORM + "r = aten::mm(n, t)")))));
  }
}
