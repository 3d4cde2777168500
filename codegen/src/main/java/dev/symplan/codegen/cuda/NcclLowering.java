package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.TensorRange;
import dev.symplan.codegen.cuda.DeviceStep.NcclCall;
import dev.symplan.codegen.cuda.DeviceStep.NcclFunction;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.ReduceOp;
import java.util.Optional;

/** Collectives as calls of NCCL, one group of calls for each. */
final class NcclLowering {
  private final CollectiveAddresses part;

  private NcclLowering(CollectiveAddresses part) {
    this.part = part;
  }

  static void lower(CollectiveAddresses part) {
    var variant = part.collective.variant();
    var lowering = new NcclLowering(part);
    var calls = ImmutableList.<NcclCall>builder();
    for (int tensor = 0; tensor < part.tensors(); tensor++) {
      lowering.add(calls, tensor);
    }
    // A rank that sends and gets nothing has an empty group: it still makes the communicator.
    part.add(
        new DeviceStep.Nccl(
            part.collective.stream(),
            part.collective.group().members(),
            part.pad,
            part.self,
            variant.needsWindow(),
            variant.usesCopyEngines(),
            calls.build(),
            part.collective.name()));
  }

  private void add(ImmutableList.Builder<NcclCall> calls, int tensor) {
    var operand = part.operand(tensor).type();
    var from = part.own(part.operand(tensor));
    var to = part.own(part.result(tensor));
    switch (part.collective.kind()) {
      case ALL_REDUCE -> calls.add(reducing(NcclFunction.ALL_REDUCE, from, to, operand.numel()));
      case REDUCE_SCATTER ->
          calls.add(
              reducing(NcclFunction.REDUCE_SCATTER, from, to, part.result(tensor).type().numel()));
      case ALL_GATHER -> calls.add(copying(NcclFunction.ALL_GATHER, from, to, operand.bytes(), -1));
      case BROADCAST ->
          calls.add(
              copying(
                  NcclFunction.BROADCAST,
                  from,
                  to,
                  operand.storageBytes(),
                  part.collective.root()));
      case ALL_TO_ALL -> {
        if (part.collective.variant().usesCopyEngines()) {
          long bytes = operand.bytes() / part.size;
          calls.add(copying(NcclFunction.ALL_TO_ALL, from, to, bytes, -1));
        } else {
          exchange(calls, from, to, tensor);
        }
      }
      case COLLECTIVE_PERMUTE -> permute(calls, from, to, operand.storageBytes());
      case CUSTOM -> throw new IllegalStateException("a custom op is a local instruction");
    }
  }

  private NcclCall reducing(NcclFunction function, Address from, Address to, long count) {
    var reduceOp = part.collective.reduceOp().orElseThrow();
    var dtype = part.computedIn();
    if (dtype == DType.BOOL) {
      // NCCL has no bool: bytes of 0 and 1, whose sum is 1 if any of them is.
      dtype = DType.U8;
      reduceOp = reduceOp == ReduceOp.SUM ? ReduceOp.MAX : reduceOp;
    }
    return new NcclCall(
        function, from, to, count * part.partsOfElement(), dtype, Optional.of(reduceOp), -1);
  }

  /** Bytes, in the largest type that fits, as NCCL counts in elements. */
  private NcclCall copying(NcclFunction function, Address from, Address to, long bytes, int peer) {
    var unit = part.unit();
    // NCCL has no 16-bit integers; nothing is computed, so that floats do as well.
    var type = unit == DType.U16 ? DType.F16 : unit;
    return new NcclCall(function, from, to, bytes / unit.bytes(), type, Optional.empty(), peer);
  }

  private void permute(
      ImmutableList.Builder<NcclCall> calls, Address from, Address to, long bytes) {
    var permutation = part.collective.permutation();
    permutation
        .targetOf(part.self)
        .ifPresent(peer -> calls.add(copying(NcclFunction.SEND, from, from, bytes, peer)));
    permutation
        .sourceOf(part.self)
        .ifPresentOrElse(
            peer -> calls.add(copying(NcclFunction.RECEIVE, to, to, bytes, peer)),
            () -> part.clear(to, bytes));
  }

  private void exchange(
      ImmutableList.Builder<NcclCall> calls, Address from, Address to, int tensor) {
    for (int peer = 0; peer < part.size; peer++) {
      var sent = TensorRange.rows(part.collective, tensor, false, peer);
      var got = TensorRange.rows(part.collective, tensor, true, peer);
      var source = from.plus(sent.offset());
      var target = to.plus(got.offset());
      long gotBytes = TensorRange.rows(part.at(peer), tensor, false, part.self).bytes();
      calls.add(copying(NcclFunction.SEND, source, source, sent.bytes(), peer));
      calls.add(copying(NcclFunction.RECEIVE, target, target, gotBytes, peer));
    }
  }
}
