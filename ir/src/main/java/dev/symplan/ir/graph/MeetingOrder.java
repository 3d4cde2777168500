package dev.symplan.ir.graph;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.op.OpTrait;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Checks that ranks come to their collectives in orders in which none waits for another for ever.
 * It lets all versions of a graph run, each collective one of all versions whose ranks meet there,
 * each border one of all.
 */
final class MeetingOrder {

  /** A collective, or a border, and the versions that come to it. */
  private record Stop(Op op, ImmutableList<Integer> versions, int place) {}

  private static final int BORDER = -1;

  private final List<List<Stop>> stops = new ArrayList<>();
  private final int[] next;

  private MeetingOrder(List<Graph> versions, List<Meetings> meetings) {
    this.next = new int[versions.size()];
    var all = ImmutableList.copyOf(IntStream.range(0, versions.size()).iterator());
    for (int v = 0; v < versions.size(); v++) {
      var places = places(v, RankAgreement.collectives(versions.get(v)).size(), meetings);
      var own = new ArrayList<Stop>();
      int k = 0;
      for (var op : versions.get(v).ops()) {
        if (op.def().has(OpTrait.BORDER)) {
          own.add(new Stop(op, all, BORDER));
        } else if (op.def().collective().isPresent()) {
          int place = places[k++];
          own.add(new Stop(op, meetings.get(place).positions().keySet().asList(), place));
        }
      }
      stops.add(own);
    }
  }

  private static int[] places(int version, int collectives, List<Meetings> meetings) {
    var places = new int[collectives];
    Arrays.fill(places, BORDER);
    for (int m = 0; m < meetings.size(); m++) {
      int place = m;
      var own = meetings.get(m).positions().get(version);
      if (own != null) {
        own.forEach(k -> places[k] = place);
      }
    }
    return places;
  }

  /** {@return whether all come to their ends; where they do not, that is reported} */
  static boolean check(List<Graph> versions, List<Meetings> meetings, DiagnosticSink sink) {
    return new MeetingOrder(versions, meetings).check(sink);
  }

  private boolean check(DiagnosticSink sink) {
    boolean moved = true;
    while (moved) {
      moved = false;
      for (int v = 0; v < stops.size(); v++) {
        while (isAt(v) && passes(stop(v))) {
          stop(v).versions().forEach(other -> next[other]++);
          moved = true;
        }
      }
    }
    var waiting = IntStream.range(0, stops.size()).filter(this::isAt).toArray();
    if (waiting.length == 0) {
      return true;
    }
    var first = stop(waiting[0]).op();
    var notes = ImmutableList.<String>builder();
    Arrays.stream(waiting)
        .skip(1)
        .mapToObj(v -> stop(v).op())
        .map(op -> "others wait in %s at %s".formatted(op.label(), op.span()))
        .distinct()
        .forEach(notes::add);
    sink.report(
        new Diagnostic(
            Diagnostic.Severity.ERROR,
            DiagnosticCode.RANKS_DISAGREE,
            first.span(),
            "ranks wait for each other: some wait here, in %s, for ranks that wait elsewhere"
                .formatted(first.label()),
            "give the ranks their collectives of different groups in the same order",
            notes.build()));
    return false;
  }

  private boolean isAt(int version) {
    return next[version] < stops.get(version).size();
  }

  private Stop stop(int version) {
    return stops.get(version).get(next[version]);
  }

  private boolean passes(Stop stop) {
    return stop.versions().stream()
        .allMatch(other -> isAt(other) && stop(other).place() == stop.place());
  }
}
