package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * A random program that joins tensors along some dimension, of which one or several are results of
 * collectives. Some of these are read by something else, too, or have rows of odd lengths.
 */
public final class JoinProgram {
  private static final int ODDS = 8;

  private final Random random;
  private final int ranks;
  private final String dtype;
  private final List<String> inputs = new ArrayList<>();
  private final List<String> lines = new ArrayList<>();
  private final List<String> outputs = new ArrayList<>();
  private int names;

  /** The text of one, the kind of its collectives, and a variant that these can all run as. */
  public record Drawn(String text, Kind kind, Variant variant, int ranks) {

    /** {@return options with which rows are written wherever they can be} */
    public CompileOptions options() {
      return CompileOptions.DEFAULT
          .withRewrites(RewriteOptions.OFF.withLayouts(Mode.ON))
          .withVariants(ImmutableMap.of(kind.text(), variant));
    }
  }

  private JoinProgram(Random random) {
    this.random = random;
    this.ranks = 2 + random.nextInt(3);
    this.dtype = List.of("f32", "bf16", "f16").get(random.nextInt(3));
  }

  public static Drawn draw(Random random) {
    return new JoinProgram(random).draw();
  }

  private Drawn draw() {
    var kinds =
        List.of(
            Kind.ALL_REDUCE,
            Kind.ALL_GATHER,
            Kind.REDUCE_SCATTER,
            Kind.ALL_TO_ALL,
            Kind.BROADCAST,
            Kind.COLLECTIVE_PERMUTE);
    var kind = kinds.get(random.nextInt(kinds.size()));
    var variants =
        VariantSpec.ofKind(kind).stream()
            .filter(VariantSpec::writesRows)
            .map(VariantSpec::variant)
            .toList();
    long[] sizes = new long[2 + random.nextInt(2)];
    sizes[0] = (long) ranks * (1 + random.nextInt(4));
    for (int i = 1; i < sizes.length; i++) {
      sizes[i] = (long) ranks * (1 + random.nextInt(3));
    }
    sizes[sizes.length - 1] *= random.nextInt(ODDS) == 0 ? 1 : 8 << random.nextInt(4);
    boolean stacks = random.nextInt(3) == 0;
    int dim = random.nextInt(ODDS) == 0 ? 0 : 1 + random.nextInt(sizes.length - 1);
    var pieces = new ArrayList<String>();
    int count = 2 + random.nextInt(2);
    for (int i = 0; i < count; i++) {
      if (!stacks && random.nextInt(3) == 0) {
        sizes[dim] += (long) ranks * (dim == sizes.length - 1 ? 8 : 1);
      }
      pieces.add(i == 0 || random.nextInt(3) == 0 ? sent(kind, sizes) : other(sizes));
    }
    Collections.shuffle(pieces, random);
    if (random.nextInt(ODDS) == 0) {
      outputs.add(pieces.getFirst());
    }
    if (stacks && random.nextInt(ODDS) == 0) {
      pieces.set(1, pieces.getFirst());
    }
    int given = random.nextBoolean() ? dim : dim - sizes.length - (stacks ? 1 : 0);
    var joined = op("aten::%s(%s, %s)", stacks ? "stack" : "cat", pieces, given);
    outputs.add(
        switch (random.nextInt(3)) {
          case 0 -> joined;
          case 1 -> op("aten::abs(%s)", joined);
          default -> op("aten::amax(%s, [0], False)", joined);
        });
    var members = new ArrayList<>(IntStream.range(0, ranks).boxed().toList());
    Collections.shuffle(members, random);
    var text =
        """
        graph version 1
        group g = %s

        graph joined(%s) {
          %s
          return %s
        }
        """
            .formatted(
                members,
                String.join(", ", inputs),
                String.join("\n  ", lines),
                String.join(", ", outputs));
    return new Drawn(text, kind, variants.get(random.nextInt(variants.size())), ranks);
  }

  private String op(String call, Object... args) {
    var name = "v" + names++;
    lines.add(name + " = " + call.formatted(args));
    return name;
  }

  private static String text(long[] sizes) {
    return IntStream.range(0, sizes.length)
        .mapToObj(i -> "" + sizes[i])
        .collect(Collectors.joining(", ", "[", "]"));
  }

  private String input(long[] sizes) {
    var name = "x" + inputs.size();
    inputs.add("%s: %s%s".formatted(name, dtype, text(sizes)));
    return name;
  }

  private String other(long[] sizes) {
    var input = input(sizes);
    return random.nextBoolean() ? input : op("aten::neg(%s)", input);
  }

  /** What is sent may be columns of a tensor. */
  private String operand(long[] sizes) {
    int last = sizes.length - 1;
    if (random.nextInt(4) > 0) {
      return op("aten::neg(%s)", input(sizes));
    }
    var wide = sizes.clone();
    wide[last] += 16;
    var columns = op("aten::neg(%s)", input(wide));
    return op("aten::slice.Tensor(%s, %s, 8, %s)", columns, last, 8 + sizes[last]);
  }

  /** The result of a collective, of such sizes. */
  private String sent(Kind kind, long[] sizes) {
    int dim = random.nextBoolean() ? 0 : random.nextInt(sizes.length);
    var own = sizes.clone();
    var result =
        switch (kind) {
          case ALL_GATHER -> {
            own[dim] /= ranks;
            yield op("symplan::all_gather_dim(%s, %s, %s, \"g\")", operand(own), dim, ranks);
          }
          case REDUCE_SCATTER -> {
            own[dim] *= ranks;
            yield op(
                "symplan::reduce_scatter_dim(%s, \"sum\", %s, %s, \"g\")",
                operand(own), dim, ranks);
          }
          case ALL_TO_ALL -> {
            int to = random.nextInt(sizes.length);
            own[to] /= ranks;
            own[dim] *= ranks;
            yield op(
                "symplan::all_to_all_dim(%s, %s, %s, %s, \"g\")", operand(own), dim, to, ranks);
          }
          case ALL_REDUCE -> op("_c10d_functional::all_reduce(%s, \"sum\", \"g\")", operand(own));
          case BROADCAST -> op("_c10d_functional::broadcast(%s, 1, \"g\")", operand(own));
          case COLLECTIVE_PERMUTE ->
              op(
                  "symplan::collective_permute(%s, %s, \"g\")",
                  operand(own),
                  IntStream.range(0, ranks - (random.nextInt(ODDS) == 0 ? 1 : 0))
                      .mapToObj(i -> List.of(i, (i + 1) % ranks))
                      .toList());
          case CUSTOM -> throw new IllegalArgumentException("no kind of the registry");
        };
    var waited = random.nextInt(4) == 0 ? result : op("_c10d_functional::wait_tensor(%s)", result);
    return random.nextInt(4) > 0
        ? waited
        : op("aten::view(%s, %s)", op("aten::unsqueeze(%s, 0)", waited), text(sizes));
  }
}
