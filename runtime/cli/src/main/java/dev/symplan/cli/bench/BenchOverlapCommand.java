package dev.symplan.cli.bench;

import dev.symplan.cli.common.Console;
import dev.symplan.cli.common.ConsoleCommand;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.calibrate.BenchTable;
import dev.symplan.runtime.bench.Bench;
import dev.symplan.runtime.failure.RunException;
import java.util.List;
import java.util.Locale;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

@Command(
    name = "overlap",
    description = {
      "Measure a product beside an all_gather, for each variant, and a product whose result is"
          + " reduced, whole and in pieces (as with run --chunk=on)."
    })
final class BenchOverlapCommand extends ConsoleCommand {
  @Mixin private BenchFlags flags;

  @Mixin private Workload workload;

  BenchOverlapCommand(Console console) {
    super(console);
  }

  @Override
  public Integer call() {
    long gathered = workload.bytes("64MiB");
    int size = workload.product(Workload.PRODUCT);
    var wanted = flags.wanted(List.of(Kind.ALL_GATHER));
    var dtypes = flags.dtypes();
    return flags.measure(
        console,
        run -> {
          var bench = run.bench();
          for (var dtype : dtypes) {
            bench.overlap(dtype, size, gathered, wanted);
          }
          console.print(
              "products of %1$s × %1$s beside an all_gather of %2$s per rank, µs\n"
                  .formatted(size, Units.bytes(gathered)));
          console.print(BenchTable.text(run.points(), bench.target()));
          for (var dtype : dtypes) {
            try {
              print(bench.chunks(dtype, size));
            } catch (RunException e) {
              console.progress("a product and its all_reduce: " + e.getMessage());
            }
          }
          return run.code();
        });
  }

  private void print(Bench.Chunks chunks) {
    double whole = chunks.whole().median();
    double chunked = chunks.chunked().median();
    console.print(
        String.format(
            Locale.ROOT,
            "product alone %.1f µs; with the all_reduce of its result %.1f µs whole, %.1f µs in %s"
                + " pieces (%.3f of whole)\n",
            chunks.product().median(),
            whole,
            chunked,
            chunks.pieces(),
            chunked / whole));
  }
}
