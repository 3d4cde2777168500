package dev.symplan.cli.common;

import dev.symplan.runtime.ProductAlgorithms;
import dev.symplan.runtime.SessionOptions;
import picocli.CommandLine.Option;

/** Options of commands that open sessions. */
public final class SessionFlags {

  @Option(
      names = "--product-algorithms",
      paramLabel = "HOW",
      description =
          "How to pick cuBLASLt's algorithm for each product: timed takes the fastest, measured"
              + " when the session opens, at most once for each shape on a kind of GPU; heuristic"
              + " takes the library's first choice (default: timed).",
      defaultValue = "timed")
  private ProductAlgorithms products;

  @Option(
      names = "--dependent-launches",
      paramLabel = "on|off",
      description =
          "Whether kernels on GPUs may begin while the kernel before them still runs, to read"
              + " weights ahead (default: on).",
      defaultValue = "on")
  private OptionValues.Switch dependentLaunches;

  /** {@return options of sessions, as these options say} */
  public SessionOptions options() {
    return SessionOptions.DEFAULT
        .withProducts(products)
        .withDependentLaunches(dependentLaunches.isOn());
  }
}
