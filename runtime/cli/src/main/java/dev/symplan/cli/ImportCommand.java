package dev.symplan.cli;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.cli.common.CompileFlags;
import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.cli.common.Outputs;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.planner.io.ProgramFile;
import dev.symplan.planner.io.ProgramReader;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.runtime.Weights;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

@Command(
    description = {
      "Convert a graph from any supported format to the graph language.",
      "If ranks run different graphs, all are written, each with its ranks."
    })
final class ImportCommand implements Callable<Integer> {
  private final Console console;

  @Spec private CommandSpec spec;

  @Parameters(
      paramLabel = "INPUT",
      description =
          "FX text, a log, an archive of torch.export (.pt2), a case directory, or a .graph file.")
  private Path input;

  @Option(
      names = {"-o", "--output"},
      paramLabel = "FILE",
      description = "Write the graph to this file (default: standard output).")
  private Optional<Path> output = Optional.empty();

  @Option(
      names = "--weights",
      paramLabel = "FILE",
      description = {
        "Write the archive's tensors to this safetensors file, under the names of the inputs that"
            + " take them, for run --weights."
      })
  private Optional<Path> weights = Optional.empty();

  @Option(
      names = "--graph",
      paramLabel = "NAME",
      description = "The program whose tensors --weights writes, if the archive has several.",
      defaultValue = "")
  private String graph;

  @Option(
      names = "--ranks",
      paramLabel = "N",
      description = "The number of ranks (default: from the groups).")
  private Optional<Integer> ranks = Optional.empty();

  @Option(
      names = "--dim",
      paramLabel = "SYMBOL=SIZE",
      description = "The value of a symbolic size (s77=128). May be repeated.")
  private Map<String, Long> dims = new LinkedHashMap<>();

  @Option(
      names = "--dim-max",
      paramLabel = "SYMBOL=SIZE",
      description = "The largest value of a symbolic size, to plan with. May be repeated.")
  private Map<String, Long> dimMax = new LinkedHashMap<>();

  @Option(
      names = "--declare",
      paramLabel = "FILE",
      description =
          "A file with the schemas of unknown ops, one per line, as PyTorch prints them. May be"
              + " repeated.")
  private List<Path> declarations = new ArrayList<>();

  ImportCommand(Console console) {
    this.console = console;
  }

  @Override
  public Integer call() {
    output.ifPresent(file -> Outputs.requireNotRead(file, List.of(input)));
    weights.ifPresent(file -> Outputs.requireNotRead(file, List.of(input)));
    if (output.isPresent() && weights.isPresent() && Outputs.isSame(output.get(), weights.get())) {
      throw new ParameterException(
          spec.commandLine(), "--output and --weights are the same file: " + output.get());
    }
    var options =
        CompileOptions.DEFAULT
            .withRanks(CompileFlags.ranks(ranks, spec))
            .withDims(ImmutableMap.copyOf(dims), ImmutableMap.copyOf(dimMax))
            .withDeclarations(ImmutableList.copyOf(declarations));
    var warnings = new ArrayList<Diagnostic>();
    var program = ProgramReader.read(input, options, warnings::add);
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
        Weights.archiveOf(input)
            .orElseThrow(
                () ->
                    CompileException.ofFile(
                        DiagnosticCode.BAD_OPTION,
                        input,
                        "--weights: only archives of torch.export contain tensors",
                        "remove --weights"));
    Weights.read(archive, graph).write(file);
    console.progress("weights written to " + file);
  }
}
