package dev.symplan.cli;

import dev.symplan.cli.common.Console;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Op;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.check.Reference;
import dev.symplan.runtime.failure.RunException;
import java.time.Duration;
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

  Evaluation(Plan plan, SessionOptions options, Console console) {
    this.console = console;
    this.limit = options.timeout();
    this.ops =
        plan.planOfRank().stream()
            .mapToLong(index -> plan.rankPlans().get(index).graph().ops().size())
            .sum();
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
