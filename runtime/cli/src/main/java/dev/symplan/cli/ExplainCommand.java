package dev.symplan.cli;

import dev.symplan.planner.report.PlanExplainer;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

@Command(
    name = "explain",
    description = "Tell the story of one value or collective: where it lives, what runs, and why.")
final class ExplainCommand implements Callable<Integer> {
  private final Console console;

  @Parameters(index = "0", paramLabel = "INPUT", description = "A plan, or what compile takes.")
  private Path input;

  @Parameters(index = "1", paramLabel = "NAME", description = "The value's name in the graph.")
  private String name;

  @Mixin private CompileFlags flags;

  ExplainCommand(Console console) {
    this.console = console;
  }

  @Override
  public Integer call() {
    var plan = Inputs.plan(input, flags, console);
    var story = PlanExplainer.explain(plan, name);
    if (story.isEmpty()) {
      console.progress("error[unknown-value]: the plan has no value '%s'".formatted(name));
      return ExitCode.FAILED;
    }
    console.print(story.get());
    return ExitCode.OK;
  }
}
