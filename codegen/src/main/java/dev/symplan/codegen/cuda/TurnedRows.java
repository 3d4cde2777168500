package dev.symplan.codegen.cuda;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.cuda.RowNode.Location;
import dev.symplan.planner.machine.Alignment;
import java.util.List;
import java.util.Optional;

/**
 * Rows that a block copies into its own memory before it takes them through ops: where neighbouring
 * rows are side by side in memory, and a row's elements are not, while others lie as rows do.
 *
 * <p>A block takes some neighbouring rows at once, so that it uses all bytes of what memory
 * delivers.
 *
 * @param locations those of tensors to hold
 * @param together how many rows a block takes at once
 */
record TurnedRows(
    ImmutableLongArray rowSizes,
    ImmutableLongArray innerSizes,
    ImmutableList<Location> locations,
    int together) {

  /** Threads that share a row. */
  private static final int PER_ROW = 32;

  /** What memory delivers at least, in bytes. */
  private static final int SECTOR = 32;

  private static final int FEWEST = 4;

  /** Fewer rows have blocks enough only if each takes one. */
  private static final int LEAST_ROWS = 256;

  /** What a block has on each GPU from compute capability 8.0 on, less what threads share. */
  private static final int MOST_BYTES = 88 << 10;

  /**
   * {@return rows to hold; empty if there are none, or no memory for them}
   *
   * @param locations of tensors whose elements are read
   */
  static Optional<TurnedRows> of(
      ImmutableLongArray rowSizes, ImmutableLongArray innerSizes, List<Location> locations) {
    var turned =
        locations.stream()
            .filter(location -> RowOrder.isTurned(rowSizes, innerSizes, location))
            .distinct()
            .collect(toImmutableList());
    if (turned.isEmpty()
        || innerSizes.length() != 1
        || innerSizes.get(0) < PER_ROW
        || count(rowSizes) < LEAST_ROWS) {
      return Optional.empty();
    }
    int least = turned.stream().mapToInt(location -> location.dtype().bytes()).min().orElseThrow();
    for (int together = Math.min(SECTOR / least, SECTOR / 2); together >= FEWEST; together /= 2) {
      var rows = new TurnedRows(rowSizes, innerSizes, turned, together);
      if (rows.total() <= MOST_BYTES) {
        return Optional.of(rows);
      }
    }
    return Optional.empty();
  }

  private long elements() {
    return innerSizes.get(0);
  }

  private long rows() {
    return count(rowSizes);
  }

  private static long count(ImmutableLongArray sizes) {
    return sizes.stream().reduce(1, Math::multiplyExact);
  }

  /** Bytes from a row to the next one in a block's memory: not all rows begin in the same bank. */
  private long pitch(Location location) {
    return (Math.ceilDiv(elements() * location.dtype().bytes(), Alignment.VECTOR) + 1)
        * Alignment.VECTOR;
  }

  private long total() {
    return locations.stream().mapToLong(location -> together * pitch(location)).sum();
  }

  /** {@return the memory that a block needs, wherever it begins} */
  int bytes() {
    return Math.toIntExact(total()) + Alignment.VECTOR;
  }

  /** {@return the division of rows among threads} */
  RowThreads threads(Vectors vectors) {
    return new RowThreads(PER_ROW, together, false, vectors);
  }

  /** {@return where ops read what is at a location} */
  Location of(Location location) {
    int number = locations.indexOf(location);
    return number < 0
        ? location
        : new Location(
            Optional.empty(),
            "(held%s + (row - first) * %s)".formatted(number, pitch(location)),
            location.dtype(),
            ImmutableLongArray.copyOf(new long[rowSizes.length()]),
            ImmutableLongArray.of(1));
  }

  /**
   * {@return the whole kernel}
   *
   * @param statements what is done with the rows from {@code first} on
   */
  String kernel(String statements, RowThreads threads, MemoryArguments memory) {
    var hold = new StringBuilder();
    var held = new StringBuilder();
    long at = 0;
    var source = new RowLocations(rowSizes, innerSizes);
    for (int i = 0; i < locations.size(); i++) {
      var location = locations.get(i);
      var type = CTypes.stored(location.dtype());
      held.append("  unsigned char* held%s = held + %s;\n".formatted(i, at));
      hold.append(
          """
                #pragma unroll 16
                for (unsigned c = threadIdx.x / %1$s; c < %2$s; c += %3$s) {
                  ((%4$s*)(held%5$s + (row - first) * %6$s))[c] = %7$s;
                }
          """
              .formatted(
                  together,
                  elements(),
                  threads.block() / together,
                  type,
                  i,
                  pitch(location),
                  source.element(location, "c", "")));
      at += together * pitch(location);
    }
    return CTypes.PRELUDE
        + threads.vectors().type()
        + memoryStruct(memory, source)
        + """

        extern "C" __global__ void __launch_bounds__(%s) symplan_kernel(const __grid_constant__ Args args) {
          extern __shared__ unsigned char dynamic[];
          unsigned char* held = dynamic + (0ull - (unsigned long long)dynamic) %% %s;
        """
            .formatted(threads.block(), Alignment.VECTOR)
        + held
        + """
          [[maybe_unused]] const unsigned lane = %1$s;
          for (long long first = (long long)blockIdx.x * %2$s; first < %3$s; first += (long long)gridDim.x * %2$s) {
            {
              const unsigned own = threadIdx.x %% %2$s;
              const long long row = first + own < %3$s ? first + own : %3$s - 1;
              %4$s left = row;
        """
            .formatted(threads.lane(), together, rows(), Indices.number(rows()))
        + Indices.of("      ", "[[maybe_unused]] const long long r", "left", rowSizes)
        + source.pointers(memory).indent(2)
        + hold
        + "    }\n    __syncthreads();\n"
        + statements
        + "    __syncthreads();\n  }\n}\n";
  }

  private static String memoryStruct(MemoryArguments memory, RowLocations source) {
    source.pointers(memory);
    return memory.struct();
  }
}
