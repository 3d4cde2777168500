package dev.symplan.planner.interpret;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Plans do what collectives of other libraries are defined to do, whoever sees their memory. */
@Tag("random")
class ForeignCollectivesTest {
  private static final long SEED = Fuzz.seed(17_000_000);

  private static final List<String> REDUCES =
      List.of(
          "r = symm_mem::one_shot_all_reduce(A, \"sum\", \"g\")",
          "r = symm_mem::one_shot_all_reduce_out(A, \"sum\", \"g\", B)",
          "r = symm_mem::one_shot_all_reduce_copy(B, A, \"sum\", \"g\")",
          "r = symm_mem::one_shot_all_reduce_copy_out(C, A, \"sum\", \"g\", B)",
          "r = symm_mem::two_shot_all_reduce_(B, \"sum\", \"g\")",
          "r = symm_mem::two_shot_all_reduce_out(C, \"sum\", \"g\", B)",
          "r = symm_mem::multimem_all_reduce_(B, \"sum\", \"g\")",
          "r = symm_mem::multimem_one_shot_all_reduce(A, \"sum\", \"g\")",
          "r = symm_mem::multimem_one_shot_all_reduce_out(A, \"sum\", \"g\", B)",
          "r = vllm::all_reduce(A, \"g\")",
          "sglang::inplace_all_reduce(B, \"g\")",
          "r = sglang::outplace_all_reduce(A, \"g\")");

  private static final List<String> GATHERS =
      List.of(
          "w: f32[16, 8] = symm_mem::_low_contention_all_gather(A, \"g\")",
          "w = vllm::all_gather(A, 0, 2, \"g\")",
          "w = symm_mem::multimem_all_gather_out(A, \"g\", W)",
          "sglang::reg_all_gather_into_tensor(W, A, \"g\")");

  private static final List<String> SCATTERS =
      List.of(
          "h: f32[4, 8] = symm_mem::_low_contention_reduce_scatter(A, \"sum\", \"g\")",
          "h = vllm::reduce_scatter(A, 0, 2, \"g\")",
          "h = symm_mem::reduce_scatter_out(C, \"g\", False, H)",
          "sglang::reg_reduce_scatter_tensor(H, A, \"g\")");

  /** Ops on tensors of one size, some of which write what others see. */
  private static final class RandomText {
    private final Random random;
    private final StringBuilder text = new StringBuilder();
    private final List<String> pool = new ArrayList<>(List.of("x", "y"));
    private int names;

    RandomText(long seed) {
      random = new Random(seed);
    }

    String program() {
      text.append("graph version 1\ngroup g = [0, 1]\ngraph t(x: f32[8, 8], y: f32[8, 8]) {\n");
      for (int i = 3 + random.nextInt(6); i > 0; i--) {
        add();
      }
      return text + "  return " + String.join(", ", pool.subList(2, pool.size())) + "\n}\n";
    }

    private void add() {
      switch (random.nextInt(7)) {
        case 0 -> local("aten::relu(%s)".formatted(pick()));
        case 1 -> local("aten::mul.Tensor(%s, %s)".formatted(pick(), pick()));
        case 2, 3, 4 -> collective(REDUCES, "r", pick());
        case 5 -> {
          if (random.nextBoolean()) {
            collective(GATHERS, "w", name("aten::cat([%1$s, %1$s], 0)".formatted(pick())));
          } else {
            last("vllm::all_gather(%s, %s, 2, \"g\")", "aten::slice.Tensor(%s, 1, 4, 12)");
          }
        }
        default -> {
          if (random.nextBoolean()) {
            collective(SCATTERS, "h", name("aten::slice.Tensor(%s, 0, 0, 4)".formatted(pick())));
          } else {
            last("vllm::reduce_scatter(%s, %s, 2, \"g\")", "aten::cat([%1$s, %1$s], 1)");
          }
        }
      }
    }

    private void local(String call) {
      pool.add(name(call));
    }

    /** Along the last dimension, and back to the size that all have. */
    private void last(String collective, String back) {
      var made = name(collective.formatted(pick(), random.nextBoolean() ? "1" : "-1"));
      pool.add(name(back.formatted(made)));
    }

    /** May write what others see: a tensor of the pool, an input, or one of its own. */
    private void collective(List<String> calls, String result, String other) {
      var call = calls.get(random.nextInt(calls.size()));
      var written = random.nextInt(3) == 0 ? pick() : name("aten::clone(%s)".formatted(pick()));
      var scratch = random.nextInt(9) == 0 ? written : name("aten::clone(%s)".formatted(pick()));
      var target = random.nextBoolean() ? other : name("aten::clone(%s)".formatted(other));
      var line =
          call.replace("(A,", "(" + pick() + ",")
              .replace(" A,", " " + pick() + ",")
              .replace("(B,", "(" + written + ",")
              .replace(" B)", " " + written + ")")
              .replace("(C,", "(" + scratch + ",")
              .replaceAll("\\b[WH]\\b", target);
      boolean given = line.startsWith(result);
      var made = given ? "v" + names++ : target;
      text.append("  ").append(given ? made + line.substring(1) : line).append('\n');
      switch (result) {
        case "w" -> pool.add(name("aten::slice.Tensor(%s, 0, 4, 12)".formatted(made)));
        case "h" -> pool.add(name("aten::cat([%1$s, %1$s], 0)".formatted(made)));
        default -> pool.add(given ? made : written);
      }
    }

    private String name(String call) {
      var name = "v" + names++;
      text.append("  %s = %s\n".formatted(name, call));
      return name;
    }

    private String pick() {
      return pool.get(random.nextInt(pool.size()));
    }
  }

  @Test
  void plansDoWhatTheOpsAreDefinedToDo() {
    int compared = 0;
    for (int seed = 0; seed < Fuzz.times(400); seed++) {
      var text = new RandomText(SEED + seed).program();
      var program = GraphParser.parse(new SourceFile("foreign.graph", text));
      var options =
          CompileOptions.DEFAULT.withRanks(2).withMulticast(true).withFreeVariants(seed % 2 == 0);
      try {
        var compiled = Compiled.of(program, Target.H200_X8, options);
        assertThat(compiled.graphs())
            .isEqualTo(List.of(program.graphs().getFirst(), program.graphs().getFirst()));
        assertThat(compiled.wrong(SEED + seed, 2)).as("seed %s%n%s", SEED + seed, text).isEmpty();
        compared++;
      } catch (CompileException e) {
        assertThat(e).as(text).hasMessageContaining("overwrites");
      }
    }
    assertThat(compared).isGreaterThan(Fuzz.times(200));
  }
}
