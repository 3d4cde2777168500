package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * The devices that run one graph: all, or a single one if the module asks which device it is on.
 *
 * @param ranks empty for all
 * @param partitions how many devices a replica has
 */
record Devices(ImmutableIntArray ranks, int partitions) {
  /** A module for more devices is planned once for all of them. */
  private static final int MOST_GRAPHS = 16;

  /** {@return the devices of each graph that a module becomes} */
  static ImmutableList<Devices> of(HloModule module, Groups groups, Reading reading) {
    int partitions = groups.partitions();
    boolean each =
        reading == Reading.OPENED
            && groups.world() > 1
            && groups.world() <= MOST_GRAPHS
            && module.computations().values().stream()
                .flatMap(computation -> computation.instructions().stream())
                .anyMatch(instruction -> isQuestion(instruction.opcode()));
    return each
        ? IntStream.range(0, groups.world())
            .mapToObj(rank -> new Devices(ImmutableIntArray.of(rank), partitions))
            .collect(ImmutableList.toImmutableList())
        : ImmutableList.of(new Devices(ImmutableIntArray.of(), partitions));
  }

  private static boolean isQuestion(String opcode) {
    return opcode.equals("partition-id") || opcode.equals("replica-id");
  }

  /** {@return the number for which an instruction asks; empty if the devices have several} */
  Optional<Bound> number(HloInstruction instruction) {
    return isQuestion(instruction.opcode())
            && ranks.length() == 1
            && instruction.shape() instanceof HloShape.Array shape
        ? Optional.of(
            new Bound.Splat(
                new Arg.Int(
                    instruction.opcode().equals("partition-id")
                        ? ranks.get(0) % partitions
                        : ranks.get(0) / partitions),
                shape))
        : Optional.empty();
  }
}
