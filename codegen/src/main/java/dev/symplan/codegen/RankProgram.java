package dev.symplan.codegen;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.ImmutableSetMultimap;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.op.OpDef;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.StreamKind;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.IntStream;
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

  private record Memory(ArenaKind arena, int index) {
    static Memory of(TensorRef ref) {
      return new Memory(ref.arena(), ref.index());
    }
  }

  /**
   * {@return the inputs that instructions may write into, by their positions} An op that may do
   * anything may write all its arguments. A donated input does not count: it is not kept.
   */
  public ImmutableSet<Integer> writtenInputs() {
    var written =
        instructions.stream()
            .flatMap(RankProgram::written)
            .distinct()
            .collect(ImmutableSetMultimap.toImmutableSetMultimap(Memory::of, Function.identity()));
    return IntStream.range(0, inputs.size())
        .filter(
            i ->
                inputs
                    .get(i)
                    .filter(input -> input.type().space() != MemorySpace.DONATED)
                    .filter(
                        input -> written.get(Memory.of(input)).stream().anyMatch(input::overlaps))
                    .isPresent())
        .boxed()
        .collect(ImmutableSet.toImmutableSet());
  }

  private static Stream<TensorRef> written(Instruction instruction) {
    return switch (instruction) {
      case Instruction.LocalOp op ->
          Stream.concat(
              writtenArgs(op.def(), op.args()), op.results().stream().flatMap(Optional::stream));
      case Instruction.Fused fused ->
          fused.parts().stream()
              .flatMap(
                  part ->
                      Stream.concat(
                          writtenArgs(part.def(), part.args()),
                          part.results().stream().flatMap(Operand::tensors)));
      case Instruction.Collective collective -> collective.results().stream();
      case Instruction.Border _,
          Instruction.SetupEnd _,
          Instruction.RecordEvent _,
          Instruction.AwaitEvent _ ->
          Stream.empty();
    };
  }

  private static Stream<TensorRef> writtenArgs(OpDef def, ImmutableList<Operand> args) {
    var params = def.schema().params();
    return IntStream.range(0, args.size())
        .filter(i -> def.isUnbounded() || params.get(i).alias().write())
        .boxed()
        .flatMap(i -> args.get(i).tensors());
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
