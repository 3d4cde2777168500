package dev.symplan.runtime.fuzz;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.base.Throwables;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSortedSet;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.op.InferRule;
import dev.symplan.ir.op.OpRegistry;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.testkit.Cuts;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.planner.plan.OrderDecision.Outcome;
import dev.symplan.planner.plan.Placement;
import dev.symplan.planner.plan.Rewrite.Action;
import dev.symplan.planner.plan.Step;
import dev.symplan.runtime.host.HostCall;
import dev.symplan.runtime.host.HostKernels;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.parallel.Isolated;

/**
 * Random programs over all ops: planned execution gives the bits of direct evaluation.
 *
 * <p>More, or others, with {@code -Dsymplan.graphs=N -Dsymplan.seed=N}.
 */
@Isolated("registers an op")
@Tag("random")
class FuzzTest {
  private static final int GRAPHS = Integer.getInteger("symplan.graphs", Fuzz.times(5_000));
  private static final long SEED = Fuzz.seed(20_261_121_000L);
  private static final int THREADS = 2;
  private static final int MAX_FINDINGS = Integer.getInteger("symplan.findings", 3);

  /** Ops that need not occur, and why. */
  private static final ImmutableMap<String, String> EXCEPTIONS =
      ImmutableMap.of(
          "aten::_assert_tensor_metadata", "its rule checks it: there is nothing left to run");

  private static final List<OpRegistry.Registration> REGISTRATIONS = new ArrayList<>();

  private final Map<String, LongAdder> ops = new ConcurrentHashMap<>();
  private final Map<String, LongAdder> refused = new ConcurrentHashMap<>();
  private final Map<String, FuzzCase> findings = new ConcurrentHashMap<>();
  private final ConcurrentLinkedQueue<String> stories = new ConcurrentLinkedQueue<>();
  private final ConcurrentLinkedQueue<String> failures = new ConcurrentLinkedQueue<>();
  private final AtomicInteger async = new AtomicInteger();
  private final AtomicInteger inPlace = new AtomicInteger();
  private final AtomicInteger shares = new AtomicInteger();
  private final AtomicInteger reordered = new AtomicInteger();
  private final AtomicInteger several = new AtomicInteger();
  private final AtomicInteger copied = new AtomicInteger();
  private final AtomicInteger recomputed = new AtomicInteger();
  private final AtomicInteger fused = new AtomicInteger();
  private final AtomicInteger fusedByRows = new AtomicInteger();

  /** A copy that takes its time, so that ranks and streams get apart. */
  private static void slow(HostCall call) {
    call.result().copyFrom(call.tensor("input"));
    LockSupport.parkNanos(ThreadLocalRandom.current().nextInt(100_000));
    call.result().copyFrom(call.tensor("input"));
  }

  @BeforeAll
  static void registerTheSlowOp() {
    REGISTRATIONS.add(
        BuiltinOps.registry()
            .define(
                OpSpec.of("test_fuzz::slow(Tensor input) -> Tensor")
                    .rule(
                        InferRule.single(
                            call -> OpResult.fresh(call.tensor("input").contiguous())))));
    REGISTRATIONS.add(HostKernels.register("test_fuzz::slow", FuzzTest::slow));
  }

  @AfterAll
  static void takeItBack() {
    REGISTRATIONS.forEach(OpRegistry.Registration::close);
    REGISTRATIONS.clear();
  }

