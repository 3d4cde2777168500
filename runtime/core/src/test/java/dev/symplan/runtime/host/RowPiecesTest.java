package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Results of collectives are written where a later op joins them with others, row by row. */
class RowPiecesTest {
  private static final CompileOptions OPTIONS =
      CompileOptions.DEFAULT.withRewrites(RewriteOptions.OFF.withLayouts(Mode.ON));

  /** Plans some lines, and compares a run with the evaluation without a plan. */
  private static Plan plan(String lines, CompileOptions options) {
    var text =
        """
        graph version 1
        group g = [1, 0]

        graph pieces(x: f32[6, 4, 32], o: f32[12, 4, 16], w: f32[6, 4, 16]) {
          y = aten::neg(x)
          %s
        }
        """
            .formatted(
                lines
                    .replace("; ", "\n  ")
                    .replace("c10d::", "_c10d_functional::")
                    .replace("wait(", "_c10d_functional::wait_tensor(")
                    .replace("all_gather(", "all_gather_into_tensor(")
                    .replace('\'', '"'));
    var program = GraphParser.parse(new SourceFile("pieces.graph", text));
    var graph = program.graphs().getFirst();
    var plan = Compiler.forTarget(Target.H200_X4).with(options).compile(program);
    try (var session = Session.open(plan, new HostBackend())) {
      for (int run = 0; run < 2; run++) {
        Programs.fillInputs(session, new Random(19));
        Programs.runsAsReference(session, List.of(graph, graph), plan, lines);
      }
    }
    return plan;
  }

  /** The names of all tensors in rows. */
  private static Set<String> inRows(Plan plan) {
    return plan.forRank(0).graph().values().stream()
        .filter(Value::isTensor)
        .filter(value -> plan.forRank(0).placement(value).isInRows())
        .map(Value::name)
        .collect(Collectors.toSet());
  }

  private static CompileOptions with(String kind, Variant variant) {
    return OPTIONS.withVariants(ImmutableMap.of(kind, variant));
  }

  @ParameterizedTest
  @CsvSource({"ONE_SHOT", "PUSH", "COPY_ENGINE"})
  void whatIsGathered(Variant variant) {
    for (var lines :
        List.of(
            "r = c10d::all_gather(y, 2, 'g'); g = wait(r); c = aten::cat([g, o], 2); return c",
            "r = c10d::all_gather(y, 2, 'g'); g = wait(r); c = aten::cat([o, g, o], -1); d ="
                + " aten::sum.dim_IntList(c, [0], False); return d",
            "r = c10d::all_gather(y, 2, 'g'); g = wait(r); p = c10d::all_gather(x, 2, 'g'); q ="
                + " wait(p); g2 = aten::view(g, [12, 128]); q2 = aten::view(q, [12, 128]); c ="
                + " aten::stack([g2, q2], 1); return c",
            "r = symplan::all_gather_dim(y, 2, 2, 'g'); v = aten::view(r, [24, 64]); p ="
                + " aten::view(o, [24, 32]); c = aten::cat([p, v], 1); return c")) {
      assertThat(inRows(plan(lines, with("all_gather", variant)))).as(lines).contains("r");
    }
  }

  @ParameterizedTest
  @CsvSource({"ONE_SHOT", "TWO_SHOT", "ONE_SHOT_PUSH", "TWO_SHOT_PUSH"})
  void whatIsReduced(Variant variant) {
    for (var lines :
        List.of(
            "r = c10d::all_reduce(y, 'sum', 'g'); g = wait(r); c = aten::cat([g, w], 2); return c",
            "s = aten::slice.Tensor(y, 1, 1, 3); p = aten::clone(s,"
                + " memory_format=torch.contiguous_format); r = c10d::all_reduce(p, 'max', 'g'); g"
                + " = wait(r); c = aten::cat([x, g], 1); return c, y")) {
      assertThat(inRows(plan(lines, with("all_reduce", variant)))).as(lines).contains("r", "g");
    }
    var inPlace =
        "n = aten::exp(x); r = c10d::all_reduce(n, 'sum', 'g'); c = aten::cat([r, w], 2); return c";
    var rows = inRows(plan(inPlace, with("all_reduce", variant)));
    assertThat(rows.contains("n")).isEqualTo(variant != Variant.ONE_SHOT);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "r = c10d::reduce_scatter_tensor(o, 'sum', 2, 'g'); c = aten::cat([r, x], -1); return c",
        "r = symplan::reduce_scatter_dim(o, 'sum', 1, 2, 'g'); p = aten::slice.Tensor(o, 1, 2, 4);"
            + " c = aten::cat([r, p], 2); return c",
        "r = c10d::all_to_all_single(y, [3, 3], [3, 3], 'g'); c = aten::cat([r, w], 2); return c",
        "r = symplan::all_to_all_dim(y, 1, 0, 2, 'g'); p = aten::slice.Tensor(o, 1, 2, 4); c ="
            + " aten::cat([r, p], 2); return c",
        "r = c10d::broadcast(y, 1, 'g'); g = wait(r); c = aten::cat([w, g], 2); return c",
        "r = symplan::collective_permute(y, [[0, 1], [1, 0]], 'g'); c = aten::cat([w, r], 2);"
            + " return c",
      })
  void othersToo(String lines) {
    assertThat(inRows(plan(lines, OPTIONS))).contains("r");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        // Something else reads the piece, or other rows of it.
        "r = c10d::all_gather(y, 2, 'g'); c = aten::cat([r, o], 2); return c, r",
        "r = c10d::all_gather(y, 2, 'g'); c = aten::cat([r, o], 2); d = aten::exp(r); return c, d",
        "r = c10d::all_gather(y, 2, 'g'); c = aten::cat([r, r], 2); return c",
        "r = c10d::all_gather(y, 2, 'g'); s = aten::slice.Tensor(r, 0, 0, 6); c = aten::cat([s,"
            + " w], 2); return c",
        "r = c10d::all_gather(y, 2, 'g'); v = aten::view(r, [48, 32]); p = aten::reshape(v, [12, 4,"
            + " 32]); s = aten::transpose.int(p, 0, 1); q = aten::transpose.int(o, 0, 1); c ="
            + " aten::cat([s, q], 2); return c",
        // Rows do not begin at multiples of 16 bytes.
        "r = c10d::all_gather(y, 2, 'g'); p = aten::slice.Tensor(o, 2, 0, 3); c = aten::cat([r, p],"
            + " 2); return c",
        // Some ranks get nothing, which is filled with zeros.
        "r = symplan::collective_permute(y, [[0, 1]], 'g'); c = aten::cat([w, r], 2); return c",
      })
  void piecesThatAreCopied(String lines) {
    assertThat(inRows(plan(lines, OPTIONS))).isEmpty();
  }

  @ParameterizedTest
  @CsvSource({"NCCL", "NCCL_SYMM"})
  void libraryWritesNoRows(Variant variant) {
    var lines = "r = c10d::all_gather(y, 2, 'g'); c = aten::cat([r, o], 2); return c";
    assertThat(inRows(plan(lines, with("all_gather", variant)))).isEmpty();
  }

  @Test
  void stayApartWithoutLayouts() {
    var lines = "r = c10d::all_gather(y, 2, 'g'); c = aten::cat([r, o], 2); return c";
    assertThat(inRows(plan(lines, CompileOptions.DEFAULT))).contains("r");
    assertThat(inRows(plan(lines, OPTIONS.withRewrites(RewriteOptions.OFF)))).isEmpty();
  }
}
