package dev.symplan.ir.hlo;

import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.op.Permutation;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The forms of {@code replica_groups}: lists, {@code [2,4]<=[8]} (optionally with {@code T(1,0)}),
 * and {@code mesh['a'=2,'b'=4] {'b'}}.
 */
final class ReplicaGroups {
  private static final Pattern LISTS = Pattern.compile("\\{([0-9,\\s{}]*)}");
  private static final Pattern INNER = Pattern.compile("\\{([0-9,\\s]*)}");
  private static final Pattern IOTA =
      Pattern.compile("\\[([0-9,\\s]+)]\\s*<=\\s*\\[([0-9,\\s]+)](?:\\s*T\\(([0-9,\\s]+)\\))?");
  private static final Pattern MESH =
      Pattern.compile(
          "@?mesh\\s*\\[([^\\]]*)](?:\\s*,?\\s*device_ids=\\(?\\[([^\\]]*)](?:T\\(([0-9,\\s]+)\\))?\\)?)?"
              + "\\s*\\{([^}]*)}");

  /** More devices than one job has. */
  private static final long MAX_DEVICES = 1 << 16;

  private ReplicaGroups() {}

  /**
   * {@return the groups, each in its order; none if one group has all devices}
   *
   * @throws IllegalArgumentException when the text is none of the forms
   */
  static ImmutableList<ImmutableIntArray> read(String text) {
    var written = text.strip();
    var iota = IOTA.matcher(written);
    if (iota.matches()) {
      return iota(
          HloAttributes.integersIn(iota.group(1)),
          HloAttributes.integersIn(iota.group(2)),
          iota.group(3) == null ? "" : iota.group(3));
    }
    var mesh = MESH.matcher(written);
    if (mesh.matches()) {
      return mesh(mesh);
    }
    if (LISTS.matcher(written).matches()) {
      return lists(written);
    }
    throw new IllegalArgumentException("replica_groups=%s has no known form".formatted(text));
  }

  /**
   * {@return {@code source_target_pairs}}
   *
   * @throws IllegalArgumentException when the text is not a list of pairs, each rank at most once a
   *     source and at most once a target
   */
  static Permutation pairs(String text) {
    var written = text.strip();
    if (!LISTS.matcher(written).matches()) {
      throw new IllegalArgumentException(
          "source_target_pairs=%s are not pairs of devices".formatted(text));
    }
    return new Permutation(
        lists(written).stream()
            .map(
                ids -> {
                  if (ids.length() != 2) {
                    throw new IllegalArgumentException(
                        "%s is not a pair of devices".formatted(ids));
                  }
                  return new Permutation.Pair(ids.get(0), ids.get(1));
                })
            .collect(ImmutableList.toImmutableList()));
  }

  private static ImmutableList<ImmutableIntArray> lists(String text) {
    var groups = ImmutableList.<ImmutableIntArray>builder();
    var matcher = INNER.matcher(text);
    while (matcher.find()) {
      var ids = HloAttributes.integersIn(matcher.group(1));
      if (!ids.isEmpty()) {
        groups.add(ids(ids.toArray()));
      }
    }
    return groups.build();
  }

  private static ImmutableList<ImmutableIntArray> iota(
      ImmutableLongArray shape, ImmutableLongArray dims, String transpose) {
    var order = transposed(dims, transpose);
    long total = product(shape);
    if (shape.length() < 1 || total != order.length) {
      throw new IllegalArgumentException(
          "groups of shape %s do not hold %s devices".formatted(shape, order.length));
    }
    long size = shape.get(shape.length() - 1);
    return cut(order, (int) size);
  }

  /**
   * The numbers from 0 on, in the shape {@code dims}, read with its dimensions in another order.
   */
  private static long[] transposed(ImmutableLongArray dims, String transpose) {
    long total = product(dims);
    int[] order = order(transpose, dims.length());
    long[] strides = new long[dims.length()];
    long next = 1;
    for (int i = dims.length() - 1; i >= 0; i--) {
      strides[i] = next;
      next *= dims.get(i);
    }
    long[] ids = new long[(int) total];
    for (int i = 0; i < ids.length; i++) {
      long rest = i;
      for (int d = order.length - 1; d >= 0; d--) {
        long size = dims.get(order[d]);
        ids[i] += rest % size * strides[order[d]];
        rest /= size;
      }
    }
    return ids;
  }

