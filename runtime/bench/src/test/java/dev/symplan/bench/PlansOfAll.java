package dev.symplan.bench;

import com.google.common.hash.Hashing;
import dev.symplan.bench.TransformerGraph.Form;
import dev.symplan.ir.graph.Program;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.io.ProgramReader;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.pack.PackOptions;
import dev.symplan.planner.pack.Packer;
import dev.symplan.planner.pack.PackingProblem;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.render.TextRenderer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import java.util.stream.Stream;

/** Prints a hash of every plan of the samples and of some made-up programs and packings. */
final class PlansOfAll {
  private PlansOfAll() {}

  /** Takes the folder of the samples. */
  public static void main(String[] args) throws IOException {
    var samples = Path.of(args[0]);
    for (var folder : new String[] {"", "cases", "cases/plan"}) {
      try (var files = Files.list(samples.resolve(folder))) {
        files.filter(PlansOfAll::isProgram).sorted().forEach(PlansOfAll::print);
      }
    }
    for (var form : Form.values()) {
      print(form.name(), TransformerGraph.of(form, 500, 1));
    }
    for (int seed = 0; seed < 4; seed++) {
      var packing =
          Packer.pack(problem(new Random(seed)), PackOptions.DEFAULT.withSearchSteps(20_000));
      System.out.println("packing " + seed + " " + hash(packing.offsets().toString()));
    }
  }

  private static boolean isProgram(Path file) {
    var name = file.toString();
    return name.endsWith(".graph")
        || name.endsWith(".fx.txt")
        || Stream.of("graph.fx.txt", "graph.rank0.fx.txt")
            .anyMatch(graph -> Files.exists(file.resolve(graph)));
  }

  private static void print(Path file) {
    try {
      var name = String.valueOf(file.getFileName());
      var options = CompileOptions.DEFAULT.withRanks(name.endsWith(".fx.txt") ? 8 : 0);
      print(name, ProgramReader.read(file, options, _ -> {}));
    } catch (UncheckedIOException e) {
      throw new IllegalStateException(file.toString(), e);
    }
  }

  private static void print(String name, Program program) {
    int ranks = program.groups().stream().mapToInt(group -> group.maxRank() + 1).max().orElse(1);
    Plan plan =
        Compiler.forDefaultTarget()
            .with(CompileOptions.DEFAULT.withRanks(ranks).withGraph(nameOfFirst(program)))
            .compile(program);
    System.out.println(
        name
            + " "
            + hash(PlanFile.toJson(plan))
            + " "
            + hash(TextRenderer.render(PlanReport.of(plan))));
  }

  private static String nameOfFirst(Program program) {
    return program.graphs().getFirst().name();
  }

  private static String hash(String text) {
    return Hashing.sha256().hashString(text, StandardCharsets.UTF_8).toString();
  }

  private static PackingProblem problem(Random random) {
    var problem = PackingProblem.builder();
    for (int i = 0; i < 120; i++) {
      int start = random.nextInt(60);
      problem.add(start, start + 1 + random.nextInt(30), 1 + random.nextInt(1000), 1);
    }
    return problem.build();
  }
}
