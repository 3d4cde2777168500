package dev.symplan.codegen;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.StreamKind;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * The program that one rank executes: in each run, or from {@link Instruction.SetupEnd} on if it
 * has one.
 *
 * @param localBytes the size of its local arena
 * @param inputs where each graph input is; empty for plain numbers
 * @param outputs where each graph output is; empty for {@code None} and numbers
 * @param buffers all that instructions may reach
 * @param events the number of events
 */
public record RankProgram(
    int rank,
    long localBytes,
    ImmutableList<Optional<TensorRef>> inputs,
    ImmutableList<String> inputNames,
    ImmutableList<Optional<TensorRef>> outputs,
    ImmutableList<Buffer> buffers,
    ImmutableList<Instruction> instructions,
    int events) {

  /**
   * A stretch of memory that the plan gave to something; others may have it at other times.
   *
   * @param index the graph input or output, for external memory; 0 for arenas
   */
  public record Buffer(ArenaKind arena, int index, long offset, long bytes) {}

  /**
   * {@return the inputs in the caller's memory that instructions may write into, by their
   * positions} An op with an effect counts as if it wrote all its arguments.
   */
  public ImmutableSet<Integer> writtenInputs() {
    return instructions.stream()
        .flatMap(RankProgram::written)
        .filter(ref -> ref.arena() == ArenaKind.EXTERNAL_INPUT)
        .map(TensorRef::index)
        .collect(ImmutableSet.toImmutableSet());
  }

  private static Stream<TensorRef> written(Instruction instruction) {
    return switch (instruction) {
      case Instruction.LocalOp op ->
          op.def().hasEffect() ? op.tensors() : op.results().stream().flatMap(Optional::stream);
      case Instruction.Fused fused ->
          fused.parts().stream()
              .flatMap(
                  part ->
                      part.def().hasEffect()
                          ? Stream.concat(part.args().stream(), part.results().stream())
                          : part.results().stream())
              .flatMap(Operand::tensors);
      case Instruction.Collective collective -> collective.tensors();
      case Instruction.Border _,
          Instruction.SetupEnd _,
          Instruction.RecordEvent _,
          Instruction.AwaitEvent _ ->
          Stream.empty();
    };
  }

  /** {@return the end of the instructions that are executed once; empty if all are in each run} */
  public Optional<Instruction.SetupEnd> setupEnd() {
    return instructions.stream()
        .filter(Instruction.SetupEnd.class::isInstance)
        .map(Instruction.SetupEnd.class::cast)
        .findFirst();
  }

  /** {@return the bytes of host memory that copies to it and back need} */
  public long hostBytes() {
    return buffers.stream()
        .filter(buffer -> buffer.arena() == ArenaKind.HOST)
        .mapToLong(buffer -> buffer.offset() + buffer.bytes())
        .max()
        .orElse(0);
  }

  /** {@return the streams that have work} */
  public ImmutableSet<StreamKind> streams() {
    return instructions.stream().map(Instruction::stream).collect(ImmutableSet.toImmutableSet());
  }
}
