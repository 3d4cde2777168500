package dev.symplan.cli;

import dev.symplan.cli.common.Console;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.check.Reference;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.tensor.HostTensor;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/** Shows how far the evaluation without a plan is, if it takes long, and ends it in time. */
final class Evaluation implements Reference.Observer {
  private static final Duration QUIET = Duration.ofSeconds(1);

  private final Console console;
  private final Optional<Duration> limit;
  private final long ops;
  private final long start = System.nanoTime();
  private long done;
  private long nextLine = QUIET.toNanos();

  /**
   * @param graphs each rank's
   */
  Evaluation(List<Graph> graphs, SessionOptions options, Console console) {
    this.console = console;
    this.limit = options.timeout();
    this.ops = graphs.stream().mapToLong(graph -> graph.ops().size()).sum();
  }

  /**
   * {@return the outputs of each rank; nothing if an op has no definition but its code}
   *
   * @param graphs each rank's
   */
  static List<List<Optional<HostTensor>>> of(
      List<Graph> graphs,
      List<ProcessGroup> groups,
      Reference.Inputs inputs,
      SessionOptions options,
      Console console) {
    return Reference.canEvaluate(graphs)
        ? Reference.evaluate(graphs, groups, inputs, new Evaluation(graphs, options, console))
            .outputs()
        : List.of();
  }

  @Override
  public void before(int rank, Op op) {
    long nanos = System.nanoTime() - start;
    if (limit.isPresent() && nanos > limit.get().toNanos()) {
      throw new RunException(
          ("the evaluation without a plan takes longer than %s s: it has come to %s of rank %s"
                  + " (%s); give a longer --timeout, or --no-compare")
              .formatted(
                  limit.get().toMillis() / 1e3, op.def().name(), rank, op.span().shortForm()));
    }
    if (nanos > nextLine) {
      console.progress(
          "evaluating without a plan: %s of %s (--no-compare leaves this out)"
              .formatted(done, Units.count(ops, "op")));
      nextLine = 2 * nanos;
    }
    done++;
  }
}
