package dev.symplan.runtime.host;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.tensor.HostTensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;

/**
 * A tensor with its dimensions in any order and gaps between its elements, in the midst of memory
 * that is filled with a pattern.
 *
 * @param memory all of it
 */
record Scattered(HostTensor tensor, MemorySegment memory) {
  private static final byte PATTERN = (byte) 0xA5;
  private static final int MARGIN = 8;

  /** {@return a tensor of this element type and shape in a random layout} */
  static Scattered of(TensorType type, Random random) {
    var order = new ArrayList<>(IntStream.range(0, type.rank()).boxed().toList());
    Collections.shuffle(order, random);
    var strides = new long[type.rank()];
    long next = 1 + random.nextInt(2);
    for (int dim : order) {
      strides[dim] = next;
      next = next * Math.max(1, type.size(dim)) + random.nextInt(3);
    }
    // Gaps between no elements at all may reach further than a tensor can.
    var layout = type.numel() == 0 ? type : type.withStrides(ImmutableLongArray.copyOf(strides));
    long before = (long) random.nextInt(MARGIN) * type.dtype().bytes();
    long bytes = before + layout.storageBytes() + (long) MARGIN * type.dtype().bytes();
    var memory = Arena.ofAuto().allocate(bytes, Long.BYTES);
    memory.fill(PATTERN);
    return new Scattered(new HostTensor(memory.asSlice(before), layout), memory);
  }

  static Scattered copy(HostTensor source, Random random) {
    var scattered = of(source.type(), random);
    scattered.tensor.copyFrom(source);
    return scattered;
  }

  /** {@return the places beside the elements that do not hold the pattern any more} */
  List<Integer> touchedGaps() {
    int start = Math.toIntExact(tensor.memory().address() - memory.address());
    int bytes = tensor.dtype().bytes();
    var own = new BitSet();
    var index = new long[tensor.type().rank()];
    for (long i = 0; i < tensor.type().numel(); i++) {
      long rest = i;
      for (int dim = index.length - 1; dim >= 0; dim--) {
        index[dim] = rest % tensor.type().size(dim);
        rest /= tensor.type().size(dim);
      }
      int at = start + Math.toIntExact(tensor.offset(index));
      own.set(at, at + bytes);
    }
    return IntStream.range(0, Math.toIntExact(memory.byteSize()))
        .filter(i -> !own.get(i) && memory.get(ValueLayout.JAVA_BYTE, i) != PATTERN)
        .boxed()
        .toList();
  }
}
