package dev.symplan.planner.model;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.testkit.Golden;
import dev.symplan.planner.machine.Protocol.Part;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.machine.Workspace;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Variants that go through workspaces, again and again in the same ones: every packet is that of
 * the collective at hand, none is lost, and nobody waits for ever. Collectives of one and of two
 * packets take turns, so that some places are used more often than others.
 */
class PushModelTest {
  static final Kind KIND = Kind.ALL_REDUCE;

  private static final int COLLECTIVES = 4;

  /** What keeps packets of one collective apart from those of others. */
  private enum Scheme {
    /** Halves take turns, and what was taken is emptied before the next collective begins. */
    ALTERNATING,
    /** Wrong: the next collective's packets may come before those of this one were taken. */
    ONE_HALF,
    /** Wrong: a packet that was taken is still there two collectives later. */
    NOT_EMPTIED
  }

  static List<Variant> variants() {
    return Arrays.stream(Variant.values()).filter(Variant::needsWorkspace).toList();
  }

  /** Slots are {@code half, round, receiver, sender, packet}; 0 is empty. */
  private static String model(Variant variant, int ranks, Scheme scheme) {
    var pushes = VariantSpec.of(KIND, variant).protocol().pushes();
    var out = new StringBuilder();
    out.append(
        "/* all_reduce %s\n * %d ranks. A packet is the number of its collective. */\n\n"
            .formatted(variant.text(), ranks));
    out.append("#define N %d\n#define COLLECTIVES %d\n".formatted(ranks, COLLECTIVES));
    out.append(
        "#define HALF (c %% %d)\n".formatted(scheme == Scheme.ONE_HALF ? 1 : Workspace.HALVES));
    out.append("#define PACKETS (1 + c % 2)\n");
    out.append(
        "#define slot(round, to, from, p) ((((HALF * %d + round) * N + to) * N + from) * 2 + p)\n\n"
            .formatted(pushes.size()));
    out.append("byte at[%d];\n".formatted(Workspace.HALVES * pushes.size() * ranks * ranks * 2));
    for (int rank = 0; rank < ranks; rank++) {
      out.append("\nproctype rank").append(rank).append("() {\n  byte c, p;\n");
      out.append("  do\n  :: c < COLLECTIVES ->\n");
      for (int round = 0; round < pushes.size(); round++) {
        lines(round, pushes.get(round), rank, ranks)
            .forEach(line -> out.append("    ").append(line).append('\n'));
      }
      if (scheme != Scheme.NOT_EMPTIED) {
        emptying(pushes.size(), rank, ranks)
            .forEach(line -> out.append("    ").append(line).append('\n'));
      }
      out.append("    c++\n  :: else -> break\n  od\n}\n");
    }
    return out.append("\ninit {\n  atomic {\n")
        .append(
            IntStream.range(0, ranks)
                .mapToObj("    run rank%d()"::formatted)
                .collect(Collectors.joining(";\n")))
        .append("\n  }\n}\n")
        .toString();
  }

  /** A rank sends all packets of a round before it looks for any. */
  private static List<String> lines(int round, Part part, int rank, int ranks) {
    var lines = new ArrayList<String>();
    lines.add(
        "/* round %d: %s */"
            .formatted(
                round,
                part == Part.WHOLE
                    ? "whole operands"
                    : part == Part.THEIRS
                        ? "each rank's slice to it"
                        : "the reduced slice to all"));
    var sends = new ArrayList<String>();
    var takes = new ArrayList<String>();
    for (int i = 1; i < ranks; i++) {
      int peer = (rank + i) % ranks;
      sends.add("at[slot(%d, %d, %d, p)] = c + 1;".formatted(round, peer, rank));
      var place = "at[slot(%d, %d, %d, p)]".formatted(round, rank, peer);
      takes.add("atomic { %1$s != 0 -> assert(%1$s == c + 1) };".formatted(place));
    }
    for (var loop : List.of(sends, takes)) {
      lines.add("for (p : 0 .. PACKETS - 1) {");
      loop.forEach(line -> lines.add("  " + line));
      lines.add("}");
    }
    return lines;
  }

  /** Nothing but the end of the kernel says that a place is empty, so it may be as late as that. */
  private static List<String> emptying(int rounds, int rank, int ranks) {
    var lines = new ArrayList<String>();
    lines.add("/* the end */");
    lines.add("for (p : 0 .. PACKETS - 1) {");
    for (int round = 0; round < rounds; round++) {
      for (int i = 1; i < ranks; i++) {
        lines.add("  at[slot(%d, %d, %d, p)] = 0;".formatted(round, rank, (rank + i) % ranks));
      }
    }
    lines.add("}");
    return lines;
  }

  @ParameterizedTest
  @MethodSource("variants")
  void modelsAreReadable(Variant variant) {
    Golden.check(
        "models/all_reduce-" + variant.text() + ".pml", model(variant, 3, Scheme.ALTERNATING));
  }

  @ParameterizedTest
  @MethodSource("variants")
  void everyPacketIsThatOfItsCollective(Variant variant) {
    Spin.assumePresent();
    Spin.assertSafe(ranks -> model(variant, ranks, Scheme.ALTERNATING));
  }

  @ParameterizedTest
  @EnumSource(
      value = Scheme.class,
      names = {"ONE_HALF", "NOT_EMPTIED"})
  void wrongOnesAreFound(Scheme scheme) {
    Spin.assumePresent();
    assertThat(variants())
        .allSatisfy(
            variant ->
                assertThat(Spin.check(model(variant, 2, scheme)))
                    .hasValueSatisfying(
                        error ->
                            assertThat(error).matches("invalid end state|assertion violated.*")));
  }
}
