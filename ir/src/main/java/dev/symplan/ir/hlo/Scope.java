package dev.symplan.ir.hlo;

import com.google.common.base.Splitter;
import com.google.common.base.Suppliers;
import com.google.common.collect.ImmutableList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The results of a computation's instructions, by the names that its operands give them. */
final class Scope {
  private final GraphEmitter emitter;
  private final Map<String, Bound> bound;
  private final Supplier<Map<String, HloShape>> shapes;

  /** The last instruction that reads each one. */
  private final Supplier<Map<String, HloInstruction>> lastUsers;

  Scope(GraphEmitter emitter, HloComputation computation) {
    this.emitter = emitter;
    this.bound = HashMap.newHashMap(computation.instructions().size());
    this.shapes = Suppliers.memoize(computation::shapes);
    this.lastUsers = Suppliers.memoize(computation::lastUsers);
  }

  void put(HloInstruction instruction, Bound result) {
    bound.put(instruction.name(), result);
  }

  /** {@return what an operand is, which may be a part of a tuple} */
  Bound get(String operand) {
    int sign = operand.indexOf('#');
    @Nullable Bound found = bound.get(sign < 0 ? operand : operand.substring(0, sign));
    if (found == null) {
      throw new IllegalStateException(operand + " was checked when it was read");
    }
    while (sign >= 0) {
      int next = operand.indexOf('#', sign + 1);
      found = part(found, operand.substring(sign + 1, next < 0 ? operand.length() : next), operand);
      sign = next;
    }
    return found;
  }

  /**
   * {@return a part of a tuple}
   *
   * @param index its number, as the module writes it
   * @param operand the tuple, for errors
   */
  Bound part(Bound of, String index, String operand) {
    int at = SourceTables.number(index).orElse(-1);
    if (of instanceof Bound.Tuple(ImmutableList<Bound> parts) && at >= 0 && at < parts.size()) {
      return parts.get(at);
    }
    throw emitter.wrong("'%s' has no part %s".formatted(operand, index));
  }

  /** {@return the positions of the operands that an instruction reads last, and once} */
  Set<Integer> readLast(HloInstruction instruction, List<Bound> operands) {
    var found = new HashSet<Integer>();
    var names = instruction.operands();
    for (int i = 0; i < names.size(); i++) {
      var name = names.get(i);
      if (lastUsers.get().get(name) == instruction
          && names.indexOf(name) == names.lastIndexOf(name)
          && operands.get(i) instanceof Bound.Tensor) {
        found.add(i);
      }
    }
    // A parameter's number is the position of a value only if nothing is a tuple.
    return operands.stream()
            .allMatch(operand -> operand instanceof Bound.Tensor || operand instanceof Bound.Splat)
        ? found
        : Set.of();
  }

  /** {@return the shape that the module gives an operand, which may be a part of a tuple} */
  HloShape shapeOf(String operand) {
    var parts = Splitter.on('#').splitToList(operand);
    @Nullable HloShape shape = shapes.get().get(parts.getFirst());
    for (var part : parts.subList(1, parts.size())) {
      int at = SourceTables.number(part).orElse(-1);
      shape =
          shape instanceof HloShape.Tuple(ImmutableList<HloShape> of) && at >= 0 && at < of.size()
              ? of.get(at)
              : null;
    }
    if (shape == null) {
      throw emitter.wrong("'%s' has no shape".formatted(operand));
    }
    return shape;
  }

  /** {@return whether an operand has elements that no type of PyTorch has} */
  boolean readsOpaque(HloInstruction instruction) {
    return instruction.operands().stream()
        .flatMap(operand -> shapeOf(operand).arrays())
        .anyMatch(array -> !array.exact());
  }
}
