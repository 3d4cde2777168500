package dev.symplan.ir;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.primitives.ImmutableLongArray;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;

class SharedElementsTest {
  private static final DType[] TYPES = {DType.I8, DType.F16, DType.F32, DType.C64};

  private static TensorType draw(Random random, DType dtype, long[] sizes) {
    var strides = new long[sizes.length];
    for (int dim = 0; dim < strides.length; dim++) {
      strides[dim] = random.nextInt(7);
    }
    return new TensorType(
        dtype,
        ImmutableLongArray.copyOf(sizes),
        ImmutableLongArray.copyOf(strides),
        MemorySpace.ANY);
  }

  private static long place(TensorType type, long[] index) {
    long place = 0;
    int missing = index.length - type.rank();
    for (int dim = 0; dim < type.rank(); dim++) {
      place += type.size(dim) == 1 ? 0 : index[missing + dim] * type.stride(dim);
    }
    return place * type.dtype().bytes();
  }

  private static long[] index(long[] sizes, long i) {
    var index = new long[sizes.length];
    for (int dim = sizes.length - 1; dim >= 0; dim--) {
      index[dim] = i % sizes[dim];
      i /= sizes[dim];
    }
    return index;
  }

  /** Random layouts, against a map of every byte. */
  @Test
  void allIsAsAMapOfBytesSays() {
    var random = new Random(5);
    int some = 0;
    int others = 0;
    int apart = 0;
    for (int trial = 0; trial < 40_000; trial++) {
      var sizes = random.ints(random.nextInt(4), 1, 4).asLongStream().toArray();
      var dtype = TYPES[random.nextInt(4)];
      var to = draw(random, dtype, sizes);
      var narrow = sizes.clone();
      for (int dim = 0; dim < narrow.length; dim++) {
        narrow[dim] = random.nextInt(4) == 0 ? 1 : narrow[dim];
      }
      var from = draw(random, random.nextInt(4) == 0 ? TYPES[random.nextInt(4)] : dtype, narrow);
      long unit = random.nextInt(4) == 0 ? 1 : dtype.bytes();
      long toOffset = random.nextInt(12) * unit;
      long fromOffset = random.nextInt(4) == 0 ? toOffset : random.nextInt(12) * unit;
      var shared = new SharedElements(to, toOffset, from, fromOffset);

      Map<Long, Set<Long>> writers = new HashMap<>();
      for (long i = 0; i < to.numel(); i++) {
        long place = toOffset + place(to, index(sizes, i));
        for (int b = 0; b < dtype.bytes(); b++) {
          writers.computeIfAbsent(place + b, _ -> new HashSet<>()).add(i);
        }
      }
      boolean own = writers.values().stream().allMatch(all -> all.size() == 1);
      boolean any = false;
      boolean clash = false;
      for (long i = 0; i < to.numel(); i++) {
        long place = fromOffset + place(from, index(sizes, i));
        for (int b = 0; b < from.dtype().bytes(); b++) {
          var found = writers.getOrDefault(place + b, Set.of());
          any |= !found.isEmpty();
          clash |= found.size() > 1 || (found.size() == 1 && !found.contains(i));
        }
      }
      assertThat(SharedElements.areApart(to)).as("%s", to).isEqualTo(own);
      assertThat(shared.any()).as("%s", shared).isEqualTo(any);
      if (own && to.dtype() == from.dtype() && (fromOffset - toOffset) % dtype.bytes() == 0) {
        assertThat(shared.atOtherIndices()).as("%s", shared).isEqualTo(clash);
      } else if (clash && own) {
        assertThat(shared.atOtherIndices()).as("%s", shared).isTrue();
      }
      some += any ? 1 : 0;
      others += own && any && !clash ? 1 : 0;
      apart += own && !any ? 1 : 0;
    }
    assertThat(some).isGreaterThan(1000);
    assertThat(others).isGreaterThan(100);
    assertThat(apart).isGreaterThan(1000);
  }

  /** The halves of rows, of which no bounds tell that they are apart. */
  @Test
  void largeHalvesOfRowsAreApart() {
    var half =
        new TensorType(
            DType.BF16,
            ImmutableLongArray.of(1 << 20, 8, 64),
            ImmutableLongArray.of(2048, 128, 1),
            MemorySpace.ANY);
    var flat =
        new TensorType(
            DType.BF16,
            ImmutableLongArray.of(1 << 19, 2, 8, 2, 32),
            ImmutableLongArray.of(4096, 2048, 128, 32, 1),
            MemorySpace.ANY);
    assertThat(new SharedElements(half, 0, half, 128).any()).isFalse();
    assertThat(new SharedElements(half, 0, flat, 128).any()).isFalse();
    assertThat(new SharedElements(half, 0, flat, 126).any()).isTrue();
    assertThat(new SharedElements(half, 0, half, 2).atOtherIndices()).isTrue();
    assertThat(new SharedElements(half, 0, half, 0).atOtherIndices()).isFalse();
  }
}
