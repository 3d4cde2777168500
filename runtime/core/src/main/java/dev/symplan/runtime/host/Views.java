package dev.symplan.runtime.host;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Loops;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/** Tensors seen in other shapes: no element is moved. */
final class Views {
  private Views() {}

  /**
   * {@return the elements at given strides}
   *
   * @param offset of the first element, in elements
   */
  static HostTensor strided(HostTensor tensor, List<Long> sizes, List<Long> strides, long offset) {
    var type =
        new TensorType(
            tensor.dtype(),
            ImmutableLongArray.copyOf(sizes),
            ImmutableLongArray.copyOf(strides),
            MemorySpace.ANY);
    long bytes = type.numel() == 0 ? 0 : offset * tensor.dtype().bytes();
    return new HostTensor(tensor.memory().asSlice(bytes), type);
  }

  private static List<Long> sizes(HostTensor tensor) {
    return new ArrayList<>(tensor.type().sizes().asList());
  }

  private static List<Long> strides(HostTensor tensor) {
    return new ArrayList<>(tensor.type().strides().asList());
  }

  /** {@return the elements {@code start}, {@code start + step} … of one dimension} */
  static HostTensor slice(HostTensor tensor, int dim, long start, long size, long step) {
    var sizes = sizes(tensor);
    var strides = strides(tensor);
    long offset = start * strides.get(dim);
    sizes.set(dim, size);
    strides.set(dim, strides.get(dim) * step);
    return strided(tensor, sizes, strides, offset);
  }

  static HostTensor narrow(HostTensor tensor, int dim, long start, long size) {
    return slice(tensor, dim, start, size, 1);
  }

  /** {@return the elements at one index of a dimension, without it} */
  static HostTensor select(HostTensor tensor, int dim, long index) {
    var sizes = sizes(tensor);
    var strides = strides(tensor);
    long offset = index * strides.get(dim);
    sizes.remove(dim);
    strides.remove(dim);
    return strided(tensor, sizes, strides, offset);
  }

  /** {@return the tensor with a dimension of size 1 put in} */
  static HostTensor unsqueeze(HostTensor tensor, int dim) {
    var sizes = sizes(tensor);
    var strides = strides(tensor);
    sizes.add(dim, 1L);
    strides.add(dim, 0L);
    return strided(tensor, sizes, strides, 0);
  }

  /** {@return the tensor with one dimension cut into several, outermost first} */
  static HostTensor split(HostTensor tensor, int dim, List<Long> parts) {
    var sizes = sizes(tensor);
    var strides = strides(tensor);
    long stride = strides.remove(dim);
    sizes.remove(dim);
    for (int i = parts.size() - 1; i >= 0; i--) {
      sizes.add(dim, parts.get(i));
      strides.add(dim, stride);
      stride *= parts.get(i);
    }
    return strided(tensor, sizes, strides, 0);
  }

  static HostTensor transpose(HostTensor tensor, int dim0, int dim1) {
    var sizes = sizes(tensor);
    var strides = strides(tensor);
    Collections.swap(sizes, dim0, dim1);
    Collections.swap(strides, dim0, dim1);
    return strided(tensor, sizes, strides, 0);
  }

  /** {@return the tensor broadcast to a shape} */
  static HostTensor expand(HostTensor tensor, ImmutableLongArray sizes) {
    var strides = Loops.byteStrides(tensor.type(), sizes.toArray());
    var elements = new ArrayList<Long>();
    for (long stride : strides) {
      elements.add(stride / tensor.dtype().bytes());
    }
    return strided(tensor, sizes.asList(), elements, 0);
  }

  /** {@return the elements in row-major order, in one dimension; a copy where they are not so} */
  static HostTensor flat(HostTensor tensor) {
    return tensor.contiguous().as(TensorType.contiguous(tensor.dtype(), tensor.type().numel()));
  }

  /** {@return the elements in another shape, row-major; a copy where they are not so} */
  static HostTensor reshaped(HostTensor tensor, long... sizes) {
    return tensor.contiguous().as(TensorType.contiguous(tensor.dtype(), sizes));
  }

  /** {@return a tensor without dimensions as one of one element} */
  static HostTensor atLeastVector(HostTensor tensor) {
    return tensor.type().rank() == 0 ? unsqueeze(tensor, 0) : tensor;
  }
}
