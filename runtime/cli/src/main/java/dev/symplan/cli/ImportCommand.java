package dev.symplan.cli;

import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.cli.common.GraphInputs;
import dev.symplan.cli.common.Outputs;
import dev.symplan.cli.common.ProgramFlags;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.planner.io.ProgramFile;
import dev.symplan.runtime.Weights;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Optional;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

@Command(
    description = {
      "Convert a graph from any supported format to the graph language.",
      "If ranks run different graphs, all graphs are written, each with its ranks."
    })
final class ImportCommand extends ConsoleCommand {
  @Mixin private GraphInputs input;

  @Option(
      names = {"-o", "--output"},
      paramLabel = "FILE",
      description = "Write the graph to this file (default: standard output).")
  private Optional<Path> output = Optional.empty();

  @Option(
      names = "--weights",
      paramLabel = "FILE",
      description = {
        "Write the archive's tensors to this safetensors file, with the names of the inputs that"
            + " take them, for run --weights."
      })
  private Optional<Path> weights = Optional.empty();

  @Option(
      names = "--graph",
      paramLabel = "NAME",
      description = "The program whose tensors --weights writes, if the archive has several.",
      defaultValue = "")
  private String graph;

  @Mixin private ProgramFlags flags;

  ImportCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
    output.ifPresent(file -> Outputs.requireNotRead(file, input.files()));
    weights.ifPresent(file -> Outputs.requireNotRead(file, input.files()));
    if (output.isPresent() && weights.isPresent() && Outputs.isSame(output.get(), weights.get())) {
      throw usage("--output and --weights are the same file: " + output.get());
    }
    var warnings = new ArrayList<Diagnostic>();
    var program = input.read(flags.options(spec), flags.ranges(), warnings::add);
    console.warnings(warnings);
    if (weights.isPresent()) {
      writeWeights(weights.get());
    }
    if (output.isPresent()) {
      ProgramFile.write(program, output.get());
      console.progress("graph written to " + output.get());
    } else {
      console.print(ProgramFile.text(program));
    }
    return ExitCode.OK;
  }

  private void writeWeights(Path file) {
    var archive =
        Weights.archiveOf(input.files().getFirst())
            .orElseThrow(
                () ->
                    CompileException.ofFile(
                        DiagnosticCode.BAD_OPTION,
                        input.files().getFirst(),
                        "--weights: only archives of torch.export contain tensors",
                        "remove --weights"));
    Weights.ofArchive(archive, graph).write(file);
    console.progress("weights written to " + file);
  }
}
