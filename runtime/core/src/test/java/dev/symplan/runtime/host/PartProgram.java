package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;

/**
 * A random program of one collective of a part of a tensor, along any dimension, so that other
 * elements of that tensor often lie between the rows of the part. The program may copy the part, in
 * another order. Something else may read the whole tensor, and ops may follow that can run in the
 * kernel of an all_reduce.
 */
public final class PartProgram {
  private static final List<String> KINDS =
      List.of(
          "all_reduce",
          "all_gather",
          "reduce_scatter",
          "all_to_all",
          "broadcast",
          "collective_permute");

  private PartProgram() {}

  /**
   * The text of one.
   *
   * @param kind of its collective, as options name it
   * @param variant of the collective
   * @param inRows whether the collective can take the part where it lies, between other elements
   * @param even whether all rows, also those of a slice, are equally far apart
   */
  public record Drawn(
      String text, String kind, Variant variant, int ranks, boolean inRows, boolean even) {

    /** {@return options that fold what can be folded} */
    public CompileOptions options() {
      return CompileOptions.DEFAULT
          .withRewrites(RewriteOptions.OFF.withLayouts(Mode.ON))
          .withVariants(ImmutableMap.of(kind, variant));
    }
  }

  public static Drawn draw(Random random) {
    int ranks = 2 + random.nextInt(3);
    var kind = KINDS.get(random.nextInt(KINDS.size()));
    var variant = variant(kind, random);
    var dtype = List.of("f32", "bf16", "f16").get(random.nextInt(3));
    int item = dtype.equals("f32") ? 4 : 2;
    long[] sizes = new long[2 + random.nextInt(2)];
    for (int i = 0; i < sizes.length; i++) {
      sizes[i] = 1 + random.nextInt(4);
    }
    sizes[sizes.length - 1] *= List.of(1, 8, 8, 24).get(random.nextInt(4));
    int dim = random.nextInt(sizes.length);
    boolean slices = kind.equals("reduce_scatter") || kind.equals("all_to_all");
    if (slices) {
      sizes[dim] *= ranks;
    }
    boolean copied = random.nextBoolean();
    // Rows in another order than in memory.
    boolean turned = copied && sizes.length == 3 && random.nextBoolean();
    int cut = random.nextInt(sizes.length);
    long before = List.of(0, 1, 8, 8, 16, 16).get(random.nextInt(6));
    long after = List.of(0, 3, 8).get(random.nextInt(3));
    var all = turned ? turned(sizes) : sizes.clone();
    var part = all.clone();
    all[cut] += before + after;
    var lines = new ArrayList<String>();
    var outputs = new ArrayList<String>();
    lines.add("y = aten::neg(x)");
    lines.add(
        "%s = aten::slice.Tensor(y, %s, %s, %s)"
            .formatted(copied ? "q" : "p", cut, before, before + part[cut]));
    if (turned) {
      lines.add("t = aten::permute(q, [1, 0, 2])");
    }
    if (copied) {
      lines.add(
          "p = aten::clone(%s, memory_format=torch.contiguous_format)"
              .formatted(turned ? "t" : "q"));
    }
    lines.add("r = " + call(kind, sizes, dim, ranks, random));
    lines.add("o = _c10d_functional::wait_tensor(r)");
    if (kind.equals("all_reduce") && random.nextBoolean()) {
      lines.add("a = aten::mul.Tensor(o, 0.5)");
      lines.add("s = aten::add.Tensor(a, b)");
      outputs.add("s");
    }
    if (outputs.isEmpty() || random.nextBoolean()) {
      outputs.add("o");
    }
    if (random.nextInt(3) == 0) {
      outputs.add("y");
    }
    var members = new ArrayList<>(IntStream.range(0, ranks).boxed().toList());
    Collections.shuffle(members, random);
    var text =
        """
        graph version 1
        group g = %s

        graph part(x: %s%s, b: %s%s) {
          %s
          return %s
        }
        """
            .formatted(
                members,
                dtype,
                Arrays.toString(all),
                dtype,
                Arrays.toString(sizes),
                String.join("\n  ", lines),
                String.join(", ", outputs));
    boolean aligned = before * inner(part, cut) * item % 16 == 0;
    var strides = strides(all, turned);
    boolean apart = distances(sizes, strides) > 0;
    var slice = sizes.clone();
    slice[dim] /= slices ? ranks : 1;
    boolean even = distances(sizes, strides) == 1 && (!slices || distances(slice, strides) <= 1);
    boolean reads =
        switch (variant) {
          case ONE_SHOT -> aligned;
          case TWO_SHOT -> aligned && even;
          case PUSH, ONE_SHOT_PUSH -> true;
          case COPY_ENGINE, TWO_SHOT_PUSH -> even;
          default -> false;
        };
    // Where these get a tensor without gaps, their results lie as it does.
    boolean keeps = !slices && !kind.equals("all_gather");
    boolean found = !keeps || distances(part, strides(all, false)) > 0;
    return new Drawn(text, kind, variant, ranks, apart && found && reads, even);
  }

