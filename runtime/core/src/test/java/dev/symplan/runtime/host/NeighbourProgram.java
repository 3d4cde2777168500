package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.MemorySpace;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * A random program of collectives right before and behind ops that may run in their kernels:
 * elementwise ops, ops over rows, views, ops that write in place, results that are read several
 * times, and groups of some of the ranks, or of one.
 */
public final class NeighbourProgram {
  private static final List<Variant> REDUCES =
      List.of(
          Variant.ONE_SHOT,
          Variant.ONE_SHOT,
          Variant.ONE_SHOT_PUSH,
          Variant.ONE_SHOT_PUSH,
          Variant.TWO_SHOT,
          Variant.TWO_SHOT_PUSH);

  private static final List<Variant> GATHERS =
      List.of(Variant.PUSH, Variant.PUSH, Variant.ONE_SHOT, Variant.COPY_ENGINE);

  private static final int[] ROWS = {1, 2, 3, 4, 6, 8, 12, 37};
  private static final int[] COLUMNS = {1, 4, 8, 16, 24, 33, 64, 64, 128, 100, 264, 520};

  /** The most elements of a tensor. */
  private static final int MOST = 1 << 14;

  private record Tensor(String name, String dtype, List<Integer> sizes) {
    boolean isLike(Tensor other) {
      return dtype.equals(other.dtype) && sizes.equals(other.sizes);
    }

    int rank() {
      return sizes.size();
    }

    int last() {
      return sizes.getLast();
    }

    int numel() {
      return sizes.stream().reduce(1, (a, b) -> a * b);
    }
  }

  private record Group(String name, int size) {}

  private final Random random;
  private final int ranks;
  private final List<Group> groups = new ArrayList<>();
  private final List<String> inputs = new ArrayList<>();
  private final List<String> lines = new ArrayList<>();
  private final List<Tensor> pool = new ArrayList<>();
  private final List<String> kinds = new ArrayList<>();
  private int names;

  private NeighbourProgram(Random random) {
    this.random = random;
    this.ranks = 1 + random.nextInt(4);
  }

  /**
   * The text of one.
   *
   * @param kinds of its collectives, as options name them
   */
  public record Drawn(String text, int ranks, List<String> kinds) {

    /** {@return options with variants whose kernels have neighbours, often} */
    public CompileOptions options(Random random) {
      var spaces =
          List.of(MemorySpace.ANY, MemorySpace.EXTERNAL, MemorySpace.LOCAL, MemorySpace.ANY);
      var variants = ImmutableMap.<String, Variant>builder();
      for (var kind : kinds) {
        switch (kind) {
          case "all_reduce" -> variants.put(kind, REDUCES.get(random.nextInt(REDUCES.size())));
          case "all_gather" -> variants.put(kind, GATHERS.get(random.nextInt(GATHERS.size())));
          default -> variants.put(kind, Variant.ONE_SHOT);
        }
      }
      var options =
          CompileOptions.DEFAULT
              .withOverlap(random.nextInt(4) == 0)
              .withInputs(spaces.get(random.nextInt(spaces.size())))
              .withOutputs(spaces.get(random.nextInt(spaces.size())))
              .withVariants(variants.buildOrThrow());
      return random.nextInt(3) > 0 ? options.withRewrites(RewriteOptions.OFF) : options;
    }
  }

  public static Drawn draw(Random random) {
    return new NeighbourProgram(random).draw();
  }

  private Drawn draw() {
    var members = new ArrayList<>(IntStream.range(0, ranks).boxed().toList());
    Collections.shuffle(members, random);
    var declared = new ArrayList<String>();
    declare(declared, "g", ranks, members.toString());
    declare(declared, "again", ranks, members.reversed().toString());
    var solo = members.stream().map(r -> "[" + r + "]").collect(Collectors.joining(", "));
    declare(declared, "solo", 1, solo);
    if (ranks == 4) {
      declare(declared, "pairs", 2, members.subList(0, 2) + ", " + members.subList(2, 4));
    }
    var dtype = List.of("f32", "bf16", "f16", "bf16").get(random.nextInt(4));
    var sizes = sizes();
    int count = 2 + random.nextInt(2);
    for (int i = 0; i < count; i++) {
      input(dtype, sizes);
    }
    if (random.nextInt(3) == 0) {
      input(dtype, sizes());
    }
    int steps = 2 + random.nextInt(4);
    for (int i = 0; i < steps; i++) {
      for (int j = random.nextInt(3); j > 0; j--) {
        local();
      }
      if (random.nextInt(3) == 0) {
        // Before a scatter, what makes its operand; behind a sum, what reads it.
        pool.add(elementwise(pick()));
      }
      collective();
      if (random.nextInt(3) > 0) {
        pool.add(elementwise(pool.getLast()));
      }
      for (int j = random.nextInt(3); j > 0; j--) {
        local();
      }
    }
    var outputs = new ArrayList<String>();
    outputs.add(pool.getLast().name());
    for (int i = random.nextInt(4); i > 0; i--) {
      outputs.add(pool.get(random.nextInt(pool.size())).name());
    }
    var text =
        """
        graph version 1
        %s

        graph neighbours(%s) {
          %s
          return %s
        }
        """
            .formatted(
                String.join("\n", declared),
                String.join(", ", inputs),
                String.join("\n  ", lines),
                String.join(", ", outputs));
    return new Drawn(text, ranks, kinds.stream().distinct().toList());
  }

