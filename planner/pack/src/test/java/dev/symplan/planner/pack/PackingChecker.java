package dev.symplan.planner.pack;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.TreeMap;

/**
 * Says whether a packing is right, from the definition alone: it shares no code with the packer
 * beyond reading buffers.
 */
final class PackingChecker {

  /** A buffer at an offset. */
  record Placed(Item item, long offset) {
    long top() {
      return offset + item.size();
    }
  }

  private PackingChecker() {}

  /** Checks everything that a packing into one arena promises. */
  static void check(PackingProblem problem, Packing packing) {
    assertThat(packing.count()).isEqualTo(problem.count());
    var placed = new ArrayList<Placed>();
    for (int i = 0; i < problem.count(); i++) {
      assertThat(packing.inFirstArena(i)).isFalse();
      placed.add(new Placed(problem.item(i), packing.offset(i)));
    }
    checkArena(placed, packing.height());
    assertThat(packing.height()).isGreaterThanOrEqualTo(packing.lowerBound());
    assertThat(packing.lowerBound()).isGreaterThanOrEqualTo(problem.lowerBound());
  }

  /** Checks a packing into the holes of a first arena and into a second. */
  static void check(
      PackingProblem fixed, long[] offsets, long arena, PackingProblem free, Packing packing) {
    var first = new ArrayList<Placed>();
    var second = new ArrayList<Placed>();
    for (int i = 0; i < fixed.count(); i++) {
      first.add(new Placed(fixed.item(i), offsets[i]));
    }
    for (int i = 0; i < free.count(); i++) {
      (packing.inFirstArena(i) ? first : second).add(new Placed(free.item(i), packing.offset(i)));
    }
    checkArena(first, arena);
    checkArena(second, packing.height());
    assertThat(packing.height()).isGreaterThanOrEqualTo(packing.lowerBound());
  }

  static void checkArena(List<Placed> placed, long height) {
    for (var p : placed) {
      assertThat(p.offset()).isNotNegative();
      assertThat(p.offset() % p.item().alignment()).isZero();
      assertThat(p.top()).isLessThanOrEqualTo(height);
    }
    var clash = placed.size() <= 500 ? clashOfAnyTwo(placed) : clashInSweep(placed);
    assertThat(clash).isEmpty();
  }

  static String clashOfAnyTwo(List<Placed> placed) {
    for (var a : placed) {
      for (var b : placed) {
        boolean inTime = a.item().start() < b.item().end() && b.item().start() < a.item().end();
        if (a != b && inTime && a.offset() < b.top() && b.offset() < a.top()) {
          return a + " overlaps " + b;
        }
      }
    }
    return "";
  }

  /**
   * Buffers that are live at a step lie in order of offsets; a newcomer can only clash with its
   * two.
   */
  static String clashInSweep(List<Placed> placed) {
    var starting = new ArrayList<>(placed);
    starting.sort(Comparator.comparingInt(p -> p.item().start()));
    var ending = new ArrayList<>(placed);
    ending.sort(Comparator.comparingInt(p -> p.item().end()));
    var live = new TreeMap<Long, Placed>();
    int ended = 0;
    for (var p : starting) {
      while (ending.get(ended).item().end() <= p.item().start()) {
        live.remove(ending.get(ended++).offset());
      }
      var below = live.floorEntry(p.offset());
      if (below != null && below.getValue().top() > p.offset()) {
        return below.getValue() + " overlaps " + p;
      }
      var above = live.ceilingEntry(p.offset());
      if (above != null && above.getKey() < p.top()) {
        return above.getValue() + " overlaps " + p;
      }
      live.put(p.offset(), p);
    }
    return "";
  }
}
