package dev.symplan.cli;

import static dev.symplan.cli.Ran.run;
import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.cli.common.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The help of commands, and their words for things. */
class UsageTest {
  private static final Path SAMPLE =
      Path.of(System.getProperty("symplan.root", "../..")).resolve("samples/tp_mlp.graph");

  @TempDir private Path folder;

  @Test
  void leadsFromWrongUsageToHelp() {
    assertThat(run("dump").err()).endsWith("try 'symplan dump --help'\n").doesNotContain("Usage:");
    assertThat(run("dump", "x.graph", "--format", "pdf").err())
        .endsWith("try 'symplan dump --help'\n");
    assertThat(run("dump", "x.graph", "--view", "al").err())
        .contains("expected one of [summary, ")
        .endsWith("try 'symplan dump --help'\n");
    assertThat(run("nothing").err()).endsWith("try 'symplan --help'\n");
    assertThat(run("bench", "overlap", "--nothing").err())
        .endsWith("try 'symplan bench overlap --help'\n");
  }

  @Test
  void groupsTheOptionsOfCommands() {
    assertThat(run("dump", "--help").out())
        .containsSubsequence(
            "Options:", "--format", "Planning:", "--variant", "Reading the input:", "--ranks");
    assertThat(run("pack", "--help").out()).doesNotContain("Options:").contains("--capacity");
  }

  @Test
  void namesAreOfAnyCase() {
    var usual = run("dump", SAMPLE, "--view", "values", "--variant", "all_reduce=two_shot");
    assertThat(usual.code()).isZero();
    assertThat(
            run(
                "dump",
                SAMPLE,
                "--view",
                "Values",
                "--format",
                "TEXT",
                "--inputs",
                "Auto",
                "--variant",
                "all_reduce=Two_Shot"))
        .isEqualTo(usual);
  }

  @Test
  void whatHasNoNameIsCalledAsInTheGraph() throws IOException {
    var graph =
        Files.writeString(
            folder.resolve("unnamed.graph"),
            """
            graph version 1

            graph g(x: f32[4, 4]) {
              _, i = aten::max.dim(x, 0)
              return i
            }
            """);
    assertThat(run("dump", graph, "--view", "values").out()).containsPattern("(?m)^_ +local");
    assertThat(run("dump", graph, "--view", "schedule").out()).contains("→ _ at local");
    assertThat(run("dump", graph).out()).contains("1 op in 1 step ");
  }

