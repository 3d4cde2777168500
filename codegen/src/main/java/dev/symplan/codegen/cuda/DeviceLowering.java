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
    var steps = ImmutableList.<DeviceStep>builder();
    int rank = program.rank();
    for (var instruction : program.instructions()) {
      switch (instruction) {
        case LocalOp op ->
            RegisteredLowering.lower(rank, op, () -> collectives.pad(op))
                .ifPresentOrElse(steps::add, () -> steps.addAll(LocalLowering.lower(rank, op)));
        case Fused fused -> steps.addAll(FusedLowering.lower(rank, fused));
        case Collective collective -> steps.addAll(collectives.lower(rank, collective));
        case RecordEvent(var stream, int event) -> steps.add(new DeviceStep.Mark(stream, event));
        case AwaitEvent(var stream, int event) -> steps.add(new DeviceStep.Await(stream, event));
      }
    }
    return new DeviceProgram(rank, steps.build(), program.events(), collectives.pads());
  }

  /**
   * {@return what a rank does for an instruction that needs no other rank}
   *
   * @throws UnsupportedOnGpu when it has no CUDA implementation
   */
  public static ImmutableList<DeviceStep> local(int rank, Instruction instruction) {
    return switch (instruction) {
      case LocalOp op -> LocalLowering.lower(rank, op);
      case Fused fused -> FusedLowering.lower(rank, fused);
      case Collective _, RecordEvent _, AwaitEvent _ -> ImmutableList.of();
    };
  }
}
