package dev.symplan.ir;

import com.google.common.primitives.ImmutableLongArray;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Two tensors in one storage.
 *
 * @param to the one that is written
 * @param toOffset where it begins, in bytes
 * @param from the one that is read
 * @param fromOffset where that begins
 */
public record SharedElements(TensorType to, long toOffset, TensorType from, long fromOffset) {
  /** So many elements are compared one by one. */
  private static final long FEW = 1 << 12;

  /** So many sums are tried before the answer is that there may be a shared byte. */
  private static final int SUMS = 100_000;

  /** {@return whether no two elements of a tensor are at one address} */
  public static boolean areApart(TensorType type) {
    if (type.numel() < 2 || type.liesApart()) {
      return true;
    }
    if (type.numel() > FEW) {
      return false;
    }
    var addresses = addresses(type, 0);
    return addresses.stream().distinct().count() == addresses.size();
  }

  /** {@return whether both may have a byte in common} */
  public boolean any() {
    if (to.numel() == 0 || from.numel() == 0) {
      return false;
    }
    return new Sums(steps(to), steps(from)).reach(fromOffset - toOffset);
  }

  /**
   * {@return whether an element may be read at another index than the one at which it is written}
   * What is read is broadcast to what is written.
   */
  public boolean atOtherIndices() {
    if (!any()) {
      return false;
    }
    if (!from.broadcastsTo(to) || to.dtype().bytes() != from.dtype().bytes()) {
      return true;
    }
    var read = broadcast();
    if (toOffset == fromOffset && to.withDType(from.dtype()).hasSameLayout(read)) {
      return false;
    }
    if (to.numel() > FEW) {
      return true;
    }
    int size = to.dtype().bytes();
    if (Math.floorMod(toOffset - fromOffset, size) != 0) {
      return true;
    }
    Map<Long, Integer> written = new HashMap<>();
    var writes = addresses(to, toOffset / size);
    for (int i = 0; i < writes.size(); i++) {
      written.put(writes.get(i), i);
    }
    var reads = addresses(read, toOffset / size + (fromOffset - toOffset) / size);
    for (int i = 0; i < reads.size(); i++) {
      if (written.getOrDefault(reads.get(i), i) != i) {
        return true;
      }
    }
    return false;
  }

  private TensorType broadcast() {
    var strides = new long[to.rank()];
    int missing = to.rank() - from.rank();
    for (int dim = missing; dim < to.rank(); dim++) {
      strides[dim] = from.size(dim - missing) == 1 ? 0 : from.stride(dim - missing);
    }
    return new TensorType(
        from.dtype(), to.sizes(), ImmutableLongArray.copyOf(strides), from.space());
  }

  /** {@return the place of each element, in the order of their indices} */
  private static List<Long> addresses(TensorType type, long start) {
    List<Long> all = List.of(start);
    for (int dim = 0; dim < type.rank(); dim++) {
      var next = new ArrayList<Long>();
      for (long place : all) {
        for (long i = 0; i < type.size(dim); i++) {
          next.add(place + i * type.stride(dim));
        }
      }
      all = next;
    }
    return all;
  }

  /** So many bytes, up to {@code count - 1} times. */
  private record Step(long bytes, long count) {}

  /** {@return the steps that lead to each byte of a tensor; a run is one} */
  private static List<Step> steps(TensorType type) {
    int size = type.dtype().bytes();
    var all = new ArrayList<Step>();
    all.add(new Step(1, size));
    for (int dim = 0; dim < type.rank(); dim++) {
      if (type.size(dim) > 1 && type.stride(dim) > 0) {
        all.add(new Step(type.stride(dim) * size, type.size(dim)));
      }
    }
    all.sort(Comparator.comparingLong(Step::bytes));
    var joined = new ArrayList<Step>();
    for (var step : all) {
      if (!joined.isEmpty()
          && step.bytes() == joined.getLast().bytes() * joined.getLast().count()) {
        var inner = joined.removeLast();
        joined.add(new Step(inner.bytes(), inner.count() * step.count()));
      } else {
        joined.add(step);
      }
    }
    return joined;
  }

  /** What sums of the steps of one tensor, less those of another, come to. */
  private static final class Sums {
    /** One variable of the sums, which may be from {@code least} to {@code most}. */
    private record Term(long bytes, long least, long most) {}

    private final List<Term> terms = new ArrayList<>();

    /** By term, the least and the most that those behind it come to. */
    private final long[] least;

    private final long[] most;
    private int tries;

    Sums(List<Step> up, List<Step> down) {
      var rest = new ArrayList<>(down);
      for (var step : up) {
        // Both go equally far with it, so that only the difference matters.
        var same = rest.stream().filter(other -> other.bytes() == step.bytes()).findFirst();
        same.ifPresent(rest::remove);
        terms.add(
            new Term(
                step.bytes(), same.map(other -> 1 - other.count()).orElse(0L), step.count() - 1));
      }
      rest.forEach(step -> terms.add(new Term(step.bytes(), 1 - step.count(), 0)));
      terms.sort(Comparator.comparingLong(Term::bytes).reversed());
      least = new long[terms.size() + 1];
      most = new long[terms.size() + 1];
      for (int i = terms.size() - 1; i >= 0; i--) {
        var term = terms.get(i);
        least[i] = least[i + 1] + term.bytes() * term.least();
        most[i] = most[i + 1] + term.bytes() * term.most();
      }
    }

    boolean reach(long sum) {
      return least[0] <= sum && sum <= most[0] && reach(0, sum);
    }

    private boolean reach(int i, long sum) {
      if (i == terms.size()) {
        return sum == 0;
      }
      var term = terms.get(i);
      long first = Math.max(term.least(), -Math.floorDiv(most[i + 1] - sum, term.bytes()));
      long last = Math.min(term.most(), Math.floorDiv(sum - least[i + 1], term.bytes()));
      for (long times = first; times <= last; times++) {
        if (++tries > SUMS || reach(i + 1, sum - times * term.bytes())) {
          return true;
        }
      }
      return false;
    }
  }
}
