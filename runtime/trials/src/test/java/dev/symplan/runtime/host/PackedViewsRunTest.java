package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.Rewrite.Action;
import dev.symplan.runtime.Session;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Results of packed collectives that are seen in any way, and written into, are what they are in
 * the program as it is written. Others with {@code -Dsymplan.seed=N}, more with {@code -Dfuzz=N}.
 */
@Tag("random")
class PackedViewsRunTest {
  private static final long SEED = Fuzz.seed(41);

  private final AtomicInteger folded = new AtomicInteger();
  private final AtomicInteger written = new AtomicInteger();
  private final AtomicInteger counted = new AtomicInteger();

  /** Some elements of the result. */
  private record Seen(String name, long[] sizes, long[] strides, long offset) {
    long count() {
      return Arrays.stream(sizes).reduce(1, (a, b) -> a * b);
    }

    boolean isContiguous() {
      long expected = 1;
      for (int dim = sizes.length - 1; dim >= 0; dim--) {
        if (sizes[dim] != 1 && strides[dim] != expected) {
          return false;
        }
        expected *= sizes[dim];
      }
      return true;
    }

    boolean repeats() {
      return IntStream.range(0, sizes.length).anyMatch(dim -> sizes[dim] > 1 && strides[dim] == 0);
    }
  }

  private static final class Program {
    private final Random random;
    private final int ranks;
    private final List<String> inputs = new ArrayList<>();
    private final List<String> lines = new ArrayList<>();
    private final List<String> outputs = new ArrayList<>();
    private final List<Seen> all = new ArrayList<>();
    private boolean writes;
    private boolean counts;

    Program(Random random, int ranks) {
      this.random = random;
      this.ranks = ranks;
    }

    private String op(String call, Object... args) {
      var name = "v" + lines.size();
      lines.add(name + " = " + call.formatted(args));
      return name;
    }

    private String input(String sizes) {
      var name = "x" + inputs.size();
      inputs.add("%s: f32[%s]".formatted(name, sizes));
      return random.nextBoolean() ? name : op("aten::neg(%s)", name);
    }

    String text() {
      int collectives = 1 + random.nextInt(2);
      List<String> shared = new ArrayList<>();
      for (int i = 0; i < collectives; i++) {
        collective(shared);
      }
      return """
      graph version 1
      group g = %s

      graph packed(%s) {
        %s
        return %s
      }
      """
          .formatted(
              IntStream.range(0, ranks).boxed().toList(),
              String.join(", ", inputs),
              String.join("\n  ", lines),
              String.join(", ", outputs));
    }

    private void collective(List<String> shared) {
      all.clear();
      boolean gathers = random.nextInt(3) > 0;
      var sizes =
          IntStream.range(0, 2 + random.nextInt(3))
              .mapToLong(i -> random.nextInt(20) == 0 ? 0 : 1 + random.nextInt(8))
              .toArray();
      sizes[0] = Math.max(1, sizes[0]);
      long total = Arrays.stream(sizes).sum();
      var parts =
          Arrays.stream(sizes)
              .mapToObj(
                  size -> input(gathers ? Long.toString(size) : "%s, %s".formatted(ranks, size)))
              .collect(Collectors.toCollection(ArrayList::new));
      String got;
      if (gathers) {
        got =
            op(
                "_c10d_functional::all_gather_into_tensor(%s, %s, \"g\")",
                op("aten::cat(%s)", parts), ranks);
      } else {
        got =
            op(
                "_c10d_functional::reduce_scatter_tensor(%s, \"max\", %s, \"g\")",
                op("aten::cat(%s, 1)", parts), ranks);
      }
      shared.addAll(parts);
      got = random.nextInt(4) == 0 ? got : op("_c10d_functional::wait_tensor(%s)", got);
      var whole =
          gathers
              ? new Seen(got, new long[] {ranks * total}, new long[] {1}, 0)
              : new Seen(got, new long[] {1, total}, new long[] {total, 1}, 0);
      int pieces = gathers ? ranks : 1;
      // The first is read, so that something is left to be folded.
      for (int i = 0; i < 2 + random.nextInt(4); i++) {
        long rank = random.nextInt(pieces);
        int part = i == 0 ? 0 : random.nextInt(sizes.length);
        if (sizes[part] == 0 && random.nextInt(6) > 0) {
          continue;
        }
        long start = rank * total + Arrays.stream(sizes).limit(part).sum();
        all.clear();
        all.add(part(whole, rank, start, sizes[part], total));
        for (int step = random.nextInt(6); step > 0; step--) {
          view(start, sizes[part], random.nextInt(60) == 0 ? whole : pick());
        }
        use(pick());
        if (random.nextInt(3) == 0) {
          use(pick());
        }
      }
    }

