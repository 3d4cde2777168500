package dev.symplan.codegen;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.StreamKind;
import java.util.Optional;

/**
 * The program that one rank executes in each run.
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

  /** {@return the streams that have work} */
  public ImmutableSet<StreamKind> streams() {
    return instructions.stream().map(Instruction::stream).collect(ImmutableSet.toImmutableSet());
  }
}
