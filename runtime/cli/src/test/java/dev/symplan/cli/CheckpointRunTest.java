package dev.symplan.cli;

import static dev.symplan.cli.Ran.run;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableMap;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.planner.Compiler;
import dev.symplan.runtime.Weights;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Safetensors;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

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

  /** A kind of damage, and the error that names it. */
  private record Damage(String file, String content, String... said) {}

  private static final String INDEX = "checkpoint/model.safetensors.index.json";
  private static final String SHARD = "checkpoint/model-00001-of-00001.safetensors";

  private static final List<Damage> DAMAGES =
      List.of(
          new Damage(
              INDEX,
              "{\"weight_map\": {\"model.w\": \"model-00002-of-00002.safetensors\"}}",
              INDEX,
              "model.w",
              "the shard model-00002-of-00002.safetensors does not exist",
              "download the whole checkpoint"),
          new Damage(
              INDEX,
              "{\"weight_map\": {\"model.v\": \"model-00001-of-00001.safetensors\"}}",
              SHARD,
              "no tensor 'model.v' was found, but model.safetensors.index.json says",
              "are the shards and the index from the same checkpoint?"),
          new Damage(INDEX, "{\"weight_map\": {\"model.w\": \"../w\"}}", INDEX, "'../w' is not"),
          new Damage(INDEX, "{\"weights\": {}}", INDEX, "weight_map"),
          new Damage(INDEX, "{\"weight_map\": ", INDEX),
          new Damage(
              INDEX,
              "{\"w\": {\"tensor\": \"model.w\", \"shard\": 1}}",
              INDEX,
              "this is a weights layout, which says what tensor of a checkpoint each input is",
              "give it to --weights-layout, and the checkpoint itself to --weights"),
          new Damage(
              "weights.json",
              "{\"weight_map\": {\"model.w\": \"model-00001-of-00001.safetensors\"}}",
              "weights.json:1:16: error[bad-tensors]",
              "this is the index of a checkpoint, not a weights layout",
              "give it to --weights, and a weights.json to --weights-layout"),
          new Damage(SHARD, "cut", SHARD, "it has 3 bytes, too few for a header"),
          new Damage(SHARD, "\u007f\0\0\0\0\0\0\0{}", SHARD, "is the file truncated?"),
          new Damage(SHARD, "\u0002\0\0\0\0\0\0\0{]", SHARD, "its header"),
          new Damage(
              SHARD,
              "\u0047\0\0\0\0\0\0\0{\"model.w\": {\"dtype\": \"F32\", \"shape\": [2, 4],"
                  + " \"data_offsets\": [0, 32]}}",
              SHARD,
              "model.w",
              "is the file truncated?"),
          new Damage(
              "weights.json",
              "{\"w\": {\"tensor\": \"layers.0.w\"}}",
              "weights.json:1:18: error[bad-tensors]",
              "has no tensor 'layers.0.w' for input 'w'",
              "is this the checkpoint of another model? It has 1 tensor: model.w"),
          new Damage(
              "weights.json",
              "{\"v\": {\"tensor\": \"model.w\"}}",
              "weights.json:1:2: error[bad-tensors]",
              "the graph has no input 'v'",
              "is this the weights.json of another graph?"),
          new Damage(
              "weights.json",
              "{\"w\": {\"tensor\": \"model.w\", \"shard\": 2}}",
              "weights.json:1:7: error[bad-tensors]",
              "tensor 'model.w' is f32[2, 4], which has no dimension 2"),
          new Damage(
              "weights.json",
              "{\"w\": {\"tensor\": \"model.w\", \"shard\": 1, \"groups\": [[0, 2]]}}",
              "weights.json:1:7: error[bad-tensors]",
              "rank 1 is in none of the groups"),
          new Damage(
              "weights.json",
              "{\"w\": {\"tensor\": \"model.w\", \"split\": 1}}",
              "weights.json:1:",
              "split"),
          new Damage(
              "weights.json",
              "{\"w\": {\"tensor\": \"model.w\", \"shard\": 0}}",
              SHARD,
              "tensor 'model.w' is f32[2, 4], and the part of rank 0 is f32[1, 4], but the input"
                  + " 'w' is f32[2, 2]",
              "weights.json says how ranks divide it"));

  @ParameterizedTest
  @FieldSource("DAMAGES")
  void whatIsWrongIsNamedAndNothingRuns(Damage damage) throws IOException {
    Files.writeString(folder.resolve(damage.file()), damage.content(), StandardCharsets.ISO_8859_1);
    var ran = run("run", graph, "--weights", checkpoint);
    assertThat(ran.code()).as(ran.said()).isEqualTo(ExitCode.FAILED);
    assertThat(ran.err()).contains(damage.said()).doesNotContain("\tat ", "Exception");
    assertThat(ran.out()).isEmpty();
    // The API says the same before a session has anything.
    var plan = Compiler.forDefaultTarget().compile(graph);
    assertThatThrownBy(() -> Weights.read(checkpoint, folder.resolve("weights.json"), plan))
        .isInstanceOf(CompileException.class)
        .message()
        .contains(damage.said());
  }
}
