package dev.symplan.runtime.host;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/**
 * A random program of one collective of tensors that are packed into one, as buckets of FSDP are,
 * in one of the ways in which programs write that. Some programs do a little more or a little else,
 * so that the copies must stay.
 */
public final class PackProgram {
  /** The random choices of a program beyond its form. */
  private static final int ODDS = 8;

  private final Random random;
  private final int ranks;
  private final List<String> inputs = new ArrayList<>();
  private final List<String> lines = new ArrayList<>();
  private final List<String> outputs = new ArrayList<>();
  private final List<long[]> shapes = new ArrayList<>();
  private final String dtype;
  private boolean odd;
  private boolean widens;
  private int names;

  private PackProgram(Random random) {
    this.random = random;
    this.ranks = 2 + random.nextInt(3);
    this.dtype = List.of("f32", "bf16", "f16").get(random.nextInt(3));
    int tensors = 2 + random.nextInt(4);
    for (int i = 0; i < tensors; i++) {
      long[] shape = new long[1 + random.nextInt(3)];
      for (int dim = 0; dim < shape.length; dim++) {
        shape[dim] = 1 + random.nextInt(6);
      }
      shapes.add(shape);
    }
  }

  public static LayoutProgram.Drawn draw(Random random) {
    return new PackProgram(random).draw();
  }

  private LayoutProgram.Drawn draw() {
    boolean gathers = random.nextBoolean();
    if (gathers) {
      gather();
    } else {
      scatter();
    }
    var members = new ArrayList<>(IntStream.range(0, ranks).boxed().toList());
    Collections.shuffle(members, random);
    var text =
        """
        graph version 1
        group g = %s

        graph packed(%s) {
          %s
          return %s
        }
        """
            .formatted(
                members,
                String.join(", ", inputs),
                String.join("\n  ", lines),
                String.join(", ", outputs));
    return new LayoutProgram.Drawn(
        text,
        gathers ? "all_gather" : "reduce_scatter",
        ranks,
        // A conversion can be left out even where a pack must stay.
        widens && odd ? Optional.empty() : Optional.of(!odd));
  }

  private static long size(long[] shape) {
    return Arrays.stream(shape).reduce(1, (a, b) -> a * b);
  }

  private long total() {
    return shapes.stream().mapToLong(PackProgram::size).sum();
  }

  private String op(String call, Object... args) {
    var name = "v" + names++;
    lines.add(name + " = " + call.formatted(args));
    return name;
  }

  private boolean rarely() {
    return random.nextInt(ODDS) == 0;
  }

  private String input(long[] shape) {
    var name = "x" + inputs.size();
    inputs.add("%s: %s%s".formatted(name, dtype, Arrays.toString(shape)));
    return random.nextBoolean() ? name : op("aten::neg(%s)", name);
  }

  private String waited(String value) {
    return random.nextInt(4) == 0 ? value : op("_c10d_functional::wait_tensor(%s)", value);
  }

  private long[] unsharded(long[] shape) {
    var all = shape.clone();
    all[0] *= ranks;
    return all;
  }

  /** The shards one after the other, of parameters or of one that holds them all. */
  private void gather() {
    boolean flat = random.nextInt(4) == 0;
    var packed =
        flat
            ? input(new long[] {total()})
            : op(
                "aten::cat(%s)",
                shapes.stream().map(shape -> op("aten::reshape(%s, [-1])", input(shape))).toList());
    var got = op("_c10d_functional::all_gather_into_tensor(%s, %s, \"g\")", packed, ranks);
    got = waited(got);
    if (rarely()) {
      odd = true;
      outputs.add(random.nextBoolean() ? got : op("aten::abs(%s)", got));
    }
    var rows = op("aten::view(%s, [%s, %s])", got, ranks, total());
    var parts = parts(rows, 1);
    for (int i = 0; i < shapes.size(); i++) {
      var shape = shapes.get(i);
      // A result that no one reads need not be gathered.
      if (i > 0 && rarely()) {
        continue;
      }
      if (rarely()) {
        odd = true;
        outputs.add(op("aten::abs(%s)", parts.get(i)));
      } else if (!flat && rarely() && copies(i, shapes.size())) {
        oneByOne(rows, i);
      } else {
        use(unsharded(parts.get(i), shape));
      }
    }
  }

  private String gathered(String shards) {
    return op("_c10d_functional::all_gather_into_tensor(%s, %s, \"g\")", shards, ranks);
  }

  private String empty(String sizes) {
    return op("aten::empty.memory_format(%s, dtype=torch.%s)", sizes, torchName());
  }

  private String torchName() {
    return switch (dtype) {
      case "f32" -> "float32";
      case "bf16" -> "bfloat16";
      default -> "float16";
    };
  }

  /** Each rank's shards are copied to where the result of the gather has them. */
  private String copiedIn(List<String> shards) {
    var all = empty("[%s]".formatted(ranks * total()));
    int rank = random.nextInt(ranks);
    var own = op("aten::slice.Tensor(%s, 0, %s, %s)", all, rank * total(), (rank + 1) * total());
    var parts = parts(own, 0);
    if (random.nextBoolean()) {
      lines.add("aten::_foreach_copy_(%s, %s)".formatted(parts, shards));
    } else {
      for (int i = 0; i < shards.size(); i++) {
        op("aten::copy_(%s, %s)", parts.get(i), shards.get(i));
      }
    }
    return op(
        "_c10d_functional::all_gather_into_tensor_out(%s, %s, \"g\", out=%s)", own, ranks, all);
  }

