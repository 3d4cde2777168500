package dev.symplan.cli.bench;

import com.google.common.base.Ascii;
import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.calibrate.BenchPlot;
import dev.symplan.planner.calibrate.BenchPrograms;
import dev.symplan.planner.calibrate.BenchTable;
import dev.symplan.planner.file.AtomicFile;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

@Command(
    name = "collectives",
    description = {
      "Measure every variant of the chosen collectives at the chosen sizes, each alone.",
      "If a launcher (torchrun, mpirun, srun) has started several processes, each has a rank. If"
          + " they are on several hosts, only NCCL is measured."
    })
final class BenchCollectivesCommand extends ConsoleCommand {
  private static final String DRAWING = "the plot";

  @Mixin private BenchFlags flags;

  @Option(
      names = "--ops",
      split = ",",
      paramLabel = "KIND",
      description = "Kinds of collectives, separated by commas (default: all).")
  private List<String> ops = new ArrayList<>();

  @Option(
      names = "--sizes",
      paramLabel = "SIZES",
      description =
          "Bytes of one rank's operand: a list (64KiB,1MiB) or a range in powers of two"
              + " (16KiB..64MiB, the default).",
      defaultValue = "16KiB..64MiB")
  private String sizes;

  @Option(names = "--svg", paramLabel = "FILE", description = "Draw the times to this file.")
  private Optional<Path> svg = Optional.empty();

  @Option(
      names = "--insecure",
      description = "In several processes: let other hosts join without a secret, as for run.")
  private boolean insecure;

  BenchCollectivesCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
    var kinds = kinds();
    var bytes = flags.sizes("--sizes", sizes);
    var dtypes = flags.dtypes(kinds);
    var wanted = flags.wanted(kinds);
    svg.ifPresent(flags::requireNotCsv);
    svg.ifPresent(file -> AtomicFile.check(file, DRAWING));
    return flags.measureLaunched(
        console,
        insecure,
        run -> {
          for (var kind : kinds) {
            for (var dtype : dtypes) {
              run.bench().collectives(kind, dtype, bytes, wanted);
            }
          }
          var points = run.points();
          svg.ifPresent(
              file -> AtomicFile.write(file, BenchPlot.svg(points, run.bench().target()), DRAWING));
          run.print(BenchTable.text(points, run.bench().target()));
          return run.code();
        });
  }

  private List<Kind> kinds() {
    return ops.isEmpty()
        ? BenchPrograms.KINDS
        : ops.stream()
            .map(
                name ->
                    BenchPrograms.KINDS.stream()
                        .filter(kind -> text(kind).equals(name))
                        .findFirst()
                        .orElseThrow(
                            () ->
                                flags.usage(
                                    "--ops: unknown collective '%s'; choose from %s"
                                        .formatted(
                                            name,
                                            BenchPrograms.KINDS.stream()
                                                .map(BenchCollectivesCommand::text)
                                                .collect(Collectors.joining(", "))))))
            .toList();
  }

  private static String text(Kind kind) {
    return Ascii.toLowerCase(kind.name());
  }
}
