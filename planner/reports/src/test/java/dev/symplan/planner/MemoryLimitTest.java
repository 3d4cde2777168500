package dev.symplan.planner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.joint.ProgramGraph;
import dev.symplan.ir.testkit.Golden;
import dev.symplan.ir.testkit.LeastMemory;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.planner.plan.Rewrite.Action;
import dev.symplan.planner.report.PlanExplainer;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.View;
import dev.symplan.planner.report.render.TextRenderer;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Plans that compute tensors again, so that they fit into the memory that the caller allows. */
class MemoryLimitTest {
  /** Forward and backward of two layers: what the first one gives waits for its gradient. */
  private static final String TRAINING =
      """
      graph version 1

      group tp = [0, 1, 2, 3]

      graph training(
        x: f32[1024, 1024] @external, v: f32[1024, 4096] @external, w: f32[4096, 1024] @external
      ) {
        a = aten::mm(x, v)
        g = aten::gelu(a)
        y = aten::mm(g, w)
        r = _c10d_functional::all_reduce(y, "sum", "tp")
        b = aten::mm(r, v)
        k = aten::gelu(b)
        z = aten::mm(k, w)
        wt = aten::t(w)
        dk = aten::mm(z, wt)
        db = aten::mul.Tensor(dk, k)
        vt = aten::t(v)
        dr = aten::mm(db, vt)
        dg = aten::mm(dr, wt)
        da = aten::mul.Tensor(dg, g)
        s = aten::sum(da)
        return s
      }
      """;

