package dev.symplan.cli;

import dev.symplan.cli.common.CompileFlags;
import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.cli.common.OutputFlag;
import dev.symplan.ir.hlo.BufferAssignment;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.report.XlaComparison;
import dev.symplan.planner.report.render.TextRenderer;
import java.nio.file.Path;
import java.util.OptionalDouble;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;

@Command(
    description = {
      "Show XLA's own memory plan of a module beside Symplan's plan: sizes, and why they differ.",
      "The module is planned twice: in its own order, and in one that may need less memory."
    })
final class CompareXlaCommand extends ConsoleCommand {
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

  @Mixin private OutputFlag output;

  @Mixin private CompileFlags flags;

  CompareXlaCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
    var file = output.file(module, assignment);
    var theirs = BufferAssignment.read(assignment);
    theirs.requireOf(module);
    var compiler = flags.compiler();
    var own = compiler.compile(module);
    console.warnings(own.warnings());
    var same =
        compiler
            .with(
                compiler
                    .options()
                    .withReorderBudget(OptionalDouble.empty())
                    .withRewrites(RewriteOptions.OFF))
            .compile(module);
    console.result(file, TextRenderer.rows(XlaComparison.of(theirs, same, own)), "the comparison");
    return ExitCode.OK;
  }
}
