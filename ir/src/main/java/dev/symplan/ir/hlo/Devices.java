package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.IntUnaryOperator;
import java.util.stream.IntStream;

/**
 * The devices that run one graph, and the numbers that each of them has another one of.
 *
 * <p>A module may ask on which device it is. If all that it computes of the answer are elements,
 * all devices run one graph. If it takes a part of an array there, or a branch, a graph for each
 * device is better: the part is a view, and no other branch is computed.
 *
 * @param ranks empty for all
 * @param world how many ranks there are
 * @param partitions how many devices a replica has
 * @param differ whether numbers of ranks may be in the graph of all of them
 */
record Devices(ImmutableIntArray ranks, int world, int partitions, boolean differ) {
  /** A module for more devices gets no graph for each. */
  static final int MOST_GRAPHS = 16;

  /** The instructions that only pass their operands on. */
  private static final ImmutableSet<String> PASSING =
      ImmutableSet.of(
          "tuple", "get-tuple-element", "fusion", "call", "opt-barrier", "optimization-barrier");

  /** The instructions that give the elements of their operand in another shape. */
  private static final ImmutableSet<String> RESHAPING =
      ImmutableSet.of("broadcast", "reshape", "bitcast");

  /** Thrown when an instruction needs a graph for each device. */
  static final class NeedsOwnGraphs extends RuntimeException {
    private static final long serialVersionUID = 1L;
    private final transient HloInstruction instruction;

    NeedsOwnGraphs(HloInstruction instruction) {
      super(instruction.name(), null, false, false);
      this.instruction = instruction;
    }

    HloInstruction instruction() {
      return instruction;
    }
  }

  /** {@return all devices} */
  static Devices together(Groups groups, Reading reading) {
    return new Devices(
        ImmutableIntArray.of(), groups.world(), groups.partitions(), reading == Reading.OPENED);
  }

  /** {@return the device of each graph} */
  static ImmutableList<Devices> each(Groups groups) {
    return IntStream.range(0, groups.world())
        .mapToObj(
            rank ->
                new Devices(ImmutableIntArray.of(rank), groups.world(), groups.partitions(), false))
        .collect(ImmutableList.toImmutableList());
  }

  /** {@return the number for which an instruction asks; empty if it does not, or cannot be told} */
  Optional<Bound> number(HloInstruction instruction) {
    return switch (instruction.opcode()) {
      case "partition-id" -> number(instruction, rank -> rank % partitions);
      case "replica-id" -> number(instruction, rank -> rank / partitions);
      default -> Optional.empty();
    };
  }

  private Optional<Bound> number(HloInstruction instruction, IntUnaryOperator of) {
    if (!(instruction.shape() instanceof Array shape) || ranks.isEmpty() && !differ) {
      return Optional.empty();
    }
    var asked = ranks.isEmpty() ? IntStream.range(0, world) : ranks.stream();
    return Optional.of(
        Bound.ByRank.of(
            asked
                .<Arg.Literal>mapToObj(rank -> new Arg.Int(of.applyAsInt(rank)))
                .collect(ImmutableList.toImmutableList()),
            shape));
  }

  /**
   * {@return the numbers of ranks that an instruction gives without an op; empty if it has none, or
   * if ops compute them}
   *
   * @throws NeedsOwnGraphs when it does with them what no graph of all devices can do
   */
  Optional<Bound> fold(HloInstruction instruction, List<Bound> operands) {
    var opcode = instruction.opcode();
    if (!differ || PASSING.contains(opcode) || operands.stream().noneMatch(Devices::differs)) {
      return Optional.empty();
    }
    if (RESHAPING.contains(opcode)
        && operands.getFirst() instanceof Bound.ByRank numbers
        && instruction.shape() instanceof Array shape
        && shape.exact()
        && shape.dtype() == numbers.shape().dtype()) {
      return Optional.of(new Bound.ByRank(numbers.numbers(), shape));
    }
    var folded =
        opcode.equals("dynamic-slice") && instruction.shape() instanceof Array shape
            ? onEach(operands, own -> Tables.part(own, shape))
            : onEach(operands, own -> Scalars.fold(instruction, own));
    if (folded.isEmpty() && !Elementwise.isPointwise(opcode)) {
      throw new NeedsOwnGraphs(instruction);
    }
    return folded;
  }

  private static boolean differs(Bound bound) {
    return switch (bound) {
      case Bound.ByRank _ -> true;
      case Bound.Tuple(ImmutableList<Bound> parts) -> parts.stream().anyMatch(Devices::differs);
      case Bound.Tensor _,
          Bound.Splat _,
          Bound.Table _,
          Bound.Hosted _,
          Bound.Pending _,
          Bound.Nothing _ ->
          false;
    };
  }

  /**
   * {@return the number that each rank has of its own operands, if that is an integer or a bool}
   */
  private Optional<Bound> onEach(
      List<Bound> operands, Function<List<Bound>, Optional<Bound>> computed) {
    var numbers = ImmutableList.<Arg.Literal>builderWithExpectedSize(world);
    Optional<Array> given = Optional.empty();
    for (int rank = 0; rank < world; rank++) {
      int self = rank;
      var own = computed.apply(operands.stream().map(operand -> on(self, operand)).toList());
      if (own.isEmpty()
          || !(own.get() instanceof Bound.Splat(Arg.Literal number, Array shape))
          || number.integer().isEmpty()) {
        return Optional.empty();
      }
      numbers.add(number);
      given = Optional.of(shape);
    }
    return given.map(shape -> Bound.ByRank.of(numbers.build(), shape));
  }

  private static Bound on(int rank, Bound operand) {
    return operand instanceof Bound.ByRank(ImmutableList<Arg.Literal> numbers, Array shape)
        ? new Bound.Splat(numbers.get(rank), shape)
        : operand;
  }
}
