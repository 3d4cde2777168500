package dev.symplan.codegen.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Lowering;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.cost.CostModel;
import dev.symplan.planner.cost.StepCosts;
import dev.symplan.planner.machine.Launches;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.plan.Step;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Code generation makes as many launches as the planner counts. */
class PredictedLaunchesTest {

  private static ImmutableList<DeviceStep> steps(
      Kind kind, Variant variant, int tensors, int ranks) {
    var params =
        String.join(
            ", ", indexed(tensors, "x%s: f32[" + (kind == Kind.ALL_GATHER ? 8 : 64) + ", 16]"));
    var call =
        switch (kind) {
          case ALL_GATHER -> "all_gather_into_tensor_coalesced([%s], %s, 'world')";
          case REDUCE_SCATTER -> "reduce_scatter_tensor_coalesced([%s], 'sum', %s, 'world')";
          case ALL_REDUCE -> "all_reduce_coalesced([%s], 'sum', 'world')";
          case ALL_TO_ALL, BROADCAST, COLLECTIVE_PERMUTE, CUSTOM ->
              throw new IllegalArgumentException(kind + " of several tensors");
        };
    var results = String.join(", ", indexed(tensors, "r%s"));
    var text =
        """
        graph version 1
        group world = [%s]
        graph t(%s) {
          %s = _c10d_functional::%s
          return %s
        }
        """
            .formatted(
                String.join(", ", indexed(ranks, "%s")),
                params,
                results,
                call.formatted(String.join(", ", indexed(tensors, "x%s")), ranks),
                results);
    var options =
        CompileOptions.DEFAULT
            .withRanks(ranks)
            .withVariants(ImmutableMap.of(kind.text(), variant))
            .withRewrites(RewriteOptions.OFF);
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .with(options)
            .compile(GraphParser.parse(new SourceFile("t.graph", text)));
    return DeviceLowering.lower(Lowering.lower(plan)).getFirst().steps();
  }

  private static List<String> indexed(int count, String form) {
    return IntStream.range(0, count).mapToObj(form::formatted).toList();
  }

  private static long launches(ImmutableList<DeviceStep> steps) {
    return steps.stream()
        .filter(step -> step instanceof DeviceStep.Launch || step instanceof DeviceStep.Copy)
        .count();
  }

  @ParameterizedTest
  @CsvSource({
    "ALL_GATHER, PUSH",
    "ALL_GATHER, ONE_SHOT",
    "ALL_GATHER, COPY_ENGINE",
    "REDUCE_SCATTER, ONE_SHOT",
    "ALL_REDUCE, ONE_SHOT",
    "ALL_REDUCE, TWO_SHOT",
    "ALL_REDUCE, ONE_SHOT_PUSH",
    "ALL_REDUCE, TWO_SHOT_PUSH"
  })
  void areThoseOfTheBackend(Kind kind, Variant variant) {
    var spec = VariantSpec.of(kind, variant);
    for (int ranks : new int[] {2, 4}) {
      long one = launches(steps(kind, variant, 1, ranks));
      for (int tensors : new int[] {2, 40, 64}) {
        assertThat(launches(steps(kind, variant, tensors, ranks)) - one)
            .as("%s tensors between %s ranks", tensors, ranks)
            .isEqualTo(Launches.further(spec, tensors, ranks));
      }
    }
  }

  /** Some are one kernel with the collective behind them, others are not. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "y = aten::mul.Tensor(x, 1.5)",
        "a = aten::neg(x)\n  b = aten::mul.Tensor(a, w)\n  y = aten::add.Tensor(b, x)",
        "y = aten::softmax.int(x, 1)",
        "y = aten::mm(x, w)",
        "y = aten::narrow(v, 0, 1, 64)",
        "a = aten::mul.Tensor(x, 2)\n  y = aten::t(a)",
        "y = aten::mul.Tensor(x, 1.5)\n  u = aten::sin(x)",
      })
  void areJoinedAsInTheBackend(String maker) {
    for (var call :
        List.of(
            "g = _c10d_functional::all_gather_into_tensor(y, 2, 'world')",
            "g = symplan::all_gather_dim(y, 1, 2, 'world')",
            "g = _c10d_functional::reduce_scatter_tensor(y, 'sum', 2, 'world')",
            "g = symplan::reduce_scatter_dim(y, 'avg', 1, 2, 'world')")) {
      var text =
          """
          graph version 1
          group world = [0, 1]
          graph t(x: f32[64, 64], w: f32[64, 64], v: f32[65, 64]) {
            %s
            %s
            k = aten::sum(x)
            return g, k%s
          }
          """
              .formatted(maker, call, maker.contains("u =") ? ", u" : "");
      boolean gathers = call.contains("gather");
      var other = gathers ? Variant.PUSH : Variant.NCCL;
      for (var variant : List.of(Variant.ONE_SHOT, other)) {
        if (variant == Variant.NCCL && call.contains("_dim")) {
          continue;
        }
        var plan =
            Compiler.forTarget(Target.H200_X4)
                .with(
                    CompileOptions.DEFAULT.withVariants(
                        ImmutableMap.of(gathers ? "all_gather" : "reduce_scatter", variant)))
                .compile(GraphParser.parse(new SourceFile("t.graph", text)));
        var rank = plan.forRank(0);
        var work = new StepCosts(new CostModel(plan.target()), rank);
        boolean predicted = work.makerMicros(rank.steps().indexOf(new Step.Start(0))) > 0;
        boolean joined =
            DeviceLowering.lower(Lowering.lower(plan)).getFirst().steps().stream()
                .anyMatch(
                    step -> step instanceof DeviceStep.Launch launch && launch.shares().size() > 1);
        assertThat(predicted).as("%s by %s", call, variant).isEqualTo(joined);
      }
    }
  }
}
