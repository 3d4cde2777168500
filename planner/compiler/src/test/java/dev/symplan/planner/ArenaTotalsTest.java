package dev.symplan.planner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.Lists;
import com.google.common.collect.Maps;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Value;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/**
 * The memory that captured graphs are planned with: never above what is live at one step, beside
 * what PyTorch's compiled program took. The same tables stand in {@code docs/performance.md}.
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
    assertThat(documented)
        .contains("\n" + stepRow(ROOT.resolve("samples/cases/plan"), "fsdp8_mlp_train_4l"));
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
      var pytorch = isStep(name(file)) ? "below" : pytorch(name(file), measured);
      table.append(row(file)).append(pytorch).append(" |\n");
    }
    var steps = new StringBuilder();
    steps.append("| step | forward | backward | two plans | one plan | PyTorch |\n");
    steps.append("|---|---|---|---|---|---|\n");
    for (var file : graphs(folder)) {
      if (isStep(name(file)) && name(file).endsWith(".0")) {
        var step = name(file).replace(".0", "");
        steps.append(stepRow(folder, step)).append(pytorch(name(file), measured)).append(" |\n");
      }
    }
    var written = Path.of(System.getProperty("basedir", ""), "target", "arena-totals.md");
    Files.writeString(written, table + "\n" + steps);
    assertThat(ROOT.resolve("docs/performance.md"))
        .as("the tables are now %s", written)
        .content()
        .contains(table)
        .contains(steps);
  }

  /** {@return whether a graph is the forward or the backward of a training step} */
  private static boolean isStep(String name) {
    return name.contains("train");
  }

  private static String name(Path file) {
    return String.valueOf(file.getFileName()).replace(".fx.txt", "");
  }

  /** {@return a graph's row but for what PyTorch took} */
  private static String row(Path file) {
    var plan = plan(file, ImmutableMap.of());
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

  private static Plan plan(Path file, ImmutableMap<String, MemorySpace> spaces) {
    return compiler(spaces).compile(file);
  }

  private static Compiler compiler(ImmutableMap<String, MemorySpace> spaces) {
    return Compiler.forDefaultTarget().with(CompileOptions.DEFAULT.withRanks(8).withSpaces(spaces));
  }

  /**
   * {@return a training step's row but for what PyTorch took} Gradients of the results are counted,
   * as PyTorch's figure counts them: as memory of one plan, which is free after their last use, and
   * beside two plans.
   */
  private static String stepRow(Path folder, String step) {
    var files = List.of(folder.resolve(step + ".0.fx.txt"), folder.resolve(step + ".1.fx.txt"));
    var forward = plan(files.getFirst(), ImmutableMap.of());
    var backward = plan(files.getLast(), ImmutableMap.of());
    var taking = backward.rankPlans().getFirst();
    var gradients =
        taking.graph().inputs().stream().filter(i -> i.name().startsWith("tangents")).toList();
    long in = gradients.stream().mapToLong(i -> taking.buffer(i).alignedBytes()).sum();
    long two = forward.total().bytes() + in + backward.total().bytes();
    var donated = Maps.toMap(Lists.transform(gradients, Value::name), _ -> MemorySpace.DONATED);
    var one = compiler(donated).compileTogether(files, Optional.empty());
    assertThat(one.total().bytes()).as(step).isEqualTo(one.total().bound());
    return String.format(
        Locale.ROOT,
        "| `%s` | %.2f | %.2f | %.2f | %.2f | ",
        step,
        forward.total().bytes() / MIB,
        backward.total().bytes() / MIB,
        two / MIB,
        one.total().bytes() / MIB);
  }

  private static List<Path> graphs(Path folder) throws IOException {
    try (var files = Files.list(folder)) {
      var graphs = files.filter(file -> file.toString().endsWith(".fx.txt")).sorted().toList();
      assertThat(graphs).isNotEmpty();
      return graphs;
    }
  }

  /** PyTorch's figure for training is one for the whole step. */
  private static String pytorch(String name, JsonNode measured) {
    var text = name.substring(0, name.lastIndexOf('.'));
    var bytes = measured.required(text).required("inductor_peak_bytes_above_inputs").asLong();
    return String.format(Locale.ROOT, "%.2f", bytes / MIB);
  }
}
