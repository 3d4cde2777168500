package dev.symplan.runtime;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.host.HostBackend;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Safetensors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Checkpoints in shards, divided among the ranks of a plan. */
@Tag("random")
class WeightsTest {
  private static final int DAMAGES = 500;
  private static final String FIRST = "model-00001-of-00002.safetensors";
  private static final String SECOND = "model-00002-of-00002.safetensors";
  private static final String INDEX =
      """
      {"metadata": {"total_size": 208},
       "weight_map": {
        "model.norm.weight": "model-00001-of-00002.safetensors",
        "model.up.weight": "model-00001-of-00002.safetensors",
        "model.down.weight": "model-00002-of-00002.safetensors"}}
      """;
  private static final String LAYOUT =
      """
      {"norm": {"tensor": "model.norm.weight"},
       "up": {"tensor": "model.up.weight", "shard": 0},
       "down": {"tensor": "model.down.weight", "shard": 1}}
      """;

  /** Each rank has 3 of 6 rows of one weight, and 2 of 4 columns of the other. */
  private static final String GRAPH =
      """
      graph version 1
      group all = [0, 1]
      graph g(x: f32[4], norm: f32[4], up: f32[3, 4], down: f32[5, 2]) {
        a = aten::add.Tensor(x, norm)
        b = aten::neg(up)
        c = aten::neg(down)
        return a, b, c
      }
      """;

  @TempDir private Path folder;
  private Path index = Path.of("");
  private Path layout = Path.of("");

  private static Plan plan(String text) {
    return Compiler.forDefaultTarget().compile(GraphParser.parse(new SourceFile("g.graph", text)));
  }

  /** A tensor whose elements are 1, 2, 3 and so on, times a factor. */
  private static HostTensor counted(double factor, long... sizes) {
    var tensor = HostTensor.allocate(TensorType.contiguous(DType.F32, sizes));
    for (int i = 0; i < tensor.type().numel(); i++) {
      tensor.as(TensorType.contiguous(DType.F32, tensor.type().numel())).set(factor * (i + 1), i);
    }
    return tensor;
  }

  @BeforeEach
  void write() throws IOException {
    index = Files.writeString(folder.resolve("model.safetensors.index.json"), INDEX);
    layout = Files.writeString(folder.resolve("weights.json"), LAYOUT);
    Safetensors.write(
        folder.resolve(FIRST),
        ImmutableMap.of("model.norm.weight", counted(1, 4), "model.up.weight", counted(10, 6, 4)));
    Safetensors.write(
        folder.resolve(SECOND), ImmutableMap.of("model.down.weight", counted(100, 5, 4)));
  }

  private void runsWith(Weights weights, Plan plan) {
    try (var session = Session.open(plan, new HostBackend())) {
      weights.fill(session, plan);
      for (int rank = 0; rank < 2; rank++) {
        session.input(rank, "x").copyFrom(counted(0, 4));
      }
      session.run();
      for (int rank = 0; rank < 2; rank++) {
        var norm = session.output(rank, 0).orElseThrow();
        var up = session.output(rank, 1).orElseThrow();
        var down = session.output(rank, 2).orElseThrow();
        for (int i = 0; i < 4; i++) {
          assertThat(norm.get(i)).isEqualTo(i + 1);
        }
        for (int i = 0; i < 3; i++) {
          for (int j = 0; j < 4; j++) {
            assertThat(up.get(i, j)).isEqualTo(-10 * ((3 * rank + i) * 4 + j + 1));
          }
        }
        for (int i = 0; i < 5; i++) {
          for (int j = 0; j < 2; j++) {
            assertThat(down.get(i, j)).isEqualTo(-100 * (i * 4 + 2 * rank + j + 1));
          }
        }
      }
    }
  }

  @Test
  void eachRankGetsItsPart() {
    var plan = plan(GRAPH);
    runsWith(Weights.read(index, layout, plan), plan);
    runsWith(Weights.read(folder, layout, plan), plan);
  }

