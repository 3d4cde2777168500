package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction;
import dev.symplan.codegen.Instruction.AwaitEvent;
import dev.symplan.codegen.Instruction.Border;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.Fused;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Instruction.RecordEvent;
import dev.symplan.codegen.Instruction.SetupEnd;
import dev.symplan.codegen.RankProgram;
import dev.symplan.ir.op.OpDef;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** Turns instructions into what is put into the streams of GPUs. */
public final class DeviceLowering {
  private DeviceLowering() {}

  /** {@return the kind of implementation that an op has; empty if it has none} */
  public static Optional<String> family(OpDef op) {
    return LocalLowering.family(op);
  }

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
    var all = ImmutableList.<DeviceStep>builder();
    var begins = ImmutableIntArray.builder();
    if (program.setupEnd().isEmpty()) {
      begins.add(0);
    }
    int count = 0;
    var instructions = program.instructions();
    var constants = ConstantInputs.of(instructions);
    var steps = new ProductJoining(rank, constants);
    for (int i = 0; i < instructions.size(); i++) {
      var into = steps;
      int at = i;
      var joined =
          withNext(rank, instructions, at, collectives)
              .or(() -> withEpilogue(rank, instructions, at, collectives));
      if (joined.isPresent()) {
        into.add(joined.get());
        i++;
        continue;
      }
      switch (instructions.get(i)) {
        case LocalOp op ->
            RegisteredLowering.lower(rank, op, () -> collectives.pad(op))
                .ifPresentOrElse(into::add, () -> LocalLowering.lower(rank, op).forEach(into::add));
        case Fused fused -> into.add(fused);
        case Collective collective -> collectives.lower(rank, collective).forEach(into::add);
        case Border _, SetupEnd _ -> {
          // No launch is of two graphs, which may run apart, or of the setup and a run.
          var own = steps.build();
          all.addAll(own);
          count += own.size();
          begins.add(count);
          steps = new ProductJoining(rank, constants);
        }
        case RecordEvent(var stream, int event) -> into.add(new DeviceStep.Mark(stream, event));
        case AwaitEvent(var stream, int event) -> into.add(new DeviceStep.Await(stream, event));
      }
    }
    return new DeviceProgram(
        rank,
        all.addAll(steps.build()).build(),
        begins.build(),
        program.events(),
        collectives.pads());
  }

  /** {@return a launch for an instruction and the collective behind it, if one kernel does both} */
  private static Optional<DeviceStep.Launch> withNext(
      int rank, List<Instruction> instructions, int index, CollectiveLowering collectives) {
    return neighbours(instructions, index)
        .flatMap(pair -> collectives.lower(rank, pair.parts(), pair.collective()));
  }

  /**
   * Elementwise ops, and the collective right behind them on their stream.
   *
   * @param parts none if other ops are there
   */
  record Neighbours(ImmutableList<Part> parts, Collective collective) {}

  /** {@return a collective of a rank, by its number, with what is right before it} */
  static Optional<Neighbours> before(RankProgram program, int collective) {
    var instructions = program.instructions();
    return IntStream.range(0, instructions.size())
        .mapToObj(index -> neighbours(instructions, index))
        .flatMap(Optional::stream)
        .filter(pair -> pair.collective().group().index() == collective)
        .findFirst();
  }

  private static Optional<Neighbours> neighbours(List<Instruction> instructions, int index) {
    // An op that may run in the kernel of the collective before it does so on some ranks, maybe.
    boolean behind =
        index > 0
            && instructions.get(index - 1) instanceof Collective before
            && before.epilogue().isFused();
    return !behind
            && index + 1 < instructions.size()
            && instructions.get(index + 1) instanceof Collective collective
            && collective.stream() == instructions.get(index).stream()
        ? Optional.of(new Neighbours(elementwise(instructions.get(index)), collective))
        : Optional.empty();
  }

  /** {@return a launch for a collective and its epilogue, if one kernel can do both} */
  private static Optional<DeviceStep.Launch> withEpilogue(
      int rank, List<Instruction> instructions, int index, CollectiveLowering collectives) {
    if (!(instructions.get(index) instanceof Collective collective)
        || !collective.epilogue().isFused()) {
      return Optional.empty();
    }
    var behind = behind(instructions, index, collective);
    return collectives.lower(rank, collective, behind.parts(), behind.rows());
  }

  /**
   * A collective, and the ops right behind it that run in its kernel.
   *
   * @param parts none if they cannot be a kernel by elements
   * @param rows the leading dimensions that they go by
   */
  record Behind(Collective collective, ImmutableList<Part> parts, int rows) {}

  /**
   * {@return a collective of a rank that has an epilogue, by its number, with what is behind it}
   */
  static Optional<Behind> behind(RankProgram program, int collective) {
    var instructions = program.instructions();
    return IntStream.range(0, instructions.size())
        .boxed()
        .flatMap(
            index ->
                instructions.get(index) instanceof Collective own
                        && own.group().index() == collective
                        && own.epilogue().isFused()
                    ? Stream.of(behind(instructions, index, own))
                    : Stream.of())
        .findFirst();
  }

  private static Behind behind(List<Instruction> instructions, int index, Collective collective) {
    var behind = instructions.get(index + 1);
    return new Behind(
        collective,
        elementwise(behind),
        behind instanceof Fused fused ? fused.rows() : Integer.MAX_VALUE);
  }

  /** The ops that an instruction consists of; none if they cannot be a kernel by elements. */
  private static ImmutableList<Part> elementwise(Instruction instruction) {
    return switch (instruction) {
      case Fused fused -> fused.parts();
      case LocalOp op when CudaKernels.find(op.def().name()).isEmpty() ->
          LocalLowering.elementwise(op).stream().collect(ImmutableList.toImmutableList());
      case LocalOp _, Collective _, Border _, SetupEnd _, RecordEvent _, AwaitEvent _ ->
          ImmutableList.of();
    };
  }

  /**
   * {@return the steps of a rank for instructions that need no other rank}
   *
   * @throws UnsupportedOnGpu when one has no CUDA implementation
   */
  public static ImmutableList<DeviceStep> local(int rank, List<Instruction> instructions) {
    var steps = new ProductJoining(rank, ConstantInputs.of(instructions));
    for (var instruction : instructions) {
      switch (instruction) {
        case LocalOp op -> LocalLowering.lower(rank, op).forEach(steps::add);
        case Fused fused -> steps.add(fused);
        case Collective _, Border _, SetupEnd _, RecordEvent _, AwaitEvent _ -> {}
      }
    }
    return steps.build();
  }
}
