package dev.symplan.cli;

import static dev.symplan.cli.Ran.run;
import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.cli.common.ExitCode;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.machine.Variant;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class BenchCommandTest {
  private static final Path FIGURES =
      Path.of(System.getProperty("symplan.root", "../..")).resolve("docs/figures");

  @TempDir private Path folder;

  private static Ran collectives(Object... more) {
    return run(
        Stream.concat(Stream.of("bench", "collectives", "--backend", "host"), Stream.of(more))
            .toArray());
  }

  @Test
  void whatIsMeasuredCanBeTabulatedDrawnAndFitted() throws IOException {
    var csv = folder.resolve("points.csv");
    var svg = folder.resolve("points.svg");
    var measured =
        collectives(
            "--ranks",
            "2",
            "--ops",
            "all_reduce,broadcast",
            "--sizes",
            "1KiB..2KiB,100",
            "--dtypes",
            "f32,bf16",
            "--variants",
            "one_shot,two_shot,nccl",
            "--measurements",
            "3",
            "--csv",
            csv,
            "--svg",
            svg);
    assertThat(measured.code()).as(measured.err()).isZero();
    var rows = Files.readString(csv).lines().toList();
    assertThat(rows.subList(0, 3)).allMatch(row -> row.startsWith("# "));
    assertThat(rows.getFirst()).startsWith("# symplan bench collectives --backend host --ranks 2");
    assertThat(measured.out()).startsWith(rows.getFirst()).contains("all_reduce of f32 on 2 ranks");
    long variants =
        Stream.of(Kind.ALL_REDUCE, Kind.BROADCAST)
            .flatMap(
                kind ->
                    Stream.of(Variant.ONE_SHOT, Variant.TWO_SHOT, Variant.NCCL)
                        .filter(variant -> variant.implementsKind(kind)))
            .count();
    assertThat((long) rows.size() - 4).as("three sizes and two types").isEqualTo(variants * 3 * 2);
    assertThat(rows)
        .filteredOn(row -> row.startsWith("all_reduce,two_shot,bf16,1024,2,"))
        .hasSize(1)
        .first()
        .satisfies(
            row -> {
              var cells = row.split(",", -1);
              assertThat(Double.parseDouble(cells[7]))
                  .isPositive()
                  .isLessThanOrEqualTo(Double.parseDouble(cells[6]));
              assertThat(Double.parseDouble(cells[8]))
                  .isGreaterThanOrEqualTo(Double.parseDouble(cells[6]));
            });
    assertThat(Files.readString(svg)).startsWith("<svg").contains("two_shot", "symplan bench");

    var target = folder.resolve("lab.json");
    var fitted = run("calibrate", csv, csv, "--base", "host", "-o", target);
    assertThat(fitted.code()).as(fitted.err()).isZero();
    assertThat(fitted.out()).contains("all_reduce  two_shot  2      3 ");
    var table = run("bench", "table", csv, "--target", target);
    assertThat(table.code()).as(table.err()).isZero();
    assertThat(table.out()).startsWith(rows.getFirst()).contains("of 12 sizes, the planner picks");
    assertThat(run("bench", "table", "--markdown", csv).out()).contains("| broadcast | one_shot |");
  }

  @Test
  void whatRunsBesideAProductIsMeasured() throws IOException {
    var csv = folder.resolve("overlap.csv");
    var overlap =
        run(
            "bench",
            "overlap",
            "--backend",
            "host",
            "--ranks",
            "2",
            "--product",
            "32",
            "--bytes",
            "4KiB",
            "--measurements",
            "1",
            "--variants",
            "push,copy_engine",
            "--csv",
            csv);
    assertThat(overlap.code()).as(overlap.err()).isZero();
    assertThat(overlap.out())
        .contains("push", "copy_engine", "of compute alone", "whole, ", " in 2 pieces (");
    var rows = Files.readString(csv).lines().filter(row -> !row.startsWith("#")).toList();
    assertThat(rows).hasSize(4);
    assertThat(rows.get(1)).startsWith("gemm,,bf16,,,").contains(",65536,");
    assertThat(rows.get(2)).startsWith("overlap,push,bf16,,,");
    assertThat(run("calibrate", csv).code()).isZero();
  }

  @Test
  void whatTheHostAndADeviceTakeIsMeasured() {
    var step =
        run(
            "bench",
            "step",
            "--backend",
            "host",
            "--ranks",
            "2",
            "--products",
            "2",
            "--runs",
            "2",
            "--measurements",
            "1");
    assertThat(step.code()).as(step.err()).isZero();
    assertThat(step.out()).contains("4 instructions: ").contains(" µs from call to return");
    var machine =
        run(
            "bench",
            "machine",
            "--backend",
            "host",
            "--ranks",
            "2",
            "--product",
            "16",
            "--bytes",
            "4KiB",
            "--measurements",
            "1");
    assertThat(machine.code()).as(machine.err()).isZero();
    assertThat(machine.err()).contains("launch,,", "copy,,bf16,4096,", "gemm,,bf16,");
  }

  @Test
  void figuresOfTheDocumentationAreReadTogether() {
    var table =
        run(
            "bench",
            "table",
            FIGURES.resolve("collectives-4xh200.csv"),
            FIGURES.resolve("pytorch-4xh200.csv"));
    assertThat(table.code()).as(table.err()).isZero();
    assertThat(table.out())
        .contains("all_reduce of bf16 on 4 ranks, NVIDIA H200")
        .contains("torch_two_shot");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      textBlock =
          """
          collectives --backend gpu | unknown backend 'gpu'
          collectives --backend host --ranks 1 | one rank has no peer to communicate with
          overlap --backend host --ranks 0 | one rank has no peer to communicate with
          step --backend host --ranks 65537 | --ranks must be at most 65536
          collectives --backend host --dtypes f8e5m2 | backend host cannot reduce f8e5m2
          collectives --backend host --ops reduce | unknown collective 'reduce'; choose from all_
          collectives --backend host --sizes 1Kb | '1Kb' is not a size; write for example 64KiB
          collectives --backend host --sizes 2KiB..1KiB | contains no size
          collectives --backend host --sizes 1..2..3 | is not a range
          collectives --backend host --dtypes bf8 | unknown type 'bf8'
          collectives --backend host --variants two | unknown variant 'two'; choose from local
          collectives --backend host --csv /tmp/./a --svg /tmp/a | --csv and --svg are the same
          overlap --backend host --product 0 | --product must be at least 1
          plot x.csv | Missing required option: '--svg=FILE'
          """)
  void saysWhatIsWrongWithTheCommandLine(String args, String message) {
    var result = run((Object[]) ("bench " + args).split(" ", -1));
    assertThat(result.code()).isEqualTo(2);
    assertThat(result.err()).contains(message);
  }

  @Test
  void timesAreKeptWhereThereIsNothingToMeasure() throws IOException {
    var csv = Files.writeString(folder.resolve("keep.csv"), "kept");
    var result = collectives("--ops", "all_reduce", "--variants", "push", "--csv", csv);
    assertThat(result.code()).isEqualTo(ExitCode.USAGE);
    assertThat(result.err()).contains("--variants: push does not exist for all_reduce");
    assertThat(csv).hasContent("kept");
    assertThat(run("bench", "table", "--help").err()).isEmpty();
  }

  @Test
  void tellsWhichFileCannotBeWritten() {
    var result =
        run(
            "bench",
            "step",
            "--backend",
            "host",
            "--csv",
            folder.resolve("no/such/folder.csv"),
            "--products",
            "1");
    assertThat(result.code()).isEqualTo(1);
    assertThat(result.err()).contains("folder.csv", "the file cannot be written");
  }

  @Test
  void findsThatAPlotCannotBeWrittenBeforeItMeasures() {
    var result = collectives("--sizes", "1KiB", "--svg", folder.resolve("no/such/folder.svg"));
    assertThat(result.code()).isEqualTo(1);
    assertThat(result.out()).isEmpty();
    assertThat(result.err()).contains("folder.svg", "the plot cannot be written here");
  }
}
