package dev.symplan.cli;

import static dev.symplan.cli.Ran.run;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.base.Splitter;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Safetensors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Several graphs as one program, from the command line. */
class TogetherTest {
  private static final Path CASES =
      Path.of(System.getProperty("symplan.root", "../.."), "samples", "cases");
  private static final Path FORWARD = CASES.resolve("fsdp_mlp_train_fwd");
  private static final Path BACKWARD = CASES.resolve("fsdp_mlp_train_bwd");

  /** How many tensors of the forward graph the backward graph takes. */
  private static final int SAVED = 10;

  @TempDir Path folder;

  private static String text(Path of) {
    return of.resolve("graph.fx.txt").toString();
  }

  @Test
  void aTrainingStepComputesWhatPyTorchComputed() {
    var step = folder.resolve("graph.graph");
    var imported =
        run(
            "import",
            text(FORWARD),
            text(BACKWARD),
            "--together",
            "--ranks",
            "4",
            "-o",
            step.toString());
    assertThat(imported.code()).as(imported.toString()).isZero();
    for (int rank = 0; rank < 4; rank++) {
      var inputs = new LinkedHashMap<>(tensors(FORWARD, rank, "inputs"));
      inputs.put("in" + inputs.size(), tensor(BACKWARD, rank, "inputs", "in" + SAVED));
      Safetensors.write(folder.resolve("rank%s.inputs.safetensors".formatted(rank)), inputs);
      var outputs = new LinkedHashMap<String, HostTensor>();
      outputs.put("out0", tensor(FORWARD, rank, "outputs", "out0"));
      tensors(BACKWARD, rank, "outputs")
          .forEach(
              (name, tensor) ->
                  outputs.put("out" + (Integer.parseInt(name.substring(3)) + 1), tensor));
      Safetensors.write(folder.resolve("rank%s.outputs.safetensors".formatted(rank)), outputs);
    }
    for (var how : List.of(List.<String>of(), List.of("--one-by-one"))) {
      var ran =
          run(
              Stream.concat(Stream.of("run", folder.toString(), "--check"), how.stream())
                  .toArray(String[]::new));
      assertThat(ran.out()).contains("ok: all 20 outputs agree");
      assertThat(ran.code()).isZero();
    }
  }

  /** Each has several graphs, what PyTorch was given, and what it gave. */
  @ParameterizedTest
  @CsvSource({"fsdp_mlp_train_step, 20", "llama_prefill_decode, 4"})
  void programsOfTheSamplesComputeWhatPyTorchComputed(String name, int outputs) {
    for (var options :
        List.of(
            "",
            "--one-by-one",
            "--one-by-one --inputs external --results external",
            "--no-overlap --target h100x8")) {
      var args = new ArrayList<>(List.of("run", CASES.resolve(name).toString(), "--check"));
      args.addAll(Splitter.on(' ').omitEmptyStrings().splitToList(options));
      if (Files.exists(CASES.resolve(name).resolve("weights.json"))) {
        args.addAll(List.of("--weights", CASES.resolveSibling("serving/checkpoint").toString()));
      }
      var ran = run(args.toArray(String[]::new));
      assertThat(ran.out())
          .as(ran.toString())
          .contains("ok: all %s outputs agree".formatted(outputs));
      assertThat(ran.code()).isZero();
    }
  }

  /** The wholes of the first gathers do not wait for the backward graph: they come again. */
  @Test
  void aTrainingStepInLessMemoryGathersAgain() {
    var step = CASES.resolve("fsdp_mlp_train_step").toString();
    var refused = run("compile", step, "--bucket", "off", "--memory-limit", "1");
    var least = Pattern.compile("allow at least ([0-9]+) bytes").matcher(refused.err());
    assertThat(least.find()).as(refused.err()).isTrue();
    var limit = least.group(1);
    assertThat(run("compile", step, "--bucket", "off", "--memory-limit", limit).out())
        .containsPattern("all_gather_into_tensor.* is computed again by 1 op, with 1 gather");
    for (var how : List.of(List.<String>of(), List.of("--one-by-one"))) {
      var args =
          new ArrayList<>(
              List.of("run", step, "--check", "--bucket", "off", "--memory-limit", limit));
      args.addAll(how);
      assertThat(run(args.toArray(String[]::new)).out()).contains("ok: all 20 outputs agree");
    }
  }

