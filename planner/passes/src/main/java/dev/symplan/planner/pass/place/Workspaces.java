package dev.symplan.planner.pass.place;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.Eligibility;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.select.Realized;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.StreamKind;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * The workspaces that the ranks of a plan push through: one for each group and stream, as large as
 * the collective that needs most. Collectives of one stream and group come one after the other on
 * all ranks, which makes sharing one safe.
 *
 * @param ofCollective for each collective, which one it takes; {@link CollectivePlan#NO_WORKSPACE}
 *     for those that need none
 * @param bytes the size of each
 */
public record Workspaces(ImmutableIntArray ofCollective, ImmutableLongArray bytes) {

  /** The users of a workspace: the group's name in each rank's graph, and the stream. */
  private record Owner(ImmutableList<String> groups, ImmutableList<StreamKind> streams) {}

  static Workspaces of(List<Realized> graphs, List<Schedule> schedules, PassContext context) {
    var variants = graphs.getFirst().variants();
    Map<Owner, Integer> owners = new LinkedHashMap<>();
    List<Long> bytes = new ArrayList<>();
    var ofCollective = ImmutableIntArray.builder();
    for (int k = 0; k < variants.size(); k++) {
      if (!variants.get(k).needsWorkspace()) {
        ofCollective.add(CollectivePlan.NO_WORKSPACE);
        continue;
      }
      var groups = ImmutableList.<String>builder();
      var streams = ImmutableList.<StreamKind>builder();
      long needed = 0;
      for (int g = 0; g < graphs.size(); g++) {
        var collective = graphs.get(g).collectives().get(k);
        groups.add(collective.group());
        streams.add(schedules.get(g).streams().get(k));
        int ranks = context.groupSize(collective.group());
        needed =
            Math.max(
                needed,
                Eligibility.workspaceBytes(collective.request(), graphs.get(g).spec(k), ranks));
      }
      var owner = new Owner(groups.build(), streams.build());
      if (owners.putIfAbsent(owner, owners.size()) == null) {
        bytes.add(0L);
      }
      int workspace = Objects.requireNonNull(owners.get(owner));
      bytes.set(workspace, Math.max(bytes.get(workspace), needed));
      ofCollective.add(workspace);
    }
    return new Workspaces(ofCollective.build(), ImmutableLongArray.copyOf(bytes));
  }

  public int count() {
    return bytes.length();
  }

  /** {@return the name of a workspace's buffer} */
  public static String name(int workspace) {
    return "workspace " + workspace;
  }

  /** {@return the bytes of all, which are taken as long as the plan is} */
  public long total() {
    return bytes.stream().map(Alignment::roundUp).sum();
  }
}
