package dev.symplan.cli.common;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.planner.options.CompileOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** The options that say how to read a program. */
@Heading("Reading the input")
public final class ProgramFlags {
  @Option(
      names = "--ranks",
      paramLabel = "N",
      description = "The number of ranks (default: from the groups).")
  private Optional<Integer> ranks = Optional.empty();

  @Option(
      names = "--dim",
      paramLabel = "SYMBOL=SIZE",
      description =
          "The value of a symbolic size (s77=128), or of a size on one rank (u0@1=96). May be"
              + " repeated.")
  private Map<String, Long> dims = new LinkedHashMap<>();

  @Option(
      names = "--dim-max",
      paramLabel = "SYMBOL=SIZE",
      description =
          "The largest value to plan with: of a symbolic size (s77=4096), of a size on one rank"
              + " (u0@1=96), or of a sum (u0+u1=1024), whose sizes get even parts of it. May be"
              + " repeated.")
  private Map<String, Long> dimMax = new LinkedHashMap<>();

  @Option(
      names = "--declare",
      paramLabel = "FILE",
      description =
          "A file with the schemas of unknown ops, one per line, as PyTorch prints them. May be"
              + " repeated.")
  private List<Path> declarations = new ArrayList<>();

  /** {@return the files of declarations that were given} */
  List<Path> declarations() {
    return declarations;
  }

  /** {@return the number of ranks that was given} */
  Optional<Integer> ranks() {
    return ranks;
  }

  /**
   * {@return options that are otherwise the default}
   *
   * @param command named in errors
   * @throws ParameterException when the number of ranks is out of range
   */
  public CompileOptions options(CommandSpec command) {
    if (ranks.filter(count -> count < 1 || count > ProcessGroup.MAX_RANKS).isPresent()) {
      throw new ParameterException(
          command.commandLine(),
          "--ranks must be at least 1, and at most " + ProcessGroup.MAX_RANKS);
    }
    // 0 leaves it to the groups.
    return CompileOptions.DEFAULT
        .withRanks(ranks.orElse(0))
        .withDims(ImmutableMap.copyOf(dims), ImmutableMap.copyOf(dimMax))
        .withDeclarations(ImmutableList.copyOf(declarations));
  }
}
