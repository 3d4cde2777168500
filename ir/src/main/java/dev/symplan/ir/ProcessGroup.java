package dev.symplan.ir;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import java.util.HashSet;
import java.util.OptionalInt;

/**
 * A named group of ranks that communicate, or several disjoint ones of the same size under one name
 * (a mesh dimension), of which each rank uses the one it is in.
 *
 * @param members the ordered rank list of each part; a rank's position in its list is its group
 *     rank
 */
public record ProcessGroup(String name, ImmutableList<ImmutableIntArray> members) {
  /**
   * More ranks than one job has. As all of them are planned for, a slip in a rank's number would
   * otherwise take all memory and hours.
   */
  public static final int MAX_RANKS = 1 << 16;

  public ProcessGroup {
    if (members.isEmpty()) {
      throw new IllegalArgumentException("group " + name + " has no ranks");
    }
    var seen = new HashSet<Integer>();
    for (var ranks : members) {
      if (ranks.isEmpty()) {
        throw new IllegalArgumentException("group " + name + " has an empty rank list");
      }
      if (ranks.length() != members.getFirst().length()) {
        throw new IllegalArgumentException("the parts of group " + name + " differ in size");
      }
      ranks.stream()
          .forEach(
              rank -> {
                if (!isRank(rank)) {
                  throw new IllegalArgumentException(
                      "group %s has rank %s; ranks are 0 to %s"
                          .formatted(name, rank, MAX_RANKS - 1));
                }
                if (!seen.add(rank)) {
                  throw new IllegalArgumentException(
                      "group %s has rank %s twice".formatted(name, rank));
                }
              });
    }
  }

  /** The group of ranks {@code 0 .. size-1}. */
  public static ProcessGroup world(String name, int size) {
    var ranks = ImmutableIntArray.builder(size);
    for (int rank = 0; rank < size; rank++) {
      ranks.add(rank);
    }
    return new ProcessGroup(name, ImmutableList.of(ranks.build()));
  }

  /** {@return whether a number can be a rank's} */
  public static boolean isRank(int number) {
    return number >= 0 && number < MAX_RANKS;
  }

  /** {@return the number of ranks that communicate with each other} */
  public int size() {
    return members.getFirst().length();
  }

  /** {@return the part that {@code rank} is in, as an index into {@link #members}} */
  public OptionalInt partOf(int rank) {
    for (int part = 0; part < members.size(); part++) {
      if (members.get(part).contains(rank)) {
        return OptionalInt.of(part);
      }
    }
    return OptionalInt.empty();
  }

  /** {@return the largest rank named} */
  public int maxRank() {
    return members.stream().flatMapToInt(ImmutableIntArray::stream).max().orElseThrow();
  }
}
