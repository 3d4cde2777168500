package dev.symplan.cli;

import com.google.common.collect.ImmutableList;
import dev.symplan.cli.common.CompileFlags;
import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.cli.common.OutputFlag;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.hlo.BufferAssignment;
import dev.symplan.ir.hlo.CollectiveCopies;
import dev.symplan.planner.io.ProgramReader;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.XlaComparison;
import dev.symplan.planner.report.page.HtmlRenderer;
import dev.symplan.planner.report.render.Format;
import dev.symplan.planner.report.render.TextRenderer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.OptionalDouble;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

@Command(
    description = {
      "Show XLA's own memory plan of a module beside Symplan's plan: sizes, and why they differ.",
      "The module is planned twice: in its own order, and in one that may need less memory."
    })
final class CompareXlaCommand extends ConsoleCommand {
  private static final ImmutableList<String> FORMATS = ImmutableList.of("text", "html");

  @Parameters(
      index = "0",
      paramLabel = "MODULE",
      description = "The HLO module: *_after_optimizations.txt of an XLA dump.")
  private Path module;

  @Parameters(
      index = "1",
      paramLabel = "ASSIGNMENT",
      description = "The file *-buffer-assignment.txt of the same dump.")
  private Path assignment;

  @Option(
      names = "--format",
      paramLabel = "FORMAT",
      description =
          "The format: text (the default), or html, a page with both plans below the comparison.",
      defaultValue = "text")
  private String format;

  @Mixin private OutputFlag output;

  @Mixin private CompileFlags flags;

  CompareXlaCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
    if (!FORMATS.contains(format)) {
      throw usage(
          "--format: unknown format '%s'; choose from %s"
              .formatted(format, String.join(", ", FORMATS)));
    }
    var file = output.file(module, assignment);
    var theirs = BufferAssignment.read(assignment);
    theirs.requireOf(module);
    var compiler = flags.compiler();
    var warnings = new ArrayList<Diagnostic>();
    var program = ProgramReader.readSteps(module, compiler.options(), warnings::add);
    var own = compiler.compile(program, warnings);
    console.warnings(own.warnings());
    var same =
        compiler
            .with(
                compiler
                    .options()
                    .withReorderBudget(OptionalDouble.empty())
                    .withRewrites(RewriteOptions.OFF))
            .compile(program);
    var copies = CollectiveCopies.of(module);
    var text = TextRenderer.rows(XlaComparison.of(theirs, copies, same, own));
    console.result(
        file,
        format.equals("html")
            ? HtmlRenderer.render(
                PlanReport.of(same, Format.HTML.views()),
                PlanReport.of(own, Format.HTML.views()),
                text)
            : text,
        "the comparison");
    return ExitCode.OK;
  }
}