  @Test
  void ranksShareWhatIsTheSameForAll() {
    var plan = plan(GRAPH);
    var weights = Weights.read(index, layout, plan);
    try (var session = Session.open(plan, new HostBackend())) {
      weights.fill(session, plan);
      assertThat(session.input(0, "norm").memory().address())
          .isEqualTo(session.input(1, "norm").memory().address());
      assertThat(session.input(0, "norm").memory().isMapped()).isTrue();
      assertThat(session.input(1, "up").memory().address())
          .isEqualTo(session.input(0, "up").memory().address() + 3 * 4 * Float.BYTES);
    }
  }

  @Test
  void anInputThatIsWrittenIsNotShared() {
    var text =
        """
        graph version 1
        group all = [0, 1]
        graph g(norm: f32[4]) {
          a = aten::add_.Tensor(norm, norm)
          return a
        }
        """;
    var plan = plan(text);
    var only = folder.resolve("only.safetensors");
    Safetensors.write(only, ImmutableMap.of("norm", counted(1, 4)));
    var weights = Weights.read(only, plan);
    try (var session = Session.open(plan, new HostBackend())) {
      weights.fill(session, plan);
      session.run();
      session.run();
      for (int rank = 0; rank < 2; rank++) {
        assertThat(session.output(rank, 0).orElseThrow().get(2)).isEqualTo(12);
      }
      assertThat(weights.tensor("norm", 0).orElseThrow().get(2)).isEqualTo(3);
    }
  }

  @Test
  void namesOfParametersAreNamesOfInputs() {
    var plan =
        plan(
            """
            graph version 1
            graph g(model_norm_weight: f32[4], w: f32[2]) {
              a = aten::neg(model_norm_weight)
              b = aten::neg(w)
              return a, b
            }
            """);
    var file = folder.resolve("model.safetensors");
    Safetensors.write(
        file, ImmutableMap.of("model.norm.weight", counted(1, 4), "w", counted(1, 2)));
    assertThat(Weights.read(file, plan).names())
        .containsExactlyInAnyOrder("model_norm_weight", "w");
    Safetensors.write(
        file,
        ImmutableMap.of("model.norm.weight", counted(1, 4), "model_norm.weight", counted(1, 4)));
    assertThatThrownBy(() -> Weights.read(file, plan))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("several tensors are called 'model_norm_weight'");
  }

  @Test
  void groupsDivideATensorEach() throws IOException {
    var plan =
        plan(
            """
            graph version 1
            group all = [0, 1, 2, 3]
            graph g(w: f32[3]) {
              a = aten::neg(w)
              return a
            }
            """);
    var file = folder.resolve("model.safetensors");
    Safetensors.write(file, ImmutableMap.of("w", counted(1, 6)));
    Files.writeString(
        layout, "{\"w\": {\"tensor\": \"w\", \"shard\": 0, \"groups\": [[0, 2], [3, 1]]}}");
    var weights = Weights.read(file, layout, plan);
    assertThat(
            IntStream.range(0, 4).mapToObj(rank -> weights.tensor("w", rank).orElseThrow().get(0)))
        .containsExactly(1.0, 4.0, 4.0, 1.0);
  }

  private void fails(String... messages) {
    var plan = plan(GRAPH);
    assertThatThrownBy(() -> Weights.read(index, layout, plan))
        .isInstanceOf(CompileException.class)
        .satisfies(wrong -> assertThat(wrong.getMessage()).contains(messages));
  }

  @Test
  void aMissingShardIsNamed() throws IOException {
    Files.delete(folder.resolve(SECOND));
    fails("weight_map.model.down.weight: the shard " + SECOND + " does not exist");
  }

  @Test
  void aTruncatedShardIsNamed() throws IOException {
    var bytes = Files.readAllBytes(folder.resolve(SECOND));
    for (int length = 0; length < bytes.length; length++) {
      Files.write(folder.resolve(SECOND), Arrays.copyOf(bytes, length));
      fails(SECOND);
    }
  }

  @Test
  void aTensorThatItsShardLacksIsNamed() {
    Safetensors.write(folder.resolve(SECOND), ImmutableMap.of("other", counted(1, 5, 4)));
    fails(
        SECOND,
        "no tensor 'model.down.weight' was found, but model.safetensors.index.json says that it is"
            + " here");
  }

