package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Value;
import java.util.stream.IntStream;

/**
 * Where {@code gather} and {@code scatter} read and write windows of an array.
 *
 * @param sizes those of the array
 * @param counts how large a window is in each dimension of the array
 * @param inWindow the dimensions of the windows' tensor that lie within a window
 * @param rank how many dimensions that tensor has
 * @param flat the dimensions of the array that windows, being one wide, do not have
 * @param batches dimensions of the array that go along with dimensions of the indexes
 * @param indexBatches those dimensions of the indexes
 * @param indexed the dimension of the array that each part of an index is for
 * @param vector the dimension of the indexes along which the parts of an index are
 */
record Windows(
    ImmutableLongArray sizes,
    ImmutableLongArray counts,
    ImmutableLongArray inWindow,
    int rank,
    ImmutableLongArray flat,
    ImmutableLongArray batches,
    ImmutableLongArray indexBatches,
    ImmutableLongArray indexed,
    int vector) {

  Windows {
    int dims = sizes.length();
    boolean fits =
        counts.length() == dims
            && flat.length() + batches.length() + inWindow.length() == dims
            && batches.length() == indexBatches.length()
            && isBelow(flat, dims)
            && isBelow(batches, dims)
            && isBelow(indexed, dims)
            && isBelow(inWindow, rank)
            && vector >= 0
            && IntStream.range(0, dims)
                .allMatch(dim -> counts.get(dim) >= 0 && counts.get(dim) <= sizes.get(dim));
    if (!fits) {
      throw new IllegalArgumentException("its windows do not fit the array");
    }
  }

  private static boolean isBelow(ImmutableLongArray dims, int rank) {
    return dims.stream().allMatch(dim -> dim >= 0 && dim < rank)
        && dims.stream().distinct().count() == dims.length();
  }

  static Windows ofGather(HloInstruction gather, Value operand, int rank) {
    var attributes = gather.attributes();
    return new Windows(
        operand.tensor().sizes(),
        attributes.integers("slice_sizes"),
        attributes.integers("offset_dims"),
        rank,
        attributes.integers("collapsed_slice_dims"),
        attributes.integers("operand_batching_dims"),
        attributes.integers("start_indices_batching_dims"),
        attributes.integers("start_index_map"),
        vector(attributes));
  }

  static Windows ofScatter(HloInstruction scatter, ImmutableLongArray sizes, Value updates) {
    var attributes = scatter.attributes();
    var inWindow = attributes.integers("update_window_dims");
    var flat = attributes.integers("inserted_window_dims");
    var batches = attributes.integers("input_batching_dims");
    var counts = ImmutableLongArray.builder();
    int next = 0;
    if (!isBelow(inWindow, updates.tensor().rank())) {
      throw new IllegalArgumentException("its windows have dimensions that the updates do not");
    }
    for (int dim = 0; dim < sizes.length(); dim++) {
      boolean own = !flat.contains(dim) && !batches.contains(dim);
      if (own && next == inWindow.length()) {
        throw new IllegalArgumentException("its windows have too few dimensions");
      }
      counts.add(own ? updates.tensor().size((int) inWindow.get(next++)) : 1);
    }
    return new Windows(
        sizes,
        counts.build(),
        inWindow,
        updates.tensor().rank(),
        flat,
        batches,
        attributes.integers("scatter_indices_batching_dims"),
        attributes.integers("scatter_dims_to_operand_dims"),
        vector(attributes));
  }

  private static int vector(HloAttributes attributes) {
    return Math.toIntExact(attributes.integer("index_vector_dim").orElse(0L));
  }

  /** {@return the dimensions of the array of which a window has less than all} */
  ImmutableIntArray lead() {
    return dims(true);
  }

  /** {@return the dimensions of the array of which each window has all} */
  ImmutableIntArray rest() {
    return dims(false);
  }

  private ImmutableIntArray dims(boolean lead) {
    return ImmutableIntArray.copyOf(
        IntStream.range(0, sizes.length())
            .filter(
                dim ->
                    lead
                        == (indexed.contains(dim)
                            || !isInWindow(dim)
                            || counts.get(dim) < sizes.get(dim))));
  }

  boolean isInWindow(int dim) {
    return !flat.contains(dim) && !batches.contains(dim);
  }

  /**
   * {@return the dimensions of the windows' tensor in this order: one for each index, then the
   * leading dimensions of the array that windows have, then the rest of its dimensions}
   */
  ImmutableIntArray order() {
    var order = ImmutableIntArray.builder(rank);
    IntStream.range(0, rank).filter(dim -> !inWindow.contains(dim)).forEach(order::add);
    for (var part : ImmutableList.of(lead(), rest())) {
      part.stream()
          .filter(this::isInWindow)
          .forEach(
              dim ->
                  order.add(
                      (int)
                          inWindow.get(
                              (int) IntStream.range(0, dim).filter(this::isInWindow).count())));
    }
    return order.build();
  }
}
