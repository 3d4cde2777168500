package dev.symplan.cli;

import static dev.symplan.cli.Ran.run;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Safetensors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code run --weights} with a checkpoint of which each rank gets a part. */
class CheckpointRunTest {
  @TempDir private Path folder;
  private Path graph = Path.of("");
  private Path checkpoint = Path.of("");

  @BeforeEach
  void write() throws IOException {
    graph =
        Files.writeString(
            folder.resolve("g.graph"),
            """
            graph version 1
            group tp = [0, 1]
            graph g(w: f32[2, 2]) {
              y = _c10d_functional::all_reduce(w, "sum", "tp")
              z = _c10d_functional::wait_tensor(y)
              return z
            }
            """);
    Files.writeString(
        folder.resolve("weights.json"), "{\"w\": {\"tensor\": \"model.w\", \"shard\": 1}}");
    checkpoint = Files.createDirectory(folder.resolve("checkpoint"));
    Files.writeString(
        checkpoint.resolve("model.safetensors.index.json"),
        "{\"weight_map\": {\"model.w\": \"model-00001-of-00001.safetensors\"}}");
    writeShard(DType.F32);
  }

  private void writeShard(DType dtype) {
    var tensor = HostTensor.allocate(TensorType.contiguous(dtype, 2, 4));
    for (int i = 0; i < 8; i++) {
      tensor.set(i, i / 4, i % 4);
    }
    Safetensors.write(
        checkpoint.resolve("model-00001-of-00001.safetensors"), ImmutableMap.of("model.w", tensor));
  }

  @Test
  void eachRankGetsItsColumns() {
    var ran = run("run", graph, "--weights", checkpoint, "--print", "z");
    assertThat(ran.code()).as(ran.said()).isZero();
    assertThat(ran.out())
        .contains("weights of " + checkpoint, "ok: all 2 outputs agree")
        .contains("tensor([[ 2.,  4.],\n        [10., 12.]])");
  }

  @Test
  void theLayoutMayBeElsewhere() throws IOException {
    var elsewhere = folder.resolve("layout.json");
    Files.move(folder.resolve("weights.json"), elsewhere);
    var ran = run("run", graph, "--weights", checkpoint, "--weights-layout", elsewhere);
    assertThat(ran.code()).as(ran.said()).isZero();
    var without = run("run", graph, "--weights", checkpoint);
    assertThat(without.code()).isEqualTo(ExitCode.FAILED);
    assertThat(without.err()).contains("tensor 'model.w' does not match any input of the graph");
    var alone = run("run", graph, "--weights-layout", elsewhere);
    assertThat(alone.code()).isEqualTo(ExitCode.USAGE);
    assertThat(alone.err()).contains("--weights-layout needs --weights with a checkpoint");
  }

  @Test
  void aCheckpointThatDoesNotFitIsOneError() {
    writeShard(DType.BF16);
    var ran = run("run", graph, "--weights", checkpoint);
    assertThat(ran.code()).isEqualTo(ExitCode.FAILED);
    assertThat(ran.err())
        .contains(
            "model-00001-of-00001.safetensors",
            "tensor 'model.w' is bf16[2, 4], and the part of rank 0 is bf16[2, 2], but the input"
                + " 'w' is f32[2, 2]")
        .doesNotContain("\tat ");
    assertThat(ran.out()).isEmpty();
  }
}
