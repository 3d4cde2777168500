package dev.symplan.ir.text;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SourceReaderTest {
  @TempDir private Path folder;

  private Path file(byte[] bytes) throws IOException {
    return Files.write(folder.resolve("input.graph"), bytes);
  }

  private static Diagnostic failure(Path path) {
    var failure = catchThrowableOfType(CompileException.class, () -> SourceReader.read(path));
    assertThat(failure).isNotNull();
    return failure.diagnostics().getFirst();
  }

  @Test
  void readsUtf8AndDropsTheByteOrderMark() throws IOException {
    var path = file("\uFEFF# é 漢 😀\n".getBytes(StandardCharsets.UTF_8));

    var source = SourceReader.read(path);

    assertThat(source.text()).isEqualTo("# é 漢 😀\n");
    assertThat(source.name()).isEqualTo(path.toString());
  }

  @Test
  void namesByteLineAndColumnOfWhatIsNotUtf8() throws IOException {
    var bytes = "graph version 1\n# caf\u00e9\n".getBytes(StandardCharsets.ISO_8859_1);

    var error = failure(file(bytes));

    assertThat(error.code()).isEqualTo(DiagnosticCode.INVALID_UTF8);
    assertThat(error.message()).isEqualTo("byte 0xE9 at offset 21 is not UTF-8");
    assertThat(error.span().line()).isEqualTo(2);
    assertThat(error.span().column()).isEqualTo(6);
    assertThat(error.render()).contains("\n 2 | # caf\uFFFD\n   |      ^");
  }

  @Test
  void refusesSurrogatesOverlongFormsAndCutCharacters() throws IOException {
    assertThat(failure(file(new byte[] {'a', (byte) 0xED, (byte) 0xA0, (byte) 0x80})).message())
        .contains("offset 1 ");
    assertThat(failure(file(new byte[] {(byte) 0xC0, (byte) 0x80})).message())
        .contains("offset 0 ");
    assertThat(failure(file(new byte[] {'a', 'b', (byte) 0xE6, (byte) 0xBC})).message())
        .contains("offset 2 ");
  }

  @Test
  void saysWhyAFileCannotBeRead() throws IOException {
    assertThat(failure(folder.resolve("none.graph")))
        .satisfies(
            error -> {
              assertThat(error.code()).isEqualTo(DiagnosticCode.UNREADABLE_FILE);
              assertThat(error.render())
                  .isEqualTo(
                      folder.resolve("none.graph")
                          + ": error[unreadable-file]: the file does not exist");
            });
    assertThat(failure(folder).message()).isEqualTo("is a directory, not a file");
    assertThat(failure(file(new byte[1]).resolve("below")).code())
        .isEqualTo(DiagnosticCode.UNREADABLE_FILE);
  }

  @Test
  void readsStreams() {
    var source =
        SourceReader.read(
            "<stdin>",
            new ByteArrayInputStream("graph version 1\n".getBytes(StandardCharsets.UTF_8)));

    assertThat(source.name()).isEqualTo("<stdin>");
    assertThat(source.text()).isEqualTo("graph version 1\n");
  }
}
