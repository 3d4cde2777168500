package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.Streams;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * The elements that threads take, as those of a piece.
 *
 * @param indices of a thread's element in the piece, one for each dimension
 * @param inside a condition: whether that is an element of the piece; empty if it always is
 */
record Region(ImmutableList<String> indices, String inside) {

  /** {@return all elements, whose indices are {@code i0}, {@code i1} and so on} */
  static Region whole(int rank) {
    return new Region(
        IntStream.range(0, rank)
            .mapToObj(dim -> "i" + dim)
            .collect(ImmutableList.toImmutableList()),
        "");
  }

  /**
   * {@return a part}
   *
   * @param index along {@code dim}, in the part
   * @param conditions under which an element is in the part; those that always hold are empty
   */
  Region piece(int dim, String index, List<String> conditions) {
    var own = new ArrayList<>(indices);
    own.set(dim, index);
    return new Region(
        ImmutableList.copyOf(own),
        Streams.concat(Stream.of(inside), conditions.stream())
            .filter(condition -> !condition.isEmpty())
            .collect(Collectors.joining(" && ")));
  }

  /** {@return the declaration of a variable, whose value counts only inside} */
  String declare(String type, String name, String value) {
    return inside.isEmpty()
        ? "    %s %s = %s;\n".formatted(type, name, value)
        : "    %1$s %2$s = {};\n    if (%3$s) %2$s = %4$s;\n".formatted(type, name, inside, value);
  }
}