  private void declare(List<String> declared, String name, int size, String members) {
    groups.add(new Group(name, size));
    declared.add("group %s = %s".formatted(name, members));
  }

  private List<Integer> sizes() {
    var sizes = new ArrayList<Integer>();
    for (int i = random.nextInt(4) == 0 ? 2 : 1; i > 0; i--) {
      sizes.add(ROWS[random.nextInt(ROWS.length)]);
    }
    sizes.set(
        0, random.nextInt(24) == 0 ? 0 : sizes.getFirst() * (random.nextBoolean() ? ranks : 1));
    sizes.add(COLUMNS[random.nextInt(COLUMNS.length)] * (random.nextInt(3) == 0 ? ranks : 1));
    return sizes.stream().reduce(1, (a, b) -> a * b) <= MOST ? List.copyOf(sizes) : sizes();
  }

  private void input(String dtype, List<Integer> sizes) {
    var name = "x" + inputs.size();
    inputs.add("%s: %s%s".formatted(name, dtype, sizes));
    pool.add(new Tensor(name, dtype, sizes));
  }

  private Tensor op(String dtype, List<Integer> sizes, String call, Object... args) {
    var name = "v" + names++;
    lines.add(name + " = " + call.formatted(args));
    return new Tensor(name, dtype, List.copyOf(sizes));
  }

  private Tensor like(Tensor a, String call, Object... args) {
    return op(a.dtype(), a.sizes(), call, args);
  }

  /** Recent ones are likelier. */
  private Tensor pick() {
    int count = pool.size();
    return pool.get(
        random.nextInt(4) > 0
            ? count - 1 - random.nextInt(Math.min(2, count))
            : random.nextInt(count));
  }

  private Tensor other(Tensor a) {
    var alike = pool.stream().filter(a::isLike).toList();
    return alike.get(random.nextInt(alike.size()));
  }

  private Tensor elementwise(Tensor a) {
    return switch (random.nextInt(6)) {
      case 0 -> like(a, "aten::neg(%s)", a.name());
      case 1 -> like(a, "aten::relu(%s)", a.name());
      case 2 -> like(a, "aten::mul.Scalar(%s, 0.5)", a.name());
      case 3 -> like(a, "aten::sub.Tensor(%s, %s)", other(a).name(), a.name());
      default -> like(a, "aten::add.Tensor(%s, %s)", a.name(), other(a).name());
    };
  }

  private void local() {
    var a = pick();
    switch (random.nextInt(16)) {
      case 0, 1, 2, 3, 4, 5 -> pool.add(elementwise(a));
      case 6, 7, 8 -> overRows(a);
      case 9 -> convert(a);
      case 10 -> view(a);
      case 11 -> pool.add(like(a, "aten::add_.Tensor(%s, %s)", a.name(), other(a).name()));
      case 12 -> pool.add(like(a, "aten::copy_(%s, %s)", a.name(), other(a).name()));
      case 13 -> pool.add(like(a, "aten::mul_.Scalar(%s, 0.5)", a.name()));
      case 14 -> broadcast(a);
      default -> part(a);
    }
  }

  private void overRows(Tensor a) {
    if (a.numel() == 0) {
      return;
    }
    var sizes = new ArrayList<>(a.sizes());
    int dim = random.nextInt(6) == 0 ? random.nextInt(a.rank()) : a.rank() - 1;
    sizes.set(dim, 1);
    var call = List.of("amax", "amin", "amax").get(random.nextInt(3));
    var rows = op(a.dtype(), sizes, "aten::%s(%s, [%s], True)", call, a.name(), dim);
    pool.add(like(a, "aten::sub.Tensor(%s, %s)", a.name(), rows.name()));
    if (random.nextInt(4) == 0) {
      pool.add(rows);
    }
  }

  private void convert(Tensor a) {
    var to = a.dtype().equals("f32") ? "bf16" : "f32";
    pool.add(
        op(
            to,
            a.sizes(),
            "aten::_to_copy(%s, dtype=torch.%s)",
            a.name(),
            to.equals("f32") ? "float32" : "bfloat16"));
  }

