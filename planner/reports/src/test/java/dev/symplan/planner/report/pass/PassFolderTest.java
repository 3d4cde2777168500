package dev.symplan.planner.report.pass;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.pipeline.Pipeline;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PassFolderTest {
  private static final Path SAMPLES = Path.of(System.getProperty("symplan.root"), "samples");

  @TempDir private Path folder;

  private static Compiler compiler() {
    return Compiler.forTarget(Target.H200_X4).with(CompileOptions.DEFAULT.withRanks(4));
  }

  private static Map<String, String> texts(Path folder) throws IOException {
    var texts = new TreeMap<String, String>();
    try (var files = Files.list(folder)) {
      for (var file : files.toList()) {
        var name = String.valueOf(file.getFileName());
        if (!name.equals("timings.txt")) {
          texts.put(name, Files.readString(file));
        }
      }
    }
    return texts;
  }

  /** The last pass gives nothing to write. */
  private static List<String> numbered() {
    var passes = Pipeline.passes();
    return IntStream.range(0, passes.size() - 1)
        .mapToObj(i -> String.format(Locale.ROOT, "%02d-%s", i + 1, passes.get(i).name()))
        .toList();
  }

  private Path passes(String sample, String name) {
    var passes = PassFolder.at(folder.resolve(name));
    compiler().observedBy(passes).compile(SAMPLES.resolve(sample + ".graph"));
    passes.finish();
    return folder.resolve(name);
  }

  @ParameterizedTest
  @ValueSource(strings = {"fsdp_layer", "sp_block", "data_parallel", "custom_op"})
  void hasTheTextAfterEveryPassAndGraphsThatCanBeCompiled(String sample) throws IOException {
    var first = texts(passes(sample, "a"));
    assertThat(first.keySet())
        .extracting(name -> name.substring(0, name.lastIndexOf('.')))
        .containsExactlyElementsOf(numbered());
    assertThat(Pipeline.passes().getLast().name()).isEqualTo("verify");
    assertThat(texts(passes(sample, "b"))).isEqualTo(first);
    for (var name : first.keySet()) {
      if (name.endsWith(".graph")) {
        var again = compiler().compile(folder.resolve("a").resolve(name));
        assertThat(again.rankPlans().getFirst().collectives()).as(name).isNotEmpty();
      }
    }
    var plan = compiler().compile(SAMPLES.resolve(sample + ".graph"));
    assertThat(first.get(numbered().getLast() + ".json")).isEqualTo(PlanFile.toJson(plan));
    assertThat(Files.readString(folder.resolve("a/timings.txt"))).contains("select", "normalize");
  }
}
