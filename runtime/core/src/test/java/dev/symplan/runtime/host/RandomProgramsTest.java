package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.MemorySpace;
import dev.symplan.planner.CollectivePlan;
import dev.symplan.planner.CompileOptions;
import dev.symplan.planner.Plan;
import dev.symplan.planner.Variant;
import dev.symplan.planner.Verdict;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.Reference;
import dev.symplan.runtime.Session;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;

/**
 * Random programs of local ops, views and collectives over several groups, with random variants and
 * memory, give the bits of evaluation without a plan, run after run.
 */
class RandomProgramsTest {
  private static final int PROGRAMS = 150;
  private static final int RUNS = 3;

  private record Tensor(String name, int rows, int columns) {}

  private record Group(String name, int size) {}

  private static final List<Group> GROUPS =
      List.of(new Group("all", 4), new Group("tp", 2), new Group("dp", 2));

  /** Writes one program. */
  private static final class Writer {
    private final Random random;
    private final List<Tensor> tensors = new ArrayList<>();
    private final List<String> collectives = new ArrayList<>();
    private final StringBuilder body = new StringBuilder();
    private int next;

    Writer(Random random) {
      this.random = random;
    }

    String program() {
      var out = new StringBuilder();
      out.append("group all = [3, 1, 0, 2]\n");
      out.append("group tp = [0, 1], [2, 3]\n");
      out.append("group dp = [2, 0], [1, 3]\n");
      out.append("op test_random::slow(Tensor input) -> Tensor\n");
      out.append("graph random(");
      int inputs = 1 + random.nextInt(3);
      for (int i = 0; i < inputs; i++) {
        var input = new Tensor("x" + i, 4 * (1 + random.nextInt(5)), 1 + random.nextInt(9));
        tensors.add(input);
        out.append(i > 0 ? ", " : "");
        out.append("x%d: f32[%d, %d]".formatted(i, input.rows(), input.columns()));
      }
      out.append(") {\n");
      int steps = 3 + random.nextInt(20);
      for (int i = 0; i < steps; i++) {
        step();
      }
      out.append(body).append("  return ");
      var outputs = new ArrayList<String>();
      outputs.add(tensors.getLast().name());
      for (var tensor : tensors) {
        if (random.nextInt(4) == 0) {
          outputs.add(tensor.name());
        }
      }
      return out.append(String.join(", ", outputs)).append("\n}\n").toString();
    }

    private Tensor any() {
      // Recent values are used more often, so that older ones die.
      int back = Math.min(random.nextInt(tensors.size()), random.nextInt(tensors.size()));
      return tensors.get(tensors.size() - 1 - back);
    }

    private void add(String call, int rows, int columns) {
      var name = "v" + next++;
      body.append("  %s: f32[%d, %d] = %s\n".formatted(name, rows, columns, call));
      tensors.add(new Tensor(name, rows, columns));
    }

    private void step() {
      var a = any();
      switch (random.nextInt(10)) {
        case 8, 9 -> add("test_random::slow(%s)".formatted(a.name()), a.rows(), a.columns());
        case 0 -> add("aten::relu(%s)".formatted(a.name()), a.rows(), a.columns());
        case 1, 2 -> {
          var same =
              tensors.stream()
                  .filter(b -> b.rows() == a.rows() && b.columns() == a.columns())
                  .toList();
          var b = same.get(random.nextInt(same.size()));
          add("aten::add.Tensor(%s, %s)".formatted(a.name(), b.name()), a.rows(), a.columns());
        }
        case 3 -> add("aten::permute(%s, [1, 0])".formatted(a.name()), a.columns(), a.rows());
        default -> collective(a, GROUPS.get(random.nextInt(GROUPS.size())));
      }
    }

