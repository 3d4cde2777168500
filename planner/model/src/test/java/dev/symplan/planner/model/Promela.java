package dev.symplan.planner.model;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.machine.Protocol;
import dev.symplan.planner.machine.Protocol.Part;
import dev.symplan.planner.machine.Protocol.Whose;
import dev.symplan.planner.model.Sequence.Collective;
import dev.symplan.planner.model.Sequence.Read;
import dev.symplan.planner.model.Sequence.Write;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * A sequence in spin's language. Every buffer is an array of each rank's, with one slot for each
 * part that is moved by itself. A slot holds the tag of what wrote it last: the step and the round.
 * Whoever reads asserts that it finds the tag of the writer that the program means.
 */
final class Promela {
  private final Sequence sequence;
  private final Map<String, Integer> slots = new TreeMap<>();
  private final int tags;

  private Promela(Sequence sequence) {
    this.sequence = sequence;
    this.tags = (int) sequence.steps().stream().filter(step -> !(step instanceof Read)).count();
    for (var step : sequence.steps()) {
      switch (step) {
        case Write(var buffer) -> slots.merge(buffer, 1, Math::max);
        case Read(var buffer) -> slots.merge(buffer, 1, Math::max);
        case Collective c -> {
          slots.merge(c.operand(), slots(c, c.protocol().reads(), false), Math::max);
          slots.merge(c.result(), slots(c, c.protocol().writes(), true), Math::max);
        }
      }
    }
  }

  static String of(Sequence sequence) {
    return new Promela(sequence).text();
  }

  private int slots(Collective c, Part part, boolean result) {
    boolean gathers = result && c.kind() == Kind.ALL_GATHER;
    return part == Part.WHOLE && !gathers ? 1 : part(c, 0).size();
  }

  private ImmutableList<Integer> part(Collective c, int rank) {
    return sequence.groups().get(c.group()).stream()
        .filter(part -> part.contains(rank))
        .findFirst()
        .orElseThrow();
  }

  private String text() {
    var out = new StringBuilder();
    out.append("/* ").append(sequence.title()).append("\n * ");
    out.append(sequence.ranks()).append(" ranks. x_r1[2] is slot 2 of rank 1's buffer x. */\n\n");
    out.append("#define ROUNDS ").append(Sequence.ROUNDS).append('\n');
    out.append("#define tag(step) (round * ").append(tags).append(" + step)\n\n");
    slots.forEach(
        (buffer, count) ->
            out.append(
                IntStream.range(0, sequence.ranks())
                    .mapToObj(rank -> "%s_r%d[%d]".formatted(buffer, rank, count))
                    .collect(Collectors.joining(", ", "byte ", ";\n"))));
    barriers(out);
    for (int rank = 0; rank < sequence.ranks(); rank++) {
      out.append("\nproctype rank").append(rank).append("() {\n  byte round, met;\n");
      out.append("  do\n  :: round < ROUNDS ->\n");
      lines(rank).forEach(line -> out.append("    ").append(line).append('\n'));
      out.append("    round++\n  :: else -> break\n  od\n}\n");
    }
    out.append("\ninit {\n  atomic {\n");
    for (int rank = 0; rank < sequence.ranks(); rank++) {
      out.append("    run rank").append(rank).append("();\n");
    }
    return out.append("    skip\n  }\n}\n").toString();
  }

  private void barriers(StringBuilder out) {
    sequence
        .groups()
        .forEach(
            (name, parts) -> {
              for (int i = 0; i < parts.size(); i++) {
                out.append("byte arrived_%1$s%2$d, passed_%1$s%2$d;\n".formatted(name, i));
              }
            });
    out.append(
        """

        /* The last to come lets all go on, and the barrier is as new. */
        inline meet(arrived, passed, size) {
          d_step {
            met = passed;
            arrived++;
            if
            :: arrived == size -> arrived = 0; passed++
            :: else
            fi
          }
          passed != met
        }
        """);
  }

