package dev.symplan.ir;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinTask;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** Each test is run by several threads, however many cores there are. */
class ParallelTest {
  private static final int THREADS = 4;

  /** Enough for several parts, which end in the middle of something. */
  private static final int MANY = 100_003;

  private static void byThreads(Runnable test) {
    try (var pool = new ForkJoinPool(THREADS)) {
      pool.submit(test).join();
    }
  }

  @Test
  void resultsAreInTheOrderOfTheItems() {
    byThreads(
        () -> {
          for (int count : List.of(0, 1, 5_000, MANY)) {
            var all = IntStream.range(0, count).boxed().toList();
            var odd = IntStream.range(0, count).filter(i -> i % 2 == 1).toArray();

            assertThat(Parallel.where(count, i -> i % 2 == 1)).isEqualTo(odd);
            assertThat(Parallel.map(count, i -> i)).isEqualTo(all);
            assertThat(Parallel.filter(all, i -> i % 2 == 1).stream().mapToInt(i -> i).toArray())
                .isEqualTo(odd);
          }
        });
  }

  @Test
  void doesEachItemOnce() {
    byThreads(
        () -> {
          var done = new AtomicIntegerArray(MANY);

          Parallel.forEach(
              MANY, (from, to) -> IntStream.range(from, to).forEach(done::incrementAndGet));

          assertThat(IntStream.range(0, MANY).map(done::get)).containsOnly(1);
        });
  }

  @Test
  void partsFollowEachOther() {
    byThreads(
        () -> {
          var parts = Parallel.parts(MANY, (from, to) -> List.of(from, to));

          assertThat(parts).hasSizeGreaterThan(1);
          int end = 0;
          for (var part : parts) {
            assertThat(part.getFirst()).isEqualTo(end);
            end = part.getLast();
          }
          assertThat(end).isEqualTo(MANY);
        });
  }

  /** The last part fails at once, the first one late. */
  @Test
  void failsAsTheFirstItemDoes() {
    byThreads(
        () -> {
          var wrong = new IllegalStateException("item 20000");

          assertThatThrownBy(
                  () ->
                      Parallel.map(
                          MANY,
                          i -> {
                            if (i == 20_000) {
                              throw wrong;
                            }
                            if (i > 20_000 && i % 1_000 == 0) {
                              throw new IllegalArgumentException("item " + i);
                            }
                            return i;
                          }))
              .isSameAs(wrong);
        });
  }

  @Test
  void errorsAreNotWrapped() {
    byThreads(
        () -> {
          var wrong = new StackOverflowError();

          assertThatThrownBy(
                  () ->
                      Parallel.all(
                          List.<Supplier<Integer>>of(
                              () -> 1,
                              () -> {
                                throw wrong;
                              })))
              .isSameAs(wrong);
        });
  }

  @Test
  void workMayHandOutWork() {
    byThreads(
        () -> {
          var sums =
              Parallel.all(
                  IntStream.range(0, 20)
                      .<Supplier<Integer>>mapToObj(
                          k -> () -> Parallel.where(MANY, i -> i % (k + 1) == 0).length)
                      .toList());

          assertThat(sums)
              .isEqualTo(IntStream.range(0, 20).map(k -> (MANY + k) / (k + 1)).boxed().toList());
        });
  }

  /** Other work may take all other threads of the pool. */
  @Test
  void needsNoFreeThread() {
    byThreads(
        () -> {
          var busy = new CountDownLatch(THREADS - 1);
          var end = new CountDownLatch(1);
          for (int i = 1; i < THREADS; i++) {
            ForkJoinTask.getPool()
                .execute(
                    () -> {
                      busy.countDown();
                      await(end);
                    });
          }
          await(busy);
          try {
            assertThat(Parallel.where(MANY, i -> i % 2 == 0)).hasSize((MANY + 1) / 2);
          } finally {
            end.countDown();
          }
        });
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
