package dev.symplan.cli;

import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.cli.common.ExitCode;
import dev.symplan.cli.common.Outputs;
import dev.symplan.planner.io.PackedFile;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalLong;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

@Command(
    description = {
      "Assign offsets in one arena to buffers of known lifetimes, as low as possible.",
      "Reads and writes the CSV files of minimalloc: a header 'id,lower,upper,size', then one"
          + " buffer per line, which needs 'size' bytes from step 'lower' to before step 'upper'."
    })
final class PackCommand extends ConsoleCommand {
  private static final double NANOS = 1e9;
  private static final int MAX_SECONDS = 1_000_000;

  @Parameters(paramLabel = "FILE", description = "A CSV file of buffers.")
  private Path input;

  @Option(
      names = "--capacity",
      paramLabel = "N",
      description = {
        "The available bytes. Searches for some minutes if necessary, stops at the first packing"
            + " that fits, and exits with 1 if it finds none (default: the lowest packing that a"
            + " short search finds)."
      })
  private Optional<Long> capacity = Optional.empty();

  @Option(
      names = "--seconds",
      paramLabel = "S",
      description =
          "Limit the search to this time, instead of a number of steps. The offsets then depend on"
              + " the machine.")
  private Optional<Double> seconds = Optional.empty();

  @Option(
      names = {"-o", "--output"},
      paramLabel = "FILE",
      description =
          "Write the buffers with their offsets to this file, unless they need more than the"
              + " capacity.")
  private Optional<Path> output = Optional.empty();

  PackCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
    if (capacity.orElse(0L) < 0) {
      throw usage("--capacity must not be negative");
    }
    if (seconds.filter(s -> !(s >= 0 && s <= MAX_SECONDS)).isPresent()) {
      throw usage("--seconds must be 0 to " + MAX_SECONDS);
    }
    output.ifPresent(file -> Outputs.requireNotRead(file, List.of(input)));
    var packed =
        PackedFile.pack(
            input,
            capacity.map(OptionalLong::of).orElse(OptionalLong.empty()),
            seconds.map(s -> Duration.ofNanos((long) (s * NANOS))));
    boolean fits = packed.height() <= capacity.orElse(Long.MAX_VALUE);
    output.filter(_ -> fits).ifPresent(packed::write);
    console.print(summary(packed));
    output.ifPresent(
        file ->
            console.progress(fits ? "packing written to " + file : "nothing written to " + file));
    return fits ? ExitCode.OK : ExitCode.FAILED;
  }

  private String summary(PackedFile packed) {
    var text = new StringBuilder();
    text.append("buffers      ").append(packed.count());
    text.append("\nheight       ").append(packed.height()).append(quality(packed));
    text.append("\nlower bound  ").append(packed.lowerBound());
    capacity.ifPresent(
        bytes ->
            text.append("\ncapacity     ")
                .append(bytes)
                .append(": ")
                .append(verdict(packed, bytes)));
    text.append(
        String.format(Locale.ROOT, "\ntime         %.3f s\n", packed.time().toNanos() / NANOS));
    return text.toString();
  }

  private static String quality(PackedFile packed) {
    return packed.height() == packed.lowerBound()
        ? " (optimal)"
        : String.format(
            Locale.ROOT,
            " (at most %.3f%% above the lowest)",
            100.0 * (packed.height() - packed.lowerBound()) / packed.lowerBound());
  }

  private static String verdict(PackedFile packed, long bytes) {
    if (packed.height() <= bytes) {
      return "fits";
    }
    return packed.lowerBound() > bytes
        ? "cannot fit"
        : String.format(
            Locale.ROOT,
            "no packing found that fits, in a search of %.1f s",
            packed.time().toNanos() / NANOS);
  }
}
