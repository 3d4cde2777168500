package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.cuda.DeviceStep.HopperLaunch;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * Lets kernels begin while the kernel before them still runs: CUDA's programmatic dependent
 * launches.
 *
 * <p>The threads of such a kernel wait for the launches before it at its beginning, or as soon as
 * they have read ahead of memory that no step writes. After that, everything is as if the launches
 * had followed each other: what is before has ended, and its writes are visible. As each kernel
 * waits, the end of one implies the ends of all before it.
 *
 * <p>Only kernels that touch nothing but their own GPU's memory begin early. What a collective's
 * kernel does begins after all before it has ended: barriers, and those that a plan leaves out,
 * rest on that. And while such a kernel waits for peers, no other waits for it on the GPU: only one
 * that is about to end lets the next begin.
 */
public final class DependentLaunches {
  private DependentLaunches() {}

  /** {@return the program, whose kernels begin as early as they may} */
  public static DeviceProgram in(DeviceProgram program) {
    return program.with(
        IntStream.range(0, program.steps().size())
            .mapToObj(i -> step(program, i))
            .collect(ImmutableList.toImmutableList()));
  }

  /**
   * {@return the steps for other GPUs than Hopper ones: where what one of these does is not done by
   * kernels there, nothing begins early behind it}
   */
  public static ImmutableList<DeviceStep> elsewhere(ImmutableList<DeviceStep> steps) {
    return IntStream.range(0, steps.size())
        .mapToObj(
            i ->
                i > 0
                        && steps.get(i) instanceof Launch launch
                        && steps.get(i - 1) instanceof HopperLaunch both
                        && !(both.otherwise().getLast() instanceof Launch)
                    ? launch.with(launch.kernel(), false)
                    : steps.get(i))
        .collect(ImmutableList.toImmutableList());
  }

  private static DeviceStep step(DeviceProgram program, int index) {
    var step = program.steps().get(index);
    boolean dependent = follows(program, index);
    if (!isLocal(program, index) || !dependent && !follows(program, index + 1)) {
      return step;
    }
    var launch = launch(step).orElseThrow();
    var inOrder = launch.with(launch.kernel().inOrder(), dependent);
    return step instanceof HopperLaunch both
        ? new HopperLaunch(inOrder, both.otherwise(), both.sameBits())
        : inOrder;
  }

  /**
   * Whether a step may begin before the one before it, of the same graph, has ended. What is done
   * on other GPUs than Hopper ones begins after all before it, and lets nothing begin early.
   */
  private static boolean follows(DeviceProgram program, int index) {
    var steps = program.steps();
    return index > 0
        && index < steps.size()
        && !program.begins().contains(index)
        && isLocal(program, index)
        && launch(steps.get(index - 1)).isPresent()
        && steps.get(index).stream() == steps.get(index - 1).stream();
  }

  private static boolean isLocal(DeviceProgram program, int index) {
    return launch(program.steps().get(index))
        .filter(launch -> isLocal(program.rank(), launch))
        .isPresent();
  }

  private static Optional<Launch> launch(DeviceStep step) {
    return step instanceof HopperLaunch both
        ? Optional.of(both.launch())
        : step instanceof Launch launch ? Optional.of(launch) : Optional.empty();
  }

  /** {@return whether a kernel touches nothing but its own GPU's memory} */
  static boolean isLocal(int rank, Launch launch) {
    return launch.words().stream()
        .allMatch(
            word ->
                switch (word) {
                  case KernelArgument.Number _ -> true;
                  case KernelArgument.Memory(var address, long _) -> address.rank() == rank;
                  case KernelArgument.TensorMap map -> map.address().rank() == rank;
                  case KernelArgument.Multicast _,
                      KernelArgument.Flags _,
                      KernelArgument.Meetings _,
                      KernelArgument.Failure _,
                      KernelArgument.Timeout _ ->
                      false;
                });
  }
}
