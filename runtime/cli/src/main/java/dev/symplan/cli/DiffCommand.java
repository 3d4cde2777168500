package dev.symplan.cli;

import com.google.common.collect.ImmutableList;
import dev.symplan.cli.common.CompileFlags;
import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.cli.common.Inputs;
import dev.symplan.cli.common.OutputFlag;
import dev.symplan.planner.report.PlanDiff;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.page.HtmlRenderer;
import dev.symplan.planner.report.render.Format;
import dev.symplan.planner.report.render.TextRenderer;
import java.nio.file.Path;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

@Command(
    description = {
      "Show how two plans differ: variants and why, values that moved or grew, memory, time.",
      "Exits with 1 if they differ, and with 0 otherwise."
    })
final class DiffCommand extends ConsoleCommand {
  private static final ImmutableList<String> FORMATS = ImmutableList.of("text", "html");

  @Parameters(index = "0", paramLabel = "A", description = "A plan, or what compile takes.")
  private Path before;

  @Parameters(index = "1", paramLabel = "B", description = "The plan or input to compare with A.")
  private Path after;

  @Option(
      names = "--format",
      paramLabel = "FORMAT",
      description = "The format: text (the default), or html, a page with both plans side by side.",
      defaultValue = "text")
  private String format;

  @Mixin private OutputFlag output;

  @Mixin private CompileFlags flags;

  DiffCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
    if (!FORMATS.contains(format)) {
      throw usage(
          "--format: unknown format '%s'; choose from %s"
              .formatted(format, String.join(", ", FORMATS)));
    }
    var file = output.file(before, after);
    var plans = Inputs.plans(before, after, flags, console);
    var from = plans.getFirst();
    var to = plans.getLast();
    var differences = TextRenderer.rows(PlanDiff.of(from, to));
    var text =
        format.equals("html")
            ? HtmlRenderer.render(
                PlanReport.of(from, Format.HTML.views()), PlanReport.of(to, Format.HTML.views()))
            : differences.isEmpty() ? "no difference\n" : differences;
    console.result(file, text, "the differences");
    return differences.isEmpty() ? ExitCode.OK : ExitCode.FAILED;
  }
}
