package dev.symplan.runtime.cuda.cudnn;

import com.google.common.primitives.ImmutableIntArray;
import java.util.List;
import org.bytedeco.cuda.cudnn.cudnnBackendDescriptor_t;
import org.bytedeco.cuda.cudnn.cudnnContext;
import org.bytedeco.cuda.global.cudnn;
import org.bytedeco.javacpp.BoolPointer;
import org.bytedeco.javacpp.DoublePointer;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.LongPointer;
import org.bytedeco.javacpp.Pointer;
import org.bytedeco.javacpp.PointerPointer;

/** One descriptor of the backend API: attributes are set, then it is finalized, then only read. */
final class Descriptor implements AutoCloseable {

  private final cudnnBackendDescriptor_t pointer = new cudnnBackendDescriptor_t();

  /**
   * @param kind a {@code CUDNN_BACKEND_*_DESCRIPTOR}
   */
  Descriptor(int kind) {
    CudnnException.check(
        cudnn.cudnnBackendCreateDescriptor(kind, pointer), "cudnnBackendCreateDescriptor");
  }

  cudnnBackendDescriptor_t pointer() {
    return pointer;
  }

  Descriptor longs(int attribute, long... values) {
    try (var memory = new LongPointer(values)) {
      return set(attribute, cudnn.CUDNN_TYPE_INT64, values.length, memory);
    }
  }

  Descriptor flag(int attribute, boolean value) {
    try (var memory = new BoolPointer(1).put(value)) {
      return set(attribute, cudnn.CUDNN_TYPE_BOOLEAN, 1, memory);
    }
  }

  /**
   * @param type which enumeration the value is of, a {@code CUDNN_TYPE_*}
   */
  Descriptor choice(int attribute, int type, int value) {
    try (var memory = new IntPointer(new int[] {value})) {
      return set(attribute, type, 1, memory);
    }
  }

  /**
   * @param wide whether the attribute is in f64
   */
  Descriptor number(int attribute, double value, boolean wide) {
    if (wide) {
      try (var memory = new DoublePointer(new double[] {value})) {
        return set(attribute, cudnn.CUDNN_TYPE_DOUBLE, 1, memory);
      }
    }
    try (var memory = new FloatPointer(new float[] {(float) value})) {
      return set(attribute, cudnn.CUDNN_TYPE_FLOAT, 1, memory);
    }
  }

  Descriptor dataType(int attribute, int value) {
    return choice(attribute, cudnn.CUDNN_TYPE_DATA_TYPE, value);
  }

  Descriptor descriptors(int attribute, List<Descriptor> values) {
    return pointers(
        attribute,
        cudnn.CUDNN_TYPE_BACKEND_DESCRIPTOR,
        values.stream().map(value -> value.pointer).toArray(Pointer[]::new));
  }

  Descriptor descriptor(int attribute, Descriptor value) {
    return descriptors(attribute, List.of(value));
  }

  Descriptor handle(int attribute, cudnnContext value) {
    return pointers(attribute, cudnn.CUDNN_TYPE_HANDLE, value);
  }

  Descriptor addresses(int attribute, Pointer... values) {
    return pointers(attribute, cudnn.CUDNN_TYPE_VOID_PTR, values);
  }

  private Descriptor pointers(int attribute, int type, Pointer... values) {
    try (var memory = new PointerPointer<Pointer>(values)) {
      return set(attribute, type, values.length, memory);
    }
  }

  private Descriptor set(int attribute, int type, long count, Pointer values) {
    CudnnException.check(
        cudnn.cudnnBackendSetAttribute(pointer, attribute, type, count, values),
        "cudnnBackendSetAttribute of attribute " + attribute);
    return this;
  }

  Descriptor finish() {
    CudnnException.check(cudnn.cudnnBackendFinalize(pointer), "cudnnBackendFinalize");
    return this;
  }

  long readLong(int attribute) {
    try (var value = new LongPointer(1);
        var count = new LongPointer(1)) {
      CudnnException.check(
          cudnn.cudnnBackendGetAttribute(
              pointer, attribute, cudnn.CUDNN_TYPE_INT64, 1, count, value),
          "cudnnBackendGetAttribute of attribute " + attribute);
      return value.get();
    }
  }

  /**
   * {@return the values of an enumeration that an attribute lists}
   *
   * @param most as many as there may be
   */
  ImmutableIntArray readChoices(int attribute, int type, int most) {
    try (var values = new IntPointer(most);
        var count = new LongPointer(1)) {
      CudnnException.check(
          cudnn.cudnnBackendGetAttribute(pointer, attribute, type, most, count, values),
          "cudnnBackendGetAttribute of attribute " + attribute);
      var found = new int[Math.toIntExact(Math.min(count.get(), most))];
      values.get(found);
      return ImmutableIntArray.copyOf(found);
    }
  }

  /**
   * Has cuDNN fill descriptors with what an attribute lists.
   *
   * @return how many of them it filled
   */
  int read(int attribute, List<Descriptor> into) {
    try (var memory =
            new PointerPointer<Pointer>(
                into.stream().map(value -> value.pointer).toArray(Pointer[]::new));
        var count = new LongPointer(1)) {
      CudnnException.check(
          cudnn.cudnnBackendGetAttribute(
              pointer, attribute, cudnn.CUDNN_TYPE_BACKEND_DESCRIPTOR, into.size(), count, memory),
          "cudnnBackendGetAttribute of attribute " + attribute);
      return Math.toIntExact(Math.min(count.get(), into.size()));
    }
  }

  @Override
  public void close() {
    cudnn.cudnnBackendDestroyDescriptor(pointer);
  }
}
