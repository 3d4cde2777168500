package dev.symplan.cli.bench;

import java.util.Optional;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** The size of measured products and copies. */
final class Workload {
  @Spec(Spec.Target.MIXEE)
  private CommandSpec spec;

  /** Large enough that a GPU multiplies as fast as it can. */
  static final int PRODUCT = 8192;

  /** Large enough that a GPU's caches do not hold it. */
  static final String COPIED = "256MiB";

  @Option(
      names = "--product",
      paramLabel = "N",
      description =
          "Multiply matrices of N × N (default: " + PRODUCT + "; graph on the host: 512).")
  private Optional<Integer> product = Optional.empty();

  @Option(
      names = "--bytes",
      paramLabel = "SIZE",
      description =
          "The bytes to move: what is copied (machine and graph; default: 256MiB; graph on the"
              + " host: 64MiB), or what each rank gives to the all_gather (overlap; default:"
              + " 64MiB).")
  private Optional<String> bytes = Optional.empty();

  /**
   * {@return rows, and columns, of both factors}
   *
   * @param otherwise the default
   * @throws ParameterException when there would be none
   */
  int product(int otherwise) {
    int size = product.orElse(otherwise);
    if (size < 1) {
      throw new ParameterException(spec.commandLine(), "--product must be at least 1");
    }
    return size;
  }

  /**
   * {@return the bytes to move}
   *
   * @param otherwise the default
   * @throws ParameterException when the text is not a size
   */
  long bytes(String otherwise) {
    return BenchFlags.bytes(spec, "--bytes", bytes.orElse(otherwise));
  }
}