  private static int[] order(String transpose, int rank) {
    int[] order = new int[rank];
    var given = HloAttributes.integersIn(transpose);
    if (!given.isEmpty() && given.length() != rank) {
      throw new IllegalArgumentException(
          "T(%s) does not order %s dimensions".formatted(transpose, rank));
    }
    boolean[] seen = new boolean[rank];
    for (int i = 0; i < rank; i++) {
      long dim = given.isEmpty() ? i : given.get(i);
      if (dim < 0 || dim >= rank || seen[(int) dim]) {
        throw new IllegalArgumentException(
            "T(%s) does not order %s dimensions".formatted(transpose, rank));
      }
      seen[(int) dim] = true;
      order[i] = (int) dim;
    }
    return order;
  }

  private static ImmutableList<ImmutableIntArray> mesh(Matcher mesh) {
    var axes = new LinkedHashMap<String, Long>();
    for (var axis : Splitter.on(',').trimResults().omitEmptyStrings().split(mesh.group(1))) {
      int equals = axis.indexOf('=');
      var size = HloAttributes.integersIn(equals < 0 ? "" : axis.substring(equals + 1));
      if (size.length() != 1) {
        throw new IllegalArgumentException("the axis %s of a mesh has no size".formatted(axis));
      }
      axes.put(HloAttributes.unquoted(axis.substring(0, equals).strip()), size.get(0));
    }
    var names = List.copyOf(axes.keySet());
    var dims = ImmutableLongArray.copyOf(List.copyOf(axes.values()));
    var inner = new ArrayList<Integer>();
    for (var axis : Splitter.on(',').trimResults().omitEmptyStrings().split(mesh.group(4))) {
      int at = names.indexOf(HloAttributes.unquoted(axis));
      if (at < 0 || inner.contains(at)) {
        throw new IllegalArgumentException("the mesh has no axis %s".formatted(axis));
      }
      inner.add(at);
    }
    var order = new ArrayList<Integer>();
    for (int i = 0; i < names.size(); i++) {
      if (!inner.contains(i)) {
        order.add(i);
      }
    }
    order.addAll(inner);
    long[] positions =
        transposed(
            dims, order.stream().map(String::valueOf).reduce((a, b) -> a + "," + b).orElse(""));
    long size = 1;
    for (int axis : inner) {
      size *= dims.get(axis);
    }
    if (mesh.group(2) != null) {
      var devices =
          mesh.group(3) == null
              ? HloAttributes.integersIn(mesh.group(2)).toArray()
              : transposed(HloAttributes.integersIn(mesh.group(2)), mesh.group(3));
      if (devices.length != positions.length) {
        throw new IllegalArgumentException("the mesh names %s devices".formatted(devices.length));
      }
      for (int i = 0; i < positions.length; i++) {
        positions[i] = devices[(int) positions[i]];
      }
    }
    return cut(positions, (int) size);
  }

  private static ImmutableList<ImmutableIntArray> cut(long[] ids, int size) {
    var groups = ImmutableList.<ImmutableIntArray>builder();
    for (int start = 0; start < ids.length; start += size) {
      long[] one = new long[size];
      System.arraycopy(ids, start, one, 0, size);
      groups.add(ids(one));
    }
    return groups.build();
  }

  private static ImmutableIntArray ids(long[] numbers) {
    var ids = ImmutableIntArray.builder(numbers.length);
    for (long number : numbers) {
      if (number < 0 || number >= MAX_DEVICES) {
        throw new IllegalArgumentException("device %s does not exist".formatted(number));
      }
      ids.add((int) number);
    }
    return ids.build();
  }

  private static long product(ImmutableLongArray sizes) {
    long count = 1;
    for (long size : sizes.toArray()) {
      if (size < 1 || size > MAX_DEVICES || count * size > MAX_DEVICES) {
        throw new IllegalArgumentException("there are no %s devices".formatted(sizes));
      }
      count *= size;
    }
    return count;
  }
}