  private static Map<String, HostTensor> tensors(Path of, int rank, String what) {
    return Safetensors.read(of.resolve("rank%s.%s.safetensors".formatted(rank, what)));
  }

  private static HostTensor tensor(Path of, int rank, String what, String name) {
    var found = tensors(of, rank, what).get(name);
    assertThat(found).as("%s %s", of, name).isNotNull();
    return found;
  }

  /** Texts as PyTorch 2.11 prints them, for a model in channels-last and one with a checkpoint. */
  @Test
  void pairsOfPyTorchWithOtherStridesAndGenerators() throws IOException {
    var run = new ArrayList<>(List.of("run", joined(CONVOLUTION, CONVOLUTION_GRADIENT)));
    assertThat(run(run.toArray(String[]::new)).out()).contains("ok: all 2 outputs agree");
    run.add("--one-by-one");
    assertThat(run(run.toArray(String[]::new)).out()).contains("ok: all 2 outputs agree");

    // The backward graph draws what the forward graph drew.
    var drawn = run("run", joined(CHECKPOINT, CHECKPOINT_GRADIENT), "--print", "all");
    assertThat(drawn.err()).doesNotContain("random state");
    assertThat(drawn.out()).contains("all: b8[]", "tensor(True)", "ok: all 4 outputs agree");
  }

  /** {@return a file with both graphs} */
  private String joined(String forward, String backward) throws IOException {
    var texts = List.of(folder.resolve("f.fx.txt"), folder.resolve("b.fx.txt"));
    Files.writeString(texts.getFirst(), forward);
    Files.writeString(texts.getLast(), backward);
    var step = folder.resolve("step.graph").toString();
    var imported =
        run(
            "import",
            texts.getFirst().toString(),
            texts.getLast().toString(),
            "--together",
            "--ranks",
            "1",
            "-o",
            step);
    assertThat(imported.code()).as(imported.toString()).isZero();
    return step;
  }

  private static final String CONVOLUTION =
      """
      class GraphModule(torch.nn.Module):
          def forward(self, primals_1: "f32[8, 3, 3, 3][27, 9, 3, 1]cuda:0", primals_2: "f32[2, 3, 8, 8][192, 64, 8, 1]cuda:0"):
              convolution: "f32[2, 8, 8, 8][512, 64, 8, 1]cuda:0" = torch.ops.aten.convolution.default(primals_2, primals_1, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
              relu: "f32[2, 8, 8, 8][512, 64, 8, 1]cuda:0" = torch.ops.aten.relu.default(convolution);  convolution = None
              return (relu, primals_1, primals_2, relu)
      """;

  private static final String CONVOLUTION_GRADIENT =
      """
      class GraphModule(torch.nn.Module):
          def forward(self, primals_1: "f32[8, 3, 3, 3][27, 1, 9, 3]cuda:0", primals_2: "f32[2, 3, 8, 8][192, 1, 24, 3]cuda:0", relu: "f32[2, 8, 8, 8][512, 1, 64, 8]cuda:0", tangents_1: "f32[2, 8, 8, 8][512, 64, 8, 1]cuda:0"):
              le: "b8[2, 8, 8, 8][512, 1, 64, 8]cuda:0" = torch.ops.aten.le.Scalar(relu, 0);  relu = None
              full_default: "f32[][]cuda:0" = torch.ops.aten.full.default([], 0.0, dtype = torch.float32, layout = torch.strided, device = device(type='cuda', index=0), pin_memory = False)
              where: "f32[2, 8, 8, 8][512, 64, 8, 1]cuda:0" = torch.ops.aten.where.self(le, full_default, tangents_1);  le = full_default = tangents_1 = None
              convolution_backward = torch.ops.aten.convolution_backward.default(where, primals_2, primals_1, [0], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [False, True, False]);  where = primals_2 = primals_1 = None
              getitem_1: "f32[8, 3, 3, 3][27, 1, 9, 3]cuda:0" = convolution_backward[1];  convolution_backward = None
              return (getitem_1, None)
      """;

