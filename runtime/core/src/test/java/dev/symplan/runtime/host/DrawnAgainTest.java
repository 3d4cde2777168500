package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.host.DrawnAgain.Handing;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** With activation checkpoints, the backward graph draws again what the forward graph drew. */
class DrawnAgainTest {
  @TempDir private Path folder;

  private static Stream<Arguments> calls() {
    return Stream.concat(DrawnAgain.all(), DrawnAgain.onHost())
        .flatMap(call -> Stream.of(Handing.values()).map(handing -> Arguments.of(call, handing)));
  }

  @ParameterizedTest
  @MethodSource("calls")
  void bothGraphsDrawTheSameNumbers(DrawnAgain call, Handing handing) throws IOException {
    var plan = call.plan(handing, folder);
    assertThat(plan.warnings()).extracting(Diagnostic::message).isEmpty();
    try (var session = Session.open(plan, new HostBackend())) {
      DrawnAgain.fill(session);
      session.run();
      int half = session.outputCount() / 2;
      assertThat(session.outputCount()).isEqualTo(2 * half).isPositive();
      for (int i = 0; i < half; i++) {
        var drawn = values(session, i);
        assertThat(values(session, half + i)).isEqualTo(drawn);
        assertThat(new HashSet<>(drawn)).as("numbers that differ").hasSizeGreaterThan(1);
      }
      if (half == 2) {
        dropsWhatTheMaskSays(values(session, 0), values(session, 1));
      }
    }
  }

  private static void dropsWhatTheMaskSays(List<Double> left, List<Double> kept) {
    assertThat(left)
        .isEqualTo(kept.stream().map(keep -> keep * (double) (float) (0.5 / 0.7)).toList());
    assertThat(kept.stream().mapToDouble(keep -> keep).average().orElseThrow())
        .isBetween(0.65, 0.75);
  }

  private static List<Double> values(Session session, int output) {
    var flat = Views.flat(session.output(0, output).orElseThrow());
    var values = new ArrayList<Double>();
    for (long i = 0; i < flat.type().numel(); i++) {
      values.add(flat.get(i));
    }
    return values;
  }

  private static final String ATTENTION =
      """
      class GraphModule(torch.nn.Module):
          def forward(self, x: "f32[2, 2, 8, 4][64, 32, 4, 1]cuda:0", state: "u8[16][1]cpu"):
              a = torch.ops.higher_order.run_with_rng_state(state, torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default, x, x, x, 0.5)
              y: "f32[2, 2, 8, 4][64, 32, 4, 1]cuda:0" = a[0]
              return (y,)
      """;

  private static final String OTHER =
      """
      class GraphModule(torch.nn.Module):
          def forward(self, x: "f32[64, 33][33, 1]cuda:0", state: "u8[16][1]cpu"):
              y: "f32[64, 33][33, 1]cuda:0" = torch.ops.higher_order.run_with_rng_state(state, torch.ops.my_lib.noise.default, x)
              return (y,)
      """;

  /** The generator is not one of those that AOTAutograd sets to the same state in both graphs. */
  private static final String GENERATOR =
      """
      class GraphModule(torch.nn.Module):
          def forward(self, x: "f32[64, 33][33, 1]cuda:0", generator):
              y: "f32[64, 33][33, 1]cuda:0" = torch.ops.higher_order.graphsafe_run_with_rng_state(torch.ops.aten.rand_like.default, x, rng_state = generator)
              return (y,)
      """;

  @ParameterizedTest
  @ValueSource(strings = {ATTENTION, OTHER, GENERATOR})
  void othersArePlannedButNotRun(String text) throws IOException {
    var plan = plan(text);
    assertThat(plan.warnings())
        .extracting(Diagnostic::message)
        .anyMatch(message -> message.contains("cannot draw from the random state"));
    assertThatThrownBy(
            () -> {
              try (var session = Session.open(plan, new HostBackend())) {
                session.run();
              }
            })
        .hasMessageContaining("'y'")
        .hasMessageContaining("g.fx.txt:3");
  }

  private Plan plan(String text) throws IOException {
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withRanks(1))
        .compile(Files.writeString(folder.resolve("g.fx.txt"), text));
  }
}
