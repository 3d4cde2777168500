package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Transfers;
import dev.symplan.planner.plan.StreamKind;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.stream.IntStream;

/**
 * The signal pads where ranks meet: one, with flags and counts of its own, for each set of ranks
 * and the streams that they come in. The collectives of one pad come one after the other on all
 * ranks.
 */
final class SignalPads {

  /**
   * @param streams of each member, as each schedules by itself
   */
  private record Pad(ImmutableIntArray members, ImmutableList<StreamKind> streams) {}

  private final Map<Pad, Integer> pads = new LinkedHashMap<>();
  private final Transfers transfers;

  SignalPads(Executable executable, Transfers transfers) {
    this.transfers = transfers;
    for (var program : executable.ranks()) {
      transfers
          .ofRank(program.rank())
          .forEach(collective -> pads.putIfAbsent(pad(collective), pads.size()));
      for (var instruction : program.instructions()) {
        if (instruction instanceof LocalOp op && op.group().isPresent()) {
          pads.putIfAbsent(pad(op), pads.size());
        }
      }
    }
  }

  /** All ranks run a custom op in the stream of their other work. */
  private static Pad pad(LocalOp op) {
    var members = op.group().orElseThrow().members();
    return new Pad(
        members, ImmutableList.copyOf(Collections.nCopies(members.length(), op.stream())));
  }

  private Pad pad(Collective collective) {
    var members = collective.group().members();
    return new Pad(
        members,
        IntStream.range(0, members.length())
            .mapToObj(member -> transfers.at(member, collective).stream())
            .collect(ImmutableList.toImmutableList()));
  }

  int count() {
    return pads.size();
  }

  /** {@return the number of the pad where the ranks of an op that communicates meet} */
  int of(LocalOp op) {
    return Objects.requireNonNull(pads.get(pad(op)));
  }

  /** {@return the number of the pad where a collective's ranks meet} */
  int of(Collective collective) {
    return Objects.requireNonNull(pads.get(pad(collective)));
  }
}
