package dev.symplan.planner.machine;

import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.Ints;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.text.RankText;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Optional;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * The host of each rank. Mostly, ranks fill hosts in order; launchers may also deal them out.
 *
 * @param ofRank by rank, the number of its host
 */
public record Hosts(ImmutableIntArray ofRank) {
  private static final Pattern ITEM = Pattern.compile("(?:([1-9][0-9]{0,5})x)?([1-9][0-9]{0,5})");
  private static final Pattern LISTS = Pattern.compile("\\[[^\\[\\]]*](\\s*,\\s*\\[[^\\[\\]]*])*");
  private static final Pattern SLICE =
      Pattern.compile("([0-9]{1,5})(?::([0-9]{1,5})(?::([1-9][0-9]{0,4}))?)?");

  private static final int NONE = -1;

  public Hosts {
    if (ofRank.isEmpty()) {
      throw new IllegalArgumentException("a job needs a host");
    }
    var named = new BitSet();
    ofRank.forEach(named::set);
    if (named.nextClearBit(0) < named.length()) {
      throw new IllegalArgumentException("host %s has no rank".formatted(named.nextClearBit(0)));
    }
  }

  /**
   * {@return hosts that ranks fill in order}
   *
   * @param sizes how many ranks each has
   */
  public static Hosts filled(ImmutableIntArray sizes) {
    if (sizes.stream().anyMatch(size -> size < 1)) {
      throw new IllegalArgumentException("each host needs a rank: " + sizes);
    }
    return new Hosts(
        ImmutableIntArray.copyOf(
            IntStream.range(0, sizes.length())
                .flatMap(host -> IntStream.generate(() -> host).limit(sizes.get(host)))));
  }

  /**
   * {@return the hosts by a text: {@code 4x8} (four hosts of eight ranks), {@code 8,4}, or the
   * ranks of each host, {@code [0, 2], [1, 3]}, with slices as in {@code [0:8:2]}; empty if it is
   * none of these}
   *
   * @throws IllegalArgumentException when lists leave a rank out, or name one twice, or when there
   *     are more ranks than a job can have
   */
  public static Optional<Hosts> parse(String text) {
    return text.startsWith("[") ? lists(text) : sizes(text).map(Hosts::filled);
  }

  private static Optional<ImmutableIntArray> sizes(String text) {
    var sizes = ImmutableIntArray.builder();
    long ranks = 0;
    for (var item : Splitter.on(',').trimResults().split(text)) {
      var match = ITEM.matcher(item);
      if (!match.matches()) {
        return Optional.empty();
      }
      int count = match.group(1) == null ? 1 : Integer.parseInt(match.group(1));
      int each = Integer.parseInt(match.group(2));
      ranks += (long) count * each;
      if (ranks > ProcessGroup.MAX_RANKS) {
        throw new IllegalArgumentException("more than %s ranks".formatted(ProcessGroup.MAX_RANKS));
      }
      for (int i = 0; i < count; i++) {
        sizes.add(each);
      }
    }
    return Optional.of(sizes.build());
  }

  private static Optional<Hosts> lists(String text) {
    if (!LISTS.matcher(text).matches()) {
      return Optional.empty();
    }
    var hosts = new ArrayList<ImmutableIntArray>();
    for (var list : Splitter.on(']').omitEmptyStrings().split(text)) {
      var ranks = ranks(list.substring(list.indexOf('[') + 1));
      if (ranks.isEmpty()) {
        return Optional.empty();
      }
      hosts.add(ranks);
    }
    var ofRank = new int[hosts.stream().mapToInt(ImmutableIntArray::length).sum()];
    Arrays.fill(ofRank, NONE);
    for (int host = 0; host < hosts.size(); host++) {
      for (int rank : hosts.get(host).asList()) {
        if (rank < ofRank.length && ofRank[rank] != NONE) {
          throw new IllegalArgumentException("rank %s is listed twice".formatted(rank));
        }
        if (rank < ofRank.length) {
          ofRank[rank] = host;
        }
      }
    }
    int missing = Ints.indexOf(ofRank, NONE);
    if (missing >= 0) {
      throw new IllegalArgumentException(
          "rank %s is missing; %s ranks are listed, which count from 0"
              .formatted(missing, ofRank.length));
    }
    return Optional.of(new Hosts(ImmutableIntArray.copyOf(ofRank)));
  }

  /** The ranks of a list without its brackets; none if it is malformed. */
  private static ImmutableIntArray ranks(String list) {
    var ranks = ImmutableIntArray.builder();
    for (var item : Splitter.on(',').trimResults().split(list)) {
      var slice = SLICE.matcher(item);
      if (!slice.matches()) {
        return ImmutableIntArray.of();
      }
      int from = Integer.parseInt(slice.group(1));
      int to = slice.group(2) == null ? from + 1 : Integer.parseInt(slice.group(2));
      int step = slice.group(3) == null ? 1 : Integer.parseInt(slice.group(3));
      if (to > ProcessGroup.MAX_RANKS) {
        return ImmutableIntArray.of();
      }
      for (int rank = from; rank < to; rank += step) {
        ranks.add(rank);
      }
    }
    return ranks.build();
  }

  public int ranks() {
    return ofRank.length();
  }

  /** {@return how many ranks each host has} */
  public ImmutableIntArray sizes() {
    var sizes = new int[ofRank.stream().max().orElseThrow() + 1];
    ofRank.forEach(host -> sizes[host]++);
    return ImmutableIntArray.copyOf(sizes);
  }

  /** {@return the most ranks of a host} */
  public int most() {
    return sizes().stream().max().orElseThrow();
  }

  /** {@return the ranks of a host, ascending} */
  public ImmutableIntArray ranksOf(int host) {
    return ImmutableIntArray.copyOf(
        IntStream.range(0, ofRank.length()).filter(rank -> ofRank.get(rank) == host));
  }

  /** {@return the hosts as text, as short as can be; {@link #parse} reads it} */
  public String text() {
    var sizes = sizes();
    return equals(filled(sizes)) ? text(sizes.asList()) : lists();
  }

  private String lists() {
    var ranks = new ArrayList<List<Integer>>();
    sizes().forEach(_ -> ranks.add(new ArrayList<>()));
    for (int rank = 0; rank < ofRank.length(); rank++) {
      ranks.get(ofRank.get(rank)).add(rank);
    }
    return ranks.stream().map(RankText::list).collect(Collectors.joining(", "));
  }

  private static String text(List<Integer> sizes) {
    var items = ImmutableList.<String>builder();
    for (int from = 0; from < sizes.size(); ) {
      int to = from;
      while (to < sizes.size() && sizes.get(to).equals(sizes.get(from))) {
        to++;
      }
      items.add(to - from == 1 ? "" + sizes.get(from) : (to - from) + "x" + sizes.get(from));
      from = to;
    }
    return String.join(",", items.build());
  }
}