  /** The first parameter is gathered whole, so that something can be left out. */
  private static boolean copies(int part, int parts) {
    return part > 0 && parts > 1;
  }

  /** The parts of the ranks, each by itself. */
  private void oneByOne(String rows, int part) {
    long start = starts()[part];
    for (int rank = 0; rank < ranks; rank++) {
      var row = op("aten::select.int(%s, 0, %s)", rows, rank);
      var own = op("aten::slice.Tensor(%s, 0, %s, %s)", row, start, start + size(shapes.get(part)));
      use(op("aten::view(%s, %s)", own, Arrays.toString(shapes.get(part))));
    }
  }

  /** With a single row in each shard, reshape needs no copy. */
  private String unsharded(String part, long[] shape) {
    var whole = Arrays.toString(unsharded(shape));
    return switch (random.nextInt(shape[0] == 1 ? 1 : 0, 5)) {
      case 0 -> op("aten::reshape(%s, %s)", part, whole);
      case 1 ->
          op(
              "aten::view(%s, %s)",
              op("aten::clone(%s, memory_format=torch.contiguous_format)", part), whole);
      case 2 -> op("aten::_unsafe_view(%s, %s)", op("aten::contiguous(%s)", part), whole);
      case 3 -> {
        var out = empty("[%s]".formatted(ranks * size(shape)));
        op("aten::copy_(%s, %s)", op("aten::view(%s, [%s, %s])", out, ranks, size(shape)), part);
        yield op("aten::view(%s, %s)", out, whole);
      }
      default -> {
        var rows =
            IntStream.range(0, ranks)
                .mapToObj(
                    rank ->
                        op(
                            "aten::view(%s, %s)",
                            op("aten::select.int(%s, 0, %s)", part, rank), Arrays.toString(shape)))
                .toList();
        yield op("aten::cat(%s)", rows);
      }
    };
  }

  private void use(String value) {
    outputs.add(
        switch (random.nextInt(3)) {
          case 0 -> value;
          case 1 -> op("aten::neg(%s)", value);
          default -> op("aten::mul.Tensor(%s, %s)", value, value);
        });
  }

  /** The parts of the gradients that go to a rank one after the other. */
  private void scatter() {
    int widening = dtype.equals("f32") ? 3 : random.nextInt(4);
    widens = widening < 3;
    var rows =
        shapes.stream()
            .map(
                shape ->
                    op(
                        random.nextBoolean()
                            ? "aten::view(%s, [%s, -1])"
                            : "aten::reshape(%s, [%s, -1])",
                        widened(input(unsharded(shape)), widening == 0),
                        ranks))
            .collect(Collectors.toCollection(ArrayList::new));
    var packed = widened(op("aten::cat(%s, 1)", rows), widening == 1);
    if (widening == 2) {
      packed = widened(op("aten::view(%s, [-1])", packed), true);
    } else if (random.nextBoolean()) {
      packed = op("aten::view(%s, [-1])", packed);
    } else if (random.nextBoolean()) {
      var sizes = "[%s]".formatted(ranks * total());
      var buffer =
          widens ? op("aten::empty.memory_format(%s, dtype=torch.float32)", sizes) : empty(sizes);
      op("aten::copy_(%s, %s)", op("aten::view(%s, [%s, %s])", buffer, ranks, total()), packed);
      packed = buffer;
    }
    if (rarely()) {
      odd = true;
      outputs.add(op("aten::abs(%s)", packed));
    }
    var reduction = List.of("sum", "max", "avg").get(random.nextInt(3));
    var got =
        waited(
            op(
                "_c10d_functional::reduce_scatter_tensor(%s, \"%s\", %s, \"g\")",
                packed, reduction, ranks));
    var flat = op("aten::view(%s, [%s])", got, total());
    if (rarely()) {
      odd = true;
      outputs.add(op("aten::neg(%s)", flat));
    }
    var parts = parts(flat, 0);
    for (int i = 0; i < shapes.size(); i++) {
      if (i == 0 || !rarely()) {
        use(op("aten::view(%s, %s)", parts.get(i), Arrays.toString(shapes.get(i))));
      }
    }
  }

  private String widened(String value, boolean here) {
    return !here
        ? value
        : random.nextBoolean()
            ? op("prims::convert_element_type(%s, torch.float32)", value)
            : op("aten::_to_copy(%s, dtype=torch.float32)", value);
  }

  private long[] starts() {
    var starts = new long[shapes.size()];
    for (int i = 1; i < starts.length; i++) {
      starts[i] = starts[i - 1] + size(shapes.get(i - 1));
    }
    return starts;
  }

  private List<String> parts(String value, int dim) {
    long[] sizes = shapes.stream().mapToLong(PackProgram::size).toArray();
    if (random.nextBoolean()) {
      var results = LongStream.of(sizes).mapToObj(_ -> "v" + names++).collect(Collectors.toList());
      lines.add(
          "%s = aten::split_with_sizes(%s, %s, %s)"
              .formatted(String.join(", ", results), value, Arrays.toString(sizes), dim));
      return results;
    }
    long[] starts = starts();
    return IntStream.range(0, sizes.length)
        .mapToObj(
            i ->
                op(
                    "aten::slice.Tensor(%s, %s, %s, %s)",
                    value, dim, starts[i], starts[i] + sizes[i]))
        .toList();
  }
}
