package dev.symplan.cli;

import dev.symplan.planner.report.PlanPrinter;
import dev.symplan.planner.report.PlanPrinter.View;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

@Command(
    name = "dump",
    description = "Show a plan: which variant each collective runs, and where every value lives.")
final class DumpCommand implements Callable<Integer> {
  private final Console console;

  @Parameters(paramLabel = "INPUT", description = "A plan, or what compile takes.")
  private Path input;

  @Mixin private CompileFlags flags;

  @Option(
      names = "--view",
      split = ",",
      paramLabel = "VIEW",
      description = "What to show: ${COMPLETION-CANDIDATES} (default: summary,collectives,values).")
  private List<View> views = List.of(View.SUMMARY, View.COLLECTIVES, View.VALUES);

  DumpCommand(Console console) {
    this.console = console;
  }

  @Override
  public Integer call() {
    console.print(PlanPrinter.print(Inputs.plan(input, flags, console), views));
    return ExitCode.OK;
  }
}
