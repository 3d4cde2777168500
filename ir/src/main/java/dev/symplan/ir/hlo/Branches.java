package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.math.LongMath;
import dev.symplan.ir.Arg;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The branches of {@code conditional}, and the memory that they take. */
final class Branches {
  /** Bytes at multiples of which XLA's buffers begin. */
  private static final long ALIGNMENT = 256;

  private final ImmutableMap<String, HloComputation> computations;
  private final Fusions fusions;
  private final Map<String, Long> scratch = new HashMap<>();

  Branches(ImmutableMap<String, HloComputation> computations, Fusions fusions) {
    this.computations = computations;
    this.fusions = fusions;
  }

  /** {@return the branches, the one that runs for {@code true} first} */
  ImmutableList<HloComputation> of(HloInstruction conditional) {
    var found = ImmutableList.<HloComputation>builder();
    for (var key : new String[] {"true_computation", "false_computation", "branch_computations"}) {
      for (var name : conditional.attributes().names(key)) {
        @Nullable HloComputation branch = computations.get(name);
        if (branch != null) {
          found.add(branch);
        }
      }
    }
    return found.build();
  }

  /**
   * {@return the number of the branch that runs, if the module says it} Any number that no branch
   * has stands for the last one.
   */
  Optional<Integer> chosen(Bound selector, int branches) {
    if (!(selector instanceof Bound.Splat(Arg.Literal number, Array shape))
        || shape.tensor().rank() > 0) {
      return Optional.empty();
    }
    return switch (number) {
      case Arg.Bool(boolean value) -> Optional.of(value ? 0 : 1);
      case Arg.Int(long value) ->
          Optional.of(value >= 0 && value < branches ? (int) value : branches - 1);
      default -> Optional.empty();
    };
  }

  /**
   * {@return bytes in which all that a computation makes has room at once} What really is needed at
   * once is less, but only XLA knows the order in which it runs.
   *
   * @throws IllegalArgumentException when it calls what does not stand above it in the module
   */
  long scratchBytes(HloComputation computation) {
    if (scratch.isEmpty()) {
      measure();
    }
    @Nullable Long bytes = scratch.get(computation.name());
    if (bytes == null) {
      throw new IllegalArgumentException(
          "%s calls what does not stand above it".formatted(computation.name()));
    }
    return bytes;
  }

  /** Computations stand above those that call them. */
  private void measure() {
    for (var computation : computations.values()) {
      long bytes = 0;
      boolean known = true;
      for (var instruction : computation.instructions()) {
        bytes = LongMath.saturatedAdd(bytes, made(instruction));
        if (!instruction.opcode().equals("fusion")) {
          for (var callee : fusions.called(instruction)) {
            known &= scratch.containsKey(callee.name());
            bytes = LongMath.saturatedAdd(bytes, scratch.getOrDefault(callee.name(), 0L));
          }
        }
      }
      if (known) {
        scratch.put(computation.name(), bytes);
      }
    }
  }

  private static long made(HloInstruction instruction) {
    return switch (instruction.opcode()) {
      case "parameter", "tuple", "get-tuple-element", "bitcast", "after-all", "opt-barrier" -> 0;
      default ->
          instruction
              .shape()
              .arrays()
              .mapToLong(array -> Math.ceilDiv(array.tensor().storageBytes(), ALIGNMENT))
              .map(blocks -> LongMath.saturatedMultiply(blocks, ALIGNMENT))
              .reduce(0, LongMath::saturatedAdd);
    };
  }
}
