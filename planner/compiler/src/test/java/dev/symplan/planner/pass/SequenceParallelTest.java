package dev.symplan.planner.pass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.Notes;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.ir.text.GraphPrinter;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.planner.plan.Rewrite.Action;
import dev.symplan.planner.plan.Rewrite.Reason;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Behind which all_reduces ops run on shares of the rows, and what these ops are. */
class SequenceParallelTest {
  private static final ImmutableSet<String> REPLICATED = ImmutableSet.of("x", "w");

  private static CompileOptions on(ImmutableSet<String> replicated) {
    return CompileOptions.DEFAULT
        .withRewrites(RewriteOptions.OFF.withSequenceParallel(Mode.ON))
        .withReplicated(replicated);
  }

  private static Plan plan(CompileOptions options, String text) {
    return Compiler.forTarget(Target.H200_X4)
        .with(options)
        .compile(GraphParser.parse(new SourceFile("rows.graph", text)));
  }

  /** Two ranks reduce {@code p}; other ops are behind it. */
  private static String behind(String sizes, String ops) {
    return """
    graph version 1
    group tp = [0, 1]
    graph g(x: f32[%1$s], w: f32[4], p: f32[%1$s]) {
      r = _c10d_functional::all_reduce(p, "sum", "tp")
      s = _c10d_functional::wait_tensor(r)
    %2$s}
    """
        .formatted(sizes, ops.indent(2));
  }

  /** Two blocks of a transformer, but for what is in them. */
  private static String blocks(String group, int tokens) {
    return """
    graph version 1
    group tp = %1$s
    graph g(x: bf16[%2$s, 4096], w: bf16[4096], a: bf16[4096, 4096], b: bf16[4096, 4096]) {
      m = aten::rms_norm(x, [4096], w)
      p = aten::mm(m, a)
      r = _c10d_functional::all_reduce(p, "sum", "tp")
      s = _c10d_functional::wait_tensor(r)
      h = aten::add.Tensor(x, s)
      n = aten::rms_norm(h, [4096], w)
      q = aten::mm(n, b)
      t = _c10d_functional::all_reduce(q, "sum", "tp")
      u = _c10d_functional::wait_tensor(t)
      i = aten::add.Tensor(h, u)
      o = aten::rms_norm(i, [4096], w)
      return o
    }
    """
        .formatted(group, tokens);
  }

  private static ImmutableList<String> ops(Plan plan) {
    var graph = plan.rankPlans().getFirst().graph();
    var program =
        new Program(plan.groups(), plan.declarations(), ImmutableList.of(graph), Notes.NONE);
    return GraphPrinter.withTypes(program)
        .lines()
        .filter(line -> line.contains(" = ") && !line.startsWith("group"))
        .map(line -> line.strip().replace("_c10d_functional::", ""))
        // Without strides.
        .map(line -> line.replaceFirst("(: \\w+\\[[^]]*])\\[[^]]*]", "$1"))
        .collect(ImmutableList.toImmutableList());
  }

  private static Rewrite only(Plan plan) {
    assertThat(plan.rewrites()).hasSize(1);
    return plan.rewrites().getFirst();
  }

  @Test
  void residualsStayShares() {
    var plan = plan(on(REPLICATED), blocks("[0, 1]", 8));
    assertThat(plan.forRank(0).collectives())
        .extracting(CollectivePlan::kind)
        .extracting(kind -> kind.text())
        .containsExactly("reduce_scatter", "all_gather", "reduce_scatter", "all_gather");
    assertThat(String.join("\n", ops(plan)))
        .isEqualTo(
            """
            m: bf16[8, 4096] = aten::rms_norm(x, [4096], w)
            p: bf16[8, 4096] = aten::mm(m, a)
            x_shares: bf16[2, 4, 4096] = aten::view(x, [2, 4, 4096])
            group_rank: i64[] = symplan::rank_number([0, 1], dtype=torch.int64)
            group_rank_1: i64[1] = aten::view(group_rank, [1])
            x_share: bf16[1, 4, 4096] = aten::index_select(x_shares, 0, group_rank_1)
            x_share_1: bf16[4, 4096] = aten::view(x_share, [4, 4096])
            r_scattered: bf16[4, 4096] = reduce_scatter_tensor(p, "sum", 2, "tp")
            r_share: bf16[4, 4096] = wait_tensor(r_scattered)
            h_share: bf16[4, 4096] = aten::add.Tensor(x_share_1, r_share)
            n_share: bf16[4, 4096] = aten::rms_norm(h_share, [4096], w)
            n_gathered: bf16[8, 4096] = all_gather_into_tensor(n_share, 2, "tp")
            n: bf16[8, 4096] = wait_tensor(n_gathered)
            q: bf16[8, 4096] = aten::mm(n, b)
            t_scattered: bf16[4, 4096] = reduce_scatter_tensor(q, "sum", 2, "tp")
            t_share: bf16[4, 4096] = wait_tensor(t_scattered)
            i_share: bf16[4, 4096] = aten::add.Tensor(h_share, t_share)
            o_share: bf16[4, 4096] = aten::rms_norm(i_share, [4096], w)
            o_gathered: bf16[8, 4096] = all_gather_into_tensor(o_share, 2, "tp")
            o: bf16[8, 4096] = wait_tensor(o_gathered)\
            """);
    assertThat(plan.replicated()).containsExactlyElementsOf(REPLICATED);
    assertThat(plan.rewrites())
        .allMatch(rewrite -> rewrite.action() == Action.SEQUENCE_PARALLEL && rewrite.pieces() == 2)
        .extracting(Rewrite::detail)
        .containsOnly("4 rows on each rank");
  }

