package dev.symplan.ir.text;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Golden;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class GraphErrorsTest {
  private static final Path FOLDER =
      Path.of(System.getProperty("basedir", ""), "src/test/resources/errors");

  static Stream<String> files() throws IOException {
    try (var files = Files.list(FOLDER)) {
      return files.map(file -> file.getFileName().toString()).sorted().toList().stream();
    }
  }

  private static CompileException errorsOf(String name) {
    return catchThrowableOfType(
        CompileException.class,
        () -> {
          var file = SourceReader.read(FOLDER.resolve(name));
          var sink = new DiagnosticSink();
          GraphParser.parse(new SourceFile(name, file.text()), TestOps.registry(), sink);
          sink.throwIfErrors();
        });
  }

  @ParameterizedTest
  @MethodSource("files")
  void saysWhatIsWrong(String name) {
    var errors = errorsOf(name);

    assertThat(errors).isNotNull();
    Golden.check("errors/" + name.replace(".graph", ".txt"), errors.getMessage() + "\n");
  }

  @Test
  void stopsAfterTheErrorsThatTheSinkTakes() {
    assertThat(errorsOf("many.graph").diagnostics()).hasSize(DiagnosticSink.MAX_ERRORS);
  }

  @Test
  void reportsEachWrongStatementOnceAndOnlyThose() {
    assertThat(errorsOf("several.graph").diagnostics())
        .extracting(error -> error.span().line())
        .containsExactly(4, 5, 6, 7, 10, 11, 12, 13);
  }

  @Test
  void carriesTheNameThatTheUserGave() {
    assertThatThrownBy(() -> GraphParser.parse(new SourceFile("some/where.graph", "graph x")))
        .isInstanceOf(CompileException.class)
        .hasMessageStartingWith("some/where.graph:1:");
  }

  @Test
  void everyDiagnosticHasAPlaceAndAMessageOfOneLine() throws IOException {
    for (var name : files().toList()) {
      for (Diagnostic error : errorsOf(name).diagnostics()) {
        assertThat(error.message()).as(name).isNotBlank().doesNotContain("\n");
        assertThat(error.span().file().name()).isEqualTo(name);
      }
    }
  }
}
