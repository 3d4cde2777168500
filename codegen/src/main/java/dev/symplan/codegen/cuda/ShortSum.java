package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * A sum of few elements each, far apart in memory: as when keys that several heads share get the
 * gradients of all. Its terms are whole tensors, whose neighbouring elements a thread adds at once.
 *
 * @param terms in the order in which they are added
 */
record ShortSum(ImmutableList<TensorRef> terms, TensorRef result) {
  /** One thread adds all, as {@link RowThreads} has it for so few. */
  private static final int MAX_TERMS = 8;

  /** {@return the sum that an op is, unless it is another one} */
  static Optional<ShortSum> of(Part part) {
    if (!part.def().name().toString().equals("aten::sum.dim_IntList")
        || !(part.args().getFirst() instanceof Operand.Tensor(var self))
        || !(part.results().getFirst() instanceof Operand.Tensor(var result))) {
      return Optional.empty();
    }
    var type = self.type();
    var dims = Parts.dims(part, type.rank());
    long count = dims.stream().mapToLong(type::size).reduce(1, Math::multiplyExact);
    int last = type.rank() - 1;
    if (count < 2
        || count > MAX_TERMS
        || dims.contains(last)
        || type.stride(last) != 1
        || type.numel() == 0
        || type.dtype() != result.type().dtype()
        || !type.dtype().isFloat()
        || !CTypes.computes(type.dtype())) {
      return Optional.empty();
    }
    List<TensorRef> terms = List.of(self);
    var whole = result.type().rank() == type.rank() ? List.of(result) : List.<TensorRef>of();
    for (int dim = last; dim >= 0; dim--) {
      if (dims.contains(dim)) {
        terms = alongside(terms, dim);
        whole = alongside(whole, dim);
      }
    }
    return Optional.of(
        new ShortSum(ImmutableList.copyOf(terms), whole.isEmpty() ? result : whole.getFirst()));
  }

  /** Each tensor at all indices of a dimension, which is in front of those that are gone. */
  private static List<TensorRef> alongside(List<TensorRef> refs, int dim) {
    var parts = new ArrayList<TensorRef>();
    if (!refs.isEmpty()) {
      for (long index = 0; index < refs.getFirst().type().size(dim); index++) {
        for (var ref : refs) {
          parts.add(Moves.select(ref, dim, index));
        }
      }
    }
    return parts;
  }
}