  /** The add behind the reduce_scatter runs in its kernel. */
  @Test
  void reduceScattersHaveEpilogues() {
    var collectives = plan(on(REPLICATED), blocks("[0, 1]", 2048)).forRank(0).collectives();
    assertThat(collectives)
        .filteredOn(collective -> collective.kind().text().equals("reduce_scatter"))
        .hasSize(2)
        .allMatch(CollectivePlan::hasEpilogue)
        .allMatch(collective -> collective.variant() == Variant.ONE_SHOT);
  }

  @Test
  void timesDecide() {
    var auto = CompileOptions.DEFAULT.withReplicated(REPLICATED);
    // On two ranks, an all_reduce with the ops in its kernel takes no longer.
    assertThat(plan(auto, blocks("[0, 1]", 2048)).rewrites())
        .filteredOn(rewrite -> rewrite.action() == Action.REPLICATED)
        .extracting(Rewrite::reason)
        .containsExactly(Reason.NO_GAIN, Reason.NO_GAIN);
    var eight = blocks("[0, 1, 2, 3, 4, 5, 6, 7]", 8192);
    var plan =
        Compiler.forTarget(Target.H200_X8)
            .with(auto)
            .compile(GraphParser.parse(new SourceFile("rows.graph", eight)));
    assertThat(plan.rewrites())
        .filteredOn(rewrite -> rewrite.action() == Action.SEQUENCE_PARALLEL)
        .hasSize(2)
        .allMatch(rewrite -> rewrite.reason() == Reason.FASTER)
        .allMatch(rewrite -> rewrite.afterMicros() < rewrite.beforeMicros());
    // Nobody vouches for the inputs.
    assertThat(plan(CompileOptions.DEFAULT, blocks("[0, 1, 2, 3]", 8192)).rewrites())
        .noneMatch(rewrite -> rewrite.action() == Action.REPLICATED);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        // An input that may be another one on each rank.
        "8, 4 | y | aten::add.Tensor(s, p) | | MAY_DIFFER | p may differ from rank to rank",
        "8, 4 | y | aten::add.Tensor(s, v) | v = aten::neg(p) | MAY_DIFFER |"
            + " v may differ from rank to rank",
        "8, 4 | y | aten::add.Tensor(s, v) | v = aten::rand([8, 4]) | MAY_DIFFER |"
            + " v may differ from rank to rank",
        "8, 4 | y | aten::add.Tensor(s, v) | v = aten::dropout(x, 0.5, True) | MAY_DIFFER |"
            + " v may differ from rank to rank",
        // What an op may write over.
        "8, 4 | y | aten::add_.Tensor(s, x) | | NEEDED_WHOLE | an op may write over what it gives",
        "8, 4 | y | aten::add.Tensor(s, x) | d = aten::add_.Tensor(x, w) | MAY_DIFFER |"
            + " x may differ from rank to rank",
        "8, 4 | y | aten::neg(c) | c = prims::convert_element_type(s, torch.bfloat16)"
            + " ; k = aten::slice.Tensor(c, 0, 0, 2) ; d = aten::add_.Scalar(k, 1) |"
            + " NEEDED_WHOLE | an op may write over what it gives",
        "8, 4 | y | mylib::f(s) | | NEEDED_WHOLE | an op may write over what it gives",
        // Rows are read whole, or twice as many bytes.
        "8, 4 | y | aten::flip(s, [0]) | | NEEDED_WHOLE | more than it reduces is read whole",
        "8, 4 | y | aten::sum.dim_IntList(s, [0], True) | | NEEDED_WHOLE |"
            + " more than it reduces is read whole",
        "8, 4 | y | aten::add.Tensor(n, s) | n = aten::neg(s) ; k = aten::flip(n, [0]) |"
            + " NEEDED_WHOLE | more than it reduces is read whole",
        "7, 4 | y | aten::neg(s) | | UNEVEN | f32[7, 4] does not divide into rows for 2 ranks",
        "8 | y | aten::neg(s) | | UNEVEN | f32[8] does not divide into rows for 2 ranks",
      })
  void othersStay(
      String sizes, String name, String last, String ops, Reason reason, String detail) {
    var body = new StringBuilder();
    var outputs = new StringBuilder(name);
    if (ops != null) {
      for (var op : ops.split(";")) {
        body.append(op.strip()).append('\n');
        outputs.append(", ").append(op.strip().split(" ")[0]);
      }
    }
    // Ops without a rule give what is written.
    body.append(name).append(last.contains("mylib") ? ": f32[8, 4]" : "");
    body.append(" = ").append(last).append('\n');
    body.append("return ").append(outputs).append('\n');
    var text = behind(sizes, body.toString());
    if (last.startsWith("mylib")) {
      text = text.replace("group tp", "op mylib::f(Tensor(a!) self) -> Tensor\ngroup tp");
    }
    var plan = plan(on(REPLICATED), text);
    assertThat(only(plan).action()).isEqualTo(Action.REPLICATED);
    assertThat(only(plan).reason()).isEqualTo(reason);
    assertThat(only(plan).detail()).isEqualTo(detail);
    assertThat(plan.forRank(0).collectives().getFirst().kind().text()).isEqualTo("all_reduce");
    assertThat(plan.replicated()).isEmpty();
  }

  @Test
  void viewsAndLeadingDimensionsStay() {
    var plan =
        plan(
            on(REPLICATED),
            behind(
                "1, 8, 4",
                """
                h = aten::add.Tensor(s, x)
                v = aten::view(h, [8, 4])
                n = aten::native_layer_norm(v, [4], w, w, 1e-5)
                y = aten::mul.Tensor(h, w)
                return y
                """
                    .replace("n = ", "n, mean, rstd = ")));
    assertThat(ops(plan))
        .containsSubsequence(
            "p_rows: f32[8, 4] = aten::view(p, [8, 4])",
            "h_share: f32[1, 4, 4] = aten::add.Tensor(r_share_view, x_share_1)",
            "y_share: f32[1, 4, 4] = aten::mul.Tensor(h_share, w)",
            "y: f32[1, 8, 4] = aten::view(y_rows, [1, 8, 4])");
  }

  /** Ranks are counted by their positions in their parts of the group. */
  @Test
  void ranksOfPartsHaveTheirOwnShares() {
    var plan = plan(on(REPLICATED), blocks("[0, 2], [3, 1]", 8));
    assertThat(ops(plan))
        .contains("group_rank: i64[] = symplan::rank_number([0, 1, 1, 0], dtype=torch.int64)");
  }

  /** Each rank would gather what the others compute. */
  @Test
  void differentGraphsStay() {
    var one = behind("8, 4", "h = aten::add.Tensor(s, x)\nreturn h\n");
    var graph = one.substring(one.indexOf("graph g("));
    var text =
        one.replace(") {", ") ranks [0] {")
            + graph.replace(") {", ") ranks [1] {").replace("aten::add", "aten::sub");
    var plan = plan(on(REPLICATED), text);
    assertThat(only(plan).reason()).isEqualTo(Reason.MAY_DIFFER);
    assertThat(only(plan).detail()).isEqualTo("the ranks run different graphs");
  }

  @Test
  void namedVariantsStay() {
    var plan =
        plan(
            on(REPLICATED).withVariants(ImmutableMap.of("r", Variant.TWO_SHOT)),
            behind("8, 4", "y = aten::neg(s)\nreturn y\n"));
    assertThat(only(plan).reason()).isEqualTo(Reason.FORCED_VARIANT);
  }

  @Test
  void planFilesNameTheInputsThatMustBeTheSame() {
    var json = PlanFile.toJson(plan(on(REPLICATED), blocks("[0, 1]", 8))).replaceAll("\\s+", " ");
    assertThat(json).contains("\"replicated\" : [ \"x\", \"w\" ]");
    assertThat(PlanFile.read(new SourceFile("own.plan", json)).replicated()).isEqualTo(REPLICATED);
    var other =
        json.replace("\"replicated\" : [ \"x\", \"w\" ]", "\"replicated\" : [ \"x\", \"z\" ]");
    assertThatThrownBy(() -> PlanFile.read(new SourceFile("own.plan", other)))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("no graph has an input 'z'");
  }

  @Test
  void onlyInputsCanBeNamed() {
    var text = behind("8, 4", "y = aten::neg(s)\nreturn y\n");
    assertThatThrownBy(() -> plan(on(ImmutableSet.of("s")), text))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("'s' is not an input of 'g'")
        .hasMessageContaining("--replicated takes names of inputs");
  }
}
