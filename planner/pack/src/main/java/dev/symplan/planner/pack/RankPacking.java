package dev.symplan.planner.pack;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import java.util.List;

/**
 * Offsets for a program of several ranks: in a symmetric arena, whose buffers have the same offsets
 * on every rank, and in a local arena of each rank's own.
 *
 * <p>Local buffers may lie in the symmetric arena, too. It is packed first, as low as it can be,
 * and local buffers fill its holes. Where that takes more in total than is live at one step, as a
 * buffer cannot lie across both arenas, the rank that needs most is packed as a whole into the
 * symmetric arena instead; and where the local buffers of other ranks then do not fit, all ranks
 * are ({@link JointPacking}). The smallest total is kept.
 *
 * @param symmetricOffsets for each symmetric buffer
 * @param symmetricBytes the size of the symmetric arena
 * @param symmetricBound the most bytes of symmetric buffers that are live at one step
 * @param locals for each rank, where its local buffers lie: {@link Packing#inFirstArena} says which
 *     are in the symmetric arena
 */
public record RankPacking(
    ImmutableLongArray symmetricOffsets,
    long symmetricBytes,
    long symmetricBound,
    ImmutableList<Packing> locals) {

  /** A larger symmetric arena costs too little to search long for a smaller one. */
  private static final long GLANCE_STEPS = 2_000;

  private static final long GLANCE_ITEMS = 60_000;

  /**
   * One part in so many above the bound is good enough for more buffers than exact search can take:
   * greedy methods alone rarely come closer.
   */
  private static final long CLOSE = 100_000;

  /**
   * Packs the buffers of all ranks.
   *
   * @param symmetric each rank's symmetric buffers: as many on all ranks, of the same sizes in the
   *     same order, live at other steps perhaps
   * @param local each rank's local buffers, with the same steps
   */
  public static RankPacking of(List<PackingProblem> symmetric, List<PackingProblem> local) {
    if (symmetric.isEmpty() || symmetric.size() != local.size()) {
      throw new IllegalArgumentException(
          "%s and %s ranks".formatted(symmetric.size(), local.size()));
    }
    var common = PackingProblem.union(symmetric);
    var packed = Packer.pack(common);
    if (common.count() == 0) {
      return apart(common, packed, symmetric, local, PackOptions.DEFAULT);
    }
    int lead = 0;
    long bound = 0;
    for (int rank = 0; rank < local.size(); rank++) {
      long live = symmetric.get(rank).concat(local.get(rank)).lowerBound();
      if (live > bound) {
        lead = rank;
        bound = live;
      }
    }
    int count = common.count() + local.get(lead).count();
    long enough = count > SearchPortfolio.MAX_ITEMS ? bound + bound / CLOSE : bound;
    var glance =
        PackOptions.DEFAULT
            .withSearchSteps(GLANCE_STEPS)
            .withGreedyItems(GLANCE_ITEMS)
            .withCapacity(Math.max(0, enough - packed.height()));
    var quick = apart(common, packed, symmetric, local, glance);
    if (quick.totalBytes() <= enough) {
      return quick;
    }
    var together = together(common, symmetric, local, lead, enough);
    if (together.totalBytes() <= enough) {
      return together;
    }
    var apart = apart(common, packed, symmetric, local, PackOptions.DEFAULT);
    var lower = together.totalBytes() < apart.totalBytes() ? together : apart;
    int all = common.count() + local.stream().mapToInt(PackingProblem::count).sum();
    if (lower.totalBytes() <= enough || local.size() == 1 || all > SearchPortfolio.MAX_ITEMS) {
      return lower;
    }
    var joint = jointly(common, symmetric, local, enough);
    return joint.totalBytes() < lower.totalBytes() ? joint : lower;
  }

  private static RankPacking apart(
      PackingProblem common,
      Packing packed,
      List<PackingProblem> symmetric,
      List<PackingProblem> local,
      PackOptions options) {
    var locals = ImmutableList.<Packing>builder();
    for (int rank = 0; rank < local.size(); rank++) {
      locals.add(
          Packer.packInto(
              symmetric.get(rank), packed.offsets(), packed.height(), local.get(rank), options));
    }
    return new RankPacking(packed.offsets(), packed.height(), common.lowerBound(), locals.build());
  }

  private static RankPacking together(
      PackingProblem common,
      List<PackingProblem> symmetric,
      List<PackingProblem> local,
      int lead,
      long enough) {
    var options = PackOptions.DEFAULT.withCapacity(enough);
    var whole = Packer.pack(common.concat(local.get(lead)), options);
    var offsets = whole.offsets().subArray(0, common.count()).trimmed();
    var locals = ImmutableList.<Packing>builder();
    for (int rank = 0; rank < local.size(); rank++) {
      locals.add(
          rank == lead
              ? Packing.inFirstArena(whole.offsets().subArray(common.count(), whole.count()))
              : Packer.packInto(
                  symmetric.get(rank),
                  offsets,
                  whole.height(),
                  local.get(rank),
                  PackOptions.DEFAULT));
    }
    return new RankPacking(offsets, whole.height(), common.lowerBound(), locals.build());
  }

  private static RankPacking jointly(
      PackingProblem common,
      List<PackingProblem> symmetric,
      List<PackingProblem> local,
      long enough) {
    var joint = new JointPacking(common, symmetric, local);
    joint.solve(enough);
    var locals = ImmutableList.<Packing>builder();
    int next = common.count();
    for (var rank : local) {
      locals.add(Packing.inFirstArena(joint.offsets(next, rank.count())));
      next += rank.count();
    }
    return new RankPacking(
        joint.offsets(0, common.count()), joint.height(), common.lowerBound(), locals.build());
  }

  /** {@return the bytes of both arenas, on the rank that needs most} */
  public long totalBytes() {
    return symmetricBytes + locals.stream().mapToLong(Packing::height).max().orElse(0);
  }
}