  @Test
  void aCheckpointOfAnotherModelIsRefused() {
    Safetensors.write(
        folder.resolve(FIRST),
        ImmutableMap.of("model.norm.weight", counted(1, 4), "model.up.weight", counted(10, 8, 4)));
    fails(
        FIRST,
        "tensor 'model.up.weight' is f32[8, 4], and the part of rank 0 is f32[4, 4], but the input"
            + " 'up' is f32[3, 4]");
  }

  @Test
  void aWeightThatTheLayoutLeavesOutIsNamed() throws IOException {
    Files.writeString(layout, "{\"up\": {\"tensor\": \"model.up.weight\", \"shard\": 0}}");
    var plan =
        plan(
            GRAPH
                .replace("norm: f32[4]", "model_norm_weight: f32[4]")
                .replace("(x, norm)", "(x, model_norm_weight)"));
    assertThatThrownBy(() -> Weights.read(index, layout, plan))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining(
            "weights.json: error[bad-tensors]: input 'model_norm_weight' is missing")
        .hasMessageContaining("has the tensor 'model.norm.weight'");
  }

  @Test
  void anotherElementTypeIsRefused() {
    Safetensors.write(
        folder.resolve(SECOND),
        ImmutableMap.of(
            "model.down.weight", counted(1, 5, 4).copyAs(TensorType.contiguous(DType.BF16, 5, 4))));
    fails(SECOND, "tensor 'model.down.weight' is bf16[5, 4]", "but the input 'down' is f32[5, 2]");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"../a.safetensors", "/etc/a.safetensors", "", "a\\\\b.safetensors", "passwd"})
  void anIndexNamesFilesBesideIt(String shard) throws IOException {
    Files.writeString(index, INDEX.replace(SECOND, shard));
    fails("weight_map.model.down.weight: ", "is not the name of a safetensors file");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      textBlock =
          """
          [] | this is not an object
          {"up": 3} | this is not an object
          {"up": {}} | 'tensor' is missing
          {"up": {"tensor": "model.up.weight", "dim": 0}} | unknown field 'dim'
          {"up": {"tensor": "nothing"}} | has no tensor 'nothing' for input 'up'
          {"up": {"tensor": "model.up.weight", "shard": -1}} | dimension -1 is negative
          {"up": {"tensor": "model.up.weight", "shard": 2}} | has no dimension 2
          {"up": {"tensor": "model.up.weight", "groups": [[0]]}} | 'groups' needs 'shard'
          {"up": {"tensor": "model.up.weight", "shard": 0, "groups": [[0], [0]]}} | rank 0 is in the groups twice
          {"down": {"tensor": "model.down.weight", "shard": 1, "groups": [[0, 2]]}} | rank 1 is in none of the groups
          {"wrong": {"tensor": "model.up.weight"}} | the graph has no input 'wrong'
          {"up": {"tensor": "model.up.weight"}, "up": {"tensor": "model.up.weight"}} | Duplicate field
          """)
  void aWrongLayoutIsLocated(String text, String message) throws IOException {
    Files.writeString(layout, text);
    fails(message);
  }

  @Test
  void randomDamageIsReadOrRefused() throws IOException {
    var plan = plan(GRAPH);
    long seed = Fuzz.seed(20261124);
    var random = new Random(seed);
    int refused = 0;
    for (int i = 0; i < Fuzz.times(DAMAGES); i++) {
      write();
      for (var file : Map.of(index, 1, layout, 1, folder.resolve(FIRST), 2).entrySet()) {
        if (random.nextInt(3) < file.getValue()) {
          var bytes = Files.readAllBytes(file.getKey());
          bytes[random.nextInt(bytes.length)] = (byte) random.nextInt(128);
          Files.write(file.getKey(), bytes);
        }
      }
      try {
        var weights = Weights.read(index, layout, plan);
        for (var name : weights.names()) {
          weights.tensor(name, 1).orElseThrow().contiguous();
        }
      } catch (CompileException e) {
        refused++;
      }
    }
    assertThat(refused).as("seed %s", seed).isGreaterThan(DAMAGES / 4);
  }
}
