package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Transfers;
import dev.symplan.codegen.cuda.DeviceLowering.Behind;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/**
 * One rank's part of a collective as launches, copies and calls of NCCL: {@link Transfers} says
 * which bytes go from where to where.
 */
final class CollectiveLowering {
  private final Executable executable;
  private final Transfers transfers;
  private final SignalPads pads;

  /** By collective, whether all ranks take as much of it at once through what is behind it. */
  private final Map<Together, Boolean> together = new HashMap<>();

  /** A collective on all ranks of one part of its group. */
  private record Together(int index, ImmutableIntArray members) {}

  CollectiveLowering(Executable executable) {
    this.executable = executable;
    this.transfers = new Transfers(executable);
    this.pads = new SignalPads(executable, transfers);
  }

  /** {@return the number of signal pads} */
  int pads() {
    return pads.count();
  }

  /** {@return the number of the pad where the ranks of an op that communicates meet} */
  int pad(LocalOp op) {
    return pads.of(op);
  }

  /** {@return a launch for elementwise ops and the collective behind them, if there can be one} */
  Optional<DeviceStep.Launch> lower(int rank, ImmutableList<Part> parts, Collective collective) {
    try {
      var part = addresses(rank, collective);
      return PushedElements.launch(parts, part)
          .or(
              () ->
                  ReducedElements.of(parts, part)
                      .filter(own -> isOnAllRanks(own, collective))
                      .map(own -> own.launch(part)));
    } catch (UnsupportedOnGpu e) {
      // Apart, they may be done in another way.
      return Optional.empty();
    }
  }

  private boolean isOnAllRanks(ReducedElements own, Collective collective) {
    return collective.group().members().stream()
        .allMatch(
            rank ->
                DeviceLowering.before(executable.ranks().get(rank), collective.group().index())
                    .flatMap(
                        joined ->
                            ReducedElements.of(
                                joined.parts(), addresses(rank, joined.collective())))
                    .filter(other -> other.unit() == own.unit())
                    .isPresent());
  }

  /**
   * {@return a launch for a collective and the ops behind it, if there can be one}
   *
   * @param rows the leading dimensions that the ops go by
   */
  Optional<DeviceStep.Launch> lower(
      int rank, Collective collective, ImmutableList<Part> behind, int rows) {
    return epilogue(rank, new Behind(collective, behind, rows))
        .filter(own -> !collective.spec().slicesBeforeEpilogue() || isOnAllRanks(collective))
        .map(EpilogueLowering.Made::launch);
  }

  private Optional<EpilogueLowering.Made> epilogue(int rank, Behind behind) {
    try {
      return EpilogueLowering.made(
          addresses(rank, behind.collective()), behind.parts(), behind.rows());
    } catch (UnsupportedOnGpu e) {
      // Apart, they may be done in another way. Where each rank reduces all by itself, no other
      // one notices.
      return Optional.empty();
    }
  }

  /** Blocks of one number must store, or send, the rows that those of all ranks take. */
  private boolean isOnAllRanks(Collective collective) {
    return together.computeIfAbsent(
        new Together(collective.group().index(), collective.group().members()),
        group ->
            group.members().stream()
                    .mapToObj(
                        rank ->
                            DeviceLowering.behind(executable.ranks().get(rank), group.index())
                                .flatMap(behind -> epilogue(rank, behind))
                                .map(EpilogueLowering.Made::unit))
                    .distinct()
                    .count()
                == 1);
  }

  private CollectiveAddresses addresses(int rank, Collective collective) {
    return new CollectiveAddresses(rank, collective, transfers, pads.of(collective));
  }

  /**
   * {@return the steps of a rank for a collective}
   *
   * @throws UnsupportedOnGpu when the variant or the elements cannot be had
   */
  ImmutableList<DeviceStep> lower(int rank, Collective collective) {
    var part = addresses(rank, collective);
    switch (collective.variant()) {
      case ONE_SHOT, TWO_SHOT, PUSH -> PeerLowering.kernels(part);
      case ONE_SHOT_PUSH, TWO_SHOT_PUSH -> PushLowering.lower(part);
      case LOCAL, COPY_ENGINE -> PeerLowering.copies(part);
      case NCCL, NCCL_SYMM, NCCL_CE -> NcclLowering.lower(part);
      case MULTIMEM, MULTIMEM_ONE_SHOT -> MultimemLowering.lower(part);
      case CUSTOM -> throw part.unsupported("a custom collective");
    }
    return part.steps();
  }
}
