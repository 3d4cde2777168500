package dev.symplan.ir.op;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import java.util.HashSet;
import java.util.OptionalInt;
import java.util.stream.Collectors;

/**
 * The pairs of ranks of a {@code collective_permute}, counted within the group: each source sends
 * its operand to one target. A rank that is nobody's target gets zeros.
 *
 * @param pairs in which each rank is at most once a source, and at most once a target
 */
public record Permutation(ImmutableList<Pair> pairs) {

  /** Nobody sends anything. */
  public static final Permutation NONE = new Permutation(ImmutableList.of());

  /** One rank that sends, and the one that it sends to, which may be the same. */
  public record Pair(int source, int target) {
    public Pair {
      if (source < 0 || target < 0) {
        throw new IllegalArgumentException(
            "a pair is [%s, %s], but ranks count from 0".formatted(source, target));
      }
    }

    @Override
    public String toString() {
      return "[%s, %s]".formatted(source, target);
    }
  }

  public Permutation {
    var sources = new HashSet<Integer>();
    var targets = new HashSet<Integer>();
    for (var pair : pairs) {
      if (!sources.add(pair.source())) {
        throw new IllegalArgumentException(
            "rank %s is the source of two pairs".formatted(pair.source()));
      }
      if (!targets.add(pair.target())) {
        throw new IllegalArgumentException(
            "rank %s is the target of two pairs".formatted(pair.target()));
      }
    }
  }

  /** {@return the rank that sends to another one; empty if none does} */
  public OptionalInt sourceOf(int target) {
    return pairs.stream()
        .filter(pair -> pair.target() == target)
        .mapToInt(Pair::source)
        .findFirst();
  }

  /** {@return the rank that another one sends to; empty if it sends to none} */
  public OptionalInt targetOf(int source) {
    return pairs.stream()
        .filter(pair -> pair.source() == source)
        .mapToInt(Pair::target)
        .findFirst();
  }

  /** {@return the largest rank of all pairs; −1 without any} */
  public int maxRank() {
    return pairs.stream().mapToInt(pair -> Math.max(pair.source(), pair.target())).max().orElse(-1);
  }

  /** {@return the pairs as an argument of a call} */
  public Arg arg() {
    return new Arg.Seq(
        pairs.stream()
            .map(pair -> Arg.Seq.of(pair.source(), pair.target()))
            .collect(ImmutableList.toImmutableList()));
  }

  @Override
  public String toString() {
    return pairs.stream().map(Pair::toString).collect(Collectors.joining(", ", "[", "]"));
  }
}
