package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.TensorType;

/** Elements on their way from one tensor to another, and parts of tensors. */
final class Moves {
  private Moves() {}

  /** {@return whether a copy of memory copies the elements} */
  static boolean isSame(TensorRef from, TensorRef to) {
    return from.type().dtype() == to.type().dtype()
        && from.type().sizes().equals(to.type().sizes())
        && (from.type().isContiguous() && to.type().isContiguous()
            || from.type().isDense() && from.type().strides().equals(to.type().strides()));
  }

  /** {@return what copies elements, wherever they lie, and converts them where types differ} */
  static ImmutableList<DeviceStep> copy(
      int rank, OpArguments arguments, TensorRef from, TensorRef to) {
    var op = arguments.op();
    var target = to.type().dtype();
    if (to.type().numel() == 0 || from.equals(to)) {
      return ImmutableList.of();
    }
    if (isSame(from, to)) {
      return ImmutableList.of(
          new DeviceStep.Copy(
              op.stream(),
              Address.of(rank, from),
              Address.of(rank, to),
              to.type().storageBytes(),
              op.name()));
    }
    if (from.type().dtype() != target
        && !(CTypes.computes(from.type().dtype()) && CTypes.computes(target))) {
      throw arguments.unsupported(
          "%s of %s to %s"
              .formatted(arguments.name(), from.type().dtype().shortName(), target.shortName()));
    }
    return ImmutableList.of(CopyKernel.launch(rank, op.stream(), from, to, op.name()));
  }

  /** {@return a tensor as it is broadcast to a shape} */
  static TensorRef expand(TensorRef ref, ImmutableLongArray sizes) {
    return as(ref, ref.offset(), sizes, Indices.broadcast(ref.type(), sizes.length()));
  }

  /** {@return some of the indices of one dimension} */
  static TensorRef narrow(TensorRef ref, int dim, long start, long count, long step) {
    var type = ref.type();
    var sizes = type.sizes().toArray();
    var strides = type.strides().toArray();
    sizes[dim] = count;
    strides[dim] *= step;
    return as(
        ref,
        ref.offset() + start * type.stride(dim) * type.dtype().bytes(),
        ImmutableLongArray.copyOf(sizes),
        ImmutableLongArray.copyOf(strides));
  }

  /** {@return a tensor without a dimension, at one index of it} */
  static TensorRef select(TensorRef ref, int dim, long index) {
    var one = narrow(ref, dim, index, 1, 1);
    return as(
        one, one.offset(), without(one.type().sizes(), dim), without(one.type().strides(), dim));
  }

  private static TensorRef as(
      TensorRef ref, long offset, ImmutableLongArray sizes, ImmutableLongArray strides) {
    var type = ref.type();
    return new TensorRef(
        ref.arena(),
        ref.index(),
        offset,
        new TensorType(type.dtype(), sizes, strides, type.space()));
  }

  private static ImmutableLongArray without(ImmutableLongArray values, int dim) {
    var all = ImmutableLongArray.builder();
    for (int i = 0; i < values.length(); i++) {
      if (i != dim) {
        all.add(values.get(i));
      }
    }
    return all.build();
  }
}