  @Test
  void plannedExecutionGivesTheBitsOfDirectEvaluation() throws Exception {
    var all = ExecutableOps.all();
    var generator = ExecutableOps.generator();
    System.out.printf("%s programs over %s ops from seed %s%n", GRAPHS, all.size(), SEED);
    var next = new AtomicLong(SEED);
    try (var threads = Executors.newFixedThreadPool(THREADS)) {
      Callable<Boolean> checks =
          () -> {
            for (long seed = next.getAndIncrement();
                seed < SEED + GRAPHS && findings.size() < MAX_FINDINGS;
                seed = next.getAndIncrement()) {
              check(generator, seed);
            }
            return true;
          };
      for (var checked : threads.invokeAll(Collections.nCopies(THREADS, checks))) {
        assertThat(checked.get()).isTrue();
      }
    }
    stories.forEach(System.out::println);
    System.out.printf(
        "%s collectives beside compute, %s in place; %s with shares in the whole; %s programs in"
            + " another order%n",
        async.get(), inPlace.get(), shares.get(), reordered.get());
    System.out.printf(
        "%s programs of several graphs, %s with copies of other strides; %s with tensors that are"
            + " computed again%n",
        several.get(), copied.get(), recomputed.get());
    System.out.printf(
        "%s fused steps, %s of them with ops that go by rows%n", fused.get(), fusedByRows.get());
    var notRun = new TreeMap<String, Long>();
    refused.forEach((why, times) -> notRun.put(why, times.sum()));
    System.out.println("not evaluated: " + notRun);
    var missing =
        all.stream()
            .map(def -> def.name().toString())
            .filter(name -> !ops.containsKey(name) && !EXCEPTIONS.containsKey(name))
            .collect(ImmutableSortedSet.toImmutableSortedSet(String::compareTo));
    assertThat(findings.keySet()).as("kinds of findings").isEmpty();
    assertThat(failures).as("failures of the generator").isEmpty();
    if (GRAPHS >= 5_000) {
      assertThat(missing).as("ops that were never run").isEmpty();
      assertThat(several.get()).as("programs of several graphs").isPositive();
      assertThat(copied.get()).as("programs whose graphs get copies").isGreaterThan(50);
      assertThat(recomputed.get()).as("programs that compute tensors again").isPositive();
      assertThat(async.get()).as("collectives beside compute").isPositive();
      assertThat(inPlace.get()).as("collectives in place").isPositive();
      assertThat(shares.get()).as("programs with shares in the whole").isPositive();
      assertThat(reordered.get()).as("programs in another order").isPositive();
      assertThat(fusedByRows.get()).as("fused steps by rows").isPositive();
    }
  }

  private void check(Generator generator, long seed) {
    FuzzCase made;
    try {
      var drawn = Differential.forceVariants(generator.make(seed));
      made = seed % 5 == 2 ? drawn.inLeastMemory() : drawn;
    } catch (RuntimeException e) {
      failures.add("seed %s: %s".formatted(seed, Throwables.getStackTraceAsString(e)));
      return;
    }
    var outcome = Differential.check(made);
    outcome
        .refused()
        .ifPresent(
            why ->
                refused
                    .computeIfAbsent(why.replaceAll("[0-9]+|'[^']*'", "#"), _ -> new LongAdder())
                    .increment());
    outcome
        .plan()
        .filter(_ -> outcome.refused().isEmpty())
        .ifPresent(
            plan -> {
              Differential.opsOf(made, plan)
                  .forEach(name -> ops.computeIfAbsent(name, _ -> new LongAdder()).increment());
              recomputed.addAndGet(
                  plan.rewrites().stream().anyMatch(one -> one.action() == Action.RECOMPUTED)
                      ? 1
                      : 0);
              copied.addAndGet(Cuts.hasCopies(plan.forRank(0).graph()) ? 1 : 0);
              several.addAndGet(plan.forRank(0).borders().isEmpty() ? 0 : 1);
              reordered.addAndGet(plan.reordering().outcome() == Outcome.REORDERED ? 1 : 0);
              for (var collective : plan.forRank(0).collectives()) {
                async.addAndGet(collective.isAsync() ? 1 : 0);
                inPlace.addAndGet(collective.inPlace() ? 1 : 0);
              }
              shares.addAndGet(
                  plan.forRank(0).placements().stream().anyMatch(Placement::isShard) ? 1 : 0);
              for (var step : plan.forRank(0).steps()) {
                if (step instanceof Step.Fused(var indices)) {
                  var all = plan.forRank(0).graph().ops();
                  boolean byRows =
                      indices.stream().anyMatch(i -> all.get(i).def().has(OpTrait.ROWWISE));
                  fused.incrementAndGet();
                  fusedByRows.addAndGet(byRows ? 1 : 0);
                }
              }
            });
    outcome
        .finding()
        .ifPresent(
            finding -> {
              if (findings.putIfAbsent(finding.kind(), made) == null) {
                var small = Shrinker.shrink(made, finding);
                var story = Differential.check(small).finding().map(Differential.Finding::story);
                stories.add(
                    "---- %s%n%s%n%s"
                        .formatted(finding.kind(), story.orElse("gone"), small.text()));
              }
            });
  }
}
