package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.DType;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Shards are converted before they are gathered, where nothing reads the whole in their type. */
class ConvertFirstTest {
  private static final CompileOptions OPTIONS =
      CompileOptions.DEFAULT.withRewrites(RewriteOptions.OFF.withLayouts(Mode.ON));

  private static Program program(String lines) {
    var text =
        """
        graph version 1
        group g = [1, 0]

        graph weights(x: f32[6, 8]) {
          r = _c10d_functional::all_gather_into_tensor(x, 2, "g")
          w = _c10d_functional::wait_tensor(r)
          %s
        }
        """
            .formatted(lines.replace("; ", "\n  ").replace("to(", "prims::convert_element_type("));
    return GraphParser.parse(new SourceFile("weights.graph", text));
  }

  private static Plan plan(Program program, CompileOptions options) {
    return Compiler.forTarget(Target.H200_X4).with(options).compile(program);
  }

  private static DType gathered(Plan plan) {
    return plan.forRank(0).graph().ops().stream()
        .filter(op -> op.def().collective().isPresent())
        .findFirst()
        .orElseThrow()
        .operands()
        .getFirst()
        .tensor()
        .dtype();
  }

  private static void check(String lines, DType expected) {
    var program = program(lines);
    var graph = program.graphs().getFirst();
    var plan = plan(program, OPTIONS);
    assertThat(gathered(plan)).as(lines).isEqualTo(expected);
    try (var session = Session.open(plan, new HostBackend())) {
      Programs.fillInputs(session, new Random(19));
      Programs.runsAsReference(session, List.of(graph, graph), plan, lines);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "c = to(w, torch.bfloat16); return c",
        "c = aten::_to_copy(w, dtype=torch.float16); d = aten::neg(c); return d",
        "c = to(w, torch.bfloat16); d = to(w, torch.bfloat16); e = aten::neg(d); return c, e",
        "a, b = aten::split.Tensor(w, 6); t = aten::cat([a, b], 1); c = to(t, torch.bfloat16);"
            + " return c",
        "v = aten::view(w, [2, 48]); s = aten::slice.Tensor(v, 1, 0, 24); c = aten::_to_copy(s,"
            + " dtype=torch.bfloat16); t = aten::slice.Tensor(v, 1, 24, 48); k = aten::clone(t,"
            + " memory_format=torch.contiguous_format); d = to(k, torch.bfloat16); return c, d",
      })
  void lessIsSent(String lines) {
    check(
        lines, lines.contains("float16)") && !lines.contains("bfloat16") ? DType.F16 : DType.BF16);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "c = to(w, torch.bfloat16); return c, w",
        "c = to(w, torch.bfloat16); v = aten::view(w, [96]); return c, v",
        "c = to(w, torch.bfloat16); s = aten::sum(w); return c, s",
        "c = to(w, torch.bfloat16); d = to(w, torch.float16); return c, d",
        "c = to(w, torch.float64); return c",
        "c = to(w, torch.int32); return c",
        "t = aten::cat([w, x], 0); c = to(t, torch.bfloat16); return c",
        "v = aten::view.dtype(w, torch.int32); c = to(v, torch.bfloat16); return c",
      })
  void theTypeStaysWhereItIsNeeded(String lines) {
    check(lines, DType.F32);
  }

  @Test
  void theTypeStaysWhereCopiesDo() {
    var program = program("c = to(w, torch.bfloat16); return c");
    assertThat(gathered(plan(program, OPTIONS.withRewrites(RewriteOptions.OFF))))
        .isEqualTo(DType.F32);
  }
}
