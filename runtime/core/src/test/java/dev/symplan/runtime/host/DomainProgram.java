package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.ReduceOp;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * A random program of collectives on random hosts, between groups that lie on these in every way.
 *
 * @param hosts how many ranks each has
 * @param text the program
 */
record DomainProgram(ImmutableIntArray hosts, String text) {
  /** Types that NCCL reduces. */
  private static final List<DType> TYPES =
      List.of(DType.F32, DType.F16, DType.BF16, DType.F64, DType.I32, DType.I64, DType.U8);

  private static final List<ReduceOp> OPS =
      List.of(ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX);

  /** Most of them are reduced, as that has most phases. */
  private static final List<Kind> KINDS =
      List.of(
          Kind.ALL_REDUCE,
          Kind.ALL_REDUCE,
          Kind.ALL_REDUCE,
          Kind.ALL_GATHER,
          Kind.REDUCE_SCATTER,
          Kind.ALL_TO_ALL,
          Kind.BROADCAST);

  static DomainProgram draw(Random random) {
    var hosts = hosts(random);
    var groups = ImmutableList.of(group(hosts, random), group(hosts, random));
    return new DomainProgram(hosts, text(groups, random));
  }

  private static ImmutableIntArray hosts(Random random) {
    int count = 2 + random.nextInt(3);
    int each = 1 + random.nextInt(4);
    var hosts = IntStream.generate(() -> each).limit(count).toArray();
    if (random.nextInt(5) == 0) {
      hosts[random.nextInt(count)] = 1 + random.nextInt(4);
    }
    return ImmutableIntArray.copyOf(hosts);
  }

  /** The parts of a group, which has all ranks, as every rank runs the program. */
  private static List<List<Integer>> group(ImmutableIntArray hosts, Random random) {
    int ranks = hosts.stream().sum();
    var order = IntStream.range(0, ranks).boxed().collect(Collectors.toCollection(ArrayList::new));
    int kind = random.nextInt(8);
    if (kind == 0) {
      Collections.shuffle(order, random);
    }
    var sizes = IntStream.rangeClosed(1, ranks).filter(n -> ranks % n == 0).toArray();
    int size = kind < 5 ? ranks : sizes[random.nextInt(sizes.length)];
    var parts = new ArrayList<List<Integer>>();
    for (int part = 0; part < ranks / size; part++) {
      int own = part;
      // As one dimension of a mesh, or as another.
      parts.add(
          kind % 2 == 0
              ? order.subList(own * size, (own + 1) * size)
              : IntStream.range(0, size)
                  .mapToObj(i -> order.get(i * (ranks / size) + own))
                  .toList());
    }
    return parts;
  }

  private static String text(List<List<List<Integer>>> groups, Random random) {
    var params = new ArrayList<String>();
    var body = new StringBuilder();
    var outputs = new ArrayList<String>();
    int count = 1 + random.nextInt(5);
    for (int i = 0; i < count; i++) {
      int group = random.nextInt(groups.size());
      int size = groups.get(group).getFirst().size();
      var dtype = TYPES.get(random.nextInt(TYPES.size()));
      var kind = KINDS.get(random.nextInt(KINDS.size()));
      int divisor = kind == Kind.ALL_REDUCE && random.nextBoolean() ? 1 : size;
      params.add("x%s: %s[%s]".formatted(i, dtype.shortName(), sizes(divisor, random)));
      if (random.nextBoolean()) {
        params.add("y%s: f32[%s, 64]".formatted(i, 1 + random.nextInt(64)));
        body.append("  z%s = aten::mul.Scalar(y%s, 2)\n".formatted(i, i));
        outputs.add("z" + i);
      }
      body.append("  r%s = %s\n".formatted(i, call(kind, i, dtype, group, size, random)));
      body.append("  w%s = _c10d_functional::wait_tensor(r%s)\n".formatted(i, i));
      outputs.add("w" + i);
    }
    return """
    graph version 1
    group a = %s
    group b = %s
    graph g(%s) {
    %s  return %s
    }
    """
        .formatted(
            parts(groups.get(0)),
            parts(groups.get(1)),
            String.join(", ", params),
            body,
            String.join(", ", outputs));
  }

  private static String parts(List<List<Integer>> parts) {
    return parts.stream().map(List::toString).collect(Collectors.joining(", "));
  }

  /** Of one to three dimensions, the first of which a number divides. */
  private static String sizes(int divisor, Random random) {
    var sizes = new ArrayList<Integer>();
    sizes.add(divisor * (1 + random.nextInt(4)));
    for (int i = random.nextInt(3); i > 0; i--) {
      sizes.add(1 + random.nextInt(40));
    }
    return sizes.stream().map(Object::toString).collect(Collectors.joining(", "));
  }

  private static String call(Kind kind, int i, DType dtype, int group, int size, Random random) {
    var name = group == 0 ? "a" : "b";
    var ops =
        OPS.stream()
            .filter(op -> op.isDefinedOn(dtype))
            // Thirds are not exact.
            .filter(op -> op != ReduceOp.AVG || Integer.bitCount(size) == 1)
            .toList();
    var op = ops.get(random.nextInt(ops.size())).text();
    return switch (kind) {
      case ALL_GATHER ->
          "_c10d_functional::all_gather_into_tensor(x%s, %s, \"%s\")".formatted(i, size, name);
      case REDUCE_SCATTER ->
          "_c10d_functional::reduce_scatter_tensor(x%s, \"%s\", %s, \"%s\")"
              .formatted(i, op, size, name);
      case ALL_TO_ALL ->
          "_c10d_functional::all_to_all_single(x%s, [], [], \"%s\")".formatted(i, name);
      case ALL_REDUCE -> "_c10d_functional::all_reduce(x%s, \"%s\", \"%s\")".formatted(i, op, name);
      case BROADCAST ->
          "_c10d_functional::broadcast(x%s, %s, \"%s\")".formatted(i, random.nextInt(size), name);
      case COLLECTIVE_PERMUTE, CUSTOM -> throw new IllegalArgumentException("not drawn: " + kind);
    };
  }
}
