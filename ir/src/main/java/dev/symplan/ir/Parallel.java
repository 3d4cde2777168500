package dev.symplan.ir;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.Ints;
import java.util.List;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.ForkJoinTask;
import java.util.function.IntFunction;
import java.util.function.IntPredicate;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.stream.IntStream;

/**
 * Work on the items of large graphs, on all cores, or on the threads of the pool that the caller
 * runs in. What is done for one item must not depend on what is done for another; then results are
 * those of a loop, and so is the failure, if there is one: that of the first item that has one.
 *
 * <p>Work must not wait for other threads. A thread that has to wait here does other work, and what
 * that waits for may be what the thread itself has locked. So what work asks for, and is made when
 * it is first needed, is made before.
 */
public final class Parallel {
  /** Handing out fewer items takes longer than the work on them. */
  private static final int MIN_ITEMS = 4096;

  /** On two cores, handing out parts was measured to take as long as it saves. */
  private static final int MIN_THREADS = 3;

  /** More than one, as other threads may take cores away, and some items take longer. */
  private static final int PARTS_PER_THREAD = 4;

  /** Work on the items of a range. */
  @FunctionalInterface
  public interface Part<T> {
    T run(int from, int to);
  }

  /** Work on the items of a range, whose results are elsewhere. */
  @FunctionalInterface
  public interface Action {
    void run(int from, int to);
  }

  private Parallel() {}

  /** {@return the results of some work, in its order} */
  public static <T> ImmutableList<T> all(List<Supplier<T>> work) {
    var tasks = work.stream().map(one -> ForkJoinTask.adapt(() -> outcome(one))).toList();
    ForkJoinTask.invokeAll(tasks);
    return tasks.stream().map(task -> task.join().get()).collect(ImmutableList.toImmutableList());
  }

  /** What work gives, or throws: so that no failure but the first one counts. */
  private static <T> Supplier<T> outcome(Supplier<T> work) {
    try {
      T result = work.get();
      return () -> result;
    } catch (RuntimeException e) {
      return () -> {
        throw e;
      };
    } catch (Error e) {
      return () -> {
        throw e;
      };
    }
  }

  /** {@return the results for ranges of {@code count} items, which follow each other} */
  public static <T> ImmutableList<T> parts(int count, Part<T> work) {
    int threads = threads();
    int most = threads < MIN_THREADS ? 1 : PARTS_PER_THREAD * threads;
    int parts = Math.clamp(count / MIN_ITEMS, 1, most);
    if (parts == 1) {
      return ImmutableList.of(work.run(0, count));
    }
    return all(
        IntStream.range(0, parts)
            .<Supplier<T>>mapToObj(
                part -> () -> work.run(begin(part, parts, count), begin(part + 1, parts, count)))
            .toList());
  }

  private static int threads() {
    var pool = ForkJoinTask.getPool();
    return pool == null || pool == ForkJoinPool.commonPool()
        ? ForkJoinPool.getCommonPoolParallelism() + 1
        : pool.getParallelism();
  }

  private static int begin(int part, int parts, int count) {
    return (int) ((long) count * part / parts);
  }

  /** Does work for all of {@code count} items. */
  public static void forEach(int count, Action work) {
    parts(
        count,
        (from, to) -> {
          work.run(from, to);
          return true;
        });
  }

  /** {@return the lists for ranges of {@code count} items, one after the other} */
  public static <T> ImmutableList<T> concat(int count, Part<List<T>> work) {
    var parts = parts(count, work);
    if (parts.size() == 1) {
      return ImmutableList.copyOf(parts.getFirst());
    }
    int size = parts.stream().mapToInt(List::size).sum();
    var all = ImmutableList.<T>builderWithExpectedSize(size);
    parts.forEach(all::addAll);
    return all.build();
  }

  /** {@return what a function makes of each of {@code count} items} */
  public static <T> ImmutableList<T> map(int count, IntFunction<T> function) {
    return concat(
        count,
        (from, to) -> {
          var made = ImmutableList.<T>builderWithExpectedSize(to - from);
          for (int i = from; i < to; i++) {
            made.add(function.apply(i));
          }
          return made.build();
        });
  }

  /** {@return those items that meet a condition, in their order} */
  public static <T> ImmutableList<T> filter(List<T> items, Predicate<? super T> condition) {
    return concat(
        items.size(), (from, to) -> items.subList(from, to).stream().filter(condition).toList());
  }

  /** {@return those of {@code count} items that meet a condition, ascending} */
  public static int[] where(int count, IntPredicate condition) {
    var parts = parts(count, (from, to) -> IntStream.range(from, to).filter(condition).toArray());
    return Ints.concat(parts.toArray(int[][]::new));
  }
}