  @Test
  void refusesWhatCanBeNoPath() {
    var result = run("compile", SAMPLE, "--target", "a\0b");
    assertThat(result.code()).isEqualTo(ExitCode.USAGE);
    assertThat(result.err()).startsWith("error: 'a\\u0000b' is not a path: ");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "--ranks|9999999999|'--ranks': 9999999999 is out of range",
        "--ranks|4x|'--ranks': '4x' is not a whole number",
        "--dim|s77=4x|'4x' is not a whole number",
        "--dim|s77=1..4096|--dim s77=1..4096 is a range: compile --buckets plans each power of two",
        "--dim|s77=8..2|'8..2' is not a range of positive sizes such as 1..4096",
        "--dim-max|s77=1..4096|'1..4096' is not a whole number",
        "--reorder-budget|1d|'--reorder-budget': '1d' is not a number",
        "--reorder-budget|NaN|'--reorder-budget': 'NaN' is not a number",
        "--optimize|fun|--optimize: 'fun' is not one of time, balanced, memory",
        "--memory-limit|24GB|--memory-limit: '24GB' is not a size such as 24GiB, 512MiB or 1000000",
        "--prefetch|-1|--prefetch must be at least 0",
        "--prefetch|many|'--prefetch': 'many' is not a whole number",
        "--output|''|'--output': '' is not a path",
        "--dump-dir|''|'--dump-dir': '' is not a path",
        "--target|''|--target: '' is neither a target nor a file",
        "--hosts|''|--hosts: '' is neither a list of ranks on hosts",
        "--hosts|99999x99999|--hosts: '99999x99999': more than 65536 ranks",
        "--variant|all_reduce|Value for option '--variant' (OP=NAME) should be in KEY=VALUE format",
      })
  void saysWhatIsWrongWithAValue(String option, String value, String message) {
    var result = run("compile", SAMPLE, option, value);
    assertThat(result.code()).isEqualTo(ExitCode.USAGE);
    assertThat(result.err()).contains(message).endsWith("try 'symplan compile --help'\n");
  }

  @Test
  void takesAWordThatBeginsWithAtAsItIs() throws IOException {
    var options = Files.writeString(folder.resolve("options"), SAMPLE.toString());
    var result = run("compile", "@" + options);
    assertThat(result.code()).isEqualTo(ExitCode.FAILED);
    assertThat(result.err()).contains("options: error[unreadable-file]: the file does not exist");
  }

  @Test
  void namesTheFileThatHasNoGraph() throws IOException {
    var graph = Files.writeString(folder.resolve("none.graph"), "graph version 1\n");
    var result = run("compile", graph);
    assertThat(result.code()).isEqualTo(ExitCode.FAILED);
    assertThat(result.err()).contains("none.graph: error[syntax]: the file contains no graph");
  }

  /** Hosts other than the plan's, and rails and GPUs that are slower. */
  @Test
  void simulatesPlansOnOtherHosts() throws IOException {
    var graph =
        Files.writeString(
            folder.resolve("sum.graph"),
            """
            graph version 1
            group all = [0, 1, 2, 3]
            graph g(x: f32[1048576]) {
              r = _c10d_functional::all_reduce(x, "sum", "all")
              return r
            }
            """);
    var across = folder.resolve("across.plan");
    var within = folder.resolve("within.plan");
    assertThat(run("compile", graph, "--hosts", "2x2", "-o", across).code()).isZero();
    assertThat(run("compile", graph, "-o", within).code()).isZero();

    var usual = run("simulate", across);
    assertThat(usual).isEqualTo(run("simulate", graph, "--hosts", "2x2"));
    assertThat(usual.out()).contains("4 ranks on hosts 2x2").contains("rail 0:0          3 ");
    assertThat(run("simulate", across, "--hosts", "4x1").out()).contains("4 ranks on hosts 4x1");
    assertThat(run("simulate", within, "--hosts", "2x2").err())
        .contains("the ranks of group 'all' must be in one NVLink domain; the hosts are 2x2");
    assertThat(run("simulate", within, "--bucket", "off").err()).contains("is a plan");
    assertThat(run("simulate", across, "--slow-rail", "1:1*0.5").out()).contains("rail 1:1");
    assertThat(run("simulate", across, "--slow-gpu", "2:0*0.5").err())
        .contains("--slow-gpu: no rank is on GPU 0 of host 2; the hosts are 2x2");
    assertThat(run("simulate", across, "--slow-rail", "half").err())
        .contains("'half' is not a GPU and a share of its rate, such as 3:1*0.5");
    assertThat(run("simulate", across, "--format", "json").out())
        .contains("\"format\" : \"symplan-simulation\"");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "[0, 0], [1, 2, 3]|rank 0 is listed twice",
        "[0, 1], [1, 2]|rank 1 is listed twice",
        "[0, 1], [2, 9]|rank 3 is missing; 4 ranks are listed, which count from 0"
      })
  void listsOfHostsNameEachRankOnce(String hosts, String message) {
    assertThat(run("compile", SAMPLE, "--hosts", hosts).err())
        .startsWith("--hosts: '%s': %s\n".formatted(hosts, message));
  }

  @Test
  void hostsCanBeAFile() throws IOException {
    var hosts = Files.writeString(folder.resolve("hosts.txt"), "gpu01 2\ngpu02 2 # the other\n");
    assertThat(run("dump", SAMPLE, "--hosts", hosts))
        .isEqualTo(run("dump", SAMPLE, "--hosts", "2x2"));
    var wrong = Files.writeString(folder.resolve("wrong.txt"), "gpu01 2\ngpu02 two\n");
    assertThat(run("dump", SAMPLE, "--hosts", wrong).err())
        .contains("wrong.txt:2:7: error[bad-option]: 'two' is not a number of ranks")
        .contains("gpu02 two\n   |       ^^^\n");
    assertThat(run("dump", SAMPLE, "--hosts", folder.resolve("none.txt")).err())
        .contains(
            "none.txt' is neither a list of ranks on hosts, such as 4x8, 8,4 or [0, 2], [1, 3], nor"
                + " a file");
  }
}
