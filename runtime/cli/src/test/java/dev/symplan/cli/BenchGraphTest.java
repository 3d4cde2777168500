package dev.symplan.cli;

import static dev.symplan.cli.Ran.run;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.base.Splitter;
import dev.symplan.ir.testkit.Golden;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class BenchGraphTest {
  /** A fused step, a gather of few rows, products, and collectives in two streams. */
  private static final String GRAPH =
      """
      graph version 1

      group tp = [0, 1]

      graph g(x: f32[64, 64], table: f32[1000, 64], i: i64[8], s: f32[512, 1024]) {
        g = _c10d_functional::all_gather_into_tensor(s, 2, "tp")
        a = aten::neg(x)
        b = aten::relu(a)
        y = aten::mm(b, b)
        e = aten::embedding(table, i)
        r = _c10d_functional::all_reduce(y, "sum", "tp")
        o = _c10d_functional::wait_tensor(r)
        z = aten::mm(e, o)
        p = _c10d_functional::wait_tensor(g)
        return z, p
      }
      """;

  private static final String PYTORCH =
      """
      # bench_programs.py g default
      program,graphs,mode,ranks,micros,min_us,max_us,peak_allocated,peak_reserved,in_use,gpu,date
      g,1,default,2,100.50,99.00,120.00,8388608,10485760,12582912,GPU,2026-11-22
      g,1,max-autotune,2,80.50,79.00,90.00,8388608,10485760,12582912,GPU,2026-11-22
      other,2,default,4,1.00,1.00,1.00,1,1,1,GPU,2026-11-22
      """;

  /** Times, rates and shares of them; sizes have a unit after, and what PyTorch took is given. */
  private static final Pattern MEASURED =
      Pattern.compile("\\d+\\.\\d+(?! [KMG]iB)%?(?: [GT](?:B|FLOP)/s)?");

  @TempDir private Path folder;

  private Path graph() throws IOException {
    return Files.writeString(folder.resolve("g.graph"), GRAPH);
  }

  private Path pytorch() throws IOException {
    return Files.writeString(folder.resolve("torch.csv"), PYTORCH);
  }

  private static Ran bench(Object... more) {
    return run(
        Stream.concat(
                Stream.of("bench", "graph", "--backend", "host", "--target", "host"),
                Stream.of(more))
            .toArray());
  }

  private static Ran small(Object... more) {
    return bench(
        Stream.concat(
                Stream.of("--product", "32", "--bytes", "64KiB", "--measurements", "1"),
                Stream.of(more))
            .toArray());
  }

  private static String masked(String text) {
    var lines = new ArrayList<String>();
    for (var line : Splitter.on('\n').split(text)) {
      if (!line.startsWith("# ")) {
        var shown = MEASURED.matcher(line).replaceAll("#").replaceAll(" {2,}", "  ");
        // Which roof is the lower one depends on what was measured.
        lines.add(shown.replaceAll("  (copy|product)  host", "  #  host"));
      }
    }
    // The kinds of steps are in the order of their times.
    int kinds = lines.indexOf(lines.stream().filter(l -> l.startsWith("kind ")).findFirst().get());
    lines.subList(kinds + 1, lines.size() - 2).sort(null);
    return String.join("\n", lines);
  }

  @Test
  void showsEveryStepOfARunNextToPyTorch() throws IOException {
    var result = small(graph(), "--pytorch", pytorch());
    assertThat(result.code()).as(result.err()).isZero();
    var lines = result.out().lines().toList();
    assertThat(lines.getFirst()).startsWith("# symplan bench graph --backend host --target host");
    assertThat(lines.subList(0, 3)).allMatch(line -> line.startsWith("# "));
    assertThat(result.out()).containsPattern("PyTorch max-autotune \\(g\\) +80.5 +79.0 +90.0\n");
    Golden.check("bench/graph.txt", masked(result.out()));
  }

  private static List<List<String>> rows(Path csv) throws IOException {
    return Files.readString(csv)
        .lines()
        .filter(line -> !line.startsWith("#"))
        .map(line -> Splitter.on(',').splitToList(line))
        .toList();
  }

  @Test
  void fileHasTheStepsOfAllRanks() throws IOException {
    var csv = folder.resolve("times.csv");
    var svg = folder.resolve("times.svg");
    var result = small(graph(), "--csv", csv, "--svg", svg, "--pytorch", pytorch());
    assertThat(result.code()).as(result.err()).isZero();
    assertThat(Files.readString(csv)).startsWith("# symplan bench graph ");
    var rows = rows(csv);
    assertThat(String.join(",", rows.getFirst()))
        .isEqualTo(
            "row,rank,name,does,variant,stream,micros,min_us,max_us,predicted_us,bytes,flops,roof_us,"
                + "waited_us,kernel");
    assertThat(rows).allMatch(row -> row.size() == rows.getFirst().size());
    var steps = rows.stream().filter(row -> row.getFirst().equals("step")).toList();
    assertThat(steps.stream().map(row -> row.get(1) + row.get(2)).collect(Collectors.joining(" ")))
        .as("in the order of the plan")
        .isEqualTo("0g 0b 0y 0e 0r 0z 1g 1b 1y 1e 1r 1z");
    assertThat(steps).allMatch(row -> Double.parseDouble(row.get(6)) >= 0);
    assertThat(steps)
        .filteredOn(row -> row.get(2).equals("y"))
        .allSatisfy(
            row -> {
              assertThat(row.subList(3, 6)).containsExactly("aten::mm", "", "compute");
              assertThat(row.subList(10, 12)).containsExactly("32768", "524288");
              assertThat(Double.parseDouble(row.get(12))).isPositive();
              assertThat(row.get(13)).isEmpty();
            });
    assertThat(steps)
        .filteredOn(row -> row.get(2).equals("e"))
        .extracting(row -> row.get(10))
        .as("rows that are read and written, and where they are")
        .containsOnly(Integer.toString(2 * 8 * 64 * 4 + 8 * 8));
    assertThat(steps)
        .filteredOn(row -> row.get(2).equals("g"))
        .allSatisfy(
            row -> {
              assertThat(row.get(10)).isEqualTo(Integer.toString(512 * 1024 * 4));
              assertThat(row.subList(11, 13)).as("a GPU's roof is not the links'").containsOnly("");
              assertThat(row.get(13)).isNotEmpty();
            });
    assertThat(rows)
        .filteredOn(row -> row.getFirst().equals("run"))
        .extracting(row -> row.get(2))
        .as("the host has no device's clock")
        .containsExactly("host", "PyTorch default (g)", "PyTorch max-autotune (g)");
    assertThat(rows)
        .filteredOn(row -> row.getFirst().equals("memory") && row.get(1).equals("1"))
        .extracting(row -> row.get(2))
        .containsExactly("symmetric arena", "local arena", "inputs", "outputs");
    assertThat(Files.readString(svg))
        .startsWith("<svg")
        .contains("symplan bench graph", "PyTorch default (g)", "aten::embedding");
  }

  @Test
  void takesInputsOfACaseAndWeightsOfAnArchive() {
    var samples = Path.of(System.getProperty("symplan.root", "../..")).resolve("samples");
    var ofCase = small(samples.resolve("cases/tp_mlp_f32"));
    assertThat(ofCase.code()).as(ofCase.err()).isZero();
    assertThat(ofCase.out()).contains("aten::").doesNotContain("PyTorch");
    var ofArchive = small(samples.resolve("export/tp_mlp/graph.pt2"));
    assertThat(ofArchive.code()).as(ofArchive.err()).isZero();
  }

  @Test
  void measuresAProgramWithoutProductsOrPeers() throws IOException {
    var one =
        Files.writeString(
            folder.resolve("one.graph"),
            """
            graph version 1

            graph one(x: f32[64]) {
              y = aten::neg(x)
              return y
            }
            """);
    var result = small(one, "--ranks", "1");
    assertThat(result.code()).as(result.err()).isZero();
    assertThat(result.out())
        .contains("copy of 64.0 KiB", "one run of one on 1 rank")
        .doesNotContain("product of", "collectives of");
  }

  @Test
  void refusesWhatHasNoSteadyState() throws IOException {
    var result = small(graph(), "--donate", "x");
    assertThat(result.code()).isEqualTo(2);
    assertThat(result.err()).contains("'x' is donated").contains("plan without donating it");
  }

  @Test
  void refusesTimesOfOtherPrograms() throws IOException {
    var other = Files.copy(graph(), folder.resolve("h.graph"));
    var result = small(other, "--pytorch", pytorch());
    assertThat(result.code()).isEqualTo(1);
    assertThat(result.err())
        .contains("torch.csv: error[bad-points]: the file has no times of 'h'", "g, other");
  }

  @Test
  void keepsWhatItReads() throws IOException {
    var file = pytorch();
    for (var option : List.of("--csv", "--svg")) {
      var result = small(graph(), "--pytorch", file, option, file);
      assertThat(result.code()).isEqualTo(1);
      assertThat(result.err()).contains("torch.csv: error[bad-option]: this is the input");
    }
    assertThat(file).hasContent(PYTORCH);
  }

  @Test
  void findsThatAFileCannotBeWrittenBeforeItMeasures() throws IOException {
    for (var option : List.of("--csv", "--svg")) {
      var result = small(graph(), option, folder.resolve("no/such/folder.x"));
      assertThat(result.code()).isEqualTo(1);
      assertThat(result.out()).isEmpty();
      assertThat(result.err()).contains("folder.x", "cannot be written here");
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          --measurements 0 | --measurements must be at least 1
          --product 0 | --product must be at least 1
          --bytes 1Kb | '1Kb' is not a size; write for example 64KiB
          --csv /tmp/./a --svg /tmp/a | --csv and --svg are the same
          --backend gpu | unknown backend 'gpu'
          """)
  void saysWhatIsWrongWithTheCommandLine(String args, String message) throws IOException {
    var words = new ArrayList<Object>(List.of("bench", "graph", graph(), "--target", "host"));
    if (!args.startsWith("--backend")) {
      words.addAll(List.of("--backend", "host"));
    }
    words.addAll(Splitter.on(' ').splitToList(args));
    var result = run(words.toArray());
    assertThat(result.code()).isEqualTo(2);
    assertThat(result.err()).contains(message);
  }
}
