package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction.Collective;

/**
 * One rank's part of a collective as launches, copies and calls of NCCL: which bytes go from where
 * to where is what the host backend's {@code Transfer} does too.
 */
final class CollectiveLowering {
  private final SignalPads places;

  CollectiveLowering(Executable executable) {
    this.places = new SignalPads(executable);
  }

  /** {@return the number of places where ranks meet} */
  int places() {
    return places.count();
  }

  /**
   * {@return what a rank does for a collective}
   *
   * @throws UnsupportedOnGpu when the variant or the elements cannot be had
   */
  ImmutableList<DeviceStep> lower(int rank, Collective collective) {
    var part = new CollectiveAddresses(rank, collective, places);
    switch (collective.variant()) {
      case LOCAL -> local(part);
      case ONE_SHOT, TWO_SHOT, PUSH -> PeerLowering.kernels(part);
      case ONE_SHOT_PUSH, TWO_SHOT_PUSH -> PushLowering.lower(part);
      case COPY_ENGINE -> PeerLowering.copyEngine(part);
      case NCCL, NCCL_SYMM, NCCL_CE -> NcclLowering.lower(part);
      case MULTIMEM -> MultimemLowering.lower(part);
      case CUSTOM -> throw part.unsupported("a custom collective");
    }
    return part.steps();
  }

  private static void local(CollectiveAddresses part) {
    for (int tensor = 0; tensor < part.tensors(); tensor++) {
      var from = part.own(part.operand(tensor));
      var to = part.own(part.result(tensor));
      long bytes = part.operand(tensor).type().storageBytes();
      if (!from.equals(to) && bytes > 0) {
        part.copy(from, to, bytes);
      }
    }
  }
}
