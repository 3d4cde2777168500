package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.Launches;
import java.util.List;
import java.util.Optional;

/**
 * Elementwise ops and the all_gather of their result as one kernel: each rank stores elements to
 * its peers as it computes them, so that links do not wait for the last one.
 *
 * <p>The kernel begins where the ops do, and peers store to the rank from then on. So the ops must
 * not use the memory of the gathered tensor, apart from the rank's own slice.
 */
final class PushedElements {
  /** Each has one vector of each tensor in flight. */
  private static final int THREADS = 1024;

  private static final String SEND =
      """
          union {
            Vector<%1$s> vector;
            uint4 words[%2$s];
          } sent = {%3$s};
          #pragma unroll
          for (int w = 0; w < %2$s; w++) {
            long long at = target((unsigned long long)i * (16 * %2$s) + w * 16);
            #pragma unroll
            for (int t = 0; t < TARGETS; t++) {
              write16(args.to[t] + at, sent.words[w]);
            }
          }
      """;

  private PushedElements() {}

  /**
   * {@return a launch for elementwise ops and the collective right behind them, if one kernel can
   * do both}
   *
   * @param parts the ops; none if there are others behind which the collective is
   * @param part the collective
   */
  static Optional<DeviceStep.Launch> launch(ImmutableList<Part> parts, CollectiveAddresses part) {
    var refs = Parts.tensors(parts);
    if (parts.isEmpty()
        || refs.size() > Launches.MAX_JOINED
        || !isGather(part.collective)
        || !OneShape.is(parts)) {
      return Optional.empty();
    }
    var whole = part.result(0);
    var made =
        parts.stream()
            .flatMap(op -> op.results().stream())
            .flatMap(Operand::tensors)
            .filter(ref -> isSent(ref, part.operand(0)))
            .findFirst();
    if (made.isEmpty()
        || !refs.stream().allMatch(ref -> Moves.isApart(ref, whole) || isOwn(ref, made.get()))) {
      return Optional.empty();
    }
    var push = PeerLowering.combination(part);
    var memory = new MemoryArguments();
    var loop = ElementwiseKernel.loop(part.rank, parts, memory);
    return push.isVectorized() && bytes(loop, made.get()) % Alignment.VECTOR == 0
        ? Optional.of(launch(part, push, loop, memory, made.get(), parts.getLast().name()))
        : Optional.empty();
  }

  private static boolean isGather(Collective collective) {
    return collective.kind() == Kind.ALL_GATHER
        && collective.spec().takesMakers()
        && collective.operands().size() == 1;
  }

  /** Whether the i-th element of a tensor is the i-th that is sent. */
  static boolean isSent(TensorRef ref, TensorRef operand) {
    return ref.type().dtype() == operand.type().dtype()
        && ref.type().numel() == operand.type().numel()
        && isIn(ref, operand)
        && isInOrder(ref.type())
        && isInOrder(operand.type());
  }

  /** Whether elements lie in memory in the order of their indices. */
  private static boolean isInOrder(TensorType type) {
    long last = Long.MAX_VALUE;
    for (int dim = 0; dim < type.rank(); dim++) {
      if (type.size(dim) > 1) {
        if (type.stride(dim) > last) {
          return false;
        }
        last = type.stride(dim);
      }
    }
    return true;
  }

  /** Whether two tensors begin and end at the same bytes. */
  private static boolean isIn(TensorRef ref, TensorRef other) {
    return ref.arena() == other.arena()
        && ref.index() == other.index()
        && ref.offset() == other.offset()
        && ref.type().storageBytes() == other.type().storageBytes();
  }

  /** Whether a tensor has no other bytes than what is sent. */
  static boolean isOwn(TensorRef ref, TensorRef made) {
    return ref.equals(made) || (isIn(ref, made) && made.type().isContiguous());
  }

  private static int bytes(ElementwiseKernel.Loop loop, TensorRef made) {
    return loop.vectors().width() * made.type().dtype().bytes();
  }

  private static DeviceStep.Launch launch(
      CollectiveAddresses part,
      PeerLowering.Combination push,
      ElementwiseKernel.Loop loop,
      MemoryArguments memory,
      TensorRef made,
      String label) {
    // The rank's own slice holds its elements already, if the plan puts them there.
    var to = push.to().stream().filter(address -> !push.from().contains(address)).toList();
    var send =
        SEND.formatted(
            CTypes.stored(made.type().dtype()),
            bytes(loop, made) / Alignment.VECTOR,
            loop.written().get(made));
    var text =
        CTypes.PRELUDE
            + loop.vectors().type()
            + BarrierCode.define("TARGETS", to.size())
            + push.edges().define(true)
            + BarrierCode.args(part.size, THREADS, memory.member() + "  char* to[TARGETS];\n")
            + push.rows().text()
            + BarrierCode.between(
                """
                  %1$s step = gridDim.x * THREADS;
                  for (%1$s i = blockIdx.x * THREADS + threadIdx.x; i < %2$s; i += step) {
                """
                        .formatted(loop.index(), loop.count())
                    + loop.statements()
                    + send
                    + "  }\n");
    var words = part.meeting().addAll(memory.words());
    to.forEach(address -> words.add(push.written(address)));
    return new DeviceStep.Launch(
            part.collective.stream(),
            new Kernel(text),
            PeerLowering.blocks(part, 1),
            THREADS,
            words.build(),
            part.collective.name())
        .with(shares(part, made, label, to));
  }

  /** The bytes that the ops write, and those that go to peers. */
  private static ImmutableList<DeviceStep.Share> shares(
      CollectiveAddresses part, TensorRef made, String label, List<Address> to) {
    long bytes = made.type().bytes();
    return ImmutableList.of(
        new DeviceStep.Share(label, bytes),
        new DeviceStep.Share(part.collective.name(), bytes * to.size()));
  }
}
