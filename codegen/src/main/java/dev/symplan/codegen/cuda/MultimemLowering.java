package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.BarrierCode.Edges;
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
    long elements = operand.type().numel();
    int width = part.dtype().bytes();
    switch (part.collective.kind()) {
      case ALL_REDUCE -> {
        long from = CollectiveAddresses.sliceStart(elements, part.dtype(), part.size, part.self);
        long to = CollectiveAddresses.sliceStart(elements, part.dtype(), part.size, part.self + 1);
        long most = CollectiveAddresses.sliceStart(elements, part.dtype(), part.size, 1);
        launch(operand, from * width, result, from * width, true, true, to - from, most);
      }
      case REDUCE_SCATTER -> {
        long share = result.type().numel();
        launch(operand, part.self * share * width, result, 0, true, false, share, share);
      }
      case ALL_GATHER ->
          launch(
              operand,
              0,
              result,
              part.self * operand.type().bytes(),
              false,
              true,
              elements,
              elements);
      case BROADCAST -> {
        // Ranks that have nothing to send still meet the others.
        long mine = part.self == part.collective.root() ? elements : 0;
        launch(operand, 0, result, 0, false, true, mine, elements);
      }
      case ALL_TO_ALL, CUSTOM ->
          throw new IllegalStateException("no multimem of " + part.collective.kind());
    }
  }

  /**
   * @param skipped bytes of the operand before this rank's elements
   * @param shift bytes of the result before them
   * @param most elements of the rank that has most
   */
  private void launch(
      TensorRef operand,
      long skipped,
      TensorRef result,
      long shift,
      boolean reduces,
      boolean replicates,
      long elements,
      long most) {
    var own = part.own(operand).plus(skipped);
    var target = part.own(result).plus(shift);
    boolean aligned = own.isVectorAligned() && target.isVectorAligned();
    var type = reduces ? part.dtype() : part.unit();
    int perElement = part.dtype().bytes() / type.bytes();
    long units = elements * perElement;
    long bytes = units * type.bytes();
    var words = part.meeting();
    words.add(
        reduces ? multicast(own, bytes) : new KernelArgument.Memory(own, bytes),
        replicates ? multicast(target, bytes) : new KernelArgument.Memory(target, bytes));
    addresses(words, operand, skipped, bytes, reduces);
    addresses(words, result, shift, bytes, replicates);
    words.add(
        new KernelArgument.Number(aligned ? bytes / Kernel.VECTOR : 0),
        new KernelArgument.Number(units));
    part.launch(
        MultimemKernel.of(part.size, type, reduces, replicates, edges),
        CollectiveAddresses.blocks(
            most * perElement * type.bytes() / Kernel.VECTOR, 1, CollectiveAddresses.BLOCKS),
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
      long offset,
      long bytes,
      boolean all) {
    IntStream.range(0, part.size)
        .filter(peer -> all || peer == part.self)
        .forEach(
            peer -> words.add(new KernelArgument.Memory(part.of(peer, ref).plus(offset), bytes)));
  }
}
