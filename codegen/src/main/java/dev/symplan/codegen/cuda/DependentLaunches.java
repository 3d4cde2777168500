package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
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

  private static DeviceStep step(DeviceProgram program, int index) {
    var step = program.steps().get(index);
    boolean dependent = follows(program, index);
    return step instanceof Launch launch
            && isLocal(program.rank(), launch)
            && (dependent || follows(program, index + 1))
        ? launch.with(launch.kernel().inOrder(), dependent)
        : step;
  }

  /** Whether a step may begin before the one before it, of the same graph, has ended. */
  private static boolean follows(DeviceProgram program, int index) {
    var steps = program.steps();
    return index > 0
        && index < steps.size()
        && !program.begins().contains(index)
        && steps.get(index) instanceof Launch launch
        && isLocal(program.rank(), launch)
        && steps.get(index - 1) instanceof Launch
        && steps.get(index).stream() == steps.get(index - 1).stream();
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
