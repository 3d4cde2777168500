package dev.symplan.cli;

import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** How large a product is to be measured. */
final class ProductOption {
  @Spec(Spec.Target.MIXEE)
  private CommandSpec spec;

  @Option(
      names = "--product",
      paramLabel = "N",
      description = "Multiply matrices of N × N (default: ${DEFAULT-VALUE}).",
      defaultValue = "8192")
  private int size;

  /**
   * {@return rows, and columns, of both factors}
   *
   * @throws ParameterException when there would be none
   */
  int size() {
    if (size < 1) {
      throw new ParameterException(spec.commandLine(), "--product must be at least 1");
    }
    return size;
  }
}
