package dev.symplan.ir.testkit;

import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * How many random inputs tests make, and which: {@code -Dfuzz=N} makes N times as many in every
 * test that makes any, {@code -Dsymplan.seed=N} others.
 */
public final class Fuzz {
  private static final int FACTOR = Integer.getInteger("fuzz", 1);
  private static final long SECONDS = 60;

  /** A random input, by its number. */
  @FunctionalInterface
  public interface Input {
    void take(int number) throws Exception;
  }

  private Fuzz() {}

  /** {@return a number of inputs, as often as is asked for} */
  public static int times(int usual) {
    return Math.multiplyExact(usual, FACTOR);
  }

  /** {@return the seed that is asked for, or the usual one} */
  public static long seed(long usual) {
    return Long.getLong("symplan.seed", usual);
  }

  /** Takes as many inputs as are asked for, none of which may take long. */
  public static void each(int usual, Input input) {
    var number = new AtomicInteger();
    var all =
        new FutureTask<>(
            () -> {
              for (; number.get() < times(usual); number.incrementAndGet()) {
                input.take(number.get());
              }
              return true;
            });
    var thread = Thread.ofPlatform().daemon().start(all);
    for (int last = -1; ; last = number.get()) {
      try {
        all.get(SECONDS, TimeUnit.SECONDS);
        return;
      } catch (TimeoutException e) {
        if (number.get() == last) {
          var failure = new AssertionError("input %s takes too long".formatted(last), e);
          failure.setStackTrace(thread.getStackTrace());
          throw failure;
        }
      } catch (ExecutionException e) {
        throw new AssertionError(
            "input %s: %s".formatted(number.get(), e.getCause()), e.getCause());
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }
  }
}
