package dev.symplan.codegen.cuda;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.TensorType;
import java.util.List;

/**
 * How tensors lie for threads that take elements of a shape in the order of its dimensions.
 *
 * @param flat whether the i-th element of the shape is the i-th in the memory of all tensors
 * @param vectors neighbours along the last dimension that a thread takes at once
 */
record Neighbours(TensorType shape, boolean flat, Vectors vectors) {

  /**
   * @param refs all that is read and written
   * @param written what is written of that
   * @param wide whether threads take vectors, if all tensors lie for that
   */
  static Neighbours of(
      TensorType shape,
      List<TensorRef> refs,
      List<TensorRef> written,
      List<Joined> joined,
      boolean wide) {
    boolean flat =
        joined.isEmpty()
            && refs.stream()
                .map(TensorRef::type)
                .allMatch(type -> type.sizes().equals(shape.sizes()) && type.isContiguous());
    var single = new Neighbours(shape, flat, Vectors.NONE);
    return wide && shape.rank() > 0
        ? new Neighbours(shape, flat, single.widest(refs, written, joined))
        : single;
  }

  private Vectors widest(List<TensorRef> refs, List<TensorRef> written, List<Joined> joined) {
    return Vectors.widest(
        refs.stream().map(ref -> ref.type().dtype()).toList(),
        written.stream().map(ref -> ref.type().dtype()).toList(),
        wide ->
            refs.stream().allMatch(ref -> isWide(ref, wide))
                && joined.stream().allMatch(join -> join.isWide(wide)));
  }

  private boolean isWide(TensorRef ref, int wide) {
    var type = ref.type();
    if (isSpread(type)) {
      return shape.size(shape.rank() - 1) % wide == 0;
    }
    return flat
        ? Vectors.fit(
            wide,
            ref.offset(),
            type.dtype().bytes(),
            ImmutableLongArray.of(shape.numel()),
            ImmutableLongArray.of(1))
        : Vectors.fit(wide, ref);
  }

  /** {@return whether neighbours along the last dimension have one element in common} */
  boolean isSpread(TensorType type) {
    return !flat
        && (type.rank() == 0
            || type.size(type.rank() - 1) == 1
            || type.stride(type.rank() - 1) == 0);
  }

  /** {@return the distance of a thread's element, or of its vector, from the first element} */
  String offset(TensorType type, Region region) {
    if (flat) {
      return vectors.width() == 1 ? "i" : "i * " + vectors.width();
    }
    var terms = new StringBuilder();
    for (int dim = 0; dim < type.rank(); dim++) {
      int of = dim + shape.rank() - type.rank();
      if (type.size(dim) != 1 && type.stride(dim) != 0) {
        terms
            .append(terms.isEmpty() ? "" : " + ")
            .append("%s * %s".formatted(region.indices().get(of), type.stride(dim)));
      }
    }
    return terms.isEmpty() ? "0" : terms.toString();
  }
}
