package dev.symplan.planner.machine;

import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Sets;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;

/**
 * The algorithms that a collective can be rewritten to, with what holds for each whatever the kind
 * of the collective. {@link VariantSpec} has the rest.
 *
 * <p>What a variant reads or writes on a peer must be in symmetric memory. Most begin and end with
 * a barrier of the group. After the first one, operands are written and results are free on all
 * ranks. After the second one, no rank still reads or writes a peer's buffer. Those that go through
 * a {@link Workspace} need none.
 */
public enum Variant {
  /** A group of one rank: a copy. */
  LOCAL("no communication: the group has one rank", Barriers.NONE),
  /** Every rank reads its peers' operands directly: one kernel, each byte over the link once. */
  ONE_SHOT("each rank reads the peers' operands and computes its result alone", Barriers.PLANNED),
  /**
   * Every rank stores its operand into every peer's workspace, and reduces what it finds in its
   * own: no barrier, one way over the link.
   */
  ONE_SHOT_PUSH(
      "each rank stores its operand into the peers' workspaces, without a barrier",
      Barriers.NONE,
      Trait.WORKSPACE),
  /**
   * Every rank reduces its slice from the peers' operands and stores it to every peer's result. In
   * a broadcast, each but the root takes its slice from there.
   */
  TWO_SHOT("each rank handles one slice and stores it to all peers", Barriers.PLANNED),
  /** Like {@link #TWO_SHOT}, but operands and results pass through the peers' workspaces. */
  TWO_SHOT_PUSH(
      "each rank reduces one slice, through workspaces, without a barrier",
      Barriers.NONE,
      Trait.WORKSPACE),
  /** Every rank stores its operand to every peer's result. */
  PUSH("each rank stores its operand into the peers' results", Barriers.PLANNED),
  /** The switch reduces on load and replicates on store, through a multicast address. */
  MULTIMEM("the switch reduces and replicates (NVLink multicast)", Barriers.PLANNED),
  /** Every rank has the switch reduce everything for it alone. */
  MULTIMEM_ONE_SHOT(
      "the switch reduces all operands for each rank (NVLink multicast)", Barriers.PLANNED),
  /** Like {@link #PUSH}, but by the copy engines: takes no SM, starts slowly. */
  COPY_ENGINE(
      "the copy engines store each operand into the peers' results",
      Barriers.PLANNED,
      Trait.COPY_ENGINES),
  /** NCCL's symmetric kernels on registered windows. */
  NCCL_SYMM(
      "NCCL's symmetric kernel on a registered window", Barriers.OWN, Trait.NCCL, Trait.WINDOW),
  /** Like {@link #COPY_ENGINE}, but by NCCL: a communicator with the CTA policy zero. */
  NCCL_CE(
      "NCCL copies between registered windows on the copy engines",
      Barriers.OWN,
      Trait.NCCL,
      Trait.WINDOW,
      Trait.COPY_ENGINES),
  /** Plain NCCL: no demand on memory. */
  NCCL("plain NCCL, through its own buffers", Barriers.OWN, Trait.NCCL),
  /** A custom op's own implementation. */
  CUSTOM("the op's own implementation", Barriers.OWN);

  /** How the ranks of a group know that their peers have begun, and that they are done. */
  public enum Barriers {
    /** They do not need to: a rank is alone, or the data that it receives shows its own arrival. */
    NONE,
    /** By barriers of the plan, which can be left out and can stand in for others. */
    PLANNED,
    /** In a way of the library's or the op's own, which promises nothing to others. */
    OWN
  }

  private enum Trait {
    WORKSPACE,
    COPY_ENGINES,
    NCCL,
    WINDOW
  }

  private final String summary;
  private final Barriers barriers;
  private final ImmutableSet<Trait> traits;

  Variant(String summary, Barriers barriers, Trait... traits) {
    this.summary = summary;
    this.barriers = barriers;
    this.traits = Sets.immutableEnumSet(List.of(traits));
  }

  /** {@return the name in plans and options, for example {@code one_shot}} */
  public String text() {
    return Ascii.toLowerCase(name());
  }

  /** {@return one line for people} */
  public String summary() {
    return summary;
  }

  /** {@return the variant with this {@link #text}} */
  public static Optional<Variant> ofText(String text) {
    return Arrays.stream(values()).filter(v -> v.text().equals(text)).findFirst();
  }

  /** {@return the algorithms between several ranks that exist for a kind of collective} */
  public static ImmutableList<Variant> ofKind(Kind kind) {
    return VariantSpec.ofKind(kind).stream()
        .map(VariantSpec::variant)
        .filter(variant -> variant != LOCAL)
        .collect(ImmutableList.toImmutableList());
  }

  /** {@return whether this algorithm exists for a kind of collective} */
  public boolean implementsKind(Kind kind) {
    return VariantSpec.find(kind, this).isPresent();
  }

  /** {@return which ranks meet before and after it} */
  public Barriers barriers() {
    return barriers;
  }

  /** {@return whether its barriers are steps of the plan} */
  public boolean hasPlannedBarriers() {
    return barriers == Barriers.PLANNED;
  }

  /** {@return whether ranks send to each other through a {@link Workspace}} */
  public boolean needsWorkspace() {
    return traits.contains(Trait.WORKSPACE);
  }

  /** {@return whether the copy engines do it, and the multiprocessors are left to compute} */
  public boolean usesCopyEngines() {
    return traits.contains(Trait.COPY_ENGINES);
  }

  /** {@return whether NCCL does it, all tensors of a coalesced collective in one launch} */
  public boolean isNccl() {
    return traits.contains(Trait.NCCL);
  }

  /** {@return whether NCCL asks for tensors in a window, at the same offset on all ranks} */
  public boolean needsWindow() {
    return traits.contains(Trait.WINDOW);
  }
}
