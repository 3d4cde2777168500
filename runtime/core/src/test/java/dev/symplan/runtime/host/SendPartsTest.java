package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.runtime.Session;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Copies of parts stay only where a collective cannot take the part from where it lies. */
class SendPartsTest {
  private static final CompileOptions OPTIONS =
      CompileOptions.DEFAULT.withRewrites(RewriteOptions.OFF.withLayouts(Mode.ON));

  /** Lines that begin with a copy of two columns, and those of a permuted tensor. */
  private static void check(String lines, CompileOptions options, boolean copies) {
    var text =
        """
        graph version 1
        group g = [1, 0]

        graph parts(x: f32[6, 4, 8]) {
          y = aten::neg(x)
          s = aten::slice.Tensor(y, 2, 4, 8)
          t = aten::permute(y, [1, 0, 2])
          %s
        }
        """
            .formatted(
                lines
                    .replace("; ", "\n  ")
                    .replace("copy(s)", "aten::clone(s, memory_format=torch.contiguous_format)")
                    .replace("copy(t)", "aten::clone(t, memory_format=torch.contiguous_format)")
                    .replace("c10d::", "_c10d_functional::")
                    .replace("wait(", "_c10d_functional::wait_tensor(")
                    .replace('\'', '"'));
    var program = GraphParser.parse(new SourceFile("parts.graph", text));
    var graph = program.graphs().getFirst();
    var plan = Compiler.forTarget(Target.H200_X4).with(options).compile(program);
    assertThat(
            plan.forRank(0).graph().ops().stream()
                .anyMatch(op -> List.of("clone", "stage").contains(op.def().name().name())))
        .as(lines)
        .isEqualTo(copies);
    try (var session = Session.open(plan, new HostBackend())) {
      Programs.fillInputs(session, new Random(19));
      Programs.runsAsReference(session, List.of(graph, graph), plan, lines);
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "c = copy(s); r = c10d::all_reduce(c, 'sum', 'g'); w = wait(r); return w",
        "c = copy(s); v = aten::view(c, [24, 4]); w = symplan::all_gather_dim(v, 0, 2, 'g');"
            + " return w",
        "c = copy(s); r = c10d::reduce_scatter_tensor(c, 'sum', 2, 'g'); w = wait(r); return w",
        "c = copy(s); w = symplan::reduce_scatter_dim(c, 'sum', 1, 2, 'g'); return w",
        "c = copy(s); w = c10d::broadcast(c, 1, 'g'); return w, y",
        "c = copy(s); w = symplan::collective_permute(c, [[0, 1]], 'g'); return w",
        "c = copy(t); w = c10d::all_to_all_single(c, [2, 2], [2, 2], 'g'); return w",
        "c = copy(t); w = symplan::all_to_all_dim(c, 0, 1, 2, 'g'); return w",
        // Something reads the whole later, so that it has memory anyway.
        "c = copy(s); n = aten::exp(x); w = c10d::all_reduce(c, 'max', 'g'); m ="
            + " aten::add.Tensor(n, y); return w, m",
      })
  void areLeftOut(String lines) {
    check(lines, OPTIONS, false);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        // The copy, or part of it, is read again.
        "c = copy(s); r = c10d::all_reduce(c, 'sum', 'g'); w = wait(r); return w, c",
        "c = copy(s); w = c10d::all_reduce(c, 'sum', 'g'); n = aten::exp(c); return w, n",
        "c = copy(s); v = aten::slice.Tensor(c, 0, 0, 3); w = c10d::all_reduce(v, 'sum', 'g');"
            + " return w",
        // The whole would take memory for longer.
        "c = copy(s); n = aten::exp(x); w = c10d::all_reduce(c, 'max', 'g');" + " return n, w",
        // The result would lie in another order.
        "c = copy(t); w = c10d::all_reduce(c, 'sum', 'g'); return w",
      })
  void stay(String lines) {
    check(lines, OPTIONS, true);
  }

  @ParameterizedTest
  @ValueSource(strings = {"NCCL", "NCCL_SYMM"})
  void stayForVariantsThatCannotReadRows(Variant variant) {
    check(
        "c = copy(s); w = c10d::all_reduce(c, 'sum', 'g'); return w",
        OPTIONS.withVariants(ImmutableMap.of("all_reduce", variant)),
        true);
  }
}
