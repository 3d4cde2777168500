package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.BarrierCode.Edges;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.machine.Alignment;
import dev.symplan.planner.machine.Launches;
import java.util.Optional;

/**
 * Elementwise ops and the reduce_scatter of their result as one kernel: each rank computes the
 * slices of its peers first, and its own one while it reads theirs, so that memory works while
 * links do.
 *
 * <p>Blocks meet, not ranks. So each block of a rank reads what the same block of its peers has
 * computed: all ranks of the group must run this kernel, with vectors of one size.
 *
 * @param parts the ops
 * @param made the tensor that they make, of which each rank gets a slice
 * @param unit the bytes of a vector
 */
record ReducedElements(ImmutableList<Part> parts, TensorRef made, int unit) {
  /** Each has one vector of each tensor in flight. */
  private static final int THREADS = 1024;

  private static final String STATEMENTS =
      """
        const %1$s step = gridDim.x * THREADS;
        for (int peer = 1; peer < RANKS; peer++) {
          const %1$s slice = (args.self + peer) %% RANKS;
          for (%1$s j = blockIdx.x * THREADS + threadIdx.x; j < SLICE; j += step) {
            const %1$s i = j / ROW * (ROW * RANKS) + slice * ROW + j %% ROW;
      %2$s
          }
        }
        meet(args, ++meeting, true);
        for (%1$s j = blockIdx.x * THREADS + threadIdx.x; j < SLICE; j += step) {
          const %1$s i = j / ROW * (ROW * RANKS) + args.self * ROW + j %% ROW;
          Given given[RANKS];
          #pragma unroll
          for (int s = 0; s < RANKS; s++) {
            if (s != args.self) {
              #pragma unroll
              for (int w = 0; w < WORDS; w++) {
                given[s].words[w] = read16(args.from[s] + source((unsigned long long)j * (16 * WORDS) + w * 16));
              }
            }
          }
      %2$s
          #pragma unroll
          for (int s = 0; s < RANKS; s++) {
            if (s == args.self) {
              given[s].vector = %3$s;
            }
          }
          Combined combined;
          #pragma unroll
          for (int e = 0; e < WIDTH; e++) {
            Sum sum = widen(given[0].elements[e]);
            #pragma unroll
            for (int s = 1; s < RANKS; s++) {
              sum = combine(sum, widen(given[s].elements[e]));
            }
            combined.elements[e] = narrow(finish(sum));
          }
          #pragma unroll
          for (int w = 0; w < WORDS_MADE; w++) {
            write16(args.to + target((unsigned long long)j * (16 * WORDS_MADE) + w * 16), combined.words[w]);
          }
        }
      """;

  private static final String UNIONS =
      """

      union Given {
        Vector<Element> vector;
        Element elements[WIDTH];
        uint4 words[WORDS];
      };

      union Combined {
        Made elements[WIDTH];
        uint4 words[WORDS_MADE];
      };
      """;

  /**
   * {@return the kernel of elementwise ops and the collective right behind them, if one kernel can
   * do both}
   *
   * @param parts the ops; none if there are others behind which the collective is
   * @param part the collective
   */
  static Optional<ReducedElements> of(ImmutableList<Part> parts, CollectiveAddresses part) {
    var refs = Parts.tensors(parts);
    if (parts.isEmpty()
        || refs.size() > Launches.MAX_JOINED
        || !isScatter(part.collective)
        || part.size > Launches.MAX_RANKS_OF_SCATTER
        || part.partsOfElement() > 1
        || !OneShape.is(parts)) {
      return Optional.empty();
    }
    var found =
        parts.stream()
            .flatMap(op -> op.results().stream())
            .flatMap(Operand::tensors)
            .filter(ref -> PushedElements.isSent(ref, part.operand(0)))
            .findFirst();
    if (found.isEmpty()) {
      return Optional.empty();
    }
    var made = found.get();
    var share = PeerLowering.combination(part);
    var result = part.result(0);
    // A share may lie in the rank's own slice, whose elements the same thread has just read.
    boolean inPlace = share.from().get(part.self).equals(part.own(result));
    boolean apart =
        refs.stream()
            .allMatch(
                ref -> Moves.isApart(ref, result) || (inPlace && PushedElements.isOwn(ref, made)));
    var loop = ElementwiseKernel.loop(part.rank, parts, new MemoryArguments());
    int unit = loop.vectors().width() * made.type().dtype().bytes();
    int unitMade = loop.vectors().width() * result.type().dtype().bytes();
    long row = Math.min(share.rows().source().bytes(), share.bytes());
    return apart
            && unit % Alignment.VECTOR == 0
            && unitMade % Alignment.VECTOR == 0
            && share.rows().areEven()
            && row % unit == 0
            && share.isVectorized()
        ? Optional.of(new ReducedElements(parts, made, unit))
        : Optional.empty();
  }

  private static boolean isScatter(Collective collective) {
    return collective.kind() == Kind.REDUCE_SCATTER
        && collective.spec().takesMakers()
        && collective.operands().size() == 1
        && collective.startBarrier()
        && !collective.epilogue().isFused();
  }

  /** {@return the launch of the kernel} */
  DeviceStep.Launch launch(CollectiveAddresses part) {
    var share = PeerLowering.combination(part);
    var memory = new MemoryArguments();
    var loop = ElementwiseKernel.loop(part.rank, parts, memory);
    int width = loop.vectors().width();
    long row = Math.min(share.rows().source().bytes(), share.bytes());
    var text =
        Arithmetic.of(share.type(), share.made(), share.reduceOp().orElseThrow(), part.size)
            + loop.vectors().type()
            + BarrierCode.define("WIDTH", width)
            + BarrierCode.define("WORDS", unit / Alignment.VECTOR)
            + BarrierCode.define("WORDS_MADE", width * share.made().bytes() / Alignment.VECTOR)
            + BarrierCode.define("ROW", row / unit)
            + BarrierCode.define("SLICE", share.bytes() / unit)
            + UNIONS
            + new Edges(false, share.edges().end()).define(false)
            + BarrierCode.args(
                part.size, THREADS, memory.member() + "  const char* from[RANKS];\n  char* to;\n")
            + share.rows().text()
            + BarrierCode.between(
                STATEMENTS.formatted(loop.index(), loop.statements(), loop.written().get(made)));
    var words = part.meeting().addAll(memory.words());
    share.addAddresses(words);
    return new DeviceStep.Launch(
            part.collective.stream(),
            new Kernel(text),
            PeerLowering.blocks(part, 1),
            THREADS,
            words.build(),
            part.collective.name())
        .with(
            ImmutableList.of(
                new DeviceStep.Share(parts.getLast().name(), made.type().bytes()),
                new DeviceStep.Share(part.collective.name(), share.bytes() * part.size)));
  }
}
