package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.codegen.cuda.DeviceStep;
import dev.symplan.codegen.cuda.DeviceStep.Attention;
import dev.symplan.codegen.cuda.DeviceStep.AttentionBackward;
import dev.symplan.codegen.cuda.DeviceStep.Await;
import dev.symplan.codegen.cuda.DeviceStep.Convolution;
import dev.symplan.codegen.cuda.DeviceStep.Copy;
import dev.symplan.codegen.cuda.DeviceStep.CopyRows;
import dev.symplan.codegen.cuda.DeviceStep.HopperLaunch;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.DeviceStep.Mark;
import dev.symplan.codegen.cuda.DeviceStep.Matrix;
import dev.symplan.codegen.cuda.DeviceStep.Nccl;
import dev.symplan.codegen.cuda.DeviceStep.NcclCall;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.codegen.cuda.KernelArgument;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.runtime.failure.RunException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;

/**
 * Checks, before there is any memory, that each address that goes to a GPU stays with all its bytes
 * in one buffer of the plan: what is beyond, nobody sees any more.
 *
 * <p>The plan decides which tensors lie there at which time; its verifier checks that.
 */
final class AddressCheck {

  /** Memory that is allocated as one. */
  private record Space(ArenaKind arena, int index) {
    @Override
    public String toString() {
      return switch (arena) {
        case SYMMETRIC -> "the symmetric arena";
        case LOCAL -> index == TensorRef.SCRATCH ? "scratch memory" : "the local arena";
        case HOST -> "the host's memory";
        case EXTERNAL_INPUT -> "input " + index;
        case EXTERNAL_OUTPUT -> "output " + index;
      };
    }
  }

  /** For each rank and space, where buffers begin, and how far those go that begin up to there. */
  private final List<Map<Space, TreeMap<Long, Long>>> ends = new ArrayList<>();

  private AddressCheck(Executable executable) {
    for (var program : executable.ranks()) {
      var buffers = new ArrayList<>(program.buffers());
      buffers.sort((a, b) -> Long.compare(a.offset(), b.offset()));
      Map<Space, TreeMap<Long, Long>> own = new HashMap<>();
      for (var buffer : buffers) {
        var space = new Space(buffer.arena(), buffer.index());
        long end = buffer.offset() + buffer.bytes();
        if (buffer.offset() < 0 || buffer.bytes() < 0 || end > bytes(executable, program, space)) {
          throw new RunException(
              "rank %s: the plan has a buffer of %s bytes at byte %s of %s, which has %s"
                  .formatted(
                      program.rank(),
                      buffer.bytes(),
                      buffer.offset(),
                      space,
                      bytes(executable, program, space)));
        }
        own.computeIfAbsent(space, _ -> new TreeMap<>()).merge(buffer.offset(), end, Math::max);
      }
      for (var ofSpace : own.values()) {
        long furthest = 0;
        for (var buffer : ofSpace.entrySet()) {
          furthest = Math.max(furthest, buffer.getValue());
          buffer.setValue(furthest);
        }
      }
      ends.add(own);
    }
  }

  /**
   * Checks the programs of all ranks.
   *
   * @throws RunException when a step reaches beyond a buffer
   */
  static void check(Executable executable, ImmutableList<DeviceProgram> programs) {
    var check = new AddressCheck(executable);
    for (var program : executable.ranks()) {
      var own = check.new OfRank(program.rank(), 0);
      program.inputs().forEach(ref -> own.tensor("an input", ref));
      program.outputs().forEach(ref -> own.tensor("an output", ref));
    }
    for (var program : programs) {
      var own = check.new OfRank(program.rank(), program.pads());
      program.steps().forEach(own::step);
    }
  }

  private static long bytes(Executable executable, RankProgram program, Space space) {
    return switch (space.arena()) {
      case SYMMETRIC -> executable.symmetricBytes();
      case LOCAL -> program.localBytes();
      case HOST -> program.hostBytes();
      case EXTERNAL_INPUT -> bytes(program.inputs(), space);
      case EXTERNAL_OUTPUT -> bytes(program.outputs(), space);
    };
  }

  private static long bytes(ImmutableList<Optional<TensorRef>> signature, Space space) {
    return space.index() >= signature.size()
        ? 0
        : signature
            .get(space.index())
            .filter(ref -> ref.arena() == space.arena())
            .map(ref -> ref.offset() + ref.type().storageBytes())
            .orElse(0L);
  }

  /** The steps of one rank. */
  private final class OfRank {
    private final int rank;
    private final int pads;

    OfRank(int rank, int pads) {
      this.rank = rank;
      this.pads = pads;
    }

    void step(DeviceStep step) {
      switch (step) {
        case Launch launch -> launch.words().forEach(word -> word(launch, word));
        case HopperLaunch both -> {
          step(both.launch());
          both.otherwise().forEach(this::step);
        }
        case Copy copy -> {
          memory(copy.label(), copy.from(), copy.bytes());
          memory(copy.label(), copy.to(), copy.bytes());
        }
        case CopyRows copy -> {
          reach(copy.label(), copy.from(), copy.fromExtent());
          reach(copy.label(), copy.to(), copy.toExtent());
        }
        case Product product -> product(product);
        case Attention attention ->
            tensors(attention.label(), attention.tensors(), attention.otherwise());
        case AttentionBackward attention ->
            tensors(attention.label(), attention.tensors(), attention.otherwise());
        case Convolution convolution -> {
          for (var ref : convolution.tensors()) {
            memory(convolution.label(), Address.of(rank, ref), ref.type().storageBytes());
          }
          convolution.otherwise().forEach(this::step);
        }
        case Nccl nccl -> nccl.calls().forEach(call -> call(nccl, call));
        case Mark _, Await _ -> {}
      }
    }

