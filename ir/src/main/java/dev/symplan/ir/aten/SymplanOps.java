package dev.symplan.ir.aten;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.InferRule;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import java.util.List;
import java.util.stream.Stream;

/**
 * Symplan's own ops: a copy, copies to the host's memory and back, the border between two graphs of
 * a program, a number that each rank has another one of, collectives whose slices lie along any
 * dimension of a tensor, and the permutation, which PyTorch does not have. {@code config} names the
 * algorithm, as in {@code _c10d_functional}. A reduce_scatter with a {@code dtype} converts each
 * element to that type before it is reduced.
 */
final class SymplanOps {
  private SymplanOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(
            Stream.of(
                OpSpec.of("symplan::stage(Tensor self) -> Tensor")
                    .rule(
                        InferRule.single(
                            call -> OpResult.fresh(call.tensor("self").contiguous())))),
            Table.single(
                """
                symplan::offload(Tensor self) -> Tensor
                """,
                call -> OpResult.fresh(within(call, false).withSpace(MemorySpace.HOST)),
                OpTrait.HOST_COPY),
            Table.single(
                """
                symplan::reload(Tensor self) -> Tensor
                """,
                call -> OpResult.fresh(within(call, true).withSpace(MemorySpace.ANY)),
                OpTrait.HOST_COPY),
            Table.single(
                """
                symplan::fetch(Tensor self) -> Tensor
                """,
                call -> OpResult.fresh(within(call, true).withSpace(MemorySpace.ANY)),
                OpTrait.HOST_COPY),
            Table.single(
                """
                symplan::offload_(Tensor self, Tensor(a!) host) -> Tensor(a!)
                """,
                SymplanOps::offloadInto,
                OpTrait.SIDE_EFFECT,
                OpTrait.HOST_COPY),
            Table.ops(
                """
                symplan::await_copy(Tensor source, Tensor(a!) copy) -> ()
                """,
                SymplanOps::awaitCopy,
                OpTrait.SIDE_EFFECT,
                OpTrait.HOST_COPY_END),
            Table.ops(
                """
                symplan::border(str graph, int inputs, int outputs) -> ()
                """,
                SymplanOps::border,
                OpTrait.SIDE_EFFECT,
                OpTrait.BORDER),
            Table.ops(
                """
                symplan::setup_end(str[] weights) -> ()
                """,
                SymplanOps::setupEnd,
                OpTrait.SIDE_EFFECT,
                OpTrait.BORDER,
                OpTrait.SETUP_END),
            Table.single(
                """
                symplan::rank_number(int[] numbers, *, ScalarType dtype) -> Tensor
                """,
                SymplanOps::rankNumber,
                OpTrait.CREATION),
            CollectiveOps.table(
                Kind.ALL_GATHER,
                """
                symplan::all_gather_dim(Tensor input, int dim, int group_size, str group_name, Any? config=None) -> Tensor
                """,
                CollectiveOps::gathered),
            CollectiveOps.table(
                Kind.REDUCE_SCATTER,
                """
                symplan::reduce_scatter_dim(Tensor input, str reduce_op, int dim, int group_size, str group_name, Any? config=None, *, ScalarType? dtype=None) -> Tensor
                symplan::reduce_scatter_coalesced(Tensor[] inputs, str reduce_op, int group_size, str group_name, *, ScalarType? dtype=None) -> Tensor[]
                """,
                CollectiveOps::scattered),
            CollectiveOps.table(
                Kind.ALL_TO_ALL,
                """
                symplan::all_to_all_dim(Tensor input, int split_dim, int concat_dim, int group_size, str group_name, Any? config=None) -> Tensor
                """,
                CollectiveOps::exchangedAlong),
            CollectiveOps.table(
                Kind.COLLECTIVE_PERMUTE,
                """
                symplan::collective_permute(Tensor input, int[][] source_target_pairs, str group_name, Any? config=None) -> Tensor
                """,
                (_, input) -> CollectiveOps.likeInput(input)))
        .flatMap(specs -> specs);
  }

  /** {@return the type of what is copied, which is in the host's memory or not} */
  private static TensorType within(OpCall call, boolean host) {
    var self = call.tensor("self");
    if ((self.space() == MemorySpace.HOST) != host) {
      throw new OpTypeException(
          host ? "self is not in the host's memory" : "self is in the host's memory already");
    }
    return self;
  }

  private static List<OpResult> awaitCopy(OpCall call) {
    if (!areCopies(call.tensor("source"), call.tensor("copy"))) {
      throw new OpTypeException("copy is not a copy of source in the other memory");
    }
    return List.of();
  }

  private static OpResult offloadInto(OpCall call) {
    if (!areCopies(within(call, false), call.tensor("host"))) {
      throw new OpTypeException("host is not a tensor in the host's memory with the sizes of self");
    }
    var host = call.value("host");
    return ViewOps.whole(host).withType(host.type());
  }

  private static boolean areCopies(TensorType one, TensorType other) {
    return (one.space() == MemorySpace.HOST) != (other.space() == MemorySpace.HOST)
        && one.dtype() == other.dtype()
        && one.sizes().equals(other.sizes());
  }

  private static List<OpResult> border(OpCall call) {
    if (call.string("graph").isEmpty()) {
      throw new OpTypeException("the graph behind a border has a name");
    }
    if (!isCount(call.integer("inputs")) || !isCount(call.integer("outputs"))) {
      throw new OpTypeException("the inputs and outputs before a border are counted from 0");
    }
    return List.of();
  }

  private static List<OpResult> setupEnd(OpCall call) {
    if (!(call.arg("weights") instanceof Arg.Seq(var names))
        || !names.stream().allMatch(Arg.Str.class::isInstance)) {
      throw new OpTypeException("weights are names of inputs");
    }
    return List.of();
  }

  private static OpResult rankNumber(OpCall call) {
    if (call.integers("numbers").isEmpty()) {
      throw new OpTypeException("there is a number for each rank");
    }
    return OpResult.fresh(call.dtype("dtype").orElseThrow(), ImmutableLongArray.of());
  }

  private static boolean isCount(long number) {
    return number >= 0 && number <= Integer.MAX_VALUE;
  }
}
