package dev.symplan.planner;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.Lists;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
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
    steps.append("| step | forward | live between | gradients in | backward | live at once |");
    steps.append(" arenas | saved donated | PyTorch |\n|---|---|---|---|---|---|---|---|---|\n");
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
    var options = CompileOptions.DEFAULT.withRanks(8).withSpaces(spaces);
    return Compiler.forDefaultTarget().with(options).compile(file);
  }

  /**
   * {@return a training step's row but for what PyTorch took} The last outputs of the forward are
   * what it saves, and the first inputs of the backward, in the same order.
   */
  private static String stepRow(Path folder, String step) {
    var forward = plan(folder.resolve(step + ".0.fx.txt"), ImmutableMap.of());
    var file = folder.resolve(step + ".1.fx.txt");
    var backward = plan(file, ImmutableMap.of());
    var given = forward.rankPlans().getFirst();
    var taking = backward.rankPlans().getFirst();
    var inputs = taking.graph().inputs();
    var gradients = inputs.stream().filter(i -> i.name().startsWith("tangents")).toList();
    var taken = inputs.subList(0, inputs.size() - gradients.size());
    var outputs = given.graph().outputValues();
    var results = outputs.subList(0, outputs.size() - taken.size());
    var saved = outputs.subList(results.size(), outputs.size());
    assertThat(shapes(saved)).isEqualTo(shapes(taken));

    long between = held(given, outputs);
    long in = gradients.stream().mapToLong(i -> taking.buffer(i).alignedBytes()).sum();
    long atOnce = Math.max(forward.total().bytes(), between + in + backward.total().bytes());
    long arenas = forward.total().bytes() + in + backward.total().bytes();

    // What the caller gets from the forward, or gave to it, is not the backward's to overwrite.
    var buffers = Lists.transform(outputs, given::buffer);
    var donated = ImmutableMap.<String, MemorySpace>builder();
    for (int i = 0; i < saved.size(); i++) {
      var buffer = given.buffer(saved.get(i));
      if (!buffer.arena().isExternal() && Collections.frequency(buffers, buffer) == 1) {
        donated.put(taken.get(i).name(), MemorySpace.DONATED);
      }
    }
    long reused =
        Math.max(
            forward.total().bytes(),
            held(given, results) + in + plan(file, donated.buildOrThrow()).total().bytes());
    return String.format(
        Locale.ROOT,
        "| `%s` | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | ",
        step,
        forward.total().bytes() / MIB,
        between / MIB,
        in / MIB,
        backward.total().bytes() / MIB,
        atOnce / MIB,
        arenas / MIB,
        reused / MIB);
  }

  private static List<TensorType> shapes(List<Value> values) {
    return values.stream().map(value -> ((TensorType) value.type()).contiguous()).toList();
  }

  /** {@return the bytes of a plan's own buffers that these values keep after a run} */
  private static long held(RankPlan plan, List<Value> values) {
    return values.stream()
        .map(plan::buffer)
        .distinct()
        .filter(buffer -> !buffer.arena().isExternal())
        .mapToLong(Buffer::alignedBytes)
        .sum();
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
