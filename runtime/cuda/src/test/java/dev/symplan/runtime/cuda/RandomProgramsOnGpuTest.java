package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.runtime.fuzz.LocalProgram;
import java.time.Duration;
import java.util.ArrayList;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Random programs over all ops that GPUs run: a GPU against the host. More, or others, with {@code
 * -Dsymplan.graphs=N -Dsymplan.seed=N}; of some ops only with {@code -Dsymplan.ops=REGEX}.
 */
@Tag("gpu")
class RandomProgramsOnGpuTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(30);
  private static final long SEED = Fuzz.seed(20_261_123_000L);
  private static final int PROGRAMS = Integer.getInteger("symplan.graphs", 5_000);
  private static final String OPS = System.getProperty("symplan.ops", ".*");
  private static final int THREADS = Integer.getInteger("symplan.threads", 8);
  private static final int MAX_FINDINGS = 20;

  private final ConcurrentLinkedQueue<String> findings = new ConcurrentLinkedQueue<>();
  private final ConcurrentSkipListSet<String> ops = new ConcurrentSkipListSet<>();
  private final AtomicInteger programs = new AtomicInteger();
  private final AtomicInteger compared = new AtomicInteger();

  @BeforeEach
  void requireGpu() {
    Gpus.require(1);
  }

  @Test
  void eachOpGivesWhatTheHostGives() throws InterruptedException {
    var all =
        LocalProgram.ops().stream()
            .filter(op -> op.name().toString().matches(OPS))
            .collect(ImmutableList.toImmutableList());
    var next = new AtomicLong(SEED);
    var threads = new ArrayList<Thread>();
    for (int i = 0; i < THREADS; i++) {
      threads.add(Thread.ofPlatform().start(() -> work(all, next)));
    }
    for (var thread : threads) {
      thread.join();
    }
    System.out.printf(
        "%s programs, %s results of %s ops, from seed %s%n",
        programs.get(), compared.get(), ops.size(), SEED);
    assertThat(findings).isEmpty();
    assertThat(compared.get()).isGreaterThan(2 * PROGRAMS);
  }

  private void work(ImmutableList<OpDef> all, AtomicLong next) {
    for (long seed = next.getAndIncrement();
        seed < SEED + PROGRAMS && findings.size() < MAX_FINDINGS;
        seed = next.getAndIncrement()) {
      try {
        RandomPrograms.make(all, seed).ifPresent(this::check);
      } catch (RuntimeException e) {
        findings.add("seed %s: %s".formatted(seed, e));
      }
    }
  }

  private void check(RandomPrograms.Lowered made) {
    try (var session = CudaSession.open(made.executable(), TIMEOUT)) {
      var comparison = made.run(session);
      comparison.findings().forEach(finding -> findings.add(finding + "\n" + made.program()));
      compared.addAndGet(comparison.compared());
      programs.incrementAndGet();
      made.program().graph().ops().forEach(op -> ops.add(op.def().name().toString()));
    } catch (RuntimeException e) {
      findings.add("%s\n%s".formatted(e, made.program()));
    }
  }
}