    private Seen pick() {
      return all.get(random.nextInt(all.size()));
    }

    private Seen part(Seen whole, long rank, long start, long size, long total) {
      long from = start - rank * total;
      return switch (random.nextInt(4)) {
        case 0 -> {
          counts = true;
          yield strided(whole, new long[] {size}, new long[] {1}, start);
        }
        case 1 -> {
          var rows = op("aten::view(%s, [-1, %s])", whole.name(), total);
          var row = op("aten::select.int(%s, 0, %s)", rows, rank);
          yield new Seen(
              op("aten::slice.Tensor(%s, 0, %s, %s)", row, from, from + size),
              new long[] {size},
              new long[] {1},
              start);
        }
        case 2 -> {
          var rows = op("aten::view(%s, [-1, %s])", whole.name(), total);
          var columns = op("aten::slice.Tensor(%s, 1, %s, %s)", rows, from, from + size);
          yield new Seen(
              op("aten::select.int(%s, 0, %s)", columns, rank),
              new long[] {size},
              new long[] {1},
              start);
        }
        default -> {
          var flat = op("aten::view(%s, [-1])", whole.name());
          yield new Seen(
              op("aten::slice.Tensor(%s, 0, %s, %s)", flat, start, start + size),
              new long[] {size},
              new long[] {1},
              start);
        }
      };
    }

    private Seen strided(Seen base, long[] sizes, long[] strides, long offset) {
      return new Seen(
          op(
              "aten::as_strided(%s, %s, %s, %s)",
              base.name(), Arrays.toString(sizes), Arrays.toString(strides), offset),
          sizes,
          strides,
          offset);
    }

    private void view(long start, long size, Seen of) {
      int rank = of.sizes().length;
      int dim = rank == 0 ? 0 : random.nextInt(rank);
      switch (random.nextInt(8)) {
        case 0 -> {
          if (rank > 0) {
            long from = random.nextInt((int) of.sizes()[dim] + 1);
            long to = from + random.nextInt((int) (of.sizes()[dim] - from) + 1);
            long step = random.nextInt(4) == 0 ? 2 : 1;
            if (from == to && random.nextInt(8) > 0) {
              return;
            }
            var sizes = of.sizes().clone();
            var strides = of.strides().clone();
            sizes[dim] = Math.ceilDiv(to - from, step);
            strides[dim] *= step;
            var name = op("aten::slice.Tensor(%s, %s, %s, %s, %s)", of.name(), dim, from, to, step);
            all.add(new Seen(name, sizes, strides, of.offset() + from * of.strides()[dim]));
          }
        }
        case 1 -> {
          if (rank > 0 && of.sizes()[dim] > 0) {
            long at = random.nextInt((int) of.sizes()[dim]);
            all.add(
                new Seen(
                    op("aten::select.int(%s, %s, %s)", of.name(), dim, at),
                    without(of.sizes(), dim),
                    without(of.strides(), dim),
                    of.offset() + at * of.strides()[dim]));
          }
        }
        case 2 -> {
          var sizes = LongStream.concat(LongStream.of(1), Arrays.stream(of.sizes())).toArray();
          long stride = rank == 0 ? 1 : of.sizes()[0] * of.strides()[0];
          var strides =
              LongStream.concat(LongStream.of(stride), Arrays.stream(of.strides())).toArray();
          var name = op("aten::unsqueeze(%s, 0)", of.name());
          all.add(new Seen(name, sizes, strides, of.offset()));
        }
        case 3 -> {
          if (of.isContiguous() && of.count() > 1 && of.count() % 2 == 0) {
            all.add(
                new Seen(
                    op("aten::view(%s, [2, %s])", of.name(), of.count() / 2),
                    new long[] {2, of.count() / 2},
                    new long[] {of.count() / 2, 1},
                    of.offset()));
          }
        }
        case 4 -> {
          if (rank == 2) {
            all.add(
                new Seen(
                    op("aten::t(%s)", of.name()),
                    new long[] {of.sizes()[1], of.sizes()[0]},
                    new long[] {of.strides()[1], of.strides()[0]},
                    of.offset()));
          }
        }
        case 5 -> {
          if (rank > 0 && of.sizes()[dim] == 1) {
            var sizes = of.sizes().clone();
            var strides = of.strides().clone();
            sizes[dim] = 3;
            strides[dim] = 0;
            var name = op("aten::expand(%s, %s)", of.name(), Arrays.toString(sizes));
            all.add(new Seen(name, sizes, strides, of.offset()));
          }
        }
        default -> {
          if (size > 0) {
            counts = true;
            long from = random.nextInt((int) size);
            long stride = random.nextInt(6) == 0 ? 2 : 1;
            long count = Math.min(1 + random.nextInt(3), (size - 1 - from) / stride + 1);
            all.add(
                random.nextBoolean()
                    ? strided(of, new long[] {count}, new long[] {stride}, start + from)
                    : strided(of, new long[] {1, count}, new long[] {1, stride}, start + from));
          }
        }
      }
    }

