package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Value;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.LiveProfile;
import java.util.List;

/** The cost of longer lifetimes of tensors when collectives move. */
public final class BucketLives {
  /** The most bytes live at once may grow by this part of them, or by so many bytes. */
  private static final int PART = 32;

  private static final long BYTES = 2L << 20;

  private final ImmutableList<Analyses> graphs;
  private final List<LiveProfile> profiles;

  public BucketLives(ImmutableList<Analyses> graphs) {
    this.graphs = graphs;
    this.profiles = graphs.stream().map(LiveProfile::of).toList();
  }

  /** {@return the most bytes live at once on the first rank, before anything was moved} */
  public long initialPeak() {
    return profiles.getFirst().initialPeak();
  }

  /** {@return the most bytes that may be live at once where {@code peak} were} */
  public static long limit(long peak) {
    return peak + Math.max(peak / PART, BYTES);
  }

  /** {@return the last position that uses a value's storage; beyond all if it escapes} */
  public int lastUse(int graph, Value value) {
    return profiles.get(graph).lastUse(value);
  }

  /**
   * Moves tensors' lives as joining would.
   *
   * @param sinks whether the bucket moves to the new member, rather than the member to the bucket
   * @return by how many bytes too many the most that is live at once grows; if any, nothing is
   *     moved
   */
  public long move(OpenBucket bucket, OpenBucket own, boolean sinks) {
    long tooMany = 0;
    for (int g = 0; g < graphs.size(); g++) {
      var profile = profiles.get(g);
      shift(g, bucket, own, sinks, 1);
      tooMany = Math.max(tooMany, profile.peak() - limit(profile.initialPeak()));
    }
    if (tooMany > 0) {
      for (int g = 0; g < graphs.size(); g++) {
        shift(g, bucket, own, sinks, -1);
      }
    }
    return tooMany;
  }

  private void shift(int g, OpenBucket bucket, OpenBucket own, boolean sinks, int sign) {
    var profile = profiles.get(g);
    int from = graphs.get(g).overlap().window(bucket.anchor).given();
    int to = graphs.get(g).overlap().window(own.anchor).given();
    // Where a result takes the operand's memory, the operand is gone when the collective runs.
    int after = bucket.inPlace ? 0 : 1;
    var moved = sinks ? bucket : own;
    int later = sinks ? sign : -sign;
    profile.add(from + after, to + after, later * moved.held[g]);
    profile.add(from, to, -later * moved.made[g]);
  }
}
