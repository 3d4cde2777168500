package dev.symplan.runtime.fuzz;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Cuts;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.Rewrite.Action;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Made-up steps of training with sharded weights, of one graph or of several, in the least memory
 * that the compiler accepts: gathers that run again give the same bits. Others with {@code
 * -Dsymplan.seed=N}.
 */
@Tag("random")
class GatheredAgainTest {
  private static final long SEED = Fuzz.seed(61_000);
  private static final int PROGRAMS = Fuzz.times(300);
  private static final MemorySpace[] PLACES = {
    MemorySpace.ANY, MemorySpace.EXTERNAL, MemorySpace.LOCAL, MemorySpace.SYMMETRIC
  };

  /** Each weight is used once in the first half, and once in the second, in the reverse order. */
  private static String text(Random random, int ranks) {
    int size = ranks * (2 + random.nextInt(4));
    int layers = 2 + random.nextInt(4);
    var text = new StringBuilder("graph version 1\n\ngroup g = [0:%s]\n\n".formatted(ranks));
    text.append("graph step(x: f32[%1$s, %1$s]".formatted(size));
    for (int i = 0; i < layers; i++) {
      text.append(", s%s: f32[%s, %s]".formatted(i, size / ranks, size));
    }
    text.append(") {\n  h0 = aten::relu(x)\n");
    for (int i = 0; i < layers; i++) {
      text.append(
          """
            a%1$s = _c10d_functional::all_gather_into_tensor(s%1$s, %2$s, "g")
            w%1$s = _c10d_functional::wait_tensor(a%1$s)
            h%3$s = %4$s
          """
              .formatted(i, ranks, i + 1, op(random, "h" + i, "w" + i)));
    }
    text.append("  d%1$s = aten::tanh(h%1$s)\n".formatted(layers));
    for (int i = layers - 1; i >= 0; i--) {
      text.append("  t%1$s = aten::t(w%1$s)\n".formatted(i));
      var weight = (random.nextBoolean() ? "t" : "w") + i;
      text.append("  d%s = %s\n".formatted(i, op(random, "d" + (i + 1), weight)));
    }
    text.append("  r = _c10d_functional::all_reduce(d0, \"max\", \"g\")\n");
    return text.append("  y = _c10d_functional::wait_tensor(r)\n  return y\n}\n").toString();
  }

  private static String op(Random random, String a, String b) {
    return switch (random.nextInt(4)) {
      case 0 -> "aten::mm(%s, %s)".formatted(a, b);
      case 1 -> "aten::mm(%s, %s)".formatted(b, a);
      case 2 -> "aten::add.Tensor(%s, %s)".formatted(a, b);
      default -> "aten::mul.Tensor(%s, %s)".formatted(a, b);
    };
  }

  @Test
  void gathersThatRunAgainGiveTheSame() {
    int again = 0;
    int parts = 0;
    for (long seed = SEED; seed < SEED + PROGRAMS; seed++) {
      var random = new Random(seed);
      int ranks = 2 + random.nextInt(3);
      var text = text(random, ranks);
      var whole = GraphParser.parse(new SourceFile("step.graph", text));
      var program = random.nextBoolean() ? Cuts.cut(whole, random) : whole;
      var merged = random.nextInt(3) == 0 ? Mode.ON : Mode.OFF;
      var options =
          CompileOptions.DEFAULT
              .withRanks(ranks)
              .withInputs(PLACES[random.nextInt(PLACES.length)])
              .withOverlap(random.nextInt(4) > 0)
              .withRewrites(new RewriteOptions(merged, Mode.OFF, Mode.AUTO, Mode.AUTO, Mode.AUTO));
      var made = new FuzzCase(program, Target.H200_X4, options, ImmutableMap.of(), seed);
      var outcome = Differential.check(made.inLeastMemory());
      assertThat(outcome.finding()).as("seed %s%n%s", seed, text).isEmpty();
      assertThat(outcome.refused()).as("seed %s%n%s", seed, text).isEmpty();
      var plan = outcome.plan().orElseThrow();
      // Of several tensors that one op gathers, those that were given up.
      parts +=
          plan.forRank(0).graph().ops().stream()
                  .anyMatch(
                      op ->
                          op.def().name().toString().endsWith("all_gather_into_tensor_coalesced")
                              && op.results().size() == 1)
              ? 1
              : 0;
      boolean gathered =
          plan.rewrites().stream()
              .anyMatch(
                  rewrite ->
                      rewrite.action() == Action.RECOMPUTED && rewrite.detail().contains("gather"));
      again += gathered ? 1 : 0;
    }
    System.out.printf(
        "%s of %s programs gather again, %s of them a part of what one op gathers, from seed %s%n",
        again, PROGRAMS, parts, SEED);
    assertThat(parts).isPositive();
    assertThat(again).isGreaterThan(PROGRAMS / 4);
  }
}
