package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.base.Throwables;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.runtime.tensor.HostTensor;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Rules and kernels agree: what a rule accepts, its kernel computes or refuses with a reason.
 *
 * <p>The calls are PyTorch's recorded ones with a few arguments changed. More, or others, with
 * {@code -Dsymplan.calls=N -Dsymplan.seed=N}.
 */
@Tag("random")
class MutatedCallsTest {
  private static final int CALLS = Integer.getInteger("symplan.calls", Fuzz.times(40_000));
  private static final long SEED = Fuzz.seed(20261122);
  private static final long MAX_BYTES = 1 << 20;
  private static final long MAX_SECONDS = 10;

  /** The number of calls on one thread, since each change of threads waits for a free processor. */
  private static final int TOGETHER = 50;

  /** The end of a call. */
  private enum Outcome {
    REFUSED,
    TOO_LARGE,
    FAILED,
    COMPUTED
  }

  @Test
  void kernelsComputeOrRefuseWhatRulesAccept() {
    var byOp = RecordedCall.all();
    var ops = byOp.keySet().asList();
    var outcomes = new int[Outcome.values().length];
    var findings = new TreeMap<String, String>();
    for (int begin = 0; begin < CALLS; begin += TOGETHER) {
      var number = new AtomicInteger(begin);
      int end = Math.min(begin + TOGETHER, CALLS);
      within(
          number,
          () -> {
            for (; number.get() < end; number.incrementAndGet()) {
              var random = new Random(SEED + number.get());
              var calls = byOp.get(ops.get(number.get() % ops.size()));
              var call = new CallMutator(random).mutate(calls.get(random.nextInt(calls.size())));
              if (call.isPresent()) {
                try {
                  outcomes[run(call.get(), random).ordinal()]++;
                } catch (RuntimeException | AssertionError | StackOverflowError e) {
                  findings.putIfAbsent(
                      call.get().def().name().toString(),
                      "seed %s, %s: %s"
                          .formatted(
                              SEED + number.get(),
                              call.get(),
                              Throwables.getStackTraceAsString(e)));
                }
              }
            }
          });
    }
    System.out.printf("%s calls: %s%n", CALLS, Arrays.toString(outcomes));
    assertThat(findings.values()).isEmpty();
    assertThat(outcomes[Outcome.COMPUTED.ordinal()]).isGreaterThan(CALLS / 10);
  }

  /** Runs calls on a thread of their own: a kernel that does not end cannot be stopped. */
  private static void within(AtomicInteger number, Runnable calls) {
    var all = new FutureTask<Void>(calls, null);
    Thread.ofPlatform().daemon().start(all);
    try {
      all.get(MAX_SECONDS, TimeUnit.SECONDS);
    } catch (TimeoutException e) {
      throw new AssertionError(
          "seed %s did not end within %s s".formatted(SEED + number.get(), MAX_SECONDS), e);
    } catch (ExecutionException e) {
      Throwables.throwIfUnchecked(e.getCause());
      throw new AssertionError(e.getCause());
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static Outcome run(RecordedCall call, Random random) {
    try {
      long bytes = 0;
      for (var result : call.infer()) {
        bytes += result.type() instanceof TensorType type ? type.storageBytes() : 0;
      }
      if (bytes > MAX_BYTES) {
        return Outcome.TOO_LARGE;
      }
    } catch (OpTypeException | IllegalArgumentException | ArithmeticException e) {
      // These are what the graph's builder answers with an error at the op.
      assertThat(e.getMessage()).isNotEmpty();
      return Outcome.REFUSED;
    }
    var before = call.operands().stream().map(MutatedCallsTest::bytes).toList();
    var targets = new ArrayList<Scattered>();
    try {
      call.run(
          type -> {
            if (call.readsStrides()) {
              return HostTensor.allocate(type);
            }
            targets.add(Scattered.of(type, random));
            return targets.getLast().tensor();
          });
    } catch (HostKernelException | UnsupportedOperationException e) {
      assertThat(e.getMessage()).isNotEmpty();
      return Outcome.FAILED;
    }
    for (var target : targets) {
      assertThat(target.touchedGaps()).as("bytes written beside a result").isEmpty();
    }
    if (!call.def().schema().mutates()) {
      assertThat(call.operands().stream().map(MutatedCallsTest::bytes).toList())
          .as("operands afterwards")
          .isEqualTo(before);
    }
    return Outcome.COMPUTED;
  }

  private static ByteBuffer bytes(HostTensor tensor) {
    long bytes = Math.min(tensor.memory().byteSize(), tensor.type().storageBytes());
    return ByteBuffer.wrap(tensor.memory().asSlice(0, bytes).toArray(ValueLayout.JAVA_BYTE));
  }
}