    private void collective(Tensor a, Group group) {
      int size = group.size();
      var g = group.name();
      boolean divides = a.rows() % size == 0;
      var name = "c" + next++;
      int rows = a.rows();
      String call;
      switch (random.nextInt(6)) {
        case 0 -> call = "broadcast(%s, %d, \"%s\")".formatted(a.name(), size - 1, g);
        case 1 -> {
          if (!divides) {
            return;
          }
          rows = a.rows() / size;
          call = "reduce_scatter_tensor(%s, \"sum\", %d, \"%s\")".formatted(a.name(), size, g);
        }
        case 2 -> {
          if (a.rows() * size > 200) {
            return;
          }
          rows = a.rows() * size;
          call = "all_gather_into_tensor(%s, %d, \"%s\")".formatted(a.name(), size, g);
        }
        case 3 -> {
          if (!divides) {
            return;
          }
          call = "all_to_all_single(%s, [], [], \"%s\")".formatted(a.name(), g);
        }
        default -> {
          var op = List.of("sum", "max", "avg").get(random.nextInt(3));
          call = "all_reduce(%s, \"%s\", \"%s\")".formatted(a.name(), op, g);
        }
      }
      body.append("  %s = _c10d_functional::%s\n".formatted(name, call));
      collectives.add(name);
      add("_c10d_functional::wait_tensor(%s)".formatted(name), rows, a.columns());
    }
  }

  private static CompileOptions options(Random random, Writer writer, String text) {
    var spaces = List.of(MemorySpace.ANY, MemorySpace.EXTERNAL);
    var options =
        CompileOptions.DEFAULT
            .withRanks(4)
            .withInputs(spaces.get(random.nextInt(2)))
            .withOutputs(spaces.get(random.nextInt(2)))
            .withOverlap(random.nextInt(4) > 0);
    var collectives = Programs.plan(text, options).forRank(0).collectives();
    var variants = ImmutableMap.<String, Variant>builder();
    for (int k = 0; k < collectives.size(); k++) {
      var eligible =
          collectives.get(k).verdicts().stream()
              .filter(v -> v.reason().eligible())
              .map(Verdict::variant)
              .toList();
      variants.put(writer.collectives.get(k), eligible.get(random.nextInt(eligible.size())));
    }
    return random.nextInt(4) == 0 ? options : options.withVariants(variants.buildOrThrow());
  }

  @Test
  void giveWhatEvaluationWithoutAPlanGives() {
    int async = 0;
    int inPlace = 0;
    for (long seed = 1; seed <= PROGRAMS; seed++) {
      var random = new Random(seed);
      var writer = new Writer(random);
      var text = writer.program();
      var plan = Programs.plan(text, options(random, writer, text));
      for (var collective : plan.forRank(0).collectives()) {
        async += collective.isAsync() ? 1 : 0;
        inPlace += collective.inPlace() ? 1 : 0;
      }
      check(plan, random, "seed " + seed + "\n" + text);
    }
    assertThat(async).as("collectives beside compute").isPositive();
    assertThat(inPlace).as("collectives in place").isPositive();
  }

  /** A copy that takes its time, so that ranks and streams get apart. */
  private static void slow(HostCall call) {
    call.result().copyFrom(call.tensor("input"));
    LockSupport.parkNanos(ThreadLocalRandom.current().nextInt(200_000));
    call.result().copyFrom(call.tensor("input"));
  }

  private static void check(Plan plan, Random random, String what) {
    try (var _ = HostKernels.register("test_random::slow", RandomProgramsTest::slow);
        var session = Session.open(plan, Backend.HOST)) {
      Programs.fillInputs(session, random);
      var expected = Reference.evaluate(plan, session);
      for (int run = 0; run < RUNS; run++) {
        session.run();
        for (int rank = 0; rank < session.ranks(); rank++) {
          for (int i = 0; i < session.outputCount(); i++) {
            assertThat(
                    Programs.same(
                        session.output(rank, i).orElseThrow(),
                        expected.get(rank).get(i).orElseThrow()))
                .as(
                    "run %d, rank %d, output %d, %s%s",
                    run,
                    rank,
                    i,
                    plan.forRank(0).collectives().stream()
                        .map(CollectivePlan::variant)
                        .map(Variant::text)
                        .collect(Collectors.joining(", ", "variants ", ", ")),
                    what)
                .isTrue();
          }
        }
      }
    }
  }
}
