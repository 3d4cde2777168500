package dev.symplan.ir.hlo;

import dev.symplan.ir.Arg;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.regex.Pattern;

/** How often the body of a {@code while} runs. */
final class Loops {
  /** More rounds than this are not written one after the other. */
  static final int MAX_ROUNDS = 4096;

  private static final Pattern KNOWN =
      Pattern.compile("\"known_trip_count\"\\s*:\\s*\\{\\s*\"n\"\\s*:\\s*\"(\\d{1,18})\"");

  private Loops() {}

  /**
   * {@return the rounds of a loop, if the module says how many there are} Either XLA has written
   * that down, or the loop counts up to a constant, as {@code jax.lax.scan} and {@code fori_loop}
   * do.
   *
   * @param carried the initial value of the loop
   */
  static OptionalLong rounds(
      HloInstruction instruction, HloComputation condition, HloComputation body, Bound carried) {
    var counted = counted(condition, body, carried);
    if (counted.isPresent()) {
      return counted;
    }
    var stated = KNOWN.matcher(instruction.attributes().text("backend_config").orElse(""));
    return stated.find() ? OptionalLong.of(Long.parseLong(stated.group(1))) : OptionalLong.empty();
  }

  /**
   * The condition is {@code carried[i] < constant}, and the body gives {@code carried[i] + step}.
   */
  private static OptionalLong counted(
      HloComputation condition, HloComputation body, Bound carried) {
    var test = condition.root();
    if (!test.opcode().equals("compare")
        || !test.attributes().text("direction").orElse("").equals("LT")
        || test.operands().size() != 2) {
      return OptionalLong.empty();
    }
    int part = carriedPart(condition, test.operands().getFirst());
    var end = constant(condition, test.operands().getLast());
    var step = step(body, part);
    if (end.isEmpty()
        || step.isEmpty()
        || step.getAsLong() < 1
        || !(carried instanceof Bound.Tuple(var parts))
        || part >= parts.size()
        || !(parts.get(part) instanceof Bound.Splat(Arg.Int(long first), Array shape))
        || shape.tensor().rank() > 0) {
      return OptionalLong.empty();
    }
    try {
      long distance = Math.max(0, Math.subtractExact(end.getAsLong(), first));
      return OptionalLong.of(Math.ceilDiv(distance, step.getAsLong()));
    } catch (ArithmeticException e) {
      return OptionalLong.empty();
    }
  }

  private static OptionalLong step(HloComputation body, int counter) {
    var root = body.root();
    if (!root.opcode().equals("tuple") || counter < 0 || counter >= root.operands().size()) {
      return OptionalLong.empty();
    }
    var next = find(body, root.operands().get(counter));
    if (next.isEmpty() || !next.get().opcode().equals("add") || next.get().operands().size() != 2) {
      return OptionalLong.empty();
    }
    var terms = next.get().operands();
    for (var order : List.of(terms, terms.reversed())) {
      if (carriedPart(body, order.getFirst()) == counter) {
        return constant(body, order.getLast());
      }
    }
    return OptionalLong.empty();
  }

  /** {@return which part of the parameter a name stands for; −1 if none} */
  private static int carriedPart(HloComputation computation, String name) {
    int sign = name.indexOf('#');
    if (sign >= 0) {
      return isParameter(computation, name.substring(0, sign))
          ? SourceTables.number(name.substring(sign + 1)).orElse(-1)
          : -1;
    }
    return find(computation, name)
        .filter(part -> part.opcode().equals("get-tuple-element"))
        .filter(part -> isParameter(computation, part.operands().getFirst()))
        .flatMap(part -> part.attributes().text("index"))
        .map(index -> SourceTables.number(index).orElse(-1))
        .orElse(-1);
  }

  private static boolean isParameter(HloComputation computation, String name) {
    return find(computation, name).filter(one -> one.opcode().equals("parameter")).isPresent();
  }

  private static OptionalLong constant(HloComputation computation, String name) {
    var found =
        find(computation, name)
            .filter(one -> one.opcode().equals("constant"))
            .filter(one -> one.shape() instanceof Array array && array.exact())
            .flatMap(one -> Literals.number(one.literal(), (Array) one.shape()));
    return found.isPresent() && found.get() instanceof Arg.Int(long value)
        ? OptionalLong.of(value)
        : OptionalLong.empty();
  }

  private static Optional<HloInstruction> find(HloComputation computation, String name) {
    return computation.instructions().stream()
        .filter(instruction -> instruction.name().equals(name))
        .findFirst();
  }
}
