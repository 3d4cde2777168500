package dev.symplan.codegen.model;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Transfer;
import dev.symplan.codegen.Transfer.Barrier;
import dev.symplan.codegen.Transfer.Clear;
import dev.symplan.codegen.Transfer.Copy;
import dev.symplan.codegen.Transfer.Empty;
import dev.symplan.codegen.Transfer.Receive;
import dev.symplan.codegen.Transfer.Reduce;
import dev.symplan.codegen.Transfer.Slot;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.testkit.Golden;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.machine.Workspace;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Variants that go through workspaces, again and again in the same ones: every packet is that of
 * the collective at hand, none is lost, and nobody waits for ever. Collectives of one and of two
 * packets take turns, so that some places are used more often than others.
 */
class PushModelTest {
  static final Kind KIND = Kind.ALL_REDUCE;

  private static final int COLLECTIVES = 4;

  /** The mark that keeps packets of one collective apart from those of others. */
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
    var spec = VariantSpec.of(KIND, variant);
    int rounds = spec.protocol().pushes().size();
    var transfers = Steps.of(spec, ranks, false, false, Sequence.Layout.RUNS);
    var out = new StringBuilder();
    out.append(
        "/* all_reduce %s\n * %s ranks. A packet is the number of its collective. */\n\n"
            .formatted(variant.text(), ranks));
    out.append("#define N %s\n#define COLLECTIVES %s\n".formatted(ranks, COLLECTIVES));
    out.append(
        "#define HALF (c %% %s)\n".formatted(scheme == Scheme.ONE_HALF ? 1 : Workspace.HALVES));
    out.append("#define PACKETS (1 + c % 2)\n");
    out.append(
        "#define slot(round, to, from, p) ((((HALF * %s + round) * N + to) * N + from) * 2 + p)\n\n"
            .formatted(rounds));
    out.append("byte at[%s];\n".formatted(Workspace.HALVES * rounds * ranks * ranks * 2));
    for (int rank = 0; rank < ranks; rank++) {
      out.append("\nproctype rank").append(rank).append("() {\n  byte c, p;\n");
      out.append("  do\n  :: c < COLLECTIVES ->\n");
      lines(transfers.get(rank), scheme != Scheme.NOT_EMPTIED)
          .forEach(line -> out.append("    ").append(line).append('\n'));
      out.append("    c++\n  :: else -> break\n  od\n}\n");
    }
    return out.append("\ninit {\n  atomic {\n")
        .append(
            IntStream.range(0, ranks)
                .mapToObj("    run rank%s()"::formatted)
                .collect(Collectors.joining(";\n")))
        .append("\n  }\n}\n")
        .toString();
  }

  /** A rank sends all packets of a round before it looks for any. */
  private static List<String> lines(List<Transfer> transfers, boolean empties) {
    var lines = new ArrayList<String>();
    var sends = new ArrayList<String>();
    var emptied = new ArrayList<Slot>();
    for (var transfer : transfers) {
      switch (transfer) {
        case Copy(_, var to, _) ->
            to.forEach(
                place -> {
                  if (place instanceof Slot slot) {
                    sends.add("%s = c + 1;".formatted(text(slot)));
                  }
                });
        case Receive(var slots) -> {
          lines.addAll(forAllPackets("send", sends));
          sends.clear();
          lines.addAll(
              forAllPackets(
                  "receive",
                  slots.stream()
                      .map(
                          slot ->
                              "atomic { %1$s != 0 -> assert(%1$s == c + 1) };"
                                  .formatted(text(slot)))
                      .toList()));
        }
        case Empty(var slots) -> emptied.addAll(slots);
        case Reduce _ -> {}
        case Barrier _, Clear _ -> throw new IllegalArgumentException("nobody meets here");
      }
    }
    // Nothing but the end of the kernel says that a place is empty, so it may be as late as that.
    if (empties) {
      lines.addAll(
          forAllPackets("the end", emptied.stream().map(slot -> text(slot) + " = 0;").toList()));
    }
    return lines;
  }

  private static String text(Slot slot) {
    return "at[slot(%s, %s, %s, p)]".formatted(slot.round(), slot.receiver(), slot.sender());
  }

  private static List<String> forAllPackets(String comment, List<String> lines) {
    var loop = ImmutableList.<String>builder();
    loop.add("/* " + comment + " */", "for (p : 0 .. PACKETS - 1) {");
    lines.forEach(line -> loop.add("  " + line));
    return loop.add("}").build();
  }

  @ParameterizedTest
  @MethodSource("variants")
  void modelsAreReadable(Variant variant) {
    Golden.check(
        "models/all_reduce-" + variant.text() + ".pml", model(variant, 3, Scheme.ALTERNATING));
  }

  /** Each by itself: variables of others would be in each of its two million states. */
  @ParameterizedTest
  @MethodSource("variants")
  void everyPacketIsThatOfItsCollective(Variant variant) {
    Spin.assumePresent();
    Spin.ofRanks(variant.text(), ranks -> model(variant, ranks, Scheme.ALTERNATING))
        .forEach((name, model) -> Spin.assertSafe(Map.of(name, model)));
  }

  @Test
  void wrongOnesAreFound() {
    Spin.assumePresent();
    var models = new LinkedHashMap<String, String>();
    for (var variant : variants()) {
      for (var scheme : List.of(Scheme.ONE_HALF, Scheme.NOT_EMPTIED)) {
        models.put(variant.text() + " " + scheme, model(variant, 2, scheme));
      }
    }
    Spin.assertUnsafe(models, "invalid end state|assertion violated.*");
  }
}
