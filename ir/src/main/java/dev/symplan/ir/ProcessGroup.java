package dev.symplan.ir;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import java.util.Arrays;
import java.util.Objects;
import java.util.OptionalInt;

/**
 * A named group of ranks that communicate, or several disjoint ones of the same size under one name
 * (a mesh dimension), of which each rank uses the one it is in.
 */
public final class ProcessGroup {
  /**
   * More ranks than one job has. As all of them are planned for, a slip in a rank's number would
   * otherwise take all memory and hours.
   */
  public static final int MAX_RANKS = 1 << 16;

  private static final int NO_PART = -1;

  private final String name;
  private final ImmutableList<ImmutableIntArray> members;

  /** By rank, as a job with many ranks asks for all of them. */
  private final int[] partOfRank;

  /**
   * A group.
   *
   * @param members the ordered rank list of each part; a rank's position in its list is its group
   *     rank
   */
  public ProcessGroup(String name, ImmutableList<ImmutableIntArray> members) {
    this.name = name;
    this.members = members;
    if (members.isEmpty()) {
      throw new IllegalArgumentException("group " + name + " has no ranks");
    }
    for (var ranks : members) {
      if (ranks.isEmpty()) {
        throw new IllegalArgumentException("group " + name + " has an empty rank list");
      }
      if (ranks.length() != size()) {
        throw new IllegalArgumentException("the parts of group " + name + " differ in size");
      }
      ranks.forEach(
          rank -> {
            if (!isRank(rank)) {
              throw new IllegalArgumentException(
                  "group %s has rank %s; ranks are 0 to %s".formatted(name, rank, MAX_RANKS - 1));
            }
          });
    }
    this.partOfRank = new int[maxRank() + 1];
    Arrays.fill(partOfRank, NO_PART);
    for (int part = 0; part < members.size(); part++) {
      for (int rank : members.get(part).asList()) {
        if (partOfRank[rank] != NO_PART) {
          throw new IllegalArgumentException("group %s has rank %s twice".formatted(name, rank));
        }
        partOfRank[rank] = part;
      }
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

  public String name() {
    return name;
  }

  /** {@return the ordered rank list of each part} */
  public ImmutableList<ImmutableIntArray> members() {
    return members;
  }

  /** {@return the part that {@code rank} is in, as an index into {@link #members}} */
  public OptionalInt partOf(int rank) {
    return rank >= 0 && rank < partOfRank.length && partOfRank[rank] != NO_PART
        ? OptionalInt.of(partOfRank[rank])
        : OptionalInt.empty();
  }

  /** {@return the largest rank named} */
  public int maxRank() {
    return members.stream().flatMapToInt(ImmutableIntArray::stream).max().orElseThrow();
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof ProcessGroup group
        && name.equals(group.name)
        && members.equals(group.members);
  }

  @Override
  public int hashCode() {
    return Objects.hash(name, members);
  }

  @Override
  public String toString() {
    return "ProcessGroup[name=%s, members=%s]".formatted(name, members);
  }
}
