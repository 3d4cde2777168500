package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Instruction.Epilogue;
import dev.symplan.codegen.TensorRange;
import dev.symplan.codegen.Transfer.Slot;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.Workspace;

/** Variants that go through the ranks' workspaces: a kernel for each tensor, and no meetings. */
final class PushLowering {
  private final CollectiveAddresses part;

  private PushLowering(CollectiveAddresses part) {
    this.part = part;
  }

  static void lower(CollectiveAddresses part) {
    part.checkSize();
    var lowering = new PushLowering(part);
    for (int tensor = 0; tensor < part.tensors(); tensor++) {
      if (part.operand(tensor).type().numel() > 0) {
        lowering.push(tensor);
      }
    }
  }

  /** {@return a launch that takes the rows of the only tensor through other ops, too} */
  static DeviceStep.Launch launch(CollectiveAddresses part, HeldRows rows, MemoryArguments memory) {
    var collective = part.collective;
    boolean bySlices = collective.spec().slicesBeforeEpilogue();
    return new DeviceStep.Launch(
        collective.stream(),
        PushKernel.with(
            rows,
            collective.layout(0),
            new PushLowering(part).rows(0),
            part.computedIn(),
            collective.reduceOp().orElseThrow(),
            collective.epilogue() == Epilogue.STORED,
            memory.member()),
        blocks(bySlices ? rows.blocks() / part.size : rows.blocks()),
        rows.threads(),
        new PushLowering(part).words(0).addAll(memory.words()).build(),
        collective.name());
  }

  private void push(int tensor) {
    var collective = part.collective;
    var layout = collective.layout(tensor);
    int threads = threads(layout.packets());
    part.launch(
        PushKernel.of(
            layout, rows(tensor), threads, part.computedIn(), collective.reduceOp().orElseThrow()),
        blocks(Math.ceilDiv(layout.packets(), threads)),
        threads,
        words(tensor).build());
  }

  private ImmutableList.Builder<KernelArgument> words(int tensor) {
    var collective = part.collective;
    var type = part.operand(tensor).type();
    var region = collective.workspace().orElseThrow();
    var layout = collective.layout(tensor);
    var from = part.own(part.operand(tensor));
    var to = part.own(part.result(tensor));
    boolean aligned =
        from.isVectorAligned() && to.isVectorAligned() && rows(tensor).divideInto(Alignment.VECTOR);
    var words = part.meeting();
    words.add(
        new KernelArgument.Memory(from, type.storageBytes()),
        new KernelArgument.Memory(to, part.result(tensor).type().storageBytes()));
    for (int round = 0; round < layout.rounds(); round++) {
      for (int peer = 0; peer < part.size; peer++) {
        words.add(argument(tensor, new Slot(round, peer, part.self)));
      }
    }
    for (int round = 0; round < layout.rounds(); round++) {
      for (int peer = 0; peer < part.size; peer++) {
        words.add(argument(tensor, new Slot(round, part.self, peer)));
      }
    }
    return words.add(
        new KernelArgument.Number(region.bytes() / Workspace.HALVES),
        new KernelArgument.Number(layout.packets()),
        new KernelArgument.Number(Math.ceilDiv(type.bytes(), Alignment.VECTOR)),
        new KernelArgument.Number(aligned ? type.bytes() / Alignment.VECTOR : 0),
        new KernelArgument.Number(type.numel() * part.partsOfElement()));
  }

  /** How the rank's own operand and result lie. */
  private RowsCode rows(int tensor) {
    return new RowsCode(
        TensorRange.operand(part.collective, tensor).rows(),
        TensorRange.result(part.collective, tensor).rows());
  }

  /** No rank sends anything to itself. */
  private KernelArgument argument(int tensor, Slot slot) {
    // It lies at the same offset in each half.
    long apart =
        (Workspace.HALVES - 1)
            * (part.collective.workspace().orElseThrow().bytes() / Workspace.HALVES);
    return slot.receiver() == slot.sender()
        ? new KernelArgument.Number(0)
        : new KernelArgument.Memory(
            part.at(tensor, slot), apart + part.collective.layout(tensor).slotBytes());
  }

  /** Small messages spread over many multiprocessors: each sends on its own. */
  private static int threads(long packets) {
    return packets <= PushKernel.TICKS * 128L
        ? 128
        : packets <= PushKernel.TICKS * 256L ? 256 : 512;
  }

  /** A power of two, so that all together raise the count by as much. */
  private static int blocks(long most) {
    long wanted = Math.clamp(most, 1, PushKernel.TICKS);
    return (int) Long.highestOneBit(2 * wanted - 1);
  }
}
