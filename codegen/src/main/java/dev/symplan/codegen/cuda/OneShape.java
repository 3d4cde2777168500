package dev.symplan.codegen.cuda;

import static dev.symplan.codegen.cuda.Parts.result;
import static dev.symplan.codegen.cuda.Parts.typeOf;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.SharedElements;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Optional;

/**
 * Which ops can be an {@link ElementwiseKernel}. Its threads take elements, not rows, through them:
 * so all but pieces must have one shape, and memory that is used twice must be used for the same
 * elements.
 */
final class OneShape {
  private OneShape() {}

  /** {@return whether parts can be such a kernel} */
  static boolean is(ImmutableList<Part> parts) {
    return parts.stream().allMatch(part -> Pointwise.supports(part) || Joined.of(part).isPresent())
        && clash(parts).isEmpty();
  }

  /** {@return the first part that cannot be in a kernel with those before it} */
  static Optional<Part> clash(ImmutableList<Part> parts) {
    var used = new ArrayList<TensorRef>();
    var written = new ArrayList<TensorRef>();
    var pieces = new HashMap<Operand, ImmutableLongArray>();
    var shape = typeOf(result(parts.getLast())).sizes();
    for (var part : parts) {
      var result = result(part);
      var sizes = typeOf(result).sizes();
      Parts.read(part).flatMap(Operand::tensors).forEach(used::add);
      if (result instanceof Operand.Tensor(var ref)) {
        used.add(ref);
        written.add(ref);
      } else if (!sizes.equals(shape)) {
        pieces.put(result, sizes);
      }
      boolean fits =
          (sizes.equals(shape) || result instanceof Operand.Passed)
              && part.args().stream().allMatch(arg -> pieces.getOrDefault(arg, sizes).equals(sizes))
              && written.stream()
                  .allMatch(
                      to -> used.stream().allMatch(at -> isSame(to, at) || !shareMemory(to, at)));
      if (!fits) {
        return Optional.of(part);
      }
    }
    return Optional.empty();
  }

  /** Threads touch nothing beside their elements, so that these may lie in the other one's gaps. */
  private static boolean shareMemory(TensorRef a, TensorRef b) {
    return !Moves.isApart(a, b)
        && new SharedElements(a.type(), a.offset(), b.type(), b.offset()).any();
  }

  private static boolean isSame(TensorRef a, TensorRef b) {
    return a.offset() == b.offset()
        && a.type().dtype().bytes() == b.type().dtype().bytes()
        && a.type().sizes().equals(b.type().sizes())
        && a.type().strides().equals(b.type().strides());
  }
}
