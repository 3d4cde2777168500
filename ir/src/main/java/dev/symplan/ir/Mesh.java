package dev.symplan.ir;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * The ranks from 0 on as a mesh, in row-major order, and some of its dimensions. The ranks of a
 * part differ only in these.
 *
 * @param sizes of the mesh's dimensions
 * @param dims the positions of a group's dimensions in {@code sizes}, ascending
 */
public record Mesh(ImmutableIntArray sizes, ImmutableIntArray dims) {

  /** A dimension of a mesh: how many steps it has, and how many ranks one step is. */
  private record Axis(int size, int stride) {}

  /**
   * A mesh.
   *
   * @throws IllegalArgumentException when it has no rank, or more than a job, or when a dimension
   *     does not exist or is not above the one before
   */
  public Mesh {
    long ranks = 1;
    for (int size : sizes.asList()) {
      if (size < 1) {
        throw new IllegalArgumentException("a dimension of the mesh has size " + size);
      }
      ranks *= size;
      if (ranks > ProcessGroup.MAX_RANKS) {
        throw new IllegalArgumentException(
            "the mesh has more than %s ranks".formatted(ProcessGroup.MAX_RANKS));
      }
    }
    if (sizes.isEmpty()) {
      throw new IllegalArgumentException("the mesh has no dimensions");
    }
    if (dims.isEmpty()) {
      throw new IllegalArgumentException("the group has no dimension of the mesh");
    }
    int previous = -1;
    for (int dim : dims.asList()) {
      if (dim < 0 || dim >= sizes.length()) {
        throw new IllegalArgumentException(
            "the mesh has dimensions 0 to %s, not %s".formatted(sizes.length() - 1, dim));
      }
      if (dim <= previous) {
        throw new IllegalArgumentException(
            "dimension %s must come before dimension %s".formatted(dim, previous));
      }
      previous = dim;
    }
  }

  /** {@return the group whose parts differ only in the other dimensions} */
  public ProcessGroup group(String name) {
    var all = axes();
    var own = dims.asList().stream().map(all::get).toList();
    var others =
        IntStream.range(0, all.size()).filter(d -> !dims.contains(d)).mapToObj(all::get).toList();
    var offsets = offsets(own);
    return new ProcessGroup(
        name,
        offsets(others).stream()
            .mapToObj(first -> ImmutableIntArray.copyOf(offsets.stream().map(at -> first + at)))
            .collect(ImmutableList.toImmutableList()));
  }

  /** {@return the mesh of which the group is, with as few dimensions as can be; empty for none} */
  public static Optional<Mesh> of(ProcessGroup group) {
    var own = axes(group.members().getFirst());
    if (own.isEmpty()) {
      own.add(new Axis(1, 0));
    }
    var firsts = group.members().stream().mapToInt(part -> part.get(0));
    var all = new ArrayList<>(own);
    all.addAll(axes(ImmutableIntArray.copyOf(firsts)));
    all.sort(Comparator.comparingInt(Axis::stride).reversed());
    long ranks = all.stream().mapToLong(Axis::size).reduce(1, (a, b) -> a * b);
    if (ranks != (long) group.size() * group.members().size()) {
      return Optional.empty();
    }
    var mesh =
        new Mesh(
            ImmutableIntArray.copyOf(all.stream().mapToInt(Axis::size)),
            ImmutableIntArray.copyOf(
                IntStream.range(0, all.size()).filter(dim -> own.contains(all.get(dim)))));
    return Optional.of(mesh).filter(candidate -> candidate.group(group.name()).equals(group));
  }

  /** {@return the dimensions along which the ranks would lie if they were part of a mesh} */
  private static List<Axis> axes(ImmutableIntArray ranks) {
    var axes = new ArrayList<Axis>();
    int inner = 1;
    while (inner < ranks.length()) {
      int stride = ranks.get(inner) - ranks.get(0);
      int size = 1;
      while (inner * size < ranks.length()
          && ranks.get(inner * size) == ranks.get(0) + size * stride) {
        size++;
      }
      axes.add(new Axis(size, stride));
      inner *= size;
    }
    return axes;
  }

  private List<Axis> axes() {
    var axes = new ArrayDeque<Axis>();
    int stride = 1;
    for (int dim = sizes.length() - 1; dim >= 0; dim--) {
      axes.addFirst(new Axis(sizes.get(dim), stride));
      stride *= sizes.get(dim);
    }
    return List.copyOf(axes);
  }

  /** {@return the ranks along some dimensions, from rank 0 on, the last dimension first} */
  private static ImmutableIntArray offsets(List<Axis> axes) {
    var offsets = IntStream.of(0);
    for (var axis : axes) {
      offsets =
          offsets.flatMap(
              at -> IntStream.range(0, axis.size()).map(step -> at + step * axis.stride()));
    }
    return ImmutableIntArray.copyOf(offsets);
  }
}