  private static Plan plan(String text, OptionalLong limit) {
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withMemoryLimit(limit))
        .compile(GraphParser.parse(new SourceFile("g.graph", text)));
  }

  private static Plan plan(String text) {
    return plan(text, OptionalLong.empty());
  }

  private static OptionalLong least(String text) {
    return LeastMemory.of(bytes -> plan(text, OptionalLong.of(bytes)));
  }

  /** {@return the bytes of both arenas, inputs and outputs of a rank} */
  private static long bytes(Plan plan) {
    var rank = plan.forRank(0);
    return plan.symmetric().bytes()
        + rank.local().bytes()
        + rank.buffers().stream()
            .filter(buffer -> buffer.arena().isExternal())
            .mapToLong(buffer -> buffer.bytes())
            .sum();
  }

  private static List<String> again(Plan plan) {
    return plan.rewrites().stream()
        .filter(rewrite -> rewrite.action() == Action.RECOMPUTED)
        .map(rewrite -> rewrite.members().getFirst().name())
        .toList();
  }

  @Test
  void computesAgainWhatDoesNotFit() {
    var usual = plan(TRAINING);
    assertThat(again(usual)).isEmpty();
    long least = least(TRAINING).orElseThrow();
    assertThat(least).isLessThan(bytes(usual));
    var low = plan(TRAINING, OptionalLong.of(least));
    assertThat(bytes(low)).isLessThanOrEqualTo(least);
    Golden.check(
        "memory-limit.txt",
        TextRenderer.render(PlanReport.of(low, List.of(View.SUMMARY, View.GRAPH)))
            + TextRenderer.row(PlanExplainer.explain(low, again(low).getFirst()).orElseThrow()));
    assertThat(PlanFile.read(new SourceFile("low.json", PlanFile.toJson(low))).rewrites())
        .isEqualTo(low.rewrites());
  }

  @Test
  void plansThatFitStayAsTheyAre() {
    var usual = plan(TRAINING);
    assertThat(PlanFile.toJson(plan(TRAINING, OptionalLong.of(bytes(usual)))))
        .isEqualTo(PlanFile.toJson(usual));
  }

  /** A view has the sizes of an input, so that is a tensor on the device. */
  @Test
  void whatViewsTakeSizesFromStays() {
    var text =
        """
        graph version 1

        graph sizes(x: f32[1024, 1024] @external, w: f32[1024, 1024], s: f32[1, 1024]) {
          a = aten::mm(x, w)
          b = aten::mm(a, x)
          e = aten::expand_as(s, w)
          c = aten::mm(b, e)
          d = aten::mm(c, x)
          return d
        }
        """;
    var low = plan(text, least(text));
    assertThat(low.rewrites())
        .flatExtracting(Rewrite::members)
        .extracting(Rewrite.Member::name)
        .doesNotContain("w");
  }

  @Test
  void saysWhatIsTheLeast() {
    assertThatThrownBy(() -> plan(TRAINING, OptionalLong.of(1 << 20)))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("of a rank's memory, and the limit is 1.0 MiB")
        .hasMessageContaining("allow at least %s bytes".formatted(least(TRAINING).orElseThrow()))
        .hasMessageContaining("--donate");
  }

  /** Forward and backward with sharded weights; each whole waits for its gradient. */
  private static final String SHARDED =
      """
      graph version 1

      group fsdp = [0, 1, 2, 3]

      graph step(
        x: f32[64, 1024] @external, u: f32[256, 1024] @symm, v: f32[256, 1024] @symm,
        w: f32[256, 1024] @symm
      ) {
        a = _c10d_functional::all_gather_into_tensor(u, 4, "fsdp")
        first = _c10d_functional::wait_tensor(a)
        h = aten::mm(x, first)
        b = _c10d_functional::all_gather_into_tensor(v, 4, "fsdp")
        second = _c10d_functional::wait_tensor(b)
        k = aten::mm(h, second)
        c = _c10d_functional::all_gather_into_tensor(w, 4, "fsdp")
        third = _c10d_functional::wait_tensor(c)
        m = aten::mm(k, third)
        r = aten::t(third)
        dk = aten::mm(m, r)
        s = aten::t(second)
        dh = aten::mm(dk, s)
        t = aten::t(first)
        dx = aten::mm(dh, t)
        return dx
      }
      """;

  @Test
  void gathersAgainWhatWaits() {
    long least = least(SHARDED).orElseThrow();
    assertThat(least).isLessThan(bytes(plan(SHARDED)));
    var low = plan(SHARDED, OptionalLong.of(least));
    assertThat(bytes(low)).isLessThanOrEqualTo(least);
    assertThat(again(low)).containsExactlyInAnyOrder("a", "b");
    // The first gathers of a and b are one collective.
    assertThat(low.forRank(0).collectives()).hasSize(4);
    assertThat(low.rewrites())
        .filteredOn(rewrite -> rewrite.action() == Action.RECOMPUTED)
        .extracting(rewrite -> rewrite.detail())
        .containsExactlyInAnyOrder(
            "1 op, with 1 gather, before dh", "1 op, with 1 gather, before dx");
  }

  /** Ranks that run other ops would each decide by itself. */
  @Test
  void onlyRanksThatRunTheSameGatherAgain() {
    var graph = SHARDED.indexOf("graph step");
    var own = SHARDED.substring(graph).replace(") {", ") ranks [%s] {");
    var both =
        SHARDED.substring(0, graph)
            + own.formatted("0, 1")
            + own.formatted("2, 3").replace("return dx", "n = aten::neg(dx)\n  return n");
    assertThat(again(plan(both, least(both)))).isEmpty();
  }

  /** Between the two uses of k stands a peak; with k as a given op, only some can run again. */
  private static Optional<String> recomputed(String op) {
    var text =
        """
        graph version 1

        group tp = [0, 1, 2, 3]

        graph g(x: f32[1024, 1024] @external, c: f32[1024, 1024] @donated) {
          k = %s
          a = aten::mm(k, x)
          b = aten::mm(x, a)
          d = aten::mm(a, b)
          n = aten::sum(d)
          z = aten::mul.Tensor(k, n)
          t = aten::sum(z)
          return t
        }
        """
            .formatted(op);
    return again(plan(text, least(text))).stream().findFirst();
  }

  @Test
  void onlyOpsThatGiveTheSameRunAgain() {
    assertThat(recomputed("aten::relu(x)")).contains("k");
    assertThat(recomputed("aten::dropout(x, 0.5, True)")).isEmpty();
    assertThat(recomputed("aten::rand([1024, 1024])")).isEmpty();
    assertThat(recomputed("_c10d_functional::all_reduce(x, \"sum\", \"tp\")")).isEmpty();
    // Its operand is overwritten before k would be computed again.
    assertThat(recomputed("aten::relu(c)\n  e = aten::copy_(c, x)")).isEmpty();
  }

  /** A training step with its update: v and w are read twice, and w changes in place. */
  private static final String UPDATED =
      """
      graph version 1

      graph step(x: f32[64, 1024], v: f32[1024, 1024], w: f32[1024, 1024]%s) {
        h = aten::mm(x, v)
        k = aten::mm(h, w)
        r = aten::t(w)
        dh = aten::mm(k, r)
        s = aten::t(v)
        dx = aten::mm(dh, s)
        n = aten::sum(dx)
        u = aten::mul_.Tensor(w, n)
        return n
      }
      """;

  @Test
  void inputsLiveInTheHostsMemory() {
    var text = UPDATED.formatted("");
    long weight = 1024 * 1024 * 4;
    long row = 64 * 1024 * 4;
    long least = least(text).orElseThrow();
    // A product has one weight, and two tensors of rows.
    assertThat(least).isEqualTo(weight + 2 * row);
    var low = plan(text, OptionalLong.of(least));
    assertThat(low.rewrites())
        .extracting(
            one -> one.members().getFirst().name() + " " + one.detail().replaceAll(",.*", ""))
        .contains("w lives in the host's memory", "v lives in the host's memory");
    assertThat(low.forRank(0).graph().ops())
        .filteredOn(op -> op.def().name().name().equals("offload_"))
        .extracting(op -> op.operands().getLast().name())
        .containsExactly("w");
  }

  /** It is where the caller says. */
  @ParameterizedTest
  @ValueSource(strings = {"@external", "@symm"})
  void inputsStayWhereTheCallerWantsThem(String place) {
    var text = UPDATED.formatted(" " + place);
    long weight = 1024 * 1024 * 4;
    assertThat(least(text).orElseThrow()).isGreaterThan(2 * weight);
    assertThatThrownBy(() -> plan(text, OptionalLong.of(weight)))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("inputs that the caller places are 4.0 MiB of it");
  }

  /** A copy would have to be larger, or to leave something out. */
  @ParameterizedTest
  @ValueSource(strings = {"[0, 1]", "[2048, 1]"})
  void inputsWhoseElementsAreNotSideBySideStay(String strides) {
    var text = UPDATED.formatted("").replace("v: f32[1024, 1024]", "v: f32[1024, 1024]" + strides);
    assertThat(plan(text, least(text)).rewrites())
        .extracting(one -> one.members().getFirst().name())
        .isNotEmpty()
        .doesNotContain("v");
  }

  /** The decoding graph can run by itself, again and again, so it brings in what it reads. */
  @Test
  void graphsThatRunAloneBringInTheirOwn() {
    var text =
        """
        graph version 1

        graph both(x: f32[64, 1024], v: f32[1024, 1024], y: f32[64, 1024], w: f32[1024, 1024]) {
          h = aten::mm(x, v)
          s = aten::sum(h)
          symplan::border("decode", 2, 1)
          k = aten::mm(y, v)
          z = aten::mm(k, w)
          t = aten::sum(z)
          return s, t
        }
        """;
    var low = plan(text, least(text));
    assertThat(low.forRank(0).hostBytes()).isPositive();
    var graph = low.forRank(0).graph();
    int border = low.forRank(0).borders().getFirst();
    assertThat(ProgramGraph.isIndependent(graph, border)).isTrue();
    assertThat(graph.ops().subList(border, graph.ops().size()))
        .anyMatch(op -> op.label().startsWith("v_back"));
  }

  /** Nothing runs in it, so nothing can give up memory. */
  @Test
  void aGraphWithoutOpsIsRefusedBelowItsInputs() {
    var none =
        """
        graph version 1
        graph none(x: f32[1024]) {
          return x
        }
        """;
    assertThatThrownBy(() -> plan(none, OptionalLong.of(1024)))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("allow at least 4096 bytes");
  }

  /** What is in the host's memory is only moved, and seen otherwise. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          x: f32[8, 8] @host | y = aten::relu(x)                    | 'x' is in the host's memory
          x: f32[8, 8] @host | y = symplan::offload(x)              | self is in the host's memory already
          x: f32[8, 8]       | y = symplan::reload(x)               | self is not in the host's memory
          x: f32[8, 8]       | y: f32[8, 8] @host = aten::relu(x)   | does not give it there
          x: f32[8, 8]       | y: f32[8, 8] @symm = symplan::offload(x) | gives 'y' in the host's memory
          x: f32[8, 8]       | v = aten::select.int(x, 1, 0); y = symplan::offload(v) | aten::clone it before
          x: f32[8, 8] @host | v = aten::select.int(x, 1, 0); y = symplan::reload(v)  | symplan::reload all of it
          x: f32[8, 8]       | y = symplan::offload(x); symplan::await_copy(x, y) | is for plans, not for graphs
          x: f32[8, 8] @host, z: f32[8, 8] | y = symplan::offload_(z, x) | is for plans, not for graphs
          x: f32[8, 8] @host | y = symplan::fetch(x)                | is for plans, not for graphs
          """)
  void whatMovesToTheHostIsChecked(String input, String ops, String message) {
    var text =
        "graph version 1\ngraph g(%s) {\n  %s\n  return y\n}\n"
            .formatted(input, ops.replace("; ", "\n  "));
    assertThatThrownBy(() -> plan(text))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining(message);
  }

  @Test
  void limitsAreNotNegative() {
    assertThatThrownBy(() -> CompileOptions.DEFAULT.withMemoryLimit(OptionalLong.of(-1)))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
