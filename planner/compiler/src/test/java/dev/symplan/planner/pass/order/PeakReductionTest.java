package dev.symplan.planner.pass.order;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.SpaceChoice;
import dev.symplan.planner.pass.order.PeakReduction.Made;
import dev.symplan.planner.pass.order.PeakReduction.Offloaded;
import dev.symplan.planner.pass.order.PeakReduction.Recomputed;
import java.util.List;
import java.util.OptionalDouble;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * The tensors that give up their memory, against all others that could: every sequence of single
 * decisions is tried on small graphs. More, or others, with {@code -Dsymplan.seed=N}.
 */
@Tag("random")
class PeakReductionTest {
  private static final long SEED = Fuzz.seed(88_000);
  private static final int GRAPHS = Fuzz.times(150);

  private static final CostModel COSTS = new CostModel(Target.H200_X4);

  private static final PeakReduction.Gathers GATHERS =
      (op, _) ->
          op.def().name().name().startsWith("all_gather")
              ? OptionalDouble.of(200)
              : OptionalDouble.empty();

  private static Analyses analyses(String text) {
    var graph = GraphParser.parse(new SourceFile("g.graph", text)).graphs().getFirst();
    return new Analyses(
        graph, SpaceChoice.of(CompileOptions.DEFAULT, graph), COSTS, true, Mode.AUTO);
  }

  /** Forward and backward of layers of several widths; each waits for its gradient. */
  private static String text(Random random) {
    int layers = 3 + random.nextInt(3);
    var text = new StringBuilder("graph version 1\n\ngroup g = [0:4]\n\ngraph step(");
    var forward = new StringBuilder();
    var backward = new StringBuilder();
    var widths = new int[layers + 1];
    for (int i = 0; i <= layers; i++) {
      widths[i] = 1024 * (1 + random.nextInt(4));
    }
    // The others stay where they are, as all ways together are too many to try.
    int inHost = random.nextInt(2 * layers);
    text.append("x: f32[2048, %s] @external".formatted(widths[0]));
    forward.append("  h0 = aten::relu(x)\n");
    for (int i = 0; i < layers; i++) {
      text.append(", w%s: f32[%s, %s]".formatted(i, widths[i], widths[i + 1]));
      text.append(i == inHost ? "" : " @external");
      forward.append("  a%1$s = aten::mm(h%1$s, w%1$s)\n".formatted(i));
      var op =
          switch (random.nextInt(4)) {
            case 0 -> "_c10d_functional::all_reduce(a%s, \"sum\", \"g\")";
            case 1 -> "aten::softmax.int(a%s, 1)";
            default -> "aten::gelu(a%s)";
          };
      forward.append("  h%s = %s\n".formatted(i + 1, op.formatted(i)));
    }
    for (int i = layers - 1; i >= 0; i--) {
      var gradient = i == layers - 1 ? "h" + layers : "d" + (i + 1);
      backward.append("  e%s = aten::mul.Tensor(%s, h%s)\n".formatted(i, gradient, i + 1));
      backward.append("  t%1$s = aten::t(w%1$s)\n  d%1$s = aten::mm(e%1$s, t%1$s)\n".formatted(i));
    }
    backward.append("  y = aten::mul.Tensor(d0, h0)\n  s = aten::sum(y)\n  return s\n}\n");
    return text.append(") {\n").append(forward).append(backward).toString();
  }

  private static PeakReduction.Lowered lower(Analyses own, long most) {
    return PeakReduction.lower(own, COSTS, GATHERS, true, List.of(), most);
  }

  /** The least time of any sequence of decisions that gets below a number of bytes. */
  private static double least(
      PeakReduction state, long most, List<Made> made, double best, int depth) {
    if (state.peak() <= most) {
      return Math.min(best, state.widened(made, most).micros());
    }
    double found = best;
    for (var saving : depth > 0 ? state.savings() : ImmutableList.<Saving>of()) {
      var all = ImmutableList.<Made>builder().addAll(made).add(saving.made()).build();
      // Copies may turn out to be hidden; what runs again takes its time.
      double sure =
          all.stream().filter(Recomputed.class::isInstance).mapToDouble(Made::micros).sum();
      if (sure < found) {
        found = least(state.after(ImmutableList.of(saving)), most, all, found, depth - 1);
      }
    }
    return found;
  }

  @Test
  void decisionsTakeLittleMoreTimeThanTheBest() {
    int recomputed = 0;
    int offloaded = 0;
    int equal = 0;
    int compared = 0;
    double sum = 0;
    double worst = 1;
    for (long seed = SEED; seed < SEED + GRAPHS; seed++) {
      var random = new Random(seed);
      var own = analyses(text(random));
      long peak = PeakReduction.peak(own);
      long lowest = lower(own, 0).peak();
      long most = lowest + (long) ((0.2 + 0.7 * random.nextDouble()) * (peak - lowest));
      var made = lower(own, most);
      double micros = made.micros();
      double best =
          least(
              new PeakReduction(own, COSTS, GATHERS), most, List.of(), Double.POSITIVE_INFINITY, 5);
      if (best == 0 || best == Double.POSITIVE_INFINITY) {
        continue;
      }
      assertThat(made.peak()).as("seed %s", seed).isLessThanOrEqualTo(most);
      assertThat(micros).as("seed %s", seed).isGreaterThanOrEqualTo(best * 0.999);
      compared++;
      sum += micros / best;
      worst = Math.max(worst, micros / best);
      equal += micros <= best * 1.000001 ? 1 : 0;
      recomputed += made.made().stream().anyMatch(Recomputed.class::isInstance) ? 1 : 0;
      offloaded += made.made().stream().anyMatch(Offloaded.class::isInstance) ? 1 : 0;
    }
    System.out.println(
        "%s of %s take the least time, on average %.3f and at most %.3f times that; %s compute"
                .formatted(equal, compared, sum / compared, worst, recomputed)
            + " tensors again, %s move some".formatted(offloaded));
    assertThat(recomputed).isPositive();
    assertThat(offloaded).isPositive();
    assertThat(compared).isGreaterThan(GRAPHS / 2);
    assertThat(equal).isGreaterThan(compared * 4 / 5);
    assertThat(sum / compared).isLessThan(1.1);
  }
}
