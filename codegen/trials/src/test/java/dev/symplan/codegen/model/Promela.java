package dev.symplan.codegen.model;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Transfer;
import dev.symplan.codegen.Transfer.Barrier;
import dev.symplan.codegen.Transfer.Clear;
import dev.symplan.codegen.Transfer.Copy;
import dev.symplan.codegen.Transfer.Empty;
import dev.symplan.codegen.Transfer.Endpoint;
import dev.symplan.codegen.Transfer.InTensor;
import dev.symplan.codegen.Transfer.Receive;
import dev.symplan.codegen.Transfer.Reduce;
import dev.symplan.codegen.Transfer.Role;
import dev.symplan.codegen.model.Sequence.Collective;
import dev.symplan.codegen.model.Sequence.Read;
import dev.symplan.codegen.model.Sequence.Write;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.NavigableSet;
import java.util.Objects;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * A sequence in spin's language. Every buffer is an array of each rank's, with one slot for each
 * part that is moved by itself. A slot holds the tag of what wrote it last: the step and the round.
 * Whoever reads asserts that it finds the tag of the writer that the program means.
 */
final class Promela {
  private final Sequence sequence;

  /** Where parts of a buffer that are moved by themselves begin, and its end. */
  private final Map<String, NavigableSet<Long>> cuts = new TreeMap<>();

  private final int tags;

  private Promela(Sequence sequence) {
    this.sequence = sequence;
    this.tags = (int) all(sequence).filter(step -> !(step instanceof Read)).count();
    for (var step : all(sequence).toList()) {
      switch (step) {
        case Write(var buffer) -> cut(buffer);
        case Read(var buffer) -> cut(buffer);
        case Collective c -> {
          cut(c.operand());
          cut(c.result());
          for (int rank = 0; rank < sequence.ranks(); rank++) {
            for (var transfer : transfers(c, rank)) {
              touched(c, transfer).forEach(this::cut);
            }
          }
        }
      }
    }
    for (var places : cuts.values()) {
      if (places.isEmpty()) {
        places.addAll(List.of(0L, 1L));
      }
    }
  }

  /** All steps, those of epilogues included. */
  private static Stream<Sequence.Step> all(Sequence sequence) {
    return sequence.steps().stream()
        .flatMap(
            step ->
                step instanceof Collective c
                    ? Stream.concat(Stream.of(step), c.epilogue().stream())
                    : Stream.of(step));
  }

  static String of(Sequence sequence) {
    return new Promela(sequence).text();
  }

  /** Some bytes of a buffer of a group's member. */
  private record Stretch(String buffer, int member, long from, long to) {}

  private void cut(String buffer) {
    cuts.computeIfAbsent(buffer, _ -> new TreeSet<>());
  }

  private void cut(Stretch stretch) {
    cuts.computeIfAbsent(stretch.buffer(), _ -> new TreeSet<>())
        .addAll(List.of(stretch.from(), stretch.to()));
  }

  private ImmutableList<Transfer> transfers(Collective c, int rank) {
    var members = part(c, rank);
    return Steps.of(c.spec(), members.size(), c.start(), c.end(), c.layout())
        .get(members.indexOf(rank));
  }

  private static Stream<Stretch> touched(Collective c, Transfer transfer) {
    return switch (transfer) {
      case Copy(var from, var to, long bytes) ->
          Stream.concat(Stream.of(from), to.stream()).flatMap(end -> stretches(c, end, bytes));
      case Reduce(var from, var to, long bytes) ->
          Stream.concat(from.stream(), to.stream()).flatMap(end -> stretches(c, end, bytes));
      case Clear(var to, long bytes) -> stretches(c, to, bytes);
      case Barrier _ -> Stream.of();
      case Receive _, Empty _ -> throw new IllegalArgumentException("nothing is pushed here");
    };
  }

  /** Each row of what is moved. */
  private static Stream<Stretch> stretches(Collective c, Endpoint end, long bytes) {
    if (end instanceof InTensor(var role, int member, long offset, var rows)
        && role != Role.LIBRARY) {
      var buffer = role == Role.OPERAND ? c.operand() : c.result();
      var stretches = new ArrayList<Stretch>();
      for (long at = 0; at < bytes; at += rows.left(at)) {
        long from = offset + rows.offset(at);
        long length = Math.min(bytes - at, rows.left(at));
        stretches.add(new Stretch(buffer, member, from, from + length));
      }
      return stretches.stream();
    }
    throw new IllegalArgumentException(end + " is not in a tensor");
  }