  private void broadcast(Tensor a) {
    var weight = "x" + inputs.size();
    var size =
        a.rank() == 1 || random.nextBoolean()
            ? List.of(a.last())
            : List.of(a.sizes().get(a.rank() - 2), 1);
    inputs.add("%s: %s%s".formatted(weight, a.dtype(), size));
    pool.add(like(a, "aten::add.Tensor(%s, %s)", a.name(), weight));
  }

  private void view(Tensor a) {
    if (a.numel() == 0) {
      return;
    }
    var flat = new ArrayList<Integer>();
    flat.add(a.numel() / a.last());
    flat.add(a.last());
    switch (random.nextInt(5)) {
      case 0 -> pool.add(op(a.dtype(), List.of(a.numel()), "aten::reshape(%s, [-1])", a.name()));
      case 1 -> pool.add(op(a.dtype(), flat, "aten::reshape(%s, %s)", a.name(), flat));
      case 2 ->
          pool.add(
              op(
                  a.dtype(),
                  flat.reversed(),
                  "aten::t(%s)",
                  op(a.dtype(), flat, "aten::reshape(%s, %s)", a.name(), flat).name()));
      case 3 ->
          pool.add(
              op(a.dtype(), flat.reversed(), "aten::reshape(%s, %s)", a.name(), flat.reversed()));
      default -> {
        if (a.last() % 4 == 0) {
          var heads = new ArrayList<>(a.sizes());
          heads.set(a.rank() - 1, a.last() / 4);
          heads.add(4);
          pool.add(op(a.dtype(), heads, "aten::reshape(%s, %s)", a.name(), heads));
        }
      }
    }
  }

  /** Some rows, or some columns, or both halves joined in the other order. */
  private void part(Tensor a) {
    int dim = random.nextInt(a.rank());
    int size = a.sizes().get(dim);
    if (size % 2 != 0 || size == 0) {
      return;
    }
    var half = new ArrayList<>(a.sizes());
    half.set(dim, size / 2);
    var first = op(a.dtype(), half, "aten::slice.Tensor(%s, %s, 0, %s)", a.name(), dim, size / 2);
    var second =
        op(a.dtype(), half, "aten::slice.Tensor(%s, %s, %s, %s)", a.name(), dim, size / 2, size);
    if (random.nextBoolean()) {
      pool.add(random.nextBoolean() ? first : second);
      return;
    }
    var made = random.nextBoolean() ? like(second, "aten::neg(%s)", second.name()) : second;
    pool.add(like(a, "aten::cat([%s, %s], %s)", made.name(), first.name(), dim));
  }

  private void collective() {
    var a = pick();
    var group = groups.get(random.nextInt(3) == 0 ? random.nextInt(groups.size()) : 0);
    var reduction = List.of("sum", "avg", "max").get(random.nextInt(3));
    int kind = random.nextInt(10);
    int dim = random.nextInt(a.rank());
    if (kind >= 5 && kind < 8 && a.sizes().get(dim) % group.size() == 0) {
      scatter(a, dim, reduction, group);
      return;
    }
    if (kind >= 8 && a.numel() * group.size() <= MOST) {
      var sizes = new ArrayList<>(a.sizes());
      sizes.set(dim, sizes.get(dim) * group.size());
      kinds.add("all_gather");
      received(
          op(
              a.dtype(),
              sizes,
              "symplan::all_gather_dim(%s, %s, %s, \"%s\")",
              a.name(),
              dim,
              group.size(),
              group.name()));
      return;
    }
    kinds.add("all_reduce");
    var name = random.nextInt(6) == 0 ? "all_reduce_" : "all_reduce";
    received(
        like(
            a,
            "_c10d_functional::%s(%s, \"%s\", \"%s\")",
            name,
            a.name(),
            reduction,
            group.name()));
  }

  private void scatter(Tensor a, int dim, String reduction, Group group) {
    kinds.add("reduce_scatter");
    var sizes = new ArrayList<>(a.sizes());
    sizes.set(dim, sizes.get(dim) / group.size());
    boolean widens = group.size() > 1 && !a.dtype().equals("f32") && random.nextInt(3) == 0;
    received(
        op(
            widens ? "f32" : a.dtype(),
            sizes,
            "symplan::reduce_scatter_dim(%s, \"%s\", %s, %s, \"%s\"%s)",
            a.name(),
            reduction,
            dim,
            group.size(),
            group.name(),
            widens ? ", dtype=torch.float32" : ""));
  }

  private void received(Tensor result) {
    pool.add(
        random.nextInt(4) == 0
            ? result
            : like(result, "_c10d_functional::wait_tensor(%s)", result.name()));
  }
}
