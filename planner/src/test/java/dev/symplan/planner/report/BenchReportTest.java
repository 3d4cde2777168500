package dev.symplan.planner.report;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Golden;
import dev.symplan.planner.Target;
import dev.symplan.planner.calibrate.Points;
import dev.symplan.planner.io.TargetFile;
import java.io.StringReader;
import javax.xml.parsers.DocumentBuilderFactory;
import org.junit.jupiter.api.Test;
import org.xml.sax.InputSource;

class BenchReportTest {
  private static final Points POINTS =
      Points.read(
          new SourceFile(
              "lab/points.csv",
              """
              # symplan bench collectives
              kind,variant,dtype,bytes,ranks,micros,min_us,max_us,compute_us,transfer_us,gpu,date
              all_reduce,two_shot,bf16,65536,4,5.8,5.7,6.1,,,X<1>,2026-01-02
              all_reduce,one_shot,bf16,65536,4,4.7,4.6,4.9,,,X<1>,2026-01-02
              all_reduce,torch_nccl,bf16,65536,4,16.8,16.8,16.8,,,X<1>,2026-01-02
              all_reduce,two_shot,bf16,1048576,4,9.2,9.1,9.9,,,X<1>,2026-01-02
              all_reduce,one_shot,bf16,1048576,4,15.8,15.7,16.1,,,X<1>,2026-01-02
              all_reduce,torch_nccl,bf16,1048576,4,2.5,2.5,2.5,,,X<1>,2026-01-02
              broadcast,copy_engine,bf16,65536,2,21.3,,,,,X<1>,2026-01-02
              overlap,push,,,,1903.8,,,1626.1,590.1,X<1>,2026-01-02
              """));

  /** Without workspaces, so that what is picked is among what was measured. */
  private static final Target TARGET =
      TargetFile.read(
          new SourceFile(
              "lab.json",
              """
              {"format": "symplan-target", "version": 1, "name": "h200x4", "base": "h200x4",
               "workspace_bytes": 0}
              """));

  @Test
  void tablesMarkTheFastestAndWhatIsPicked() {
    var text = BenchTable.text(POINTS, TARGET);
    assertThat(text).contains("all_reduce of bf16 on 4 ranks, X<1>, 2026-01-02");
    assertThat(text.lines().filter(line -> line.startsWith("64.0 KiB")).findFirst().orElseThrow())
        .contains(">*4.7 (", "  5.8 (", "  16.8")
        .doesNotContain("!", "16.8 (");
    // PyTorch is four times as fast there: what is picked is marked.
    assertThat(text.lines().filter(line -> line.startsWith("1.0 MiB")).findFirst().orElseThrow())
        .contains("> 9.2 (", " *2.5")
        .endsWith("268.0% !");
    assertThat(text).contains("was not measured").contains("1.171");
    assertThat(text)
        .endsWith(
            "of 2 sizes, the planner picks the fastest in 1 (50.0%), and one within 3% of it in"
                + " 1\n");
  }

  @Test
  void markdownHasTheFastestBold() {
    assertThat(BenchTable.markdown(POINTS, TARGET))
        .contains("| all_reduce | one_shot | two_shot | torch_nccl | the planner's pick |\n| --- |")
        .contains("| 64.0 KiB | **4.7** | 5.8 | 16.8 | one_shot |")
        .contains("| 1.0 MiB | 15.8 | 9.2 | **2.5** | two_shot, 268.0% ! |")
        .contains("| push | 1626.1 | 590.1 | 1903.8 | 1.171 |");
  }

  @Test
  void plotIsWellFormedAndEscaped() throws Exception {
    var svg = BenchPlot.svg(POINTS, TARGET);
    Golden.check("bench-plot.svg", svg);
    var document =
        DocumentBuilderFactory.newDefaultInstance()
            .newDocumentBuilder()
            .parse(new InputSource(new StringReader(svg)));
    assertThat(document.getDocumentElement().getTextContent())
        .contains("X<1>", "torch_nccl", "links' limit");
  }
}
