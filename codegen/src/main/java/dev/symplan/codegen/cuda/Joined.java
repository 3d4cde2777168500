package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.ir.Arg;
import dev.symplan.ir.op.OpTrait;
import java.util.Optional;

/**
 * A concatenation among fused ops.
 *
 * @param pieces tensors of the result's type and number of dimensions, none of them empty
 * @param dim along which they are side by side
 */
record Joined(ImmutableList<Operand> pieces, int dim) {

  /** {@return the concatenation that an op is, if kernels can join what it does} */
  static Optional<Joined> of(Part part) {
    if (!part.def().has(OpTrait.CONCATENATION)
        || !(part.args().getFirst() instanceof Operand.Many(var pieces))
        || !(Parts.constant(part, "dim").orElse(Arg.None.NONE) instanceof Arg.Int(long dim))) {
      return Optional.empty();
    }
    var whole = Parts.typeOf(Parts.result(part));
    boolean fit =
        CTypes.computes(whole.dtype())
            && pieces.stream()
                .map(Parts::typeOf)
                .allMatch(
                    piece ->
                        piece.dtype() == whole.dtype()
                            && piece.rank() == whole.rank()
                            && piece.numel() > 0);
    return fit
        ? Optional.of(new Joined(pieces, Math.toIntExact(dim < 0 ? dim + whole.rank() : dim)))
        : Optional.empty();
  }

  /** {@return the size of a piece along {@link #dim}} */
  long size(Operand piece) {
    return sizes(piece).get(dim);
  }

  /** {@return whether no vector of so many neighbours along the last dimension is in two pieces} */
  boolean isWide(int wide) {
    return pieces.stream()
        .allMatch(piece -> dim < sizes(piece).length() - 1 || size(piece) % wide == 0);
  }

  private static ImmutableLongArray sizes(Operand piece) {
    return Parts.typeOf(piece).sizes();
  }
}
