package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.codegen.Lowering;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.testkit.LeastMemory;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.host.HostBackend;
import java.time.Duration;
import java.util.OptionalLong;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A training step in the least memory, in which tensors are computed again and others wait in
 * pinned memory, gives what the host backend gives for the plan that keeps all of them.
 */
@Tag("gpu")
class LeastMemoryOnGpuTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(10);
  private static final int RUNS = 20;

  /** {@return a step of a gated MLP of some layers, which a norm precedes, and its gradients} */
  private static Program step(int layers, String dtype) {
    var inputs = new StringBuilder("x0: %s[96, 64]".formatted(dtype));
    var forward = new StringBuilder();
    var backward = new StringBuilder("  g%s = aten::clone(x%1$s)\n".formatted(layers));
    var outputs = new StringBuilder();
    for (int i = 0; i < layers; i++) {
      inputs.append(", u%1$s: %2$s[64, 256], v%1$s: %2$s[64, 256]".formatted(i, dtype));
      inputs.append(", w%1$s: %2$s[256, 64]".formatted(i, dtype));
      int after = i + 1;
      forward.append(
          """
            n%1$s = aten::_softmax(x%1$s, -1, False)
            a%1$s = aten::mm(n%1$s, u%1$s)
            b%1$s = aten::mm(n%1$s, v%1$s)
            s%1$s = aten::sigmoid(a%1$s)
            c%1$s = aten::mul.Tensor(a%1$s, s%1$s)
            h%1$s = aten::mul.Tensor(c%1$s, b%1$s)
            m%1$s = aten::mm(h%1$s, w%1$s)
            x%2$s = aten::add.Tensor(x%1$s, m%1$s)
          """
              .formatted(i, after));
      int k = layers - 1 - i;
      backward.append(
          """
            wt%1$s = aten::t(w%1$s)
            ut%1$s = aten::t(u%1$s)
            ht%1$s = aten::t(h%1$s)
            nt%1$s = aten::t(n%1$s)
            dw%1$s = aten::mm(ht%1$s, g%2$s)
            dh%1$s = aten::mm(g%2$s, wt%1$s)
            db%1$s = aten::mul.Tensor(dh%1$s, c%1$s)
            dc%1$s = aten::mul.Tensor(dh%1$s, b%1$s)
            e%1$s = aten::mul.Tensor(dc%1$s, s%1$s)
            dv%1$s = aten::mm(nt%1$s, db%1$s)
            du%1$s = aten::mm(nt%1$s, e%1$s)
            dn%1$s = aten::mm(e%1$s, ut%1$s)
            ds%1$s = aten::_softmax_backward_data(dn%1$s, n%1$s, -1, torch.%3$s)
            g%1$s = aten::add.Tensor(g%2$s, ds%1$s)
          """
              .formatted(k, k + 1, dtype.equals("f32") ? "float32" : "bfloat16"));
      outputs.append(", du%1$s, dv%1$s, dw%1$s".formatted(k));
    }
    return GraphParser.parse(
        new SourceFile(
            "step.graph",
            "graph version 1\ngraph step(%s) {\n%s%s  return g0%s\n}\n"
                .formatted(inputs, forward, backward, outputs)));
  }

  private static Plan plan(Program program, OptionalLong limit) {
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withRanks(1).withMemoryLimit(limit))
        .compile(program);
  }

  private static Plan inLeast(Program program) {
    return plan(program, LeastMemory.of(bytes -> plan(program, OptionalLong.of(bytes))));
  }

  @ParameterizedTest
  @ValueSource(strings = {"f32", "bf16"})
  void givesWhatTheHostGives(String dtype) {
    Gpus.require(1);
    for (int layers : new int[] {2, 4}) {
      var program = step(layers, dtype);
      var plan = inLeast(program);
      try (var gpu = CudaSession.open(Lowering.lower(plan), TIMEOUT);
          var host = Session.open(plan(program, OptionalLong.empty()), new HostBackend())) {
        LocalPrograms.fill(gpu, layers);
        LocalPrograms.fill(host, layers);
        host.run();
        for (int run = 0; run < RUNS; run++) {
          gpu.run();
          LocalPrograms.compare(plan, gpu, host, "%s layers, run %s".formatted(layers, run));
        }
      }
    }
  }

  /** Also where there are no GPUs. */
  @Test
  void tensorsAreComputedAgainAndOthersMove() {
    var program = step(4, "bf16");
    var plan = inLeast(program);
    assertThat(plan.rewrites())
        .filteredOn(Rewrite::made)
        .extracting(Rewrite::action)
        .contains(Rewrite.Action.RECOMPUTED, Rewrite.Action.OFFLOADED);
    var free = plan(program, OptionalLong.empty());
    assertThat(plan.total().bytes()).isLessThan(free.total().bytes() * 3 / 4);
  }
}
