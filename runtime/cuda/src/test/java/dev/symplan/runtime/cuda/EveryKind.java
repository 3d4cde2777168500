package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** A collective of each kind, for 2 to 4 ranks, with inputs {@code x} and {@code y}. */
final class EveryKind {
  private static final int ROWS = 24;

  private EveryKind() {}

  /** {@return the plan for a number of ranks, with these variants} */
  static Plan plan(int ranks, ImmutableMap<String, Variant> variants) {
    var splits = list(IntStream.range(0, ranks).map(_ -> ROWS / ranks));
    var text =
        """
        graph version 1
        group all = %1$s
        graph every_kind(x: f32[%2$s, 32], y: f32[16, 8]) {
          r0 = _c10d_functional::all_reduce(x, "sum", "all")
          sum = _c10d_functional::wait_tensor(r0)
          m0, m1 = _c10d_functional::all_reduce_coalesced([x, y], "max", "all")
          max0 = _c10d_functional::wait_tensor(m0)
          max1 = _c10d_functional::wait_tensor(m1)
          g0 = _c10d_functional::all_gather_into_tensor(y, %3$s, "all")
          rows = _c10d_functional::wait_tensor(g0)
          s0 = _c10d_functional::reduce_scatter_tensor(x, "avg", %3$s, "all")
          share = _c10d_functional::wait_tensor(s0)
          t0 = _c10d_functional::all_to_all_single(x, %4$s, %4$s, "all")
          mixed = _c10d_functional::wait_tensor(t0)
          b0 = _c10d_functional::broadcast(y, 1, "all")
          copy = _c10d_functional::wait_tensor(b0)
          p0 = symplan::collective_permute(y, [[0, 1]], "all")
          shifted = _c10d_functional::wait_tensor(p0)
          return sum, max0, max1, rows, share, mixed, copy, shifted
        }
        """
            .formatted(list(IntStream.range(0, ranks)), ROWS, ranks, splits);
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withVariants(variants))
        .compile(GraphParser.parse(new SourceFile("every_kind.graph", text)));
  }

  private static String list(IntStream numbers) {
    return numbers.mapToObj(Integer::toString).collect(Collectors.joining(", ", "[", "]"));
  }
}