  private static final String CHECKPOINT =
      """
      class GraphModule(torch.nn.Module):
          def forward(self, primals_1: "f32[8, 8][8, 1]cuda:0", primals_2: "f32[8, 8][8, 1]cuda:0", fwd_rng_state_0):
              mm: "f32[8, 8][8, 1]cuda:0" = torch.ops.aten.mm.default(primals_2, primals_1)
              graphsafe_run_with_rng_state: "f32[8, 8][8, 1]cuda:0" = torch.ops.higher_order.graphsafe_run_with_rng_state(torch.ops.aten.rand.default, [8, 8], dtype = torch.float32, device = device(type='cuda', index=0), pin_memory = False, rng_state = fwd_rng_state_0);  fwd_rng_state_0 = None
              mul: "f32[8, 8][8, 1]cuda:0" = torch.ops.aten.mul.Tensor(mm, graphsafe_run_with_rng_state);  mm = None
              return (mul, graphsafe_run_with_rng_state, primals_1, primals_2)
      """;

  private static final String CHECKPOINT_GRADIENT =
      """
      class GraphModule(torch.nn.Module):
          def forward(self, graphsafe_run_with_rng_state: "f32[8, 8][8, 1]cuda:0", primals_1: "f32[8, 8][8, 1]cuda:0", primals_2: "f32[8, 8][8, 1]cuda:0", tangents_1: "f32[8, 8][8, 1]cuda:0", bwd_rng_state_0):
              graphsafe_run_with_rng_state_1: "f32[8, 8][8, 1]cuda:0" = torch.ops.higher_order.graphsafe_run_with_rng_state(torch.ops.aten.rand.default, [8, 8], dtype = torch.float32, device = device(type='cuda', index=0), pin_memory = False, rng_state = bwd_rng_state_0);  bwd_rng_state_0 = None
              eq: "b8[8, 8][8, 1]cuda:0" = torch.ops.aten.eq.Tensor(graphsafe_run_with_rng_state, graphsafe_run_with_rng_state_1)
              all: "b8[][]cuda:0" = torch.ops.aten.all.default(eq);  eq = None
              mul: "f32[8, 8][8, 1]cuda:0" = torch.ops.aten.mul.Tensor(tangents_1, graphsafe_run_with_rng_state_1);  tangents_1 = None
              permute: "f32[8, 8][1, 8]cuda:0" = torch.ops.aten.permute.default(primals_2, [1, 0]);  primals_2 = None
              mm: "f32[8, 8][8, 1]cuda:0" = torch.ops.aten.mm.default(permute, mul);  permute = None
              permute_1: "f32[8, 8][1, 8]cuda:0" = torch.ops.aten.permute.default(primals_1, [1, 0]);  primals_1 = None
              mm_1: "f32[8, 8][8, 1]cuda:0" = torch.ops.aten.mm.default(mul, permute_1);  permute_1 = None
              return (mm, mm_1, all)
      """;

