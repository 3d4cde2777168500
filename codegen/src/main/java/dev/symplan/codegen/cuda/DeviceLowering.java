package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction;
import dev.symplan.codegen.Instruction.AwaitEvent;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.Fused;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Instruction.RecordEvent;
import dev.symplan.codegen.RankProgram;
import java.util.List;

/** Turns instructions into what is put into the streams of GPUs. */
public final class DeviceLowering {
  private DeviceLowering() {}

  /**
   * {@return a program for each rank}
   *
   * @throws UnsupportedOnGpu when an op or a variant has no CUDA implementation
   */
  public static ImmutableList<DeviceProgram> lower(Executable executable) {
    var collectives = new CollectiveLowering(executable);
    return executable.ranks().stream()
        .map(program -> lower(program, collectives))
        .collect(ImmutableList.toImmutableList());
  }

  private static DeviceProgram lower(RankProgram program, CollectiveLowering collectives) {
    int rank = program.rank();
    var steps = new ProductJoining(rank);
    for (var instruction : program.instructions()) {
      switch (instruction) {
        case LocalOp op ->
            RegisteredLowering.lower(rank, op, () -> collectives.pad(op))
                .ifPresentOrElse(
                    steps::add, () -> LocalLowering.lower(rank, op).forEach(steps::add));
        case Fused fused -> steps.add(fused);
        case Collective collective -> collectives.lower(rank, collective).forEach(steps::add);
        case RecordEvent(var stream, int event) -> steps.add(new DeviceStep.Mark(stream, event));
        case AwaitEvent(var stream, int event) -> steps.add(new DeviceStep.Await(stream, event));
      }
    }
    return new DeviceProgram(rank, steps.build(), program.events(), collectives.pads());
  }

  /**
   * {@return what a rank does for instructions that need no other rank}
   *
   * @throws UnsupportedOnGpu when one has no CUDA implementation
   */
  public static ImmutableList<DeviceStep> local(int rank, List<Instruction> instructions) {
    var steps = new ProductJoining(rank);
    for (var instruction : instructions) {
      switch (instruction) {
        case LocalOp op -> LocalLowering.lower(rank, op).forEach(steps::add);
        case Fused fused -> steps.add(fused);
        case Collective _, RecordEvent _, AwaitEvent _ -> {}
      }
    }
    return steps.build();
  }
}
