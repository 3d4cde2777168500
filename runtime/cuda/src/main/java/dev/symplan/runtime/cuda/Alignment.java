package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.runtime.profile.Profile.Activity;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * Brings what was measured on the clocks of several GPUs together: the first collective of all
 * ranks ends on all of them at about the same time.
 */
final class Alignment {
  private Alignment() {}

  /** {@return the activities of all ranks; as they are where there is no such collective} */
  static ImmutableList<Activity> of(Executable executable, List<ImmutableList<Activity>> byRank) {
    var first = firstOfAll(executable);
    var all = ImmutableList.<Activity>builder();
    for (var activities : byRank) {
      double end =
          activities.stream()
              .filter(activity -> first.filter(activity.label()::equals).isPresent())
              .mapToDouble(Activity::end)
              .findFirst()
              .orElse(0);
      for (var a : activities) {
        all.add(
            new Activity(
                a.rank(), a.stream(), a.label(), a.kernel(), a.begin() - end, a.end() - end));
      }
    }
    return all.build();
  }

  private static Optional<String> firstOfAll(Executable executable) {
    var labels =
        executable.ranks().stream()
            .flatMap(
                program ->
                    program.instructions().stream()
                        .filter(
                            instruction ->
                                instruction instanceof Collective c
                                    && c.group().members().length() == executable.ranks().size())
                        .map(instruction -> ((Collective) instruction).name())
                        .limit(1))
            .collect(Collectors.toSet());
    return labels.size() == 1 ? labels.stream().findFirst() : Optional.empty();
  }
}
