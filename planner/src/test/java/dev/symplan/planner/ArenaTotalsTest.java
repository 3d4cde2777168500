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
 * The memory that the shared graphs are planned with: never above what is live at one step, beside
 * what PyTorch's compiled program took. The same table stands in {@code docs/performance.md}.
 */
class ArenaTotalsTest {
  private static final Path SHARED = Path.of(System.getProperty("symplan.shared", ""));
  private static final Path ROOT = Path.of(System.getProperty("symplan.root", ".."));
  private static final double MIB = 1 << 20;

  @Test
  void totalsAreTheLeastAndThoseOfTheDocumentation() throws IOException {
    var folder = SHARED.resolve("cases/plan");
    assumeTrue(Files.isDirectory(folder), () -> "not here: " + folder);
    var measured =
        JsonMapper.builder().build().readTree(folder.resolve("pytorch_measured.json").toFile());
    var table = new StringBuilder();
    table.append("| graph | symmetric | local | together | most live | PyTorch |\n");
    table.append("|---|---|---|---|---|---|\n");
    for (var file : graphs(folder)) {
      var name = file.getFileName().toString().replace(".fx.txt", "");
      var plan =
          Compiler.forDefaultTarget().with(CompileOptions.DEFAULT.withRanks(8)).compile(file);
      var total = plan.total();
      assertThat(total.bytes()).as(name).isEqualTo(total.bound());
      table.append(
          String.format(
              Locale.ROOT,
              "| `%s` | %.2f | %.2f | %.2f | %.2f | %s |\n",
              name,
              plan.symmetric().bytes() / MIB,
              plan.rankPlans().getFirst().local().bytes() / MIB,
              total.bytes() / MIB,
              total.bound() / MIB,
              pytorch(name, measured)));
    }
    var written = Path.of(System.getProperty("basedir", ""), "target", "arena-totals.md");
    Files.writeString(written, table);
    assertThat(ROOT.resolve("docs/performance.md"))
        .as("the table is now %s", written)
        .content()
        .contains(table);
  }

  private static List<Path> graphs(Path folder) throws IOException {
    try (var files = Files.list(folder)) {
      return files.filter(file -> file.toString().endsWith(".fx.txt")).sorted().toList();
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