  @Test
  void aPlanNamesItsGraphs() throws IOException {
    var files = List.of(folder.resolve("forward.fx.txt"), folder.resolve("backward.fx.txt"));
    Files.copy(FORWARD.resolve("graph.fx.txt"), files.getFirst());
    Files.copy(BACKWARD.resolve("graph.fx.txt"), files.getLast());
    var plan = folder.resolve("step.plan").toString();
    var compiled =
        run(
            "compile",
            files.getFirst().toString(),
            files.getLast().toString(),
            "--together",
            "--ranks",
            "4",
            "-o",
            plan);
    assertThat(compiled.code()).as(compiled.toString()).isZero();
    assertThat(run("dump", plan).out())
        .containsPattern("graph +forward: steps 0 to [0-9]+ .* in use across its end")
        .containsPattern("graph +backward: steps [0-9]+ to [0-9]+ ");
    assertThat(run("dump", plan, "--view", "schedule").out()).contains("graph 'backward' begins");
    assertThat(run("dump", plan, "--view", "memory").out())
        .containsPattern("\\|forward +\\|backward");
    assertThat(run("explain", plan, "mm_1").out()).contains("made in graph 'forward', read in");
    var whole = folder.resolve("whole.plan").toString();
    run(
        "compile",
        files.getFirst().toString(),
        files.getLast().toString(),
        "--together",
        "--across-graphs",
        "--ranks",
        "4",
        "-o",
        whole);
    assertThat(run("diff", plan, whole).out()).contains("graphs run  forward, backward → forward");
  }

  @Test
  void oneWordIsMissing() {
    var ran = run("compile", text(FORWARD), text(BACKWARD));
    assertThat(ran.code()).isEqualTo(2);
    assertThat(ran.err()).contains("2 inputs need --together, which plans them as one program");
    assertThat(run("compile", text(FORWARD), "--ties", "t.json").err())
        .contains("--ties needs --together");
  }

  @Test
  void tiesAreReadFromAFile() throws IOException {
    var first = folder.resolve("a.graph");
    Files.writeString(
        first, "graph version 1\ngraph a(x: f32[4]) {\n  y = aten::neg(x)\n  return y\n}\n");
    var second = folder.resolve("b.graph");
    Files.writeString(
        second, "graph version 1\ngraph b(v: f32[4]) {\n  z = aten::exp(v)\n  return z\n}\n");
    var ties = folder.resolve("ties.json");
    Files.writeString(
        ties,
        """
        [{"from": {"graph": 0, "value": "y"}, "to": {"graph": 1, "value": "v"}}]
        """);
    var ran =
        run("import", first.toString(), second.toString(), "--together", "--ties", ties.toString());
    assertThat(ran.out()).contains("z = aten::exp(y)");
    assertThat(wrongTies("1 y 1 v"))
        .contains("ties.json:1:2: error[bad-ties]", "graph 1 does not run before graph 1");
    // A cycle.
    assertThat(wrongTies("0 y 1 v", "1 z 0 x"))
        .contains(
            "ties.json:1:", "graph 1 does not run before graph 0", "in the order of their files");
    assertThat(wrongTies("0 y 2 v")).contains("graph 2 does not exist", "there are 2 graphs");
    assertThat(wrongTies("0 q 1 v"))
        .contains("ties.json:1:2:", "graph 0 has no output or input 'q'", "outputs: y");
    assertThat(wrongTies("0 y 1 q")).contains("graph 1 has no input 'q'", "inputs: v");
    assertThat(wrongTies("0 y 1 v", "0 x 1 v")).contains("input 'v' of graph 1 is tied twice");
    Files.writeString(
        second, "graph version 1\ngraph b(v: f32[5]) {\n  z = aten::exp(v)\n  return z\n}\n");
    assertThat(wrongTies("0 y 1 v"))
        .contains("'y' is f32[4] in graph 0, but 'v' is f32[5] in graph 1", "of one capture?");
  }

