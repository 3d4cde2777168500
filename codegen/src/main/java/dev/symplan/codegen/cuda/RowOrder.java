package dev.symplan.codegen.cuda;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.cuda.RowNode.Location;
import java.util.Comparator;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.IntStream;

/**
 * An order of the dimensions that count rows.
 *
 * @param dims outermost first
 * @param across whether most of what is read and written has neighbouring rows side by side in
 *     memory, rather than neighbouring elements of a row
 */
record RowOrder(ImmutableList<Integer> dims, boolean across) {

  /**
   * @param locations of the elements of rows
   */
  static RowOrder of(
      ImmutableLongArray rowSizes, ImmutableLongArray innerSizes, List<Location> locations) {
    Predicate<Location> beside =
        location ->
            IntStream.range(0, innerSizes.length())
                .anyMatch(dim -> innerSizes.get(dim) > 1 && location.inner().get(dim) == 1);
    Predicate<Location> turned = location -> isTurned(rowSizes, innerSizes, location);
    var given = IntStream.range(0, rowSizes.length()).boxed().collect(toImmutableList());
    return locations.stream()
        .filter(turned)
        .max(Comparator.comparing(location -> location.dtype().bytes()))
        .map(
            main ->
                new RowOrder(
                    given.stream()
                        .sorted(
                            Comparator.comparing(
                                dim ->
                                    rowSizes.get(dim) == 1 || main.rows().get(dim) == 0
                                        ? Long.MIN_VALUE
                                        : -main.rows().get(dim)))
                        .collect(toImmutableList()),
                    bytes(locations, turned) > bytes(locations, beside)))
        .orElse(new RowOrder(given, false));
  }

  /**
   * {@return whether neighbouring rows are side by side in memory, and a row's elements are not}
   */
  static boolean isTurned(
      ImmutableLongArray rowSizes, ImmutableLongArray innerSizes, Location location) {
    return location.memory().isPresent()
        && IntStream.range(0, innerSizes.length())
            .allMatch(dim -> innerSizes.get(dim) == 1 || location.inner().get(dim) > 1)
        && IntStream.range(0, rowSizes.length())
            .anyMatch(dim -> rowSizes.get(dim) > 1 && location.rows().get(dim) == 1);
  }

  private static long bytes(List<Location> locations, Predicate<Location> which) {
    return locations.stream().filter(which).mapToLong(location -> location.dtype().bytes()).sum();
  }

  /** {@return the sizes of the dimensions in this order, or their strides} */
  ImmutableLongArray of(ImmutableLongArray values) {
    return ImmutableLongArray.copyOf(dims.stream().mapToLong(values::get));
  }

  Location of(Location location) {
    return new Location(
        location.memory(),
        location.shared(),
        location.dtype(),
        of(location.rows()),
        location.inner());
  }
}