  /** The sizes of what becomes a tensor of these when its first two dimensions change places. */
  private static long[] turned(long[] sizes) {
    return new long[] {sizes[1], sizes[0], sizes[2]};
  }

  /** Of a part of a tensor of these sizes, whose first two dimensions may change places. */
  private static long[] strides(long[] all, boolean turned) {
    var strides = new long[all.length];
    long stride = 1;
    for (int dim = all.length - 1; dim >= 0; dim--) {
      strides[dim] = stride;
      stride *= all[dim];
    }
    return turned ? turned(strides) : strides;
  }

  /** At how many distances the rows of a tensor lie; 0 if its elements are a run of memory. */
  private static int distances(long[] sizes, long[] strides) {
    int distances = 0;
    long next = 1;
    for (int dim = sizes.length - 1; dim >= 0; dim--) {
      if (sizes[dim] > 1) {
        distances += strides[dim] == next ? 0 : 1;
        next = strides[dim] * sizes[dim];
      }
    }
    return distances;
  }

  private static Variant variant(String kind, Random random) {
    var variants =
        switch (kind) {
          case "all_reduce" ->
              List.of(
                  Variant.ONE_SHOT,
                  Variant.TWO_SHOT,
                  Variant.ONE_SHOT_PUSH,
                  Variant.TWO_SHOT_PUSH,
                  Variant.NCCL);
          case "reduce_scatter" -> List.of(Variant.ONE_SHOT);
          case "broadcast" -> List.of(Variant.ONE_SHOT, Variant.TWO_SHOT, Variant.COPY_ENGINE);
          default -> List.of(Variant.ONE_SHOT, Variant.PUSH, Variant.COPY_ENGINE);
        };
    return variants.get(random.nextInt(variants.size()));
  }

  private static String call(String kind, long[] sizes, int dim, int ranks, Random random) {
    var reduction = List.of("sum", "max", "avg").get(random.nextInt(3));
    return switch (kind) {
      case "all_reduce" -> "_c10d_functional::all_reduce(p, \"%s\", \"g\")".formatted(reduction);
      case "all_gather" -> "symplan::all_gather_dim(p, %s, %s, \"g\")".formatted(dim, ranks);
      case "reduce_scatter" ->
          "symplan::reduce_scatter_dim(p, \"%s\", %s, %s, \"g\")".formatted(reduction, dim, ranks);
      case "broadcast" ->
          "_c10d_functional::broadcast(p, %s, \"g\")".formatted(random.nextInt(ranks));
      case "collective_permute" ->
          "symplan::collective_permute(p, [[0, 1], [1, %s]], \"g\")"
              .formatted(random.nextInt(2, ranks + 1) % ranks);
      default ->
          "symplan::all_to_all_dim(p, %s, %s, %s, \"g\")"
              .formatted(dim, random.nextInt(sizes.length), ranks);
    };
  }

  private static long inner(long[] sizes, int dim) {
    return IntStream.range(dim + 1, sizes.length)
        .mapToLong(i -> sizes[i])
        .reduce(1, (a, b) -> a * b);
  }
}
