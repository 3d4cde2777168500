package dev.symplan.planner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.symplan.planner.options.CompileOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.Test;

/**
 * The memory that captured graphs are planned with: never above what is live at one step, beside
 * what PyTorch's compiled program took. The same table stands in {@code docs/performance.md}.
 */
class ArenaTotalsTest {
  private static final Path SHARED = Path.of(System.getProperty("symplan.shared", ""));
  private static final Path ROOT = Path.of(System.getProperty("symplan.root", ".."));
  private static final double MIB = 1 << 20;

  @Test
  void totalsAreTheLeastAndThoseOfTheDocumentation() throws IOException {
    var documented = Files.readString(ROOT.resolve("docs/performance.md"));
    for (var file : graphs(ROOT.resolve("samples/cases/plan"))) {
      assertThat(documented).contains("\n" + row(file));
    }
  }

  @Test
  void theWholeTableIsThatOfTheDocumentation() throws IOException {
    var folder = SHARED.resolve("cases/plan");
    assumeTrue(Files.isDirectory(folder), () -> "not here: " + folder);
    var measured =
        JsonMapper.builder().build().readTree(folder.resolve("pytorch_measured.json").toFile());
    var table = new StringBuilder();
    table.append("| graph | symmetric | local | together | most live | PyTorch |\n");
    table.append("|---|---|---|---|---|---|\n");
    for (var file : graphs(folder)) {
      table.append(row(file)).append(pytorch(name(file), measured)).append(" |\n");
    }
    var written = Path.of(System.getProperty("basedir", ""), "target", "arena-totals.md");
    Files.writeString(written, table);
    assertThat(ROOT.resolve("docs/performance.md"))
        .as("the table is now %s", written)
        .content()
        .contains(table);
  }

  private static String name(Path file) {
    return String.valueOf(file.getFileName()).replace(".fx.txt", "");
  }

  /** {@return a graph's row but for what PyTorch took} */
  private static String row(Path file) {
    var plan = Compiler.forDefaultTarget().with(CompileOptions.DEFAULT.withRanks(8)).compile(file);
    var total = plan.total();
    assertThat(total.bytes()).as(name(file)).isEqualTo(total.bound());
    return String.format(
        Locale.ROOT,
        "| `%s` | %.2f | %.2f | %.2f | %.2f | ",
        name(file),
        plan.symmetric().bytes() / MIB,
        plan.rankPlans().getFirst().local().bytes() / MIB,
        total.bytes() / MIB,
        total.bound() / MIB);
  }

  private static List<Path> graphs(Path folder) throws IOException {
    try (var files = Files.list(folder)) {
      var graphs = files.filter(file -> file.toString().endsWith(".fx.txt")).sorted().toList();
      assertThat(graphs).isNotEmpty();
      return graphs;
    }
  }

  /** PyTorch's figure for training is one for both graphs. */
  private static String pytorch(String name, JsonNode measured) {
    var text = name.substring(0, name.lastIndexOf('.'));
    var bytes = measured.required(text).required("inductor_peak_bytes_above_inputs").asLong();
    return String.format(Locale.ROOT, "%.2f", bytes / MIB)
        + (text.contains("train") ? ", both graphs" : "");
  }
}
