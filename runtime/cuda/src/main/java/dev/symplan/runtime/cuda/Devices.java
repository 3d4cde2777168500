package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableSortedMap;
import dev.symplan.ir.diag.Units;
import dev.symplan.runtime.failure.RunException;
import java.util.Comparator;
import java.util.OptionalInt;
import java.util.stream.IntStream;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.SizeTPointer;

/** Assigns GPUs to ranks. */
final class Devices {
  private Devices() {}

  /** {@return how many GPUs this process sees} */
  static int count() {
    var count = new int[1];
    new Check(0).runtime(cudart.cudaGetDeviceCount(count), "cudaGetDeviceCount");
    return count[0];
  }

  /**
   * {@return the GPU that the caller names}
   *
   * @throws RunException when the process does not see so many
   */
  static int checked(int device, int count) {
    if (device >= count) {
      throw new RunException(
          "GPU %s does not exist: this process sees %s"
              .formatted(device, Units.count(count, "GPU")));
    }
    return device;
  }

  /**
   * {@return the GPUs of all ranks where one process has all: the given one of a single rank, else
   * those from the first on}
   *
   * @throws RunException when there are too few, or one does not reach another's memory
   */
  static ImmutableSortedMap<Integer, Integer> of(int ranks, OptionalInt given) {
    return ranks == 1 && given.isPresent()
        ? ImmutableSortedMap.of(0, checked(given.getAsInt(), count()))
        : ofAllRanks(ranks);
  }

  /**
   * {@return each rank's GPU where one process has all: they are in the driver's order}
   *
   * @throws RunException when there are too few, or one does not reach another's memory
   */
  static ImmutableSortedMap<Integer, Integer> ofAllRanks(int ranks) {
    int count = count();
    if (count < ranks) {
      throw new RunException(
          "the plan is for %s, but there %s"
              .formatted(
                  Units.count(ranks, "rank"),
                  count == 1 ? "is one GPU" : "are " + count + " GPUs"));
    }
    for (int a = 0; a < ranks; a++) {
      for (int b = 0; b < ranks; b++) {
        if (a != b && !reaches(a, b)) {
          throw new RunException("GPU %s cannot reach the memory of GPU %s".formatted(a, b));
        }
      }
    }
    return IntStream.range(0, ranks)
        .boxed()
        .collect(
            ImmutableSortedMap.toImmutableSortedMap(
                Comparator.naturalOrder(), rank -> rank, rank -> rank));
  }

  /** {@return the bytes of a GPU's memory that anybody uses, the driver included} */
  static long memoryInUse(int device, int rank) {
    var check = new Check(rank);
    check.runtime(cudart.cudaSetDevice(device), "cudaSetDevice");
    try (var free = new SizeTPointer(1);
        var total = new SizeTPointer(1)) {
      check.runtime(cudart.cudaMemGetInfo(free, total), "cudaMemGetInfo");
      return total.get() - free.get();
    }
  }

  private static boolean reaches(int a, int b) {
    var reaches = new int[1];
    new Check(0).runtime(cudart.cudaDeviceCanAccessPeer(reaches, a, b), "cudaDeviceCanAccessPeer");
    return reaches[0] != 0;
  }
}
