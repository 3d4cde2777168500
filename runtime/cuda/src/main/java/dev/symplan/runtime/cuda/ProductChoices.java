package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSortedMap;
import com.google.common.collect.Lists;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.World;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.TreeMap;

/**
 * The algorithms that compute products. All ranks use the same ones, because they may need the same
 * bits.
 *
 * @param machine the GPU and the versions of libraries on which an algorithm was measured; one line
 * @param algorithms by the {@linkplain ProductShape#text text} of the shape; cuBLASLt chooses for
 *     shapes that are not there
 */
record ProductChoices(String machine, ImmutableSortedMap<String, ProductAlgorithm> algorithms) {

  ProductChoices {
    if (machine.indexOf('\n') >= 0) {
      throw new IllegalArgumentException("several lines: " + machine);
    }
  }

  /** No choices. */
  static ProductChoices none(String machine) {
    return new ProductChoices(machine, ImmutableSortedMap.of());
  }

  Optional<ProductAlgorithm> of(ProductShape shape) {
    return Optional.ofNullable(algorithms.get(shape.text()));
  }

  /** {@return these and others, which count where both have one} */
  ProductChoices with(ProductChoices others) {
    var merged = new TreeMap<>(algorithms);
    merged.putAll(others.algorithms);
    return new ProductChoices(machine, ImmutableSortedMap.copyOf(merged));
  }

  /**
   * {@return one product of each shape for which a rank chooses: those that no lower rank has}
   *
   * @param programs of all ranks
   */
  static ImmutableList<Product> chosenBy(int rank, List<DeviceProgram> programs) {
    var seen = new HashSet<ProductShape>();
    for (var program : programs.subList(0, rank)) {
      products(program).stream().map(ProductShape::of).forEach(seen::add);
    }
    return products(programs.get(rank)).stream()
        .filter(product -> seen.add(ProductShape.of(product)))
        .collect(ImmutableList.toImmutableList());
  }

  private static ImmutableList<Product> products(DeviceProgram program) {
    return program.steps().stream()
        .filter(Product.class::isInstance)
        .map(Product.class::cast)
        .collect(ImmutableList.toImmutableList());
  }

  /**
   * {@return the choices that all ranks use, made of those of each}
   *
   * <p>An algorithm of one machine need not exist on another: where the ranks' differ, none has a
   * choice.
   *
   * @param chosen by rank
   */
  static ProductChoices agreed(List<ProductChoices> chosen) {
    var first = chosen.getFirst();
    if (chosen.stream().anyMatch(choices -> !choices.machine.equals(first.machine))) {
      return none("several machines");
    }
    // The lowest rank's count.
    var all = none(first.machine);
    for (var choices : Lists.reverse(chosen)) {
      all = all.with(choices);
    }
    return all;
  }

  /**
   * {@return the algorithms that all processes use; this process chose the given ones}
   *
   * @throws RunException as {@link World#gather}
   */
  ProductChoices agreed(World world) {
    return agreed(
        world.gather("algorithms of products", text().getBytes(StandardCharsets.UTF_8)).stream()
            .map(bytes -> parse(new String(bytes, StandardCharsets.UTF_8)))
            .map(choices -> choices.orElseGet(() -> none("unknown")))
            .toList());
  }

  /** {@return all of it, for other processes} */
  String text() {
    var text = new StringBuilder(machine).append('\n');
    algorithms.forEach(
        (shape, algorithm) -> text.append(shape).append(' ').append(algorithm.text()).append('\n'));
    return text.toString();
  }

  /** {@return the choices that have this {@link #text}; empty if none have} */
  static Optional<ProductChoices> parse(String text) {
    var lines = text.lines().toList();
    if (lines.isEmpty() || !text.endsWith("\n")) {
      return Optional.empty();
    }
    var algorithms = new TreeMap<String, ProductAlgorithm>();
    for (var line : lines.subList(1, lines.size())) {
      int space = line.indexOf(' ');
      var algorithm = ProductAlgorithm.parse(line.substring(space + 1));
      if (space < 1 || algorithm.isEmpty()) {
        return Optional.empty();
      }
      algorithms.put(line.substring(0, space), algorithm.orElseThrow());
    }
    return Optional.of(new ProductChoices(lines.getFirst(), ImmutableSortedMap.copyOf(algorithms)));
  }
}