    private static long[] without(long[] all, int dim) {
      return IntStream.range(0, all.length).filter(d -> d != dim).mapToLong(d -> all[d]).toArray();
    }

    private void use(Seen of) {
      switch (random.nextInt(5)) {
        case 0 -> outputs.add(of.name());
        case 1, 2 -> {
          if (!of.repeats()) {
            writes = true;
            var now = op("aten::mul_.Tensor(%s, 2)", of.name());
            all.add(new Seen(now, of.sizes(), of.strides(), of.offset()));
          }
          outputs.add(op("aten::neg(%s)", of.name()));
        }
        case 3 -> outputs.add(op("aten::clone(%s)", of.name()));
        default -> outputs.add(op("aten::neg(%s)", of.name()));
      }
    }
  }

  @Test
  void randomViewsShowTheSame() {
    Fuzz.each(800, this::check);
    assertThat(folded.get()).as("folds").isGreaterThan(Fuzz.times(150));
    assertThat(written.get()).as("folds with writes").isGreaterThan(Fuzz.times(50));
    assertThat(counted.get()).as("folds and offsets from storages").isGreaterThan(Fuzz.times(50));
  }

  private void check(int number) {
    var random = new Random(SEED + number);
    boolean hosts = random.nextInt(4) == 0;
    int ranks = hosts ? 4 : 2 + random.nextInt(2);
    var program = new Program(random, ranks);
    var text = program.text();
    var what = "seed %s%n%s".formatted(SEED + number, text);
    var parsed = GraphParser.parse(new SourceFile("views.graph", text));
    var space = random.nextBoolean() ? MemorySpace.ANY : MemorySpace.EXTERNAL;
    var modes = random.nextInt(3) == 0;
    var others = modes ? Mode.ON : Mode.OFF;
    var options =
        CompileOptions.DEFAULT
            .withRanks(ranks)
            .withInputs(space)
            .withOutputs(space)
            .withRewrites(new RewriteOptions(others, others, others, others, Mode.ON));
    if (hosts) {
      options = options.withHosts(Hosts.filled(ImmutableIntArray.of(2, 2)));
    }
    var plan = Compiler.forTarget(Target.H200_X4).with(options).compile(parsed);
    boolean made = plan.rewrites().stream().anyMatch(r -> r.made() && r.action() == Action.FOLDED);
    folded.addAndGet(made ? 1 : 0);
    written.addAndGet(made && program.writes ? 1 : 0);
    counted.addAndGet(made && program.counts ? 1 : 0);
    try (var session = Session.open(plan, new HostBackend())) {
      Programs.fillInputs(session, random);
      Programs.runsAsReference(
          session, Collections.nCopies(ranks, parsed.graphs().getFirst()), plan, what);
    }
  }
}
