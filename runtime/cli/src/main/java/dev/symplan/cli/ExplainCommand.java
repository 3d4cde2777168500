package dev.symplan.cli;

import com.google.common.collect.ImmutableList;
import dev.symplan.cli.common.CompileFlags;
import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.cli.common.Inputs;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.report.PlanExplainer;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.Row;
import dev.symplan.planner.report.View;
import dev.symplan.planner.report.render.TextRenderer;
import java.nio.file.Path;
import java.util.Optional;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

@Command(
    description = {
      "Explain one value or collective: where it lives, what runs, and why.",
      "With --peak: show what is live when memory is fullest, why, and what would need less. Every"
          + " piece of advice was tried by planning again."
    })
final class ExplainCommand extends ConsoleCommand {
  @Parameters(index = "0", paramLabel = "INPUT", description = "A plan, or what compile takes.")
  private Path input;

  @Parameters(
      index = "1",
      arity = "0..1",
      paramLabel = "NAME",
      description = "The value's name in the graph.")
  private Optional<String> name = Optional.empty();

  @Option(
      names = "--peak",
      description = "Show what makes up the memory peak, and how to lower it.")
  private boolean peak;

  @Mixin private CompileFlags flags;

  ExplainCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
    if (name.isPresent() == peak) {
      throw usage("explain takes the name of a value, or --peak");
    }
    var plan = Inputs.plan(input, flags, console);
    if (peak) {
      var report = PlanReport.of(plan, ImmutableList.of(View.PEAK));
      console.print(TextRenderer.render(report.withAdvice(advice(plan))));
      return ExitCode.OK;
    }
    var story = PlanExplainer.explain(plan, name.orElseThrow()).map(TextRenderer::row);
    console.print(
        story.orElseThrow(() -> PrintedValues.unknown(plan, input, "value", name.orElseThrow())));
    return ExitCode.OK;
  }

  private ImmutableList<Row> advice(Plan plan) {
    if (Inputs.isPlan(input)) {
      console.progress(
          "no advice: name the graph that the plan was compiled from; advice needs to plan it"
              + " again");
      return ImmutableList.of();
    }
    return Inputs.advice(input, flags, plan);
  }
}
