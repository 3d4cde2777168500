package dev.symplan.ir.hlo;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.testkit.Golden;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.ir.text.GraphPrinter;
import dev.symplan.ir.text.SourceReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class HloImporterTest {
  private static final Path FOLDER =
      Path.of(System.getProperty("basedir", ""), "src/test/resources/hlo");

  private final List<Diagnostic> warnings = new ArrayList<>();

  private static List<String> files(String folder) throws IOException {
    try (var files = Files.list(FOLDER.resolve(folder))) {
      return files.map(file -> String.valueOf(file.getFileName())).sorted().toList();
    }
  }

  static Stream<String> modules() throws IOException {
    return files("modules").stream();
  }

  static Stream<String> wrong() throws IOException {
    return files("errors").stream();
  }

  private Program read(Path path) {
    var file = SourceReader.read(path);
    var name = String.valueOf(path.getFileName());
    return HloImporter.read(
        new SourceFile(name, file.text()), BuiltinOps.registry(), 0, warnings::add);
  }

  @ParameterizedTest
  @MethodSource("modules")
  void importsWhatAModuleSays(String name) {
    var file = SourceReader.read(FOLDER.resolve("modules").resolve(name));
    var program =
        HloImporter.readSteps(
            new SourceFile(name, file.text()), BuiltinOps.registry(), 0, warnings::add);

    var text = GraphPrinter.print(program);
    Golden.check("hlo/" + name.replace(".hlo", ".graph"), text);
    assertThat(GraphPrinter.print(GraphParser.parse(new SourceFile("again.graph", text))))
        .isEqualTo(text);
    assertThat(warnings).isEmpty();
  }

  @Test
  void saysWhyAModuleCannotRun() {
    var program = read(FOLDER.resolve("modules").resolve("scheduled.hlo"));

    assertThat(program.graphs().getFirst().ops())
        .anyMatch(op -> op.def().name().namespace().equals("hlo"));
    assertThat(warnings).hasSize(1);
    assertThat(warnings.getFirst().message())
        .isEqualTo(
            "the module can be planned, but not run: no op of PyTorch computes 'packed', which is"
                + " a custom-call");
  }

  @ParameterizedTest
  @MethodSource("wrong")
  void saysWhatIsWrong(String name) {
    var errors =
        catchThrowableOfType(
            CompileException.class, () -> read(FOLDER.resolve("errors").resolve(name)));

    assertThat(errors).isNotNull();
    Golden.check("hlo/errors/" + name.replace(".hlo", ".txt"), errors.getMessage() + "\n");
  }

  @Test
  void readsWhatXlaDumped() throws IOException {
    var shared = Path.of(System.getProperty("symplan.shared", "../shared")).resolve("more/hlo");
    Assumptions.assumeTrue(Files.isDirectory(shared), "no modules at " + shared);
    int read = 0;
    try (var files = Files.walk(shared)) {
      for (var file :
          files
              .filter(path -> path.toString().matches(".*(_optimizations\\.txt|\\.hlo)\\.gz"))
              .sorted()
              .toList()) {
        assertThat(read(file).graphs().getFirst().ops()).hasSizeGreaterThan(100);
        read++;
      }
    }
    assertThat(read).isEqualTo(8);
  }
}
