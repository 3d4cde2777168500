package dev.symplan.codegen.cuda;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.cuda.RowNode.Location;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * The addresses of the elements of rows, as C++: pointers {@code p0}, {@code p1} and so on to where
 * a row begins, and from there by the element's number or its indices {@code j0}, {@code j1}.
 */
final class RowLocations {
  private record Base(
      Optional<KernelArgument.Memory> memory,
      String shared,
      String type,
      ImmutableLongArray rows) {}

  private final ImmutableLongArray rowSizes;
  private final ImmutableLongArray innerSizes;
  private final Map<Base, Integer> bases = new LinkedHashMap<>();

  RowLocations(ImmutableLongArray rowSizes, ImmutableLongArray innerSizes) {
    this.rowSizes = rowSizes;
    this.innerSizes = innerSizes;
  }

  /**
   * {@return an element as a location in memory}
   *
   * @param number a variable, the element's number
   * @param more the term that is added to its distance from where the row begins
   */
  String element(Location location, String number, String more) {
    var base =
        new Base(
            location.memory(), location.shared(), CTypes.stored(location.dtype()), location.rows());
    int pointer = bases.computeIfAbsent(base, _ -> bases.size());
    return "p%s[%s%s]".formatted(pointer, offset(location, number), more);
  }

  /** {@return whether a row's elements are side by side, in their order} */
  boolean isFlat(Location location) {
    long stride = 1;
    for (int dim = innerSizes.length() - 1; dim >= 0; dim--) {
      if (location.inner().get(dim) != stride) {
        return false;
      }
      stride *= innerSizes.get(dim);
    }
    return true;
  }

  /** {@return whether neighbours along the last dimension of a row have one element in common} */
  boolean isSpread(Location location) {
    return location.inner().get(innerSizes.length() - 1) == 0;
  }

  /** {@return whether a vector's elements are side by side, or one} */
  boolean isWide(Location location, int width) {
    if (innerSizes.isEmpty()) {
      return false;
    }
    boolean flat = isFlat(location);
    if (location.memory().isEmpty()) {
      // A block's own memory begins as a vector may, and rows in it are whole vectors.
      return flat && innerSizes.stream().reduce(1, Math::multiplyExact) % width == 0;
    }
    if (!flat && isSpread(location)) {
      return innerSizes.get(innerSizes.length() - 1) % width == 0;
    }
    var sizes = ImmutableLongArray.builder().addAll(rowSizes);
    var strides = ImmutableLongArray.builder().addAll(location.rows());
    if (flat) {
      sizes.add(innerSizes.stream().reduce(1, Math::multiplyExact));
      strides.add(1);
    } else {
      sizes.addAll(innerSizes);
      strides.addAll(location.inner());
    }
    return Vectors.fit(
        width,
        location.memory().get().address().offset(),
        location.dtype().bytes(),
        sizes.build(),
        strides.build());
  }

  private String offset(Location location, String number) {
    if (location.inner().stream().allMatch(stride -> stride == 0)) {
      return "0";
    }
    if (isFlat(location)) {
      return number;
    }
    return terms(location.inner(), innerSizes.length() > 1 ? "j%s" : number);
  }

  private static String terms(ImmutableLongArray strides, String index) {
    var terms =
        IntStream.range(0, strides.length())
            .filter(dim -> strides.get(dim) != 0)
            .mapToObj(dim -> "(long long)" + index.formatted(dim) + " * " + strides.get(dim))
            .collect(Collectors.joining(" + "));
    return terms.isEmpty() ? "0" : terms;
  }

  /**
   * {@return statements that declare the pointers of all elements that were asked for, by the row's
   * indices {@code r0}, {@code r1} and so on}
   *
   * @param memory the arguments of the kernel
   */
  String pointers(MemoryArguments memory) {
    var text = new StringBuilder();
    bases.forEach(
        (base, number) -> {
          var from = base.memory().map(memory::pointer).orElse(base.shared());
          text.append(
              "    %s* p%s = (%s*)%s + %s;\n"
                  .formatted(base.type(), number, base.type(), from, terms(base.rows(), "r%s")));
        });
    return text.toString();
  }
}
