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

  @Option(
      names = "--product",
      paramLabel = "N",
      description = "Multiply matrices of N × N (default: ${DEFAULT-VALUE}).",
      defaultValue = "8192")
  private int product;

  @Option(
      names = "--bytes",
      paramLabel = "SIZE",
      description =
          "Move so much: what is copied (machine; default: 256MiB), or what each rank gives to the"
              + " all_gather (overlap; default: 64MiB).")
  private Optional<String> bytes = Optional.empty();

  /**
   * {@return rows, and columns, of both factors}
   *
   * @throws ParameterException when there would be none
   */
  int product() {
    if (product < 1) {
      throw new ParameterException(spec.commandLine(), "--product must be at least 1");
    }
    return product;
  }

  /** {@return the size of copies, as written} */
  String bytes(String otherwise) {
    return bytes.orElse(otherwise);
  }
}
