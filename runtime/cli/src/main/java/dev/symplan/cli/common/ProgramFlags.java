package dev.symplan.cli.common;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.Maps;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.planner.options.CompileOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
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
              + " repeated. With --buckets, the range of a size (s77=1..4096).")
  private Map<String, SizeRange> dims = new LinkedHashMap<>();

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

  /** {@return the symbolic sizes that were given as a range, with it} */
  public ImmutableMap<String, SizeRange> ranges() {
    return ImmutableMap.copyOf(Maps.filterValues(dims, size -> size.only().isEmpty()));
  }

  private ImmutableMap<String, Long> values() {
    var values = ImmutableMap.<String, Long>builder();
    dims.forEach((symbol, size) -> size.only().ifPresent(only -> values.put(symbol, only)));
    return values.buildOrThrow();
  }

  /**
   * {@return options that are otherwise the default}
   *
   * @param command named in errors
   * @throws ParameterException when the number of ranks is out of range, a size is a range, or an
   *     option of the command has two values for one name
   */
  public CompileOptions options(CommandSpec command) {
    requireOneValueEach(command);
    if (ranks.filter(count -> count < 1 || count > ProcessGroup.MAX_RANKS).isPresent()) {
      throw new ParameterException(
          command.commandLine(),
          "--ranks must be at least 1, and at most " + ProcessGroup.MAX_RANKS);
    }
    var buckets = Optional.ofNullable(command.findOption("--buckets"));
    if (buckets.isEmpty() || Optional.empty().equals(buckets.get().getValue())) {
      ranges()
          .forEach(
              (symbol, range) -> {
                throw new ParameterException(
                    command.commandLine(),
                    ("--dim %1$s=%2$s is a range: compile --buckets plans each power of two in it,"
                            + " and --dim-max %1$s=%3$s the largest size")
                        .formatted(symbol, range, range.last()));
              });
    }
    // 0 leaves it to the groups.
    return CompileOptions.DEFAULT
        .withRanks(ranks.orElse(0))
        .withDims(values(), ImmutableMap.copyOf(dimMax))
        .withDeclarations(ImmutableList.copyOf(declarations));
  }

  /** Of two values for one name, picocli keeps the last. */
  private static void requireOneValueEach(CommandSpec command) {
    for (var option : command.commandLine().getParseResult().matchedOptions()) {
      if (option.typeInfo().isMap()) {
        var names = new HashSet<String>();
        for (var given : option.originalStringValues()) {
          var name = given.substring(0, given.indexOf('='));
          if (!names.add(name)) {
            throw new ParameterException(
                command.commandLine(),
                "%s %s should be specified only once".formatted(option.longestName(), name));
          }
        }
      }
    }
  }
}
