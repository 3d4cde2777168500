package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.MemorySpace;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * A random program of one collective whose slices are copied to another dimension before it, after
 * it, or both, in one of the ways in which programs write that. What is copied before may be a part
 * of a tensor. Some programs do a little more or a little else, so that the copies must stay.
 */
public final class LayoutProgram {
  /** The random choices of a program beyond its form. */
  private static final int ODDS = 8;

  private static final List<Variant> VARIANTS =
      List.of(Variant.ONE_SHOT, Variant.PUSH, Variant.COPY_ENGINE, Variant.NCCL);

  private final Random random;
  private final int ranks;
  private final List<String> lines = new ArrayList<>();
  private final List<String> outputs = new ArrayList<>();
  private boolean odd;
  private boolean widens;
  private int names;

  private LayoutProgram(Random random) {
    this.random = random;
    this.ranks = 2 + random.nextInt(3);
  }

  /**
   * The text of one.
   *
   * @param kind of its collective, as options name it
   * @param plain whether copies do nothing but change where slices lie, and nothing else needs
   *     them; empty if that is so of some of them
   */
  public record Drawn(String text, String kind, int ranks, Optional<Boolean> plain) {

    /** {@return options that fold what can be folded, with a variant or none, and any inputs} */
    public CompileOptions options(Random random) {
      var variant = VARIANTS.get(random.nextInt(VARIANTS.size()));
      var space = random.nextBoolean() ? MemorySpace.ANY : MemorySpace.EXTERNAL;
      var options =
          CompileOptions.DEFAULT
              .withRewrites(RewriteOptions.OFF.withLayouts(Mode.ON))
              .withInputs(space)
              .withOutputs(space);
      return variant != Variant.NCCL
              && (variant == Variant.ONE_SHOT || !kind.equals("reduce_scatter"))
          ? options.withVariants(ImmutableMap.of(kind, variant))
          : options;
    }
  }

  public static Drawn draw(Random random) {
    return new LayoutProgram(random).draw();
  }

  private Drawn draw() {
    var kind = List.of("all_gather", "reduce_scatter", "all_to_all").get(random.nextInt(3));
    long[] sizes = new long[2 + random.nextInt(2)];
    for (int i = 0; i < sizes.length; i++) {
      sizes[i] = 1 + random.nextInt(5);
    }
    if (random.nextInt(3) == 0) {
      sizes[sizes.length - 1] *= 8;
    }
    if (random.nextInt(ODDS) == 0) {
      // Kernels go through these by 16 bytes.
      sizes[0] *= 16;
      sizes[sizes.length - 1] *= 256;
    }
    int dim = random.nextInt(sizes.length);
    var dtype = List.of("f32", "bf16", "f16").get(random.nextInt(3));
    boolean gathers = kind.equals("all_gather");
    var given = sizes.clone();
    if (!gathers) {
      given[dim] *= ranks;
    }
    long whole = given[dim];
    long beside = gathers ? 0 : List.of(0, 0, 8, 16).get(random.nextInt(4));
    given[dim] += 2 * beside;
    var value = before("x", dtype);
    if (beside > 0) {
      // Queries, keys and values of one product.
      value = op("aten::slice.Tensor(%s, %s, %s, %s)", value, dim, beside, beside + whole);
    }
    boolean converted = lines.stream().anyMatch(line -> line.contains("_to_copy"));
    widens = converted && !gathers && !dtype.equals("f32");
    long rows = rows(sizes, dim);
    switch (kind) {
      case "all_gather" -> {
        value = op("_c10d_functional::all_gather_into_tensor(%s, %s, \"g\")", value, ranks);
        value = waited(value);
        keep(value);
        value = joined(value, sizes, dim);
      }
      case "reduce_scatter" -> {
        value = split(value, sizes, dim);
        keep(value);
        if (!converted && !dtype.equals("f32") && random.nextInt(3) == 0) {
          widens = true;
          value = op("aten::_to_copy(%s, dtype=torch.float32)", value);
        }
        var reduction = List.of("sum", "max", "avg").get(random.nextInt(3));
        value =
            waited(
                op(
                    "_c10d_functional::reduce_scatter_tensor(%s, \"%s\", %s, \"g\")",
                    value, reduction, ranks));
      }
      default -> {
        value = split(value, sizes, dim);
        var equal = IntStream.range(0, ranks).mapToObj(i -> "" + sizes[0]).toList();
        value =
            waited(
                op("_c10d_functional::all_to_all_single(%s, %s, %s, \"g\")", value, equal, equal));
        int other = random.nextInt(sizes.length);
        if (random.nextBoolean()) {
          value = joined(value, sizes, other);
          rows = Math.max(rows, rows(sizes, other));
        }
      }
    }
    outputs.add(after(value));
    var members = new ArrayList<>(IntStream.range(0, ranks).boxed().toList());
    Collections.shuffle(members, random);
    var text =
        """
        graph version 1
        group g = %s

        graph layout(x: %s%s) {
          %s
          return %s
        }
        """
            .formatted(
                members,
                dtype,
                text(given),
                String.join("\n  ", lines),
                String.join(", ", outputs));
    // Some splits of slices with one row are views, which nothing needs to copy.
    boolean partly = odd && (kind.equals("all_to_all") || (!gathers && sizes[0] == 1));
    // A conversion before a scatter can be left out even where a copy must stay.
    partly |= kind.equals("reduce_scatter") && widens && (odd || rows < 2);
    return new Drawn(text, kind, ranks, partly ? Optional.empty() : Optional.of(!odd && rows > 1));
  }

