package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Transfer.Place;
import dev.symplan.codegen.Transfers;
import dev.symplan.planner.plan.StreamKind;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.stream.IntStream;

/**
 * Where ranks meet: one place, with flags and counts of its own, for each set of ranks and the
 * streams that they come in. What meets in one place comes one after the other on all ranks.
 */
final class SignalPads {

  /**
   * @param streams of each member, as each schedules by itself
   */
  private record Place(ImmutableIntArray members, ImmutableList<StreamKind> streams) {}

  private final Map<Place, Integer> places = new LinkedHashMap<>();
  private final Transfers transfers;

  SignalPads(Executable executable, Transfers transfers) {
    this.transfers = transfers;
    for (var program : executable.ranks()) {
      transfers
          .ofRank(program.rank())
          .forEach(collective -> places.putIfAbsent(place(collective), places.size()));
    }
  }

  private Place place(Collective collective) {
    var members = collective.group().members();
    return new Place(
        members,
        IntStream.range(0, members.length())
            .mapToObj(member -> transfers.at(member, collective).stream())
            .collect(ImmutableList.toImmutableList()));
  }

  int count() {
    return places.size();
  }

  /** {@return the number of the place where a collective's ranks meet} */
  int of(Collective collective) {
    return Objects.requireNonNull(places.get(place(collective)));
  }
}
