package dev.symplan.planner.pass;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.ir.text.GraphPrinter;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.pass.rewrite.ShareHeads;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A training step of attention whose heads of keys and values the graph repeats. */
class ShareHeadsTest {

  /** As AOTAutograd writes it, two graphs in one. */
  private static final String STEP =
      """
      graph version 1

      graph t(q: bf16[1, 16, 512, 64], kp: bf16[1, 512, 4, 64], vp: bf16[1, 512, 4, 64], g: bf16[1, 16, 512, 64]) {
        kx = aten::mul.Scalar(kp, 2.0)
        vx = %s(vp)
        k0 = aten::permute(kx, [0, 2, 1, 3])
        v0 = aten::permute(vx, [0, 2, 1, 3])
        k1 = aten::unsqueeze(k0, 2)
        k2 = aten::expand(k1, [1, 4, 4, 512, 64])
        k3 = aten::clone(k2, memory_format=torch.contiguous_format)
        k = aten::reshape(k3, [1, 16, 512, 64])
        v1 = aten::unsqueeze(v0, 2)
        v2 = aten::expand(v1, [1, 4, 4, 512, 64])
        v3 = aten::clone(v2, memory_format=torch.contiguous_format)
        v = aten::reshape(v3, [1, 16, 512, 64])
        o, l, _, _, _, _, s, u, _ = aten::_scaled_dot_product_cudnn_attention(q, k, v, None, True, 0.0, True)
        symplan::border("backward", 3, 1)
        dq, dk, dv = aten::_scaled_dot_product_cudnn_attention_backward(g, q, k, v, o, l, s, u, None, None, None, 512, 512, 0.0, True)
        v4 = aten::reshape(dv, [1, 4, 4, 512, 64])
        v5 = aten::sum.dim_IntList(v4, [2], True)
        sv = aten::squeeze.dim(v5, 2)
        k4 = aten::reshape(dk, [1, 4, 4, 512, 64])
        k5 = aten::sum.dim_IntList(k4, [2], True)
        sk = aten::squeeze.dim(k5, 2)
        return o, dq, sk, sv
      }
      """;

  private static String step(String op) {
    return STEP.formatted(op);
  }

  @Test
  void givesTheSumsOfGradients() {
    var graph = GraphParser.parse(new SourceFile("t.graph", step("aten::neg"))).graphs().getFirst();
    assertThat(GraphPrinter.print(ShareHeads.share(graph)))
        .endsWith(
            """
            ) {
              kx = aten::mul.Scalar(kp, 2.0)
              vx = aten::neg(vp)
              k0 = aten::permute(kx, [0, 2, 1, 3])
              v0 = aten::permute(vx, [0, 2, 1, 3])
              k1 = aten::unsqueeze(k0, 2)
              k2 = aten::expand(k1, [1, 4, 4, 512, 64])
              v1 = aten::unsqueeze(v0, 2)
              v2 = aten::expand(v1, [1, 4, 4, 512, 64])
              k2_once: bf16[1, 4, 512, 64][131072, 64, 256, 1] = aten::select.int(k2, 2, 0)
              v2_once: bf16[1, 4, 512, 64][131072, 64, 256, 1] = aten::select.int(v2, 2, 0)
              o, l, _, _, _, _, s, u, _ = aten::_scaled_dot_product_cudnn_attention(q, k2_once, v2_once, None, True, 0.0, True)
              symplan::border("backward", 3, 1)
              k2_once_1: bf16[1, 4, 512, 64][131072, 64, 256, 1] = aten::select.int(k2, 2, 0)
              v2_once_1: bf16[1, 4, 512, 64][131072, 64, 256, 1] = aten::select.int(v2, 2, 0)
              dq, dk: bf16[1, 4, 512, 64][131072, 32768, 64, 1], dv: bf16[1, 4, 512, 64][131072, 32768, 64, 1] = aten::_scaled_dot_product_cudnn_attention_backward(g, q, k2_once_1, v2_once_1, o, l, s, u, None, None, None, 512, 512, 0.0, True)
              v5 = aten::unsqueeze(dv, 2)
              sv = aten::squeeze.dim(v5, 2)
              k5 = aten::unsqueeze(dk, 2)
              sk = aten::squeeze.dim(k5, 2)
              return o, dq, sk, sv
            }
            """);
  }

  /** The caller may see neither its inputs nor its outputs change, so only what is between can. */
  @ParameterizedTest
  @CsvSource({"aten::neg, 4", "aten::alias, 16"})
  void isPlanned(String op, long heads) {
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .with(CompileOptions.DEFAULT.withRanks(1))
            .compile(GraphParser.parse(new SourceFile("t.graph", step(op))));
    var graph = plan.rankPlans().getFirst().graph();
    assertThat(graph.ops())
        .filteredOn(next -> next.def().name().name().endsWith("_backward"))
        .singleElement()
        .satisfies(
            next -> assertThat(next.call().tensor("key").size(1)).as("heads").isEqualTo(heads));
    var text = GraphPrinter.print(graph);
    if (heads == 4) {
      assertThat(text).doesNotContain("aten::clone", "aten::sum");
    } else {
      assertThat(text).contains("aten::clone", "aten::sum");
    }
  }
}