    private void tensors(
        String label, ImmutableList<TensorRef> tensors, ImmutableList<DeviceStep> otherwise) {
      tensors.forEach(ref -> tensor(label, Optional.of(ref)));
      otherwise.forEach(this::step);
    }

    void tensor(String label, Optional<TensorRef> ref) {
      ref.ifPresent(
          r ->
              reach(
                  label,
                  new Address(rank, r.arena(), r.index(), r.offset()),
                  r.type().storageBytes()));
    }

    /** Memory beside the arenas is made as large as the steps say that they reach. */
    private void memory(String label, Address address, long bytes) {
      if (!address.isScratch() || address.rank() != rank || bytes < 0 || address.offset() < 0) {
        reach(label, address, bytes);
      }
    }

    /** An address with no bytes accesses nothing. */
    void reach(String label, Address address, long bytes) {
      if (bytes == 0) {
        return;
      }
      var space = new Space(address.arena(), address.index());
      if (address.rank() < 0 || address.rank() >= ends.size()) {
        throw wrong(label, "rank " + address.rank(), "of which there is none");
      }
      if (address.rank() != rank && address.arena() != ArenaKind.SYMMETRIC) {
        throw wrong(label, "%s of rank %s".formatted(space, address.rank()), "which is its own");
      }
      var buffers = ends.get(address.rank()).getOrDefault(space, new TreeMap<>());
      var buffer = buffers.floorEntry(address.offset());
      if (bytes < 0 || buffer == null || buffer.getValue() - address.offset() < bytes) {
        throw wrong(
            label,
            "%s bytes at byte %s of %s%s"
                .formatted(
                    bytes,
                    address.offset(),
                    space,
                    address.rank() == rank ? "" : " of rank " + address.rank()),
            buffer == null || buffer.getValue() <= address.offset()
                ? "where no buffer lies"
                : "but the buffer there ends at byte " + buffer.getValue());
      }
    }

    private RunException wrong(String label, String reached, String why) {
      return new RunException("rank %s, '%s' reaches %s, %s".formatted(rank, label, reached, why));
    }

    void word(Launch launch, KernelArgument word) {
      switch (word) {
        case KernelArgument.Memory(var address, long bytes) ->
            memory(launch.label(), address, bytes);
        case KernelArgument.TensorMap map -> reach(launch.label(), map.address(), map.bytes());
        case KernelArgument.Multicast(var members, long offset, long bytes) ->
            multicast(launch.label(), members, offset, bytes);
        case KernelArgument.Flags(int pad, int peer) -> {
          if (peer < 0 || peer >= ends.size()) {
            throw wrong(launch.label(), "flags of rank " + peer, "of which there is none");
          }
          pad(launch.label(), pad);
        }
        case KernelArgument.Meetings(int pad) -> pad(launch.label(), pad);
        case KernelArgument.Number _, KernelArgument.Failure _, KernelArgument.Timeout _ -> {}
      }
    }

    private void multicast(String label, ImmutableIntArray members, long offset, long bytes) {
      members.forEach(
          member -> reach(label, new Address(member, ArenaKind.SYMMETRIC, 0, offset), bytes));
    }

    private void pad(String label, int pad) {
      if (pad < 0 || pad >= pads) {
        throw wrong(label, "signal pad " + pad, "but there are " + pads);
      }
    }

    void product(Product product) {
      long rows = product.rows();
      long columns = product.columns();
      matrix(product, product.left(), rows, product.inner());
      matrix(product, product.right(), product.inner(), columns);
      matrix(product, product.addend(), rows, columns);
      matrix(product, product.result(), rows, columns);
      product
          .bias()
          .ifPresent(bias -> reach(product.label(), bias, rows * product.dtype().bytes()));
      product
          .scales()
          .ifPresent(
              scales -> {
                boolean byLine = scales.byLine();
                reach(product.label(), scales.left(), (byLine ? rows : 1) * Float.BYTES);
                reach(product.label(), scales.right(), (byLine ? columns : 1) * Float.BYTES);
                scales.otherwise().forEach(this::step);
              });
    }

    private void matrix(Product product, Matrix matrix, long rows, long columns) {
      long near = matrix.transposed() ? columns : rows;
      long far = matrix.transposed() ? rows : columns;
      boolean sound = near > 0 && far > 0 && matrix.leading() >= near && matrix.batchStride() >= 0;
      if (!sound || product.batches() < 1) {
        throw wrong(product.label(), "%s × %s".formatted(rows, columns), "by " + matrix);
      }
      long last =
          (product.batches() - 1) * matrix.batchStride() + (far - 1) * matrix.leading() + near;
      reach(product.label(), matrix.address(), last * matrix.dtype().bytes());
    }

    void call(Nccl nccl, NcclCall call) {
      long bytes = call.count() * call.dtype().bytes();
      long all = bytes * nccl.members().length();
      switch (call.function()) {
        case ALL_REDUCE, BROADCAST -> both(nccl, call, bytes, bytes);
        case ALL_GATHER -> both(nccl, call, bytes, all);
        case REDUCE_SCATTER -> both(nccl, call, all, bytes);
        case ALL_TO_ALL -> both(nccl, call, all, all);
        case SEND -> reach(nccl.label(), call.from(), bytes);
        case RECEIVE -> reach(nccl.label(), call.to(), bytes);
      }
    }

    private void both(Nccl nccl, NcclCall call, long read, long written) {
      reach(nccl.label(), call.from(), read);
      reach(nccl.label(), call.to(), written);
    }
  }
}
