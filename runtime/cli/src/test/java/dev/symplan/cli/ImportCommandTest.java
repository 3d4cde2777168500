package dev.symplan.cli;

import static dev.symplan.cli.Ran.run;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.common.collect.ImmutableMap;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.runtime.tensor.Safetensors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Archives of torch.export on the command line, and {@code import} of every form of input. */
class ImportCommandTest {
  private static final Path SAMPLES =
      Path.of(System.getProperty("symplan.root", "../..")).resolve("samples");
  private static final Path SHARED =
      Path.of(System.getProperty("symplan.shared", "../shared")).resolve("cases");

  @TempDir private Path folder;

  private static Path archive(String name) {
    return SAMPLES.resolve("export").resolve(name).resolve("graph.pt2");
  }

  @ParameterizedTest
  @CsvSource({"tp_mlp,2", "block,1", "counter,1", "copy_in_place,1", "batch_norm,1", "shared,1"})
  void archivesComputeWhatPyTorchComputed(String name, int ranks) {
    var input = SAMPLES.resolve("export").resolve(name);
    for (var place : List.of("auto", "external", "symm", "local")) {
      var result = run("run", input, "--check", "--inputs", place);
      assertThat(result.code()).as(result.out() + result.err()).isZero();
      assertThat(result.out())
          .contains("on %s rank".formatted(ranks), "the case's inputs, weights of " + input)
          .contains("ok: ");
    }
  }

  /** Compile must be able to read all that import writes. */
  @Test
  void groupsWithoutANameAreRefused() throws IOException {
    var text =
        Files.writeString(
            folder.resolve("empty.fx.txt"),
            """
            def forward(self, x: "f32[4][1]cpu"):
                y: "f32[4][1]cpu" = torch.ops._c10d_functional.all_reduce.default(x, 'sum', '')
                return (y,)
            """);

    var imported = run("import", text, "--ranks", 2);

    assertThat(imported.code()).isEqualTo(ExitCode.FAILED);
    assertThat(imported.err())
        .contains("empty.fx.txt:2:")
        .contains("the name of the group is empty");
  }

  @Test
  void anArchiveAloneRunsWithItsWeightsAndMadeUpInputs() {
    var result = run("run", archive("tp_mlp"), "--ranks", 3);
    assertThat(result.code()).as(result.err()).isZero();
    assertThat(result.out())
        .contains("on 3 ranks", "inputs from seed 0, weights of " + archive("tp_mlp"))
        .contains("ok: all 3 outputs agree");
  }

  @Test
  void ranksThatWriteInPlaceHaveWeightsOfTheirOwn() {
    var result = run("run", archive("copy_in_place"), "--ranks", 4, "--inputs", "external");
    assertThat(result.code()).as(result.out()).isZero();
    assertThat(result.out()).contains("ok: all 4 outputs agree");
  }

  @Test
  void theSharedArchiveRuns() {
    var shared = SHARED.resolve("export/allreduce_linear.pt2");
    assumeTrue(Files.exists(shared), "the shared cases are not here");
    var result = run("run", shared, "--ranks", 4);
    assertThat(result.code()).as(result.err()).isZero();
    assertThat(result.out())
        .contains("all_reduce: all_reduce as", "weights of", "ok: all 4 outputs agree");
  }

  @ParameterizedTest
  @ValueSource(strings = {"tp_mlp", "shared", "counter"})
  void aGraphAndItsWeightsComputeWhatTheArchiveDoes(String name) throws IOException {
    var graph = folder.resolve("graph.graph");
    var weights = folder.resolve("weights.safetensors");
    var imported = run("import", archive(name), "-o", graph, "--weights", weights, "--ranks", 2);
    assertThat(imported.code()).as(imported.err()).isZero();
    assertThat(imported.out()).isEmpty();
    assertThat(imported.err()).contains("graph written to", "weights written to");
    var direct = folder.resolve("direct");
    var again = folder.resolve("again");
    assertThat(run("run", archive(name), "--ranks", 2, "--outputs", direct).code()).isZero();
    var result = run("run", graph, "--ranks", 2, "--weights", weights, "--outputs", again);
    assertThat(result.code()).as(result.err()).isZero();
    assertThat(result.out()).contains("weights of " + weights);
    for (int rank = 0; rank < 2; rank++) {
      var file = "rank" + rank + ".outputs.safetensors";
      assertThat(again.resolve(file)).hasSameBinaryContentAs(direct.resolve(file));
    }
  }

  @Test
  void aPlanRunsWithTheWeightsOfItsArchive() {
    var plan = folder.resolve("plan.json");
    assertThat(run("compile", archive("shared"), "--ranks", 1, "-o", plan).code()).isZero();
    var result =
        run("run", plan, "--weights", archive("shared"), "--case", archive("shared").getParent());
    assertThat(result.code()).as(result.err()).isZero();
    assertThat(result.out()).contains("the case's inputs, weights of " + archive("shared"));
  }

  @Test
  void weightsThatAreNoInputsAreNamed() {
    var result = run("run", archive("shared"), "--ranks", 1, "--weights", archive("counter"));
    assertThat(result.code()).isEqualTo(ExitCode.FAILED);
    assertThat(result.err())
        .contains("error[bad-tensors]: tensor 'b_total' does not match any input of the graph");
  }