  private List<String> lines(int rank) {
    var lines = new ArrayList<String>();
    Map<String, Integer> written = new HashMap<>();
    int tag = 0;
    for (var step : sequence.steps()) {
      switch (step) {
        case Write(var buffer) -> {
          written.put(buffer, ++tag);
          lines.add(local(rank, buffer, "%s = tag(" + tag + ")") + "  /* write " + buffer + " */");
        }
        case Read(var buffer) ->
            lines.add(
                local(rank, buffer, "assert(%s == tag(" + written.get(buffer) + "))")
                    + "  /* read "
                    + buffer
                    + " */");
        case Collective c -> {
          if (c.start()) {
            lines.add(meet(rank, c) + "  /* start */");
          }
          int found = java.util.Objects.requireNonNull(written.get(c.operand()));
          move(rank, c, found, ++tag, lines);
          written.put(c.result(), tag);
          if (c.end()) {
            lines.add(meet(rank, c) + "  /* end */");
          }
        }
      }
    }
    return lines;
  }

  private String local(int rank, String buffer, String statement) {
    return IntStream.range(0, slots.getOrDefault(buffer, 0))
        .mapToObj(slot -> statement.formatted(slot(buffer, rank, slot)))
        .collect(Collectors.joining("; ", "d_step { ", " };"));
  }

  private static String slot(String buffer, int rank, int slot) {
    return "%s_r%d[%d]".formatted(buffer, rank, slot);
  }

  private String meet(int rank, Collective c) {
    var parts = sequence.groups().get(c.group());
    int i = parts.indexOf(part(c, rank));
    return "meet(arrived_%1$s%2$d, passed_%1$s%2$d, %3$d);"
        .formatted(c.group(), i, parts.get(i).size());
  }

  /** What reduces reads all that it needs before it writes; what moves goes from peer to peer. */
  private void move(int rank, Collective c, int found, int tag, List<String> lines) {
    var members = part(c, rank);
    int self = members.indexOf(rank);
    if (c.protocol().rootOnly() && self != 0) {
      return;
    }
    boolean reduces = c.kind().reduces();
    var reads = new ArrayList<String>();
    var writes = new ArrayList<String>();
    for (int i = 1; i <= members.size(); i++) {
      int peer = (self + i) % members.size();
      var read = read(c, members, self, peer, found);
      var write = write(c, members, self, peer, tag);
      reads.addAll(read);
      writes.addAll(write);
      if (!reduces) {
        lines.addAll(read);
        lines.addAll(write);
      }
    }
    if (reduces) {
      reads.stream().distinct().forEach(lines::add);
      writes.stream().distinct().forEach(lines::add);
    }
  }

  private List<String> read(Collective c, List<Integer> members, int self, int peer, int tag) {
    int owner = owner(c.protocol().readsOf(), self, peer);
    return touch(c.operand(), members.get(owner), c.protocol().reads(), self, peer).stream()
        .map(slot -> "assert(%s == tag(%d));".formatted(slot, tag))
        .toList();
  }

  private List<String> write(Collective c, List<Integer> members, int self, int peer, int tag) {
    int owner = owner(c.protocol().writesOf(), self, peer);
    return touch(c.result(), members.get(owner), c.protocol().writes(), self, peer).stream()
        .map(slot -> "%s = tag(%d);".formatted(slot, tag))
        .toList();
  }

  private static int owner(Whose whose, int self, int peer) {
    return switch (whose) {
      case OWN -> self;
      case EVERY -> peer;
      case ROOT -> 0;
    };
  }

  private List<String> touch(String buffer, int rank, Protocol.Part part, int self, int peer) {
    return switch (part) {
      case WHOLE ->
          IntStream.range(0, slots.getOrDefault(buffer, 0))
              .mapToObj(s -> slot(buffer, rank, s))
              .toList();
      case MINE -> ImmutableList.of(slot(buffer, rank, self));
      case THEIRS -> ImmutableList.of(slot(buffer, rank, peer));
    };
  }
}
