package dev.symplan.planner.calibrate;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.DType;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.testkit.Golden;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.Verdict;
import java.io.StringReader;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.xml.sax.InputSource;

class BenchReportTest {
  private static final String HEADER =
      """
      # symplan bench collectives
      kind,variant,dtype,bytes,ranks,micros,min_us,max_us,compute_us,transfer_us,gpu,date
      """;

  private static final Points POINTS =
      points(
          HEADER
              + """
              all_reduce,two_shot,bf16,65536,4,5.8,5.7,6.1,,,X<1>,2026-01-02
              all_reduce,one_shot,bf16,65536,4,4.7,4.6,4.9,,,X<1>,2026-01-02
              all_reduce,torch_nccl,bf16,65536,4,16.8,16.8,16.8,,,X<1>,2026-01-02
              all_reduce,two_shot,bf16,1048576,4,9.2,9.1,9.9,,,X<1>,2026-01-02
              all_reduce,one_shot,bf16,1048576,4,15.8,15.7,16.1,,,X<1>,2026-01-02
              all_reduce,torch_nccl,bf16,1048576,4,2.5,2.5,2.5,,,X<1>,2026-01-02
              broadcast,copy_engine,bf16,65536,2,21.3,,,,,X<1>,2026-01-02
              """);

  private static Points points(String text) {
    return Points.read(new SourceFile("lab/points.csv", text));
  }

  /** NCCL beside what the planner picks, whatever that is. */
  private static Points picked(long bytes, String... rows) {
    var verdicts =
        BenchPrograms.verdicts(
            BenchPrograms.plan(
                BenchPrograms.collective(Kind.ALL_REDUCE, DType.BF16, bytes, 4), Target.H200_X4));
    var variant = verdicts.stream().filter(Verdict::chosen).findFirst().orElseThrow().variant();
    assertThat(variant).isNotEqualTo(Variant.NCCL);
    return points(
        HEADER
            + String.join("\n", rows).replace("PICK", variant.text()).replace("SIZE", "" + bytes));
  }

  @Test
  void tablesMarkTheFastestAndWhatIsPicked() {
    var good =
        picked(
            65536,
            "all_reduce,PICK,bf16,SIZE,4,4.7,4.6,4.9,,,X<1>,2026-01-02",
            "all_reduce,nccl,bf16,SIZE,4,5.8,5.7,6.1,,,X<1>,2026-01-02",
            "all_reduce,torch_nccl,bf16,SIZE,4,16.8,16.8,16.8,,,X<1>,2026-01-02");
    var text = BenchTable.text(good, Target.H200_X4);
    assertThat(text).contains("all_reduce of bf16 on 4 ranks, X<1>, 2026-01-02");
    assertThat(text.lines().filter(line -> line.startsWith("64.0 KiB")).findFirst().orElseThrow())
        .contains(">*4.7 (", "  5.8 (", "  16.8")
        .doesNotContain("!", "16.8 (");
    assertThat(BenchTable.markdown(good, Target.H200_X4))
        .containsPattern("\\| 64.0 KiB \\| \\*\\*4.7\\*\\* \\| 5.8 \\| 16.8 \\| [a-z_]+ \\|\n")
        .endsWith(
            "of 1 size, the planner picks the fastest in 1 (100.0%), and one within 3% of it in"
                + " 1\n");
  }

  @Test
  void rowsAreMarkedWhereAnotherLibraryIsFaster() {
    var bad =
        picked(
            1 << 20,
            "all_reduce,PICK,bf16,SIZE,4,9.2,,,,,,",
            "all_reduce,torch_nccl,bf16,SIZE,4,2.5,,,,,,",
            "overlap,push,,,,1903.8,,,1626.1,590.1,,");
    var text = BenchTable.text(bad, Target.H200_X4);
    assertThat(text.lines().filter(line -> line.startsWith("1.0 MiB")).findFirst().orElseThrow())
        .contains("> 9.2 (", " *2.5")
        .endsWith("268.0% !");
    assertThat(text)
        .contains("1.171")
        .contains("fastest in 0 (0.0%), and one within 3% of it in 0");
    assertThat(BenchTable.markdown(bad, Target.H200_X4))
        .contains("| 9.2 | **2.5** | ", ", 268.0% ! |")
        .contains("| push | 1626.1 | 590.1 | 1903.8 | 1.171 |");
  }

  @Test
  void tellsWhatWasNotMeasured() {
    assertThat(BenchTable.text(POINTS, Target.H200_X4)).contains(" was not measured\n");
    assertThat(BenchTable.markdown(POINTS, Target.H200_X4))
        .contains("| broadcast | copy_engine | the planner's pick |\n| --- |")
        .containsPattern("\\| 64.0 KiB \\| \\*\\*21.3\\*\\* \\| [a-z_]+, not measured \\|");
  }

  @Test
  void plotIsWellFormedAndEscaped() throws Exception {
    var svg = BenchPlot.svg(POINTS, Target.H200_X4);
    Golden.check("bench-plot.svg", svg);
    var document =
        DocumentBuilderFactory.newDefaultInstance()
            .newDocumentBuilder()
            .parse(new InputSource(new StringReader(svg)));
    assertThat(document.getDocumentElement().getTextContent())
        .contains("X<1>", "torch_nccl", "links' limit");
  }
}
