package dev.symplan.runtime.host;

import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * A forward graph that draws random numbers, and a backward graph that draws from the same state.
 * Both return what they drew.
 *
 * @param dtype of the only tensor; empty for dropout that gives its mask, too
 */
public record DrawnAgain(String operator, String args, String dtype) {

  /** How AOTAutograd hands the state on. */
  public enum Handing {
    SAVED_STATE,
    GENERATOR
  }

  /** {@return calls of the operators that draw and run, on GPUs as well} */
  public static Stream<DrawnAgain> all() {
    return Stream.of(
        new DrawnAgain("rand.default", "[64, 33]", "f32"),
        new DrawnAgain("randn.default", "[64, 33]", "f32"),
        new DrawnAgain("randint.default", "1000, [64, 33]", "i64"),
        new DrawnAgain("randint.low", "-7, 1000, [64, 33]", "i64"),
        new DrawnAgain("rand_like.default", "x", "f32"),
        new DrawnAgain("randn_like.default", "x", "f32"),
        new DrawnAgain("randint_like.default", "x, 1000", "f32"),
        new DrawnAgain("randint_like.low_dtype", "x, -7, 1000", "f32"),
        new DrawnAgain("bernoulli.default", "x", "f32"),
        new DrawnAgain("bernoulli.p", "x, 0.3", "f32"),
        new DrawnAgain("uniform.default", "x, -1.0, 3.0", "f32"),
        new DrawnAgain("exponential.default", "x, 2.0", "f32"),
        new DrawnAgain("normal_functional.default", "x, 1.0, 3.0", "f32"),
        new DrawnAgain("dropout.default", "x, 0.3, True", "f32"),
        new DrawnAgain("native_dropout.default", "x, 0.3, True", ""),
        new DrawnAgain("native_dropout.default", "x, 0.3, None", ""));
  }

  /** {@return calls of other operators that only the host backend runs} */
  public static Stream<DrawnAgain> onHost() {
    return Stream.of(
        new DrawnAgain("randperm.default", "2112", "i64"),
        new DrawnAgain("multinomial.default", "x, 20", "i64"));
  }

  /** {@return both graphs as one plan; the outputs of the forward graph come first} */
  public Plan plan(Handing handing, Path folder) throws IOException {
    var forward = Files.writeString(folder.resolve("forward.fx.txt"), graph(handing, true));
    var backward = Files.writeString(folder.resolve("backward.fx.txt"), graph(handing, false));
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withRanks(1))
        .compileTogether(List.of(forward, backward), Optional.empty());
  }

  private String graph(Handing handing, boolean forward) {
    var op = "torch.ops.aten.%s, %s".formatted(operator, args);
    var higher = "torch.ops.higher_order.";
    boolean saves = handing == Handing.SAVED_STATE && forward;
    var generator = (forward ? "fwd" : "bwd") + "_rng_state_0";
    var call =
        switch (handing) {
          case SAVED_STATE ->
              saves
                  ? "run_and_save_rng_state(%s)".formatted(op)
                  : "run_with_rng_state(state, %s)".formatted(op);
          case GENERATOR ->
              "graphsafe_run_with_rng_state(%s, rng_state = %s)".formatted(op, generator);
        };
    var input =
        switch (handing) {
          case SAVED_STATE -> saves ? "" : ", state: \"u8[16][1]cpu\"";
          case GENERATOR -> ", " + generator;
        };
    var drawn = dtype.isEmpty() ? "drawn" : "drawn: \"%s%s\"".formatted(dtype, shape());
    var lines = new ArrayList<String>();
    if (saves) {
      lines.add("both = " + higher + call);
      lines.add("state: \"u8[16][1]cpu\" = both[0]");
      lines.add(drawn + " = both[1]");
    } else {
      lines.add(drawn + " = " + higher + call);
    }
    if (dtype.isEmpty()) {
      lines.add("left: \"f32%s\" = drawn[0]".formatted(shape()));
      lines.add("kept: \"b8%s\" = drawn[1]".formatted(shape()));
    }
    var results = new ArrayList<>(dtype.isEmpty() ? List.of("left", "kept") : List.of("drawn"));
    if (saves) {
      results.add("state");
    }
    if (forward) {
      results.add("x");
    }
    lines.add("return (%s,)".formatted(String.join(", ", results)));
    return """
    class GraphModule(torch.nn.Module):
        def forward(self, x: "f32[64, 33][33, 1]cuda:0"%s):
            %s
    """
        .formatted(input, String.join("\n        ", lines));
  }

  private String shape() {
    return switch (operator) {
      case "randperm.default" -> "[2112][1]cuda:0";
      case "multinomial.default" -> "[64, 20][20, 1]cuda:0";
      default -> "[64, 33][33, 1]cuda:0";
    };
  }

  /** Fills the tensors of a session with halves. */
  public static void fill(Session session) {
    for (int i = 0; i < session.inputNames().size(); i++) {
      session
          .input(0, i)
          .ifPresent(
              input -> {
                for (long row = 0; row < input.type().size(0); row++) {
                  for (long column = 0; column < input.type().size(1); column++) {
                    input.set(0.5, row, column);
                  }
                }
              });
    }
  }
}
