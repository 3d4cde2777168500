package dev.symplan.cli;

import dev.symplan.cli.common.Backends;
import dev.symplan.cli.common.CompileFlags;
import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.cli.common.GraphInputs;
import dev.symplan.cli.common.Outputs;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.View;
import dev.symplan.planner.report.pass.PassFolder;
import dev.symplan.planner.report.render.TextRenderer;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

@Command(
    description = {
      "Plan a graph: choose a variant for each collective and a place for each tensor.",
      "The plan is verified before it is written."
    })
final class CompileCommand extends ConsoleCommand {
  @Mixin private GraphInputs input;

  @Mixin private CompileFlags flags;

  @Option(
      names = "--backend",
      paramLabel = "NAME",
      description =
          "The backend that will run the plan, host or cuda: only its variants are used (default:"
              + " any).")
  private Optional<String> backend = Optional.empty();

  @Option(
      names = {"-o", "--output"},
      paramLabel = "FILE",
      description = "Write the plan to this file.")
  private Optional<Path> output = Optional.empty();

  @Option(
      names = "--dump-dir",
      paramLabel = "DIR",
      description =
          "Write the text after every pass into this folder, in numbered files; the graphs among"
              + " them can be compiled again. timings.txt lists how long each pass took.")
  private Optional<Path> dumpDir = Optional.empty();

  CompileCommand(Console console) {
    super(console);
  }

  private Plan observed(Path folder) {
    var passes = PassFolder.at(folder);
    var plan = input.compile(flags.compiler().observedBy(passes), flags.ranges());
    passes.finish();
    console.progress("passes written to " + folder);
    return plan;
  }

  @Override
  public Integer call() {
    backend.ifPresent(name -> flags.forBackend(Backends.named(name, spec)));
    output.ifPresent(
        file -> {
          Outputs.requireNotRead(file, input.files());
          Outputs.requireNotRead(file, flags.read());
        });
    var plan =
        dumpDir
            .map(this::observed)
            .orElseGet(() -> input.compile(flags.compiler(), flags.ranges()));
    console.warnings(plan.warnings());
    output.ifPresent(file -> PlanFile.write(plan, file));
    console.print(TextRenderer.render(PlanReport.of(plan, List.of(View.SUMMARY))));
    output.ifPresent(file -> console.progress("plan written to " + file));
    return ExitCode.OK;
  }
}
