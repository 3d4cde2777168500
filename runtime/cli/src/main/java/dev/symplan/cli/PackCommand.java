package dev.symplan.cli;

import com.google.common.base.Stopwatch;
import dev.symplan.ir.text.SourceReader;
import dev.symplan.planner.io.WholeFile;
import dev.symplan.planner.pack.PackOptions;
import dev.symplan.planner.pack.Packer;
import dev.symplan.planner.pack.Packing;
import dev.symplan.planner.pack.PackingCsv;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

@Command(
    name = "pack",
    description = {
      "Give buffers of known lifetimes offsets in one arena, as low as possible.",
      "Reads and writes the CSV files of minimalloc: a header 'id,lower,upper,size', then one"
          + " buffer per line, which needs 'size' bytes from step 'lower' to before step 'upper'."
    })
final class PackCommand implements Callable<Integer> {
  private final Console console;

  @Spec private CommandSpec spec;

  @Parameters(paramLabel = "FILE", description = "A CSV file of buffers.")
  private Path input;

  @Option(
      names = "--capacity",
      paramLabel = "N",
      description = {
        "The bytes that there are. Searches for some minutes where need be, stops at the first"
            + " packing that fits, and exits 1 where there is none (default: the lowest packing"
            + " that a short search finds)."
      })
  private Optional<Long> capacity = Optional.empty();

  @Option(
      names = {"-o", "--output"},
      paramLabel = "FILE",
      description = "Write the buffers with their offsets here.")
  private Optional<Path> output = Optional.empty();

  PackCommand(Console console) {
    this.console = console;
  }

  @Override
  public Integer call() {
    if (capacity.orElse(0L) < 0) {
      throw new ParameterException(spec.commandLine(), "--capacity must not be negative");
    }
    var csv = PackingCsv.read(SourceReader.read(input));
    var options = capacity.map(PackOptions.THOROUGH::withCapacity).orElse(PackOptions.DEFAULT);
    var watch = Stopwatch.createStarted();
    var packing = Packer.pack(csv.problem(), options);
    var elapsed = watch.elapsed();
    output.ifPresent(file -> WholeFile.write(file, csv.write(packing), "the packing"));
    console.print(summary(csv, packing, elapsed));
    output.ifPresent(file -> console.progress("packing written to " + file));
    return packing.height() <= capacity.orElse(Long.MAX_VALUE) ? ExitCode.OK : ExitCode.FAILED;
  }

  private String summary(PackingCsv csv, Packing packing, Duration elapsed) {
    var text = new StringBuilder();
    text.append("buffers      %d\n".formatted(csv.problem().count()));
    text.append("height       %d%s\n".formatted(packing.height(), quality(packing)));
    text.append("lower bound  %d\n".formatted(packing.lowerBound()));
    capacity.ifPresent(
        bytes -> text.append("capacity     %d: %s\n".formatted(bytes, verdict(packing, bytes))));
    text.append(String.format(Locale.ROOT, "time         %.3f s\n", elapsed.toNanos() / 1e9));
    return text.toString();
  }

  private static String quality(Packing packing) {
    return packing.isOptimal()
        ? " (optimal)"
        : String.format(
            Locale.ROOT,
            " (at most %.3f%% above the lowest)",
            100.0 * (packing.height() - packing.lowerBound()) / packing.lowerBound());
  }

  private static String verdict(Packing packing, long bytes) {
    if (packing.height() <= bytes) {
      return "fits";
    }
    return packing.lowerBound() > bytes ? "cannot fit" : "no packing found that fits";
  }
}
