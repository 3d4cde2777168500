package dev.symplan.runtime.fuzz;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.base.Throwables;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSortedSet;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.op.InferRule;
import dev.symplan.ir.op.OpRegistry;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.testkit.Fuzz;
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

  /** What plans have to decide of some programs. */
  private static final ImmutableList<String> DECISIONS =
      ImmutableList.of(
          "another order",
          "barriers that others stand in for",
          "chunked",
          "collectives beside compute",
          "collectives in place",
          "collectives of several tensors",
          "epilogues",
          "epilogues that pass on",
          "folded",
          "fused steps",
          "fused steps by rows",
          "graphs with copies",
          "hierarchical",
          "inputs that ranks have alike",
          "merged",
          "offloaded",
          "operand not aligned",
          "operand ranks differ",
          "operand reads rows",
          "ranks with graphs of their own",
          "recomputed",
          "result external output",
          "result writes rows",
          "rows of a piece",
          "sequence_parallel",
          "several graphs",
          "several hosts",
          "shards in the whole");

  private static final List<OpRegistry.Registration> REGISTRATIONS = new ArrayList<>();

  private final Map<String, LongAdder> ops = new ConcurrentHashMap<>();
  private final Map<String, LongAdder> refused = new ConcurrentHashMap<>();
  private final Map<String, FuzzCase> findings = new ConcurrentHashMap<>();
  private final ConcurrentLinkedQueue<String> stories = new ConcurrentLinkedQueue<>();
  private final ConcurrentLinkedQueue<String> failures = new ConcurrentLinkedQueue<>();
  private final Map<String, LongAdder> decisions = new ConcurrentHashMap<>();

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
    System.out.println("programs by decision: " + new TreeMap<>(decisions));
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
      assertThat(decisions.keySet()).as("what plans decide").containsAll(DECISIONS);
      assertThat(decisions.get("graphs with copies").sum()).isGreaterThan(50);
    }
  }

  private static void count(Map<String, LongAdder> counts, String name) {
    counts.computeIfAbsent(name, _ -> new LongAdder()).increment();
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
    outcome.refused().ifPresent(why -> count(refused, why.replaceAll("[0-9]+|'[^']*'", "#")));
    outcome
        .plan()
        .filter(_ -> outcome.refused().isEmpty())
        .ifPresent(
            plan -> {
              Differential.opsOf(made, plan).forEach(name -> count(ops, name));
              Decisions.of(plan).forEach(name -> count(decisions, name));
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