  /** {@return the error about ties between two graphs, after which there is no plan} */
  private String wrongTies(String... ties) throws IOException {
    var text =
        Arrays.stream(ties)
            .map(tie -> tie.split(" "))
            .map(
                end ->
                    "{\"from\": {\"graph\": %s, \"value\": \"%s\"}, \"to\": {\"graph\": %s, \"value\": \"%s\"}}"
                        .formatted((Object[]) end))
            .collect(Collectors.joining(", ", "[", "]\n"));
    var file = Files.writeString(folder.resolve("ties.json"), text).toString();
    var a = folder.resolve("a.graph").toString();
    var b = folder.resolve("b.graph").toString();
    var plan = folder.resolve("plan.json");
    var ran = run("compile", a, b, "--together", "--ties", file, "-o", plan.toString());
    assertThat(ran.code()).isEqualTo(1);
    assertThat(plan).doesNotExist();
    assertThat(ran.err()).doesNotContain("\tat ");
    return ran.err();
  }

  @Test
  void bucketsAreVersionsOfAGraph() throws IOException {
    var text = folder.resolve("f.fx.txt");
    Files.writeString(
        text,
        """
        class GraphModule(torch.nn.Module):
            def forward(self, s77: "Sym(s77)", x: "f32[s77, 2][2, 1]cpu", w: "f32[2, 3][3, 1]cpu"):
                mm: "f32[s77, 3][3, 1]cpu" = torch.ops.aten.mm.default(x, w)
                return (mm,)
        """);
    var plan = folder.resolve("f.plan").toString();
    var compiled =
        run("compile", text.toString(), "--buckets", "s77=2,4", "--ranks", "1", "-o", plan);
    assertThat(compiled.code()).as(compiled.toString()).isZero();
    assertThat(compiled.out()).contains("graph    f_s77_2: steps", "graph    f_s77_4: steps");
    for (var how : List.of(List.<String>of(), List.of("--one-by-one"))) {
      var ran = run(Stream.concat(Stream.of("run", plan), how.stream()).toArray(String[]::new));
      assertThat(ran.out()).contains("f32[2, 3]", "f32[4, 3]", "ok: all 2 outputs agree");
    }
    // What follows --buckets is an input, unless it looks like sizes.
    var ranged = run("import", "--dim", "s77=2..5", "--ranks", "1", "--buckets", text.toString());
    assertThat(ranged.out())
        .contains("x_s77_2: f32[2, 2]", "x_s77_4: f32[4, 2]", "x_s77_5: f32[5, 2]", "w: f32[2, 3]");
    var imported = run("import", text.toString(), "--buckets", "s77=2,4", "--ranks", "1");
    assertThat(imported.out()).contains("x_s77_2: f32[2, 2]", "x_s77_4: f32[4, 2]", "w: f32[2, 3]");
    for (var wrong : List.of("2,4", "s77=", "s77=2,,4", "s77=a,b", "=2,4")) {
      var ran = run("compile", text.toString(), "--buckets", wrong);
      assertThat(ran.code()).as(wrong).isEqualTo(2);
      assertThat(ran.err()).contains("is not of the form s77=128,1024,4096");
    }
    for (var wrong : List.of("--buckets", "--buckets --dim s77=2..4 --dim s78=2..4")) {
      var words = Stream.concat(Stream.of("import", text.toString()), Stream.of(wrong.split(" ")));
      var ran = run(words.toArray(String[]::new));
      assertThat(ran.code()).as(wrong).isEqualTo(2);
      assertThat(ran.err()).contains("--buckets needs the range of one symbolic size");
    }
    assertThat(run("import", text.toString(), "--buckets", "s77=2,4", "--dim", "s77=2..4").err())
        .contains("--buckets s77=2,4 lists the sizes; leave out the range in --dim, or the list");
    assertThat(run("import", text.toString(), "--buckets", "--dim", "s77=5..6").err())
        .contains("no power of two is in 5..6 below its end; --dim s77=6 plans for that");
    assertThat(run("run", text.toString(), "--dim", "s77=2..4").err())
        .contains("--dim s77=2..4 is a range");
    var twice = run("compile", text.toString(), "--buckets", "s77=2,4", "--dim", "s77=3");
    assertThat(twice.code()).isEqualTo(1);
    assertThat(twice.err()).contains("the size 's77' has another value already");
  }
}
