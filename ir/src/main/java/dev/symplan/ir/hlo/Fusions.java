package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** The facts about a fusion that follow from the computation that it calls. */
final class Fusions {
  private static final ImmutableSet<String> CALLS =
      ImmutableSet.of("fusion", "fusion-start", "call", "async-start", "while", "conditional");

  private static final ImmutableSet<String> PHASES = ImmutableSet.of("-start", "-done");

  /** All opcodes of collectives, those of their phases among them. */
  private static final ImmutableSet<String> COLLECTIVES =
      Stream.concat(
              Collectives.UNSUPPORTED.stream(),
              Collectives.OPCODES.stream()
                  .flatMap(
                      opcode -> Stream.concat(Stream.of(""), PHASES.stream()).map(opcode::concat)))
          .collect(ImmutableSet.toImmutableSet());

  private static final ImmutableSet<String> NOTABLE =
      ImmutableSet.<String>builder().addAll(COLLECTIVES).addAll(CALLS).add("custom-call").build();

  /** The attributes that name computations. */
  private static final ImmutableSet<String> CALLEES =
      ImmutableSet.of(
          "calls",
          "to_apply",
          "condition",
          "body",
          "true_computation",
          "false_computation",
          "branch_computations");

  private final ImmutableMap<String, HloComputation> computations;
  private final Set<String> silent = new HashSet<>();
  private final Map<String, Long> sizes = new HashMap<>();

  /** Computations stand above those that call them; what does not is taken to communicate. */
  Fusions(ImmutableMap<String, HloComputation> computations) {
    this.computations = computations;
    for (var computation : computations.values()) {
      boolean talks = false;
      long size = computation.instructions().size();
      for (var instruction : computation.notable()) {
        talks |= isCollective(instruction.opcode());
        if (CALLS.contains(instruction.opcode())) {
          for (var callee : called(instruction)) {
            talks |= !silent.contains(callee.name());
            size += sizes.getOrDefault(callee.name(), 0L);
          }
        }
      }
      sizes.put(computation.name(), Math.min(size, Integer.MAX_VALUE));
      if (!talks) {
        silent.add(computation.name());
      }
    }
  }

  /** {@return whether a collective runs in a computation, or in one that it calls} */
  boolean communicates(HloComputation computation) {
    return !silent.contains(computation.name());
  }

  /** {@return the instructions of a computation, with those of all that it calls} */
  long size(HloComputation computation) {
    return sizes.getOrDefault(computation.name(), 0L);
  }

  static boolean isCollective(String opcode) {
    return COLLECTIVES.contains(opcode);
  }

  /** {@return whether instructions of an opcode are collectives, custom calls, or call others} */
  static boolean isNotable(String opcode) {
    return NOTABLE.contains(opcode);
  }

  /** {@return {@code all-gather} for {@code all-gather-start} and {@code all-gather-done}} */
  static String withoutPhase(String opcode) {
    for (var phase : PHASES) {
      if (opcode.endsWith(phase)) {
        return opcode.substring(0, opcode.length() - phase.length());
      }
    }
    return opcode;
  }

  Set<HloComputation> called(HloInstruction instruction) {
    var found = new HashSet<HloComputation>();
    for (var key : CALLEES) {
      for (var name : instruction.attributes().names(key)) {
        @Nullable HloComputation computation = computations.get(name);
        if (computation != null) {
          found.add(computation);
        }
      }
    }
    return found;
  }

  /** {@return the floating-point operations of the dots in a computation} */
  double flops(HloComputation computation) {
    double count = 0;
    var shapes = new HashMap<String, HloShape>();
    for (var instruction : computation.instructions()) {
      shapes.put(instruction.name(), instruction.shape());
      if (instruction.opcode().equals("dot")
          && !instruction.operands().isEmpty()
          && shapes.get(instruction.operands().getFirst()) instanceof Array lhs
          && instruction.shape() instanceof Array result
          && lhs.exact()
          && result.exact()) {
        count += Products.flops(instruction, lhs, result);
      }
    }
    return count;
  }

  /**
   * {@return the number of a parameter whose memory the result may take: the fusion reads each of
   * its elements before it writes that place}
   *
   * @param candidates the parameters that nothing else in the caller rules out
   */
  OptionalInt replaceable(HloComputation computation, Set<Integer> candidates) {
    if (!(computation.root().shape() instanceof Array result) || !result.exact()) {
      return OptionalInt.empty();
    }
    var users = users(computation);
    for (var parameter : computation.parameters()) {
      int number = Integer.parseInt(parameter.literal());
      if (candidates.contains(number)
          && parameter.shape() instanceof Array array
          && array.exact()
          && array.tensor().equals(result.tensor())
          && (isPointwise(parameter, result, users)
              || isUpdated(computation.root(), parameter, users))) {
        return OptionalInt.of(number);
      }
    }
    return OptionalInt.empty();
  }

  private static Map<String, Set<HloInstruction>> users(HloComputation computation) {
    var users = new HashMap<String, Set<HloInstruction>>();
    for (var instruction : computation.instructions()) {
      for (var operand : instruction.operands()) {
        users.computeIfAbsent(operand, name -> new HashSet<>()).add(instruction);
      }
    }
    return users;
  }

  /** {@return whether all that depends on a parameter does so element by element} */
  private static boolean isPointwise(
      HloInstruction parameter, Array result, Map<String, Set<HloInstruction>> users) {
    var open = new ArrayDeque<HloInstruction>();
    var seen = new HashSet<String>();
    open.add(parameter);
    while (!open.isEmpty()) {
      for (var user : users.getOrDefault(open.remove().name(), Set.of())) {
        boolean sameIndexes =
            Elementwise.isPointwise(user.opcode())
                && user.shape() instanceof Array shape
                && shape.tensor().sizes().equals(result.tensor().sizes())
                && shape.minorToMajor().equals(result.minorToMajor());
        if (!sameIndexes) {
          return false;
        }
        if (seen.add(user.name())) {
          open.add(user);
        }
      }
    }
    return true;
  }

  /** {@return whether a parameter is read only to be given with a part of it overwritten} */
  private static boolean isUpdated(
      HloInstruction root, HloInstruction parameter, Map<String, Set<HloInstruction>> users) {
    return (root.opcode().equals("dynamic-update-slice") || root.opcode().equals("scatter"))
        && root.operands().getFirst().equals(parameter.name())
        && root.operands().stream().filter(parameter.name()::equals).count() == 1
        && users.getOrDefault(parameter.name(), Set.of()).size() == 1;
  }
}