  static List<Path> inputs() throws IOException {
    var inputs = new ArrayList<Path>();
    for (var place :
        List.of(
            SAMPLES,
            SAMPLES.resolve("cases"),
            SAMPLES.resolve("cases/plan"),
            SAMPLES.resolve("export"),
            SHARED.resolve("numeric"),
            SHARED.resolve("export"))) {
      if (Files.isDirectory(place)) {
        try (var files = Files.list(place)) {
          files.filter(ImportCommandTest::isInput).sorted().forEach(inputs::add);
        }
      }
    }
    return inputs;
  }

  private static boolean isInput(Path path) {
    var name = path.toString();
    return name.endsWith(".graph")
        || name.endsWith(".fx.txt")
        || name.endsWith(".pt2")
        || Files.exists(path.resolve("graph.fx.txt"))
        || Files.exists(path.resolve("graph.pt2"));
  }

  /**
   * All that a plan says, but not where its source was, nor which ops that the planner took apart
   * the written graph declares.
   */
  private static String plan(Path input, CompileOptions options) {
    return PlanFile.toJson(Compiler.forDefaultTarget().with(options).compile(input))
        .replaceAll("(?m)^ *\"sources?\" : .*$", "")
        .replaceAll("(?:\"op symm_mem::[^\"]*\", )+\"\", ", "")
        .replaceAll("\\([^()\"]*:[0-9]+\\) comes between", "comes between");
  }

  private static int ranks(Path input) {
    var name = input.toString();
    if (name.endsWith(".graph")) {
      return 0;
    }
    return name.endsWith(".fx.txt")
        ? 8
        : name.contains("export") || name.contains("symm_mem") ? 2 : 4;
  }

  @ParameterizedTest
  @MethodSource("inputs")
  void aWrittenGraphPlansLikeWhatItCameFrom(Path input) {
    var graph = folder.resolve("written.graph");
    var options =
        CompileOptions.DEFAULT
            .withRanks(ranks(input))
            .withDims(ImmutableMap.of("s27", 4L), ImmutableMap.of());
    var words = new ArrayList<Object>(List.of("import", input, "-o", graph, "--dim", "s27=4"));
    if (ranks(input) > 0) {
      words.addAll(List.of("--ranks", ranks(input)));
    }
    var result = run(words.toArray());
    assertThat(result.code()).as(result.err()).isZero();
    assertThat(plan(graph, options)).isEqualTo(plan(input, options));
  }

  @Test
  void writesToTheStandardOutput() {
    var result = run("import", archive("counter"));
    assertThat(result.code()).isZero();
    assertThat(result.out())
        .startsWith("graph version 1\n\ngraph graph(b_total: f32[4], x: f32[3, 4]) {\n");
    assertThat(result.err()).isEmpty();
  }

  @Test
  void whatIsReadIsNotWritten() throws IOException {
    var input = Files.copy(archive("shared"), folder.resolve("in.pt2"));
    var before = Files.readAllBytes(input);
    for (var option : List.of("-o", "--weights")) {
      var result = run("import", input, option, folder.resolve("./in.pt2"));
      assertThat(result.code()).isEqualTo(ExitCode.FAILED);
      assertThat(result.err()).contains("error[bad-option]: this is the input");
      assertThat(Files.readAllBytes(input)).isEqualTo(before);
    }
    var within = run("import", folder, "-o", folder.resolve("graph.graph"));
    assertThat(within.err()).contains("in the folder that is read");
    var same = folder.resolve("same");
    var twice = run("import", input, "-o", same, "--weights", same);
    assertThat(twice.code()).isEqualTo(ExitCode.USAGE);
    assertThat(folder).isDirectoryContaining(file -> file.equals(input));
    assertThat(same).doesNotExist();
  }

  @Test
  void aDamagedArchiveLeavesNothingBehind() throws IOException {
    var bytes = Files.readAllBytes(archive("shared"));
    var cut = Files.write(folder.resolve("cut.pt2"), Arrays.copyOf(bytes, bytes.length / 2));
    var out = folder.resolve("out.graph");
    for (var command :
        List.of(List.of("import", cut, "-o", out), List.of("run", cut), List.of("compile", cut))) {
      var result = run(command.toArray());
      assertThat(result.code()).isEqualTo(ExitCode.FAILED);
      assertThat(result.err()).startsWith(cut + ": error[bad-archive]: ").doesNotContain("\tat ");
    }
    assertThat(folder).isDirectoryNotContaining(file -> !file.equals(cut));
  }

  @Test
  void plansAreNoGraphs() {
    var plan = folder.resolve("plan.json");
    assertThat(run("compile", SAMPLES.resolve("tp_mlp.graph"), "-o", plan).code()).isZero();
    var result = run("import", plan);
    assertThat(result.code()).isEqualTo(ExitCode.FAILED);
    assertThat(result.err()).contains("this is a plan, not a graph");
  }

  @Test
  void weightsNeedAnArchive() {
    var result = run("import", SAMPLES.resolve("tp_mlp.graph"), "--weights", folder.resolve("w"));
    assertThat(result.code()).isEqualTo(ExitCode.FAILED);
    assertThat(result.err()).contains("only archives of torch.export contain tensors");
  }

  @Test
  void aWrittenWeightIsTheArchives() {
    var file = folder.resolve("w.safetensors");
    assertThat(run("import", archive("counter"), "--weights", file).code()).isZero();
    var tensors = Safetensors.read(file);
    assertThat(tensors).containsOnlyKeys("b_total");
    assertThat(tensors.values().iterator().next().get(3)).isEqualTo(1);
  }
}
