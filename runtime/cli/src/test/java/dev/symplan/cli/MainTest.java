package dev.symplan.cli;

import static dev.symplan.cli.Ran.run;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.data.Offset.offset;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.symplan.cli.common.ExitCode;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.pipeline.Pipeline;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Safetensors;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class MainTest {
  private static final String JAX = "jax_";

  private static final Path SAMPLES =
      Path.of(System.getProperty("symplan.root", "../..")).resolve("samples");

  @TempDir private Path folder;

  private Path file(String name, String text) throws IOException {
    return Files.writeString(folder.resolve(name), text);
  }

  private static Path sample(String name) {
    return SAMPLES.resolve(name);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "compile",
        "run",
        "import",
        "dump",
        "explain",
        "diff",
        "compare-xla",
        "bisect",
        "verify",
        "pack",
        "calibrate",
        "ops",
        "version"
      })
  void everyCommandHasHelp(String command) {
    var result = run(command, "--help");
    assertThat(result.code()).isZero();
    assertThat(result.out()).contains("Usage: symplan " + command);
    assertThat(result.err()).isEmpty();
  }

  @Test
  void filesThatAreReadAreNotOverwritten() throws IOException {
    var target =
        file(
            "t.json",
            """
            {"format": "symplan-target", "version": 1, "name": "t", "base": "h200x4"}
            """);
    var before = Files.readString(target);
    var points =
        file(
            "points.csv",
            "kind,variant,dtype,bytes,ranks,micros\nall_reduce,nccl,bf16,32768,4,0.5\n");

    var compiled = run("compile", sample("tp_mlp.graph"), "--target", target, "-o", target);
    var calibrated = run("calibrate", points, "--base", target, "-o", target);

    assertThat(compiled.code()).isEqualTo(ExitCode.FAILED);
    assertThat(calibrated.code()).isEqualTo(ExitCode.FAILED);
    assertThat(Files.readString(target)).isEqualTo(before);
    assertThat(run("calibrate", points, "-o", folder.resolve("new.json")).code()).isZero();
  }

  /** A terminal would obey them. */
  @Test
  void controlCharactersOfNamesAreEscaped() throws IOException {
    var graph =
        file(
            "esc.graph",
            """
            graph version 1
            group "a\\x1b[31m\\u202e" = [0, 1]
            graph g(x: f32[8]) {
              y = _c10d_functional::all_reduce(x, "sum", "a\\x1b[31m\\u202e")
              return y
            }
            """);

    var wrong = run("compile", graph, "--ranks", 1);
    var dumped = run("dump", graph);

    assertThat(wrong.err()).contains("group 'a\\u001b[31m\\u202e'");
    assertThat(wrong.err() + dumped.out()).doesNotContain("\u001b").doesNotContain("\u202e");
  }

  @Test
  void theEvaluationWithoutAPlanIsBoundedAndCanBeLeftOut() {
    var graph = sample("tp_mlp.graph");

    var late = run("run", graph, "--timeout", "0.000001");
    assertThat(late.code()).isEqualTo(ExitCode.RUNTIME);
    assertThat(late.err()).contains("takes longer than").contains("--no-compare");

    var alone = run("run", graph, "--no-compare");
    assertThat(alone.code()).isZero();
    assertThat(alone.out()).contains("not requested (--no-compare)");
    assertThat(run("run", graph, "--check", "--no-compare").code()).isEqualTo(ExitCode.USAGE);
  }

  @Test
  void theMainJobTellsItsStory() {
    var result = run("run", sample("tp_mlp.graph"), "--ranks", 4);
    assertThat(result.code()).isZero();
    assertThat(result.out())
        .containsPattern(
            """
              n: all_reduce as one_shot_push: .*
                  operand m not-needed: .*
                  result  n not-needed: .*
                  The tensors pass through a workspace .*: one_shot_push is predicted to be the fastest, with .*
              r: all_reduce as two_shot: .*
                  operand y zero-copy: aten::mm writes it there \\(tp_mlp.graph:20\\) .*
                  result  r zero-copy: it reuses the memory of y .*
                  Peers access the tensors .* without a copy: two_shot is predicted to be the fastest, with .*
            """)
        .contains("ok: all 8 outputs agree");
    result = run("run", sample("tp_mlp.graph"), "--ranks", 4, "--variant", "n=nccl");
    assertThat(result.code()).isZero();
    assertThat(result.out())
        .contains(
            "The tensors stay where they are: the options force nccl.", "ok: all 8 outputs agree");
  }

  /** A faster variant is named with the reason why it was not taken. */
  @Test
  void variantsThatAreNotWorthTheirMemoryAreNotCalledSlower() {
    var result = run("run", sample("cases/jax_embedding_loss"), "--check");
    assertThat(result.out())
        .containsPattern(
            "one_shot is predicted to take .*; one_shot_push, with .*, gains too little for the"
                + " memory of its workspace\\.")
        .doesNotContain("the next is one_shot_push, with 2.7");
  }

  /** TogetherTest runs the program whose weights are in a checkpoint. */
  static List<String> cases() throws IOException {
    try (var folders = Files.list(sample("cases"))) {
      return folders
          .filter(folder -> !Files.exists(folder.resolve("weights.json")))
          .map(folder -> String.valueOf(folder.getFileName()))
          .filter(name -> !name.equals("plan") && !name.startsWith(JAX))
          .sorted()
          .toList();
    }
  }

  static List<String> jaxCases() throws IOException {
    try (var folders = Files.list(sample("cases"))) {
      return folders
          .map(folder -> String.valueOf(folder.getFileName()))
          .filter(name -> name.startsWith(JAX))
          .sorted()
          .toList();
    }
  }

  @ParameterizedTest
  @MethodSource("jaxCases")
  void computesWhatJaxComputed(String name) {
    checkCase(sample("cases").resolve(name));
  }

  @ParameterizedTest
  @MethodSource("cases")
  void computesWhatPyTorchComputed(String name) {
    var input = sample("cases").resolve(name);
    for (var target : Target.names()) {
      var plan =
          Compiler.forTarget(Target.ofName(target).orElseThrow())
              .with(CompileOptions.DEFAULT.withMulticast(true))
              .compile(input);
      for (var variants : variants(plan.rankPlans().getFirst())) {
        var options = new ArrayList<Object>(List.of("--target", target, "--multicast=on"));
        variants.forEach(variant -> options.addAll(List.of("--variant", variant)));
        checkCase(input, options.toArray());
      }
    }
    checkCase(input, "--inputs", "external", "--results", "external");
    checkCase(input, "--inputs", "symm", "--results", "symm");
    checkCase(input, "--inputs", "local", "--no-overlap");
  }

  @ParameterizedTest
  @ValueSource(strings = {"llama_tiny", "llama_tiny_train_fwd", "llama_tiny_train_bwd"})
  void computesWhatPyTorchComputedOfLargerModels(String name) {
    var input = shared("cases/numeric").resolve(name);
    assumeTrue(Files.isDirectory(input), "the shared cases are not here");
    checkCase(input);
    checkCase(input, "--inputs", "external", "--results", "external");
    checkCase(
        input, "--inputs", "symm", "--results", "symm", "--target", "h100x8", "--multicast=on");
  }

  @Test
  void saysWhichOutputsNoOpWrites() throws IOException {
    var graph =
        file(
            "unwritten.graph",
            """
            graph version 1

            graph g(q: f32[1, 2, 4, 8]) {
              o, l, s, f = aten::_scaled_dot_product_efficient_attention(q, q, q, None, False)
              return o, s
            }
            """);
    assertThat(run("run", graph, "--ranks", 2).out())
        .contains(
            "not compared: aten::_scaled_dot_product_efficient_attention does not write it",
            "ok: all 2 outputs agree; 2 that no op writes were not compared");
  }

  @Test
  void givesWhatEagerCallsOfSymmMemGave() {
    checkCase(sample("cases/symm_mem"));
    checkCase(sample("cases/symm_mem"), "--free-variants");
  }

  @Test
  void saysWhichOutputsOfACaseNoOpWrites() {
    var input = shared("cases/numeric").resolve("llama_tiny_train_fwd");
    assumeTrue(Files.isDirectory(input), "the shared cases are not here");
    assertThat(run("run", input, "--check").out())
        .contains(
            "not compared: aten::_scaled_dot_product_efficient_attention does not write it",
            "ok: all 332 outputs agree; 16 that no op writes were not compared");
  }

  private static Path shared(String folder) {
    return Path.of(System.getProperty("symplan.shared", "../shared")).resolve(folder);
  }

  /** Choices of variants, in which each eligible one of each collective is. */
  private static List<List<String>> variants(RankPlan plan) {
    var choices = new ArrayList<List<String>>();
    boolean more = true;
    for (int k = 0; more; k++) {
      var choice = new ArrayList<String>();
      more = false;
      for (var collective : plan.collectives()) {
        var eligible = collective.verdicts().stream().filter(v -> v.reason().eligible()).toList();
        var name = plan.graph().ops().get(collective.op()).results().getFirst().name();
        choice.add(name + "=" + eligible.get(k % eligible.size()).variant().text());
        more |= k + 1 < eligible.size();
      }
      choices.add(choice);
    }
    return choices;
  }

  private static void checkCase(Path input, Object... options) {
    var args = new ArrayList<Object>(List.of("run", input, "--check"));
    args.addAll(List.of(options));
    var result = run(args.toArray());
    assertThat(result.code()).as("%s%n%s%s", args, result.out(), result.err()).isZero();
  }

  @Test
  void runsAPlanThatWasWrittenBefore() throws IOException {
    var input = sample("cases/sp_mlp");
    var first = folder.resolve("a.json");
    var second = folder.resolve("b.json");
    assertThat(run("compile", input, "-o", first).code()).isZero();
    assertThat(run("compile", input, "-o", second).code()).isZero();
    assertThat(second).hasSameTextualContentAs(first);
    var result = run("run", first, "--case", input, "--check");
    assertThat(result.code()).as(result.err()).isZero();
    assertThat(run("verify", first).out()).contains("is safe on 4 ranks");
    assertThat(run("dump", first).out()).isEqualTo(run("dump", input).out());
  }

  @Test
  void writesOutputsThatAgree() {
    var outputs = folder.resolve("out");
    var input = sample("cases/tp_mlp_f32");
    assertThat(run("run", input, "--outputs", outputs).code()).isZero();
    HostTensor written = Safetensors.read(outputs.resolve("rank2.outputs.safetensors")).get("out0");
    HostTensor expected = Safetensors.read(input.resolve("rank2.outputs.safetensors")).get("out0");
    assertThat(written).isNotNull();
    assertThat(expected).isNotNull();
    assertThat(written.get(3, 3)).isCloseTo(expected.get(3, 3), offset(1e-4));
  }

  @Test
  void failsTheCheckWhereOutputsDiffer() throws IOException {
    var input = sample("cases/allreduce_relu");
    for (var name : new String[] {"graph.fx.txt"}) {
      Files.copy(input.resolve(name), folder.resolve(name));
    }
    for (int rank = 0; rank < 4; rank++) {
      var inputs = "rank" + rank + ".inputs.safetensors";
      var outputs = "rank" + rank + ".outputs.safetensors";
      Files.copy(input.resolve(inputs), folder.resolve(inputs));
      var tensors = new HashMap<String, HostTensor>();
      Safetensors.read(input.resolve(outputs))
          .forEach(
              (key, tensor) -> {
                var copy = tensor.copyAs(tensor.type());
                copy.set(copy.get(0, 0) + 1, 0, 0);
                tensors.put(key, copy);
              });
      Safetensors.write(folder.resolve(outputs), tensors);
    }
    var result = run("run", folder, "--check");
    assertThat(result.code()).isEqualTo(1);
    assertThat(result.out())
        .contains("the expected output does not belong to this graph")
        .contains("FAILED: 4 of 4 outputs differ");
  }

  /** Each rounds in its own way before it looks for the largest of each row. */
  @Test
  void theCheckAllowsOtherChoicesOfAlmostEqualOperands() throws IOException {
    var text =
        """
        graph version 1
        graph choose(x: bf16[256, 64], w: bf16[64, 64]) {
          a = aten::to.dtype(x, torch.%1$s)
          b = aten::to.dtype(w, torch.%1$s)
          h = aten::mm(a, b)
          most = aten::argmax(h, 1)
          y = aten::embedding(x, most)
          return y
        }
        """;
    var random = new Random(1);
    var inputs = new HashMap<String, HostTensor>();
    for (long rows : new long[] {256, 64}) {
      var tensor = HostTensor.allocate(TensorType.contiguous(DType.BF16, rows, 64));
      for (long i = 0; i < rows * 64; i++) {
        tensor.set(random.nextGaussian(), i / 64, i % 64);
      }
      inputs.put("in" + inputs.size(), tensor);
    }
    Safetensors.write(folder.resolve("rank0.inputs.safetensors"), inputs);
    var own = Files.writeString(folder.resolve("own.graph"), text.formatted("bfloat16"));
    var other = Files.writeString(folder.resolve("other.graph"), text.formatted("float32"));
    var outputs = folder.resolve("outputs");
    assertThat(run("run", other, "--case", folder, "--outputs", outputs).code()).isZero();
    var expected = "rank0.outputs.safetensors";
    Files.move(outputs.resolve(expected), folder.resolve(expected));
    var result = run("run", own, "--case", folder, "--check");
    assertThat(result.out())
        .containsPattern("out0 y .* above 0.01\n")
        .containsPattern("most \\(own.graph:6\\) differs in \\d+ of 256 elements  ok")
        .endsWith("ok: the output agrees\n");
    assertThat(result.code()).isZero();
  }

  @Test
  void explainsAValue() {
    var result = run("explain", sample("tp_mlp.graph"), "r");
    assertThat(result.code()).isZero();
    assertThat(result.out())
        .containsPattern("runs as +two_shot")
        .containsPattern("multimem +cannot: the target has no multicast");
    assertThat(run("explain", sample("tp_mlp.graph"), "nobody").code()).isEqualTo(1);
    assertThat(run("explain", sample("tp_mlp.graph"), "gaet").err())
        .contains("the plan has no value 'gaet'", "did you mean 'gate'?");
  }

  @Test
  void dumpsInEveryFormat() throws IOException {
    var input = sample("tp_mlp.graph");
    var names =
        List.of(
            "text",
            "json",
            "html",
            "csv",
            "dot",
            "model-explorer",
            "model-explorer-data",
            "perfetto");
    for (var format : names) {
      var file = folder.resolve("dump." + format);
      var printed = run("dump", input, "--format", format);
      assertThat(printed.code()).as(printed.err()).isZero();
      assertThat(run("dump", input, "--format", format, "-o", file).out()).isEmpty();
      assertThat(Files.readString(file)).isEqualTo(printed.out());
    }
    assertThat(run("dump", input, "--view", "code").out())
        .contains("executable mlp", "// kernel 0", "__global__");
    assertThat(run("dump", input, "--view", "memory", "--width", "50").out().lines())
        .filteredOn(line -> line.contains("|"))
        .allMatch(line -> line.length() <= 50);
  }

  @Test
  void tellsInWhatPlansDiffer() throws IOException {
    var input = sample("tp_mlp.graph");
    var first = folder.resolve("a.json");
    var second = folder.resolve("b.json");
    assertThat(run("compile", input, "-o", first).code()).isZero();
    assertThat(run("compile", input, "--variant", "r=nccl", "-o", second).code()).isZero();
    assertThat(run("diff", first, input).code()).isZero();
    var different = run("diff", first, second);
    assertThat(different.code()).isEqualTo(1);
    assertThat(different.out()).contains("→ nccl: forced");
    var page = folder.resolve("diff.html");
    assertThat(run("diff", first, second, "--format", "html", "-o", page).code()).isEqualTo(1);
    assertThat(Files.readString(page)).contains("id=\"second\">{");
    assertThat(run("diff", first, second, "--format", "csv").err())
        .contains("choose from text, html");
  }

  @Test
  void findsThatADumpCannotBeWrittenBeforeItPlans() {
    var result =
        run("dump", sample("tp_mlp.graph"), "--format", "html", "-o", folder.resolve("no/x.html"));
    assertThat(result.code()).isEqualTo(1);
    assertThat(result.err())
        .contains("x.html: error[unwritable-file]: the dump cannot be written here")
        .doesNotContain("planning");
  }

  @Test
  void advisesWhereItKnowsWhatThePlanIsOf() {
    var input = sample("tp_mlp.graph");
    var plan = folder.resolve("plan.json");
    assertThat(run("compile", input, "-o", plan).code()).isZero();
    assertThat(run("dump", input, "--format", "html").out()).contains("\"advice: ");
    assertThat(run("dump", input, "--format", "html", "--no-advice").out())
        .doesNotContain("\"advice: ");
    assertThat(run("dump", plan, "--format", "html").out()).doesNotContain("\"advice: ");
    assertThat(run("dump", input, "--view", "peak", "--advice").out())
        .isEqualTo(run("explain", input, "--peak").out());
    assertThat(run("dump", plan, "--view", "peak", "--advice").err()).contains("compiled from");
    assertThat(run("dump", input, "--advice").err()).contains("the view peak");
  }

  @Test
  void explainsThePeak() {
    var result = run("explain", sample("tp_mlp.graph"), "--peak");
    assertThat(result.code()).as(result.err()).isZero();
    assertThat(result.out()).contains("output, kept for the caller", "advice: of ");
  }

  @Test
  void bisectsACase() {
    var result = run("bisect", sample("cases/tp_mlp_bf16"));
    assertThat(result.code()).as(result.err()).isZero();
    assertThat(result.out()).isEqualTo("the check does not fail\n");
  }

  @Test
  void writesWhatEveryPassMade() throws IOException {
    var passes = folder.resolve("passes");
    assertThat(run("compile", sample("tp_mlp.graph"), "--dump-dir", passes).code()).isZero();
    var sealed = String.format(Locale.ROOT, "%02d-seal.json", Pipeline.passes().size() - 1);
    assertThat(run("dump", passes.resolve(sealed)).out())
        .isEqualTo(run("dump", sample("tp_mlp.graph")).out());
    assertThat(Files.readString(passes.resolve("timings.txt"))).contains("verify");
  }

  /** A plan may come from elsewhere: who runs it says again that it may use multicast. */
  @Test
  void plansWithMulticastAreForTheBackendThatIsToldSo() {
    var plan = folder.resolve("multicast.json");
    var compiled =
        run(
            "compile",
            sample("tp_mlp.graph"),
            "--target",
            "h200x8",
            "--multicast=on",
            "--backend",
            "cuda",
            "--variant",
            "r=multimem",
            "-o",
            plan);
    assertThat(compiled.code()).isZero();
    assertThat(run("dump", plan, "--view", "collectives").out()).contains("multimem");
    assertThat(run("run", plan, "--multicast=on").code()).isZero();
    assertThat(run("run", plan).code()).isZero();
  }

  @Test
  void listsOps() {
    assertThat(run("ops", "aten::mm").out()).contains("aten::mm(Tensor self, Tensor mat2)");
    assertThat(run("ops", "--collectives").out())
        .contains("_c10d_functional::all_reduce(Tensor input")
        .containsPattern("two_shot +operand and result +sum, avg, min, max");
    assertThat(run("ops", "--collectives", "no such op").code()).isEqualTo(1);
    assertThat(run("ops", "no such op").code()).isEqualTo(1);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          2 | frobnicate                                         | Unmatched argument
          2 | compile                                            | Missing required parameter
          2 | compile GRAPH --target none                        | 'none' is neither a target nor a file
          2 | compile GRAPH --variant all_reduce=none            | unknown variant 'none'
          2 | run GRAPH --backend gpu                            | unknown backend 'gpu'
          2 | dump GRAPH --format none                           | unknown format 'none'
          2 | dump GRAPH --format csv --view values              | csv has only one view
          2 | dump GRAPH --width 2147483647                      | --width must be 1 to 9999
          2 | dump GRAPH --width 0                               | --width must be 1 to 9999
          2 | calibrate GRAPH --name "" -o NOWHERE               | --name must not be empty
          2 | explain GRAPH                                      | takes the name of a value, or --peak
          2 | explain GRAPH r --peak                             | takes the name of a value, or --peak
          2 | bisect GRAPH                                       | is not a case directory
          1 | dump GRAPH -o NOWHERE/deeper/dump.txt              | cannot be written here
          1 | compile NOWHERE                                    | unreadable-file
          1 | compile GRAPH --variant all_reduce=multimem        | the target has no multicast
          1 | compile GRAPH --target h200x8 --variant r=multimem | 'r' cannot run as multimem: multicast is off; add --multicast=on
          1 | compile GRAPH --target h200x8 --backend cuda --variant r=multimem_one_shot | multicast is off; add --multicast=on
          2 | compile GRAPH --backend tpu                        | --backend: unknown backend 'tpu'
          2 | compile GRAPH --multicast=maybe                    | '--multicast': 'maybe' is neither on nor off
          2 | run PLAN --multicast=auto                          | '--multicast': 'auto' is neither on nor off
          2 | dump PLAN --multicast=on                           | --multicast: PLANNED is a plan; name
          1 | compile GRAPH --variant all_gather=push            | no collective has the name or kind 'all_gather'
          2 | compile GRAPH --ranks 0                            | --ranks must be at least 1
          2 | compile GRAPH --ranks 65537                        | at most 65536
          2 | import GRAPH --ranks 0                             | --ranks must be at least 1
          1 | compile FARRANK                                    | far.graph:3:15: error[bad-group]: '65536' is not a rank
          1 | compile FARCASE                                    | group tp has rank 1000000000; ranks are 0 to 65535
          1 | compile GRAPH --variant all_reduce=local           | 'n' cannot run as local: the group has 4 ranks
          2 | run PLAN --ranks 2                                 | --ranks: PLANNED is a plan; name
          2 | run PLAN --donate x                                | --donate: PLANNED is a plan; name
          2 | dump PLAN --variant r=nccl                         | --variant: PLANNED is a plan; name
          2 | verify PLAN --target h200x8                        | --target: PLANNED is a plan; name
          2 | explain PLAN r --no-fusion                         | --no-fusion: PLANNED is a plan; name
          2 | diff PLAN PLAN --variant r=nccl                    | --variant: PLANNED is a plan; name
          1 | compile GRAPH --ranks 3                            | tp_mlp.graph: error[bad-group]: group 'tp' names
          1 | compile GRAPH --graph nope                         | tp_mlp.graph: error[bad-option]: no graph has
          1 | compile GRAPH --variant y=two_shot                 | tp_mlp.graph: error[bad-option]: no collective has
          1 | explain GRAPH zz                                   | tp_mlp.graph: error[unknown-value]: the plan has
          1 | run GRAPH --weights FOLDER                         | this is a directory
          2 | run GRAPH --timeout 1e9                            | it must be above 0 and below 1000000 seconds
          1 | compile GRAPH --ranks 2                            | names rank 3, but the number of ranks is 2
          1 | compile GRAPH --graph other                        | no graph has the name 'other'
          1 | compile GRAPH --place q=local                      | neither an input nor an output
          1 | compile GRAPH -o NOWHERE/deeper/plan.json          | cannot be written here
          1 | run GRAPH --check                                  | no expected outputs were found
          1 | compile EMPTY                                      | the text contains no graph
          1 | compile BROKEN                                     | error[
          1 | dump NOPLAN                                        | bad-plan
          1 | pack NOWHERE                                       | unreadable-file
          1 | pack EMPTY                                         | the file is empty
          1 | pack GRAPH                                         | expected the header
          1 | pack BADCSV                                        | bad.csv:3:7: error[syntax]
          1 | pack GOODCSV -o NOWHERE/out.csv                    | the packing cannot be written here
          2 | pack GOODCSV --capacity -1                         | must not be negative
          2 | pack GOODCSV --capacity many                       | Invalid value for option '--capacity'
          4 | run CUSTOM                                         | has no host implementation
          4 | run GRAPH --launch env                             | no launcher has started this process
          2 | run GRAPH --launch some                            | expected one of [AUTO, SINGLE, ENV]
          2 | run GRAPH --timeout 0                              | --timeout: 0.0 is out of range
          2 | compile GRAPH --place x=symm --place x=local       | --place x should be specified only once
          2 | compile GRAPH --variant r=nccl --variant r=one_shot | --variant r should be specified only once
          2 | import GRAPH --dim s7=2 --dim s7=3                 | --dim s7 should be specified only once
          2 | compile GRAPH --donate x --place x=external        | --donate x and --place x=external exclude each other
          1 | run GRAPH --outputs GRAPH                          | the folder cannot be made: a file with this name
          1 | compile GRAPH UNEVEN --together                    | no graph called 'mlp' runs on rank 2
          """)
  void wrongInputGivesOneClearError(int code, String line, String message) throws IOException {
    var words = line.split(" ");
    for (int i = 0; i < words.length; i++) {
      words[i] =
          switch (words[i]) {
            case "GRAPH" -> sample("tp_mlp.graph").toString();
            case "UNEVEN" -> sample("uneven.graph").toString();
            case "CUSTOM" -> sample("custom_op.graph").toString();
            case "EMPTY" -> file("empty.txt", "").toString();
            case "BROKEN" -> file("broken.graph", "graph version 1\n\ngraph g(x {\n").toString();
            case "FARRANK" ->
                file("far.graph", "graph version 1\n\ngroup a = [0, 65536]\n").toString();
            case "FARCASE" -> {
              file("graph.fx.txt", "");
              file("groups.json", "{\"tp\": [0, 1000000000]}");
              yield folder.toString();
            }
            case "FOLDER" -> folder.toString();
            case "PLAN" -> planned().toString();
            case "GOODCSV" -> file("good.csv", PackCommandTest.BUFFERS).toString();
            case "BADCSV" -> file("bad.csv", "id,lower,upper,size\na,0,3,4\nb,3,9,-1\n").toString();
            case "NOPLAN" -> file("p.json", "{\"format\": \"symplan-plan\"}").toString();
            default ->
                words[i]
                    .replace("\"\"", "")
                    .replace("NOWHERE", folder.resolve("nowhere").toString());
          };
    }
    var result = run((Object[]) words);
    assertThat(result.err())
        .contains(message.replace("PLANNED", folder.resolve("plan.json").toString()))
        .doesNotContain("\tat ", "Exception");
    assertThat(result.code()).isEqualTo(code);
    assertThat(result.out()).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "compile IN -o IN",
        "dump IN -o LINK",
        "diff IN GRAPH -o IN",
        "diff GRAPH IN -o IN",
        "run IN --profile=IN",
        "run CASE --case IN --profile=IN",
        "run GRAPH --weights IN --profile=IN",
        "pack IN -o IN",
        "calibrate IN -o IN",
        "calibrate GRAPH LINK -o IN",
        "bench plot IN --svg IN",
      })
  void whatIsReadIsNotWritten(String line) throws IOException {
    var input = Files.copy(sample("tp_mlp.graph"), folder.resolve("in"));
    var link = Files.createSymbolicLink(folder.resolve("link"), input);
    var words =
        line.replaceAll("\\bIN\\b", input.toString())
            .replace("LINK", link.toString())
            .replace("CASE", sample("cases/tp_mlp_bf16").toString())
            .replace("GRAPH", sample("tp_mlp.graph").toString())
            .split(" ");
    var result = run((Object[]) words);
    assertThat(result.err()).contains("error[bad-option]: this is the input");
    assertThat(result.code()).isEqualTo(ExitCode.FAILED);
    assertThat(input).hasSameTextualContentAs(sample("tp_mlp.graph"));
  }

  @Test
  void expectedOutputsAreNotReplaced() throws IOException {
    var input = sample("cases/allreduce_relu");
    try (var files = Files.list(input)) {
      for (var file : files.toList()) {
        Files.copy(file, folder.resolve(String.valueOf(file.getFileName())));
      }
    }
    var outputs = folder.resolve("rank0.outputs.safetensors");
    var before = Files.getLastModifiedTime(outputs);
    for (var options :
        List.of(List.of(folder, "--check"), List.of(sample("tp_mlp.graph"), "--case", folder))) {
      var words = new ArrayList<Object>(List.of("run", "--outputs", folder));
      words.addAll(options);
      var result = run(words.toArray());
      assertThat(result.err())
          .contains("rank0.outputs.safetensors: error[bad-option]: this is in the folder that");
      assertThat(result.code()).isEqualTo(ExitCode.FAILED);
    }
    assertThat(Files.getLastModifiedTime(outputs)).isEqualTo(before);
    assertThat(run("run", folder, "--outputs", folder.resolve("own")).code()).isZero();
  }

  @ParameterizedTest
  @CsvSource({"No space left on device,1,version", "Broken pipe,0,version", "full,2,frobnicate"})
  void saysThatItsOutputIsLost(String why, int code, String command) {
    var full =
        new OutputStream() {
          @Override
          public void write(int b) throws IOException {
            throw new IOException(why);
          }
        };
    var err = new ByteArrayOutputStream();
    assertThat(Main.runOn(new String[] {command}, full, err)).isEqualTo(code);
    assertThat(err.toString(StandardCharsets.UTF_8).contains("cannot write the output: " + why))
        .isEqualTo(code == ExitCode.FAILED);
  }

  @Test
  void saysThatMemoryRanOut() {
    var result = Ran.on(console -> Main.failed(new OutOfMemoryError("Java heap space"), console));
    assertThat(result.code()).isEqualTo(ExitCode.BUG);
    assertThat(result.err())
        .isEqualTo(
            "symplan: out of memory (Java heap space); set a larger heap with"
                + " SYMPLAN_JAVA_OPTS=-Xmx<size>\n");
    assertThat(Ran.on(console -> Main.failed(new StackOverflowError(), console)).code())
        .isEqualTo(ExitCode.BUG);
  }

  private Path planned() {
    var plan = folder.resolve("plan.json");
    assertThat(run("compile", sample("tp_mlp.graph"), "-o", plan).code()).isZero();
    return plan;
  }

  @Test
  void sizesThatAGraphDoesNotHaveAreNamed() {
    var result = run("compile", sample("tp_mlp.graph"), "--dim", "s7=2", "--dim-max", "s8=2");
    assertThat(result.code()).isZero();
    assertThat(result.err())
        .contains("warning[dynamic-size]: no size has the name 's7'", "no size has the name 's8'");
  }

  @Test
  void saysWhyThereIsNoGpu() {
    var reason = Backend.ofName("cuda").flatMap(Backend::unavailable);
    assumeTrue(reason.isPresent(), "there are GPUs");
    var result = run("run", sample("tp_mlp.graph"), "--backend", "cuda");
    assertThat(result.err())
        .isEqualTo(
            "error: backend cuda: %s\n  hint: symplan doctor shows what was searched for, and where\n"
                .formatted(reason.get()));
    assertThat(result.code()).isEqualTo(3);
  }

  @Test
  void plansEveryCapturedGraph() throws IOException {
    plansAllIn(sample("cases/plan"));
  }

  @Test
  void plansEverySharedGraph() throws IOException {
    var plans = shared("cases/plan");
    assumeTrue(Files.isDirectory(plans), "the shared cases are not here");
    plansAllIn(plans);
  }

  private static void plansAllIn(Path plans) throws IOException {
    try (var files = Files.list(plans)) {
      for (var graph : files.filter(f -> f.toString().endsWith(".fx.txt")).sorted().toList()) {
        var result = run("compile", graph, "--ranks", 8);
        assertThat(result.code()).as(result.err()).isZero();
        assertThat(result.out()).contains("symmetric", "bound");
        assertThat(result.err().lines().filter(line -> line.contains("warning[")))
            .as("warnings of %s", graph)
            .allMatch(line -> line.contains("warning[opaque-op]"))
            .doesNotHaveDuplicates();
      }
    }
  }
}
