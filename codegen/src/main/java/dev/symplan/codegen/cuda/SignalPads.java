package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.planner.StreamKind;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

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
  private final List<Map<Integer, Collective>> byIndex = new ArrayList<>();

  SignalPads(Executable executable) {
    for (var program : executable.ranks()) {
      Map<Integer, Collective> own = new LinkedHashMap<>();
      for (var instruction : program.instructions()) {
        if (instruction instanceof Collective collective) {
          own.put(collective.group().index(), collective);
        }
      }
      byIndex.add(own);
    }
    for (var own : byIndex) {
      own.values().forEach(collective -> places.putIfAbsent(place(collective), places.size()));
    }
  }

  private Place place(Collective collective) {
    var members = collective.group().members();
    return new Place(
        members,
        members.stream()
            .mapToObj(rank -> at(rank, collective).stream())
            .collect(ImmutableList.toImmutableList()));
  }

  int count() {
    return places.size();
  }

  /** {@return the number of the place where a collective's ranks meet} */
  int of(Collective collective) {
    return Objects.requireNonNull(places.get(place(collective)));
  }

  /** {@return the same collective as another rank has it} */
  Collective at(int rank, Collective collective) {
    return Objects.requireNonNull(byIndex.get(rank).get(collective.group().index()));
  }
}
