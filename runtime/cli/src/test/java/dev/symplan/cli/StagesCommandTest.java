package dev.symplan.cli;

import static dev.symplan.cli.Ran.run;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Two stages with inputs and outputs of their own: tokens and a table, weights and a loss. */
class StagesCommandTest {
  private static final String GRAPH =
      """
      graph version 1
      group pipe = [0, 1]
      graph step(tokens: i64[8], table: f32[16, 4]) ranks [0] {
        h = aten::embedding(table, tokens)
        s = symplan::collective_permute(h, [[0, 1]], "pipe")
        w = _c10d_functional::wait_tensor(s)
        return None
      }
      graph step(x: f32[8, 4], w1: f32[4, 6]) ranks [1] {
        s = symplan::collective_permute(x, [[0, 1]], "pipe")
        h = _c10d_functional::wait_tensor(s)
        y = aten::mm(h, w1)
        loss = aten::sum(y)
        return y, loss
      }
      """;

  @TempDir private Path folder;

  @Test
  void eachStageHasItsOwnInputsAndOutputs() throws IOException {
    var graph = Files.writeString(folder.resolve("step.graph"), GRAPH);
    var data = Files.createDirectory(folder.resolve("case"));
    var ran = run("run", graph, "--outputs", data, "--print", "loss", "--print", "tokens");
    assertThat(ran.code()).as(ran.err()).isZero();
    assertThat(ran.out())
        .contains("ok: all 2 outputs agree", "loss: f32[] of rank 1", "tokens: i64[8] of rank 0");
    assertThat(data.resolve("rank1.outputs.safetensors")).isNotEmptyFile();

    var plan = folder.resolve("step.plan");
    assertThat(run("compile", graph, "--hosts", "2x1", "-o", plan).code()).isZero();
    for (var command : new String[] {"verify", "dump", "simulate"}) {
      assertThat(run(command, plan).code()).as(command).isZero();
    }
    assertThat(run("run", plan).out()).contains("ok: all 2 outputs agree");
  }
}
