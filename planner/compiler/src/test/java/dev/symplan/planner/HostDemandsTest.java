package dev.symplan.planner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Step;
import java.util.List;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;

/** Graphs that ask for tensors in the host's memory. */
class HostDemandsTest {
  private static final long MIB = 1 << 20;

  /** k waits for its use at the end while two others of its size are there. */
  private static final String WAITING =
      """
      graph version 1
      graph step(x: f32[512, 512], w: f32[512, 512]) {
        k = aten::mm(x, w)
        %s
        a = aten::mm(k, w)
        b = aten::mm(a, w)
        c = aten::mm(b, w)
        d = aten::mm(c, b)
        %s
        y = aten::mul.Tensor(d, %s)
        return y
      }
      """;

  private static final String ON_DEVICE = WAITING.formatted("", "", "k");
  private static final String MOVED =
      WAITING.formatted("h = symplan::offload(k)", "r = symplan::reload(h)", "r");

  private static Plan plan(String text, CompileOptions options) {
    return Compiler.forTarget(Target.H200_X4)
        .with(options)
        .compile(GraphParser.parse(new SourceFile("g.graph", text)));
  }

  private static Plan plan(String text) {
    return plan(text, CompileOptions.DEFAULT);
  }

  private static List<String> ops(Plan plan) {
    var rank = plan.forRank(0);
    return rank.steps().stream()
        .map(step -> step instanceof Step.Compute(int op) ? op : -1)
        .map(op -> rank.graph().ops().get(op).def().name().name())
        .toList();
  }

  @Test
  void whatMovesTakesNoMemoryOfTheDevice() {
    assertThat(plan(ON_DEVICE).total().bytes()).isEqualTo(4 * MIB);
    var moved = plan(MOVED);

    assertThat(moved.total().bytes()).isEqualTo(3 * MIB);
    assertThat(moved.forRank(0).hostBytes()).isEqualTo(MIB);
  }

  /** Compute goes on beside the copies as far as that takes no more memory. */
  @Test
  void computeDoesNotWaitForCopiesAtOnce() {
    assertThat(ops(plan(MOVED)))
        .containsExactly(
            "mm", "offload", "mm", "mm", "await_copy", "mm", "mm", "reload", "await_copy", "mul");
  }

  @Test
  void demandsHoldWithinALimit() {
    var options = CompileOptions.DEFAULT.withMemoryLimit(OptionalLong.of(5 * MIB));
    var plan = plan(MOVED, options);

    assertThat(plan.forRank(0).hostBytes()).isEqualTo(MIB);
    assertThat(plan.total().bytes()).isEqualTo(3 * MIB);
  }

  /** Of an input there, a view moves; both are outputs, too. */
  @Test
  void inputsAndOutputsMayBeThere() {
    var plan =
        plan(
            """
            graph version 1
            graph step(m: f32[4, 512, 512] @host, w: f32[512, 512]) {
              v = aten::select.int(m, 0, 3)
              r = symplan::reload(v)
              y = aten::mm(r, w)
              h: f32[512, 512] = symplan::offload(y)
              return m, v, h
            }
            """);

    var rank = plan.forRank(0);
    assertThat(rank.hostBytes()).isEqualTo(5 * MIB);
    assertThat(plan.total().bytes()).isEqualTo(2 * MIB);
    assertThat(rank.graph().outputValues())
        .allMatch(value -> rank.buffer(value).arena() == ArenaKind.HOST);
    var view = rank.graph().outputValues().get(1);
    assertThat(rank.placement(view).offset()).isEqualTo(3 * MIB);
  }

  @Test
  void optionsDoNotMoveThem() {
    var text = MOVED.replace("return y", "return y, h");
    var options = CompileOptions.DEFAULT.withSpaces(ImmutableMap.of("h", MemorySpace.EXTERNAL));

    assertThatThrownBy(() -> plan(text, options))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("'h' of 'step' is in the host's memory");
    assertThat(
            plan(text, CompileOptions.DEFAULT.withOutputs(MemorySpace.EXTERNAL))
                .forRank(0)
                .hostBytes())
        .isEqualTo(MIB);
  }
}
