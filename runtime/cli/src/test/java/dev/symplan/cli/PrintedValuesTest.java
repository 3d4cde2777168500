package dev.symplan.cli;

import static dev.symplan.cli.Ran.run;
import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.cli.common.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code run --print}. */
class PrintedValuesTest {
  /** Ranks 0 and 1 are given ones; ranks compute other values from them, and sum these up. */
  private static final String GRAPH =
      """
      graph version 1

      group pair = [0, 1]
      """
          + graphOf(0, "2.5")
          + graphOf(1, "4");

  private static String graphOf(int rank, String factor) {
    return """

    graph g(x: f32[2, 3] @donated) ranks [%s] {
      one = aten::full_like(x, 1.0)
      own = aten::mul.Tensor(one, %s)
      sum = _c10d_functional::all_reduce(own, "sum", "pair")
      all = _c10d_functional::wait_tensor(sum)
      out = aten::add.Tensor(all, 1)
      return out, one
    }
    """
        .formatted(rank, factor);
  }

  @TempDir private Path folder;
  private Path graph = Path.of("");

  @BeforeEach
  void writeGraph() throws IOException {
    graph = Files.writeString(folder.resolve("g.graph"), GRAPH);
  }

  @Test
  void ranksWithTheSameValueAreShownOnce() {
    var ran = run("run", graph, "--print", "out", "--print", "one");
    assertThat(ran.code()).as(ran.err()).isZero();
    assertThat(ran.out())
        .contains(
            """
            out: f32[2, 3] of ranks 0, 1, as the run left it
            tensor([[7.5000, 7.5000, 7.5000],
                    [7.5000, 7.5000, 7.5000]])

            one: f32[2, 3] of ranks 0, 1, as the run left it
            tensor([[1., 1., 1.],
                    [1., 1., 1.]])

            """);
  }

  /** Whether or not outputs are compared. */
  @Test
  void valuesInsideTheGraphAreEvaluated() {
    for (var more : new String[] {"--seed=0", "--no-compare"}) {
      var ran = run("run", graph, "--print", "own", "--print", "all", more);
      assertThat(ran.code()).as(ran.err()).isZero();
      assertThat(ran.out())
          .contains(
              """
              own: f32[2, 3] of rank 0, evaluated without a plan
              tensor([[2.5000, 2.5000, 2.5000],
                      [2.5000, 2.5000, 2.5000]])

              own: f32[2, 3] of rank 1, evaluated without a plan
              tensor([[4., 4., 4.],
                      [4., 4., 4.]])

              all: f32[2, 3] of ranks 0, 1, evaluated without a plan
              tensor([[6.5000, 6.5000, 6.5000],
                      [6.5000, 6.5000, 6.5000]])

              """);
    }
  }

  /** A donated input is another tensor's memory when the run is over. */
  @Test
  void inputsAreShownAsTheRunFoundThem() {
    var first = run("run", graph, "--print", "x").out();
    assertThat(first).contains("x: f32[2, 3] @donated of rank 0, as the run found it\ntensor([[");
    assertThat(run("run", graph, "--print", "x", "--inputs", "external").out())
        .contains(first.substring(first.indexOf("tensor("), first.indexOf("outputs against")));
  }

  @Test
  void aWrongNameSuggestsANearOne() {
    var ran = run("run", graph, "--print", "out", "--print", "owns");
    assertThat(ran.code()).isEqualTo(ExitCode.FAILED);
    assertThat(ran.err())
        .contains(
            "g.graph: error[unknown-value]: the plan has no tensor 'owns'",
            "hint: did you mean 'own'?");
    assertThat(run("run", graph, "--print", "somethingElse").err())
        .contains("hint: 'symplan dump %s --view values' lists them".formatted(graph));
  }
}
