package dev.symplan.ir.text;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Holds docs/language.md and docs/errors.md to what the parser does. */
class LanguageDocTest {
  private static final Pattern BLOCK =
      Pattern.compile("^```([a-z-]*)\\n(.*?)^```$", Pattern.DOTALL | Pattern.MULTILINE);

  record Block(String kind, String text) {}

  private static String doc(String name) throws IOException {
    return Files.readString(Path.of(System.getProperty("symplan.root", ".."), "docs", name));
  }

  private static List<Block> blocks(String text) {
    return BLOCK.matcher(text).results().map(m -> new Block(m.group(1), m.group(2))).toList();
  }

  static Stream<Block> files() throws IOException {
    return blocks(doc("language.md")).stream().filter(block -> block.kind().equals("graph"));
  }

  static Stream<Block> fragments() throws IOException {
    return blocks(doc("language.md")).stream().filter(block -> block.kind().equals("graph-lines"));
  }

  private static String print(String text) {
    return GraphPrinter.print(GraphParser.parse(new SourceFile("language.md", text)));
  }

  @ParameterizedTest
  @MethodSource("files")
  void examplesArePrintedAsTheyAre(Block block) {
    assertThat(print(block.text())).isEqualTo(block.text());
  }

  @ParameterizedTest
  @MethodSource("fragments")
  void linesOfExamplesAreValid(Block block) {
    var text =
        """
        graph version 1

        graph f(x: bf16[128, 4096], w: bf16[4096, 3584], y: f32[128, 4096]) {
        %s  return x
        }
        """
            .formatted(block.text().indent(2));

    assertThat(print(text)).isNotEmpty();
  }

  @Test
  void languagePageHasExamples() throws IOException {
    assertThat(files().count()).isGreaterThanOrEqualTo(5);
    assertThat(fragments().count()).isGreaterThanOrEqualTo(3);
  }

  /** Other tests plan and run the sample. */
  @Test
  void theUnevenExchangeIsASample() throws IOException {
    var sample = Path.of(System.getProperty("symplan.root", ".."), "samples", "uneven.graph");
    assertThat(files().map(Block::text)).contains(Files.readString(sample));
  }

  @Test
  void everyCodeHasASectionOnTheErrorsPage() throws IOException {
    var codes = Arrays.stream(DiagnosticCode.values()).map(DiagnosticCode::text).toList();
    var sections =
        Pattern.compile("^## (.*)$", Pattern.MULTILINE)
            .matcher(doc("errors.md"))
            .results()
            .map(m -> m.group(1))
            .toList();

    assertThat(sections).containsExactlyElementsOf(codes);
  }

  @Test
  void errorsPageShowsWhatIsPrinted() throws IOException {
    var blocks = blocks(doc("errors.md"));
    var checked = new ArrayList<String>();
    for (int i = 0; i + 1 < blocks.size(); i++) {
      if (blocks.get(i).kind().equals("graph")) {
        assertThat(blocks.get(i + 1).kind()).isEqualTo("text");
        assertThat(errors(blocks.get(i).text()) + "\n").isEqualTo(blocks.get(i + 1).text());
        checked.add(blocks.get(i).text());
      }
    }
    assertThat(checked).hasSizeGreaterThan(8);
  }

  private static String errors(String text) {
    try {
      GraphParser.parse(new SourceFile("mlp.graph", text));
    } catch (CompileException e) {
      return e.getMessage();
    }
    return "no error";
  }
}