  private int slots(String buffer) {
    return Objects.requireNonNull(cuts.get(buffer)).size() - 1;
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
    for (var buffer : cuts.keySet()) {
      out.append(
          IntStream.range(0, sequence.ranks())
              .mapToObj(rank -> "%s_r%s[%s]".formatted(buffer, rank, slots(buffer)))
              .collect(Collectors.joining(", ", "byte ", ";\n")));
    }
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
                out.append("byte arrived_%1$s%2$s, passed_%1$s%2$s;\n".formatted(name, i));
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
    sequence.steps().forEach(step -> add(rank, step, lines, written));
    return lines;
  }

  /**
   * @param written by buffer, the tag of the last step that wrote it; {@code ""} has the last tag
   */
  private void add(int rank, Sequence.Step step, List<String> lines, Map<String, Integer> written) {
    switch (step) {
      case Write(var buffer) -> {
        int tag = written.merge("", 1, Integer::sum);
        written.put(buffer, tag);
        lines.add(local(rank, buffer, "%s = tag(" + tag + ")") + "  /* write " + buffer + " */");
      }
      case Read(var buffer) ->
          lines.add(
              local(rank, buffer, "assert(%s == tag(" + written.get(buffer) + "))")
                  + "  /* read "
                  + buffer
                  + " */");
      case Collective c -> {
        int found = Objects.requireNonNull(written.get(c.operand()));
        int tag = written.merge("", 1, Integer::sum);
        written.put(c.result(), tag);
        var transfers = transfers(c, rank);
        for (int i = 0; i < transfers.size(); i++) {
          if (i > 0 && transfers.get(i) instanceof Barrier) {
            c.epilogue().forEach(own -> add(rank, own, lines, written));
          }
          lines.addAll(lines(rank, c, transfers.get(i), found, tag));
        }
        if (!(transfers.getLast() instanceof Barrier)) {
          c.epilogue().forEach(own -> add(rank, own, lines, written));
        }
      }
    }
  }

  private String local(int rank, String buffer, String statement) {
    return IntStream.range(0, slots(buffer))
        .mapToObj(slot -> statement.formatted(slot(buffer, rank, slot)))
        .collect(Collectors.joining("; ", "d_step { ", " };"));
  }

  private static String slot(String buffer, int rank, int slot) {
    return "%s_r%s[%s]".formatted(buffer, rank, slot);
  }

  private String meet(int rank, Collective c) {
    var parts = sequence.groups().get(c.group());
    int i = parts.indexOf(part(c, rank));
    return "meet(arrived_%1$s%2$s, passed_%1$s%2$s, %3$s);"
        .formatted(c.group(), i, parts.get(i).size());
  }

  /** A reduction reads all that it needs before it writes; a copy reads for each target. */
  private List<String> lines(int rank, Collective c, Transfer transfer, int found, int tag) {
    var lines = new ArrayList<String>();
    switch (transfer) {
      case Barrier _ -> lines.add(meet(rank, c));
      case Copy(var from, var to, long bytes) ->
          to.forEach(
              end -> {
                lines.addAll(reads(rank, c, from, bytes, found));
                lines.addAll(writes(rank, c, end, bytes, tag));
              });
      case Clear(var to, long bytes) -> lines.addAll(writes(rank, c, to, bytes, tag));
      case Reduce(var from, var to, long bytes) -> {
        from.forEach(end -> lines.addAll(reads(rank, c, end, bytes, found)));
        to.forEach(end -> lines.addAll(writes(rank, c, end, bytes, tag)));
      }
      case Receive _, Empty _ -> throw new IllegalArgumentException("nothing is pushed here");
    }
    return lines;
  }

  private List<String> reads(int rank, Collective c, Endpoint end, long bytes, int tag) {
    return slots(rank, c, end, bytes)
        .map(slot -> "assert(%s == tag(%s));".formatted(slot, tag))
        .toList();
  }

  private List<String> writes(int rank, Collective c, Endpoint end, long bytes, int tag) {
    return slots(rank, c, end, bytes).map(slot -> "%s = tag(%s);".formatted(slot, tag)).toList();
  }

  private Stream<String> slots(int rank, Collective c, Endpoint end, long bytes) {
    return stretches(c, end, bytes).flatMap(stretch -> slots(rank, c, stretch));
  }

  private Stream<String> slots(int rank, Collective c, Stretch stretch) {
    var begins = Objects.requireNonNull(cuts.get(stretch.buffer()));
    int first = begins.headSet(stretch.from()).size();
    int count = begins.subSet(stretch.from(), stretch.to()).size();
    int owner = part(c, rank).get(stretch.member());
    return IntStream.range(first, first + count)
        .mapToObj(slot -> slot(stretch.buffer(), owner, slot));
  }
}
