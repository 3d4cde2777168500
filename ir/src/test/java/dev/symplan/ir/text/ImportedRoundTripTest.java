package dev.symplan.ir.text;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.fx.FxImporter;
import dev.symplan.ir.fx.ImportOptions;
import dev.symplan.ir.graph.Program;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/** Real graphs survive being written as {@code .graph} text. */
class ImportedRoundTripTest {

  @Test
  void samplesPrintAndReadBack() throws IOException {
    allBelow(Path.of(System.getProperty("symplan.root", ".."), "samples", "cases"));
  }

  @Test
  void referenceGraphsPrintAndReadBack() throws IOException {
    var cases = Path.of(System.getProperty("symplan.shared", ""), "cases");
    Assumptions.assumeTrue(Files.isDirectory(cases), "no reference graphs at " + cases);
    allBelow(cases);
  }

  private static void allBelow(Path folder) throws IOException {
    var seen = new ArrayList<Path>();
    try (var files = Files.walk(folder)) {
      for (var file : files.filter(f -> f.toString().endsWith(".fx.txt")).sorted().toList()) {
        var program =
            FxImporter.read(SourceReader.read(file), ImportOptions.named("imported"), _ -> {});
        survives(file, program);
        seen.add(file);
      }
    }
    assertThat(seen).hasSizeGreaterThan(10);
  }

  private static void survives(Path file, Program program) {
    var text = GraphPrinter.print(program);
    var again = GraphParser.parse(new SourceFile(file + ".graph", text));

    assertThat(GraphPrinter.print(again)).as("%s", file).isEqualTo(text);
    var types = GraphPrinter.withTypes(program);
    assertThat(GraphPrinter.withTypes(again)).as("types of %s", file).isEqualTo(types);
    var typed = GraphParser.parse(new SourceFile(file + ".typed.graph", types));
    assertThat(GraphPrinter.withTypes(typed)).as("types of %s", file).isEqualTo(types);
  }
}