  private static long rows(long[] sizes, int dim) {
    return IntStream.range(0, dim).mapToLong(i -> sizes[i]).reduce(1, (a, b) -> a * b);
  }

  private static String text(long[] sizes) {
    return IntStream.range(0, sizes.length)
        .mapToObj(i -> "" + sizes[i])
        .collect(Collectors.joining(", ", "[", "]"));
  }

  private String op(String call, Object... args) {
    var name = "v" + names++;
    lines.add(name + " = " + call.formatted(args));
    return name;
  }

  private boolean rarely() {
    return random.nextInt(ODDS) == 0;
  }

  private String before(String value, String dtype) {
    return switch (random.nextInt(4)) {
      case 0 -> value;
      case 1 -> op("aten::neg(%s)", value);
      case 2 -> op("aten::mul.Scalar(%s, 0.5)", value);
      default ->
          op(
              "aten::_to_copy(%s, dtype=torch.%s)",
              value, dtype.equals("f32") ? "bfloat16" : "float32");
    };
  }

  private String after(String value) {
    return switch (random.nextInt(4)) {
      case 0 -> value;
      case 1 -> op("aten::_to_copy(%s, dtype=torch.bfloat16)", value);
      default -> op("aten::neg(%s)", value);
    };
  }

  private String waited(String value) {
    return random.nextInt(4) == 0 ? value : op("_c10d_functional::wait_tensor(%s)", value);
  }

  /** Somebody else reads what lies in the other order, so that it has to be there. */
  private void keep(String value) {
    if (rarely()) {
      odd = true;
      outputs.add(random.nextBoolean() ? value : op("aten::abs(%s)", value));
    }
  }

  /** Parts along a dimension, all of one size. */
  private List<String> parts(String value, int dim, long size) {
    var first = names;
    var results =
        IntStream.range(0, ranks)
            .mapToObj(i -> "v" + (first + i))
            .collect(Collectors.joining(", "));
    var call =
        switch (random.nextInt(4)) {
          case 0 -> "aten::split.Tensor(%s, %s, %s)".formatted(value, size, dim);
          case 1 -> "aten::chunk(%s, %s, %s)".formatted(value, ranks, dim);
          case 2 ->
              "aten::split_with_sizes(%s, %s, %s)"
                  .formatted(
                      value, IntStream.range(0, ranks).mapToObj(i -> "" + size).toList(), dim);
          default -> "";
        };
    if (!call.isEmpty()) {
      lines.add(results + " = " + call);
      names += ranks;
      return Stream.of(results.split(", ")).toList();
    }
    return IntStream.range(0, ranks)
        .mapToObj(
            i -> op("aten::slice.Tensor(%s, %s, %s, %s)", value, dim, i * size, (i + 1) * size))
        .toList();
  }

  private List<String> inOrder(List<String> parts) {
    if (!rarely()) {
      return parts;
    }
    odd = true;
    var other = new ArrayList<>(parts);
    if (random.nextBoolean()) {
      Collections.reverse(other);
    } else {
      other.set(1, other.getFirst());
    }
    return other;
  }

  /** With a single row in each slice, reshape needs no copy. */
  private String copied(String value, long[] sizes, boolean single) {
    return switch (random.nextInt(single ? 1 : 0, 3)) {
      case 0 -> op("aten::reshape(%s, %s)", value, text(sizes));
      case 1 ->
          op(
              "aten::view(%s, %s)",
              op("aten::clone(%s, memory_format=torch.contiguous_format)", value), text(sizes));
      default -> op("aten::_unsafe_view(%s, %s)", op("aten::contiguous(%s)", value), text(sizes));
    };
  }

  /** Slices one after the other become slices side by side along a dimension. */
  private String joined(String value, long[] sizes, int dim) {
    var all = sizes.clone();
    all[dim] *= ranks;
    if (random.nextBoolean()) {
      return op("aten::cat(%s, %s)", inOrder(parts(value, 0, sizes[0])), dim);
    }
    long[] slices = LongStreams.concat(new long[] {ranks}, sizes);
    var seen = op("aten::view(%s, %s)", value, text(slices));
    var order =
        IntStream.range(0, slices.length).map(i -> i < dim ? i + 1 : i == dim ? 0 : i).toArray();
    var permuted = op("aten::permute(%s, %s)", seen, IntStream.of(order).boxed().toList());
    return copied(permuted, all, sizes[dim] == 1);
  }

  /** The other way round. */
  private String split(String value, long[] sizes, int dim) {
    var all = sizes.clone();
    all[0] *= ranks;
    if (random.nextBoolean()) {
      return op("aten::cat(%s, 0)", inOrder(parts(value, dim, sizes[dim])));
    }
    long[] apart =
        LongStreams.concat(
            Arrays.copyOf(sizes, dim),
            new long[] {ranks},
            Arrays.copyOfRange(sizes, dim, sizes.length));
    var seen = op("aten::view(%s, %s)", value, text(apart));
    var order =
        IntStream.range(0, apart.length).map(i -> i == 0 ? dim : i <= dim ? i - 1 : i).toArray();
    var permuted = op("aten::permute(%s, %s)", seen, IntStream.of(order).boxed().toList());
    return copied(permuted, all, sizes[dim] == 1);
  }

  /** Arrays one after the other. */
  private static final class LongStreams {
    static long[] concat(long[]... arrays) {
      return Stream.of(arrays).flatMapToLong(Arrays::stream).toArray();
    }
  }
}
