package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.Transfer.Barrier;
import dev.symplan.codegen.Transfer.Clear;
import dev.symplan.codegen.Transfer.Copy;
import dev.symplan.codegen.Transfer.Empty;
import dev.symplan.codegen.Transfer.Receive;
import dev.symplan.codegen.Transfer.Reduce;
import dev.symplan.codegen.cuda.BarrierCode.Edges;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.Protocol;
import java.util.stream.IntStream;

/** Variants in which the switch adds and replicates: a kernel for each tensor. */
final class MultimemLowering {
  private final CollectiveAddresses part;
  private final Edges edges;

  private MultimemLowering(CollectiveAddresses part, Edges edges) {
    this.part = part;
    this.edges = edges;
  }

  static void lower(CollectiveAddresses part) {
    part.checkSize();
    for (int tensor = 0; tensor < part.tensors(); tensor++) {
      new MultimemLowering(part, part.edges(tensor)).lower(tensor);
    }
  }

  private void lower(int tensor) {
    var operand = part.operand(tensor);
    var result = part.result(tensor);
    var spec = part.collective.spec();
    boolean reduces = spec.kind().reduces();
    boolean replicates = spec.protocol().writesOf() == Protocol.Whose.EVERY;
    // Ranks that have nothing to send still meet the others.
    var own = part.own(operand);
    var target = part.own(result);
    long bytes = 0;
    for (var transfer : part.transfers(tensor)) {
      switch (transfer) {
        case Reduce reduce -> {
          own = part.at(tensor, reduce.from().get(part.self));
          target = part.at(tensor, reduce.to().getFirst());
          bytes = reduce.bytes();
        }
        case Copy copy -> {
          own = part.at(tensor, copy.from());
          target = part.at(tensor, copy.to().getLast());
          bytes = copy.bytes();
        }
        case Barrier _, Clear _, Receive _, Empty _ -> {}
      }
    }
    boolean aligned = own.isVectorAligned() && target.isVectorAligned();
    var type = reduces ? part.dtype() : part.unit();
    var words = part.meeting();
    words.add(
        reduces ? multicast(own, bytes) : new KernelArgument.Memory(own, bytes),
        replicates ? multicast(target, bytes) : new KernelArgument.Memory(target, bytes));
    addresses(words, operand, own, bytes, reduces);
    addresses(words, result, target, bytes, replicates);
    words.add(
        new KernelArgument.Number(aligned ? bytes / Alignment.VECTOR : 0),
        new KernelArgument.Number(bytes / type.bytes()));
    part.launch(
        MultimemKernel.of(part.size, type, reduces, replicates, edges),
        CollectiveAddresses.blocks(
            part.mostBytes(tensor) / Alignment.VECTOR, 1, CollectiveAddresses.BLOCKS),
        CollectiveAddresses.THREADS,
        words.build());
  }

  /** The same offset stands for the memory of all ranks. */
  private KernelArgument multicast(Address own, long bytes) {
    return new KernelArgument.Multicast(part.collective.group().members(), own.offset(), bytes);
  }

  private void addresses(
      ImmutableList.Builder<KernelArgument> words,
      TensorRef ref,
      Address own,
      long bytes,
      boolean all) {
    IntStream.range(0, part.size)
        .filter(peer -> all || peer == part.self)
        .forEach(
            peer ->
                words.add(
                    new KernelArgument.Memory(
                        part.of(peer, ref).plus(own.offset() - ref.offset()), bytes)));
  }
}
