package dev.symplan.ir.aten;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.CollectiveCall;
import dev.symplan.ir.op.CollectiveSpec;
import dev.symplan.ir.op.CollectiveSpec.Foreign;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.CollectiveSpec.Role;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.ir.op.ReduceOp;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * The collectives of PyTorch's {@code symm_mem} library and of serving engines. Most name their
 * algorithm, in the words of the planner's variants.
 *
 * <p>The schemas are those of PyTorch 2.11, vLLM and SGLang. A result whose shape depends on the
 * size of the group, which no argument gives, must be annotated.
 */
final class SymmMemOps {
  private SymmMemOps() {}

  static Stream<OpSpec> all() {
    return Stream.of(symmMem(), engines(), fused()).flatMap(specs -> specs);
  }

  private static Stream<OpSpec> symmMem() {
    return Stream.of(
            table(
                Kind.ALL_REDUCE,
                "one_shot",
                """
                symm_mem::one_shot_all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor
                symm_mem::one_shot_all_reduce_out(Tensor input, str reduce_op, str group_name, Tensor(a!) out) -> Tensor(a!)
                symm_mem::one_shot_all_reduce_copy(Tensor symm_buffer, Tensor local_input, str reduce_op, str group_name) -> Tensor
                symm_mem::one_shot_all_reduce_copy_out(Tensor symm_buffer, Tensor local_input, str reduce_op, str group_name, Tensor(a!) out) -> Tensor(a!)
                """),
            table(
                Kind.ALL_REDUCE,
                "two_shot",
                """
                symm_mem::two_shot_all_reduce_(Tensor(a!) input, str reduce_op, str group_name) -> Tensor(a!)
                symm_mem::two_shot_all_reduce_out(Tensor(a!) input, str reduce_op, str group_name, Tensor(b!) output) -> Tensor(b!)
                """),
            table(
                Kind.ALL_REDUCE,
                "multimem",
                """
                symm_mem::multimem_all_reduce_(Tensor(a!) input, str reduce_op, str group_name) -> Tensor(a!)
                """),
            table(
                Kind.ALL_REDUCE,
                "multimem_one_shot",
                """
                symm_mem::multimem_one_shot_all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor
                symm_mem::multimem_one_shot_all_reduce_out(Tensor input, str reduce_op, str group_name, Tensor(a!) out) -> Tensor(a!)
                symm_mem::multimem_one_shot_reduce_out(Tensor input, str reduce_op, int root, str group_name, Tensor(a!) out) -> Tensor(a!)
                """),
            table(
                Kind.ALL_GATHER,
                "multimem",
                """
                symm_mem::multimem_all_gather_out(Tensor input, str group_name, Tensor(a!) out) -> Tensor(a!)
                """),
            table(
                Kind.ALL_GATHER,
                "copy_engine",
                """
                symm_mem::_low_contention_all_gather(Tensor tensor, str group_name) -> Tensor
                """),
            table(
                Kind.REDUCE_SCATTER,
                "one_shot",
                """
                symm_mem::reduce_scatter_out(Tensor(a!) input, str group_name, bool split_last_dim, Tensor(b!) output) -> Tensor(b!)
                """),
            table(
                Kind.REDUCE_SCATTER,
                "",
                """
                symm_mem::_low_contention_reduce_scatter(Tensor tensor, str reduce_op, str group_name) -> Tensor
                """))
        .flatMap(specs -> specs);
  }

  /** The planner takes these apart. */
  private static Stream<OpSpec> fused() {
    return Stream.of(
            OpSpec.of(
                "symm_mem::fused_all_gather_matmul(Tensor A, Tensor[] Bs, int gather_dim, str"
                    + " group_name, *, bool return_A=True) -> (Tensor?, Tensor[])"),
            OpSpec.of(
                "symm_mem::fused_all_gather_scaled_matmul(Tensor A, Tensor[] Bs, Tensor A_scale,"
                    + " Tensor[] B_scales, int gather_dim, str group_name, Tensor?[] biases,"
                    + " Tensor?[] result_scales, ScalarType?[] out_dtypes, bool[] use_fast_accum)"
                    + " -> (Tensor, Tensor[])"),
            OpSpec.of(
                "symm_mem::fused_matmul_reduce_scatter(Tensor A, Tensor B, str reduce_op, int"
                    + " scatter_dim, str group_name) -> Tensor"),
            OpSpec.of(
                "symm_mem::fused_scaled_matmul_reduce_scatter(Tensor A, Tensor B, Tensor A_scale,"
                    + " Tensor B_scale, str reduce_op, int orig_scatter_dim, int"
                    + " scatter_dim_after_maybe_reshape, str group_name, SymInt[]? output_shape,"
                    + " Tensor? bias=None, Tensor? result_scale=None, ScalarType? out_dtype=None,"
                    + " bool use_fast_accum=False) -> Tensor"),
            OpSpec.of(
                    "symm_mem::all_to_all_vdev(Tensor input, Tensor(a!) out, Tensor in_splits,"
                        + " Tensor(b!) out_splits_offsets, str group_name) -> ()")
                .rule(_ -> List.of()),
            OpSpec.of(
                    "symm_mem::all_to_all_vdev_2d(Tensor input, Tensor(a!) out, Tensor in_splits,"
                        + " Tensor(b!) out_splits_offsets, str group_name, int? major_align=None)"
                        + " -> ()")
                .rule(_ -> List.of()),
            OpSpec.of(
                    "symm_mem::all_to_all_vdev_2d_offset(Tensor input, Tensor(a!) out, Tensor"
                        + " in_splits_offsets, Tensor(b!) out_splits_offsets, str group_name) ->"
                        + " ()")
                .rule(_ -> List.of()))
        .map(
            spec -> spec.collective(CollectiveSpec.of(Kind.CUSTOM).with(Role.GROUP, "group_name")));
  }

  private static Stream<OpSpec> engines() {
    return Stream.of(
            table(
                Kind.ALL_REDUCE,
                "",
                """
                vllm::all_reduce(Tensor tensor, str group_name) -> Tensor
                sglang::inplace_all_reduce(Tensor(a!) tensor, str group_name) -> ()
                sglang::outplace_all_reduce(Tensor tensor, str group_name, str outplace_all_reduce_method="") -> Tensor
                """),
            table(
                Kind.ALL_GATHER,
                "",
                """
                vllm::all_gather(Tensor tensor, int dim, int world_size, str group_name) -> Tensor
                sglang::reg_all_gather_into_tensor(Tensor(a!) output, Tensor input, str group_name) -> ()
                """),
            table(
                Kind.REDUCE_SCATTER,
                "",
                """
                vllm::reduce_scatter(Tensor tensor, int dim, int world_size, str group_name) -> Tensor
                sglang::reg_reduce_scatter_tensor(Tensor(a!) output, Tensor input, str group_name) -> ()
                """))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> table(Kind kind, String algorithm, String schemas) {
    return schemas.lines().map(schema -> spec(kind, algorithm, schema));
  }

  private static OpSpec spec(Kind kind, String algorithm, String schema) {
    var operand =
        Stream.of("local_input", "input", "tensor")
            .filter(name -> schema.contains(" " + name + ","))
            .findFirst()
            .orElseThrow();
    var collective =
        CollectiveSpec.of(kind)
            .with(Role.OPERAND, operand)
            .with(new Foreign(Optional.of(algorithm).filter(name -> !name.isEmpty())));
    var spec = OpSpec.of(schema).collective(collective);
    return schema.contains("_low_contention_") ? spec : spec.rule(call -> infer(call));
  }

  private static List<OpResult> infer(OpCall call) {
    var collective = call.collective().orElseThrow();
    var operand = call.tensor(collective.spec().operand());
    var target = collective.target();
    if (collective.kind().reduces()) {
      CollectiveOps.checkReduction(collective, operand.dtype());
      checkSum(call, collective);
    }
    if (call.schema().hasParam("symm_buffer")) {
      var buffer = call.tensor("symm_buffer");
      if (buffer.dtype() != operand.dtype() || buffer.numel() < operand.numel()) {
        throw new OpTypeException(
            "symm_buffer is %s, which has no room for local_input, %s".formatted(buffer, operand));
      }
    }
    if (target.isEmpty()) {
      return List.of(OpResult.fresh(expected(call, collective, operand)));
    }
    check(collective, operand, target.get());
    return call.schema().results().isEmpty() ? List.of() : List.of(ViewOps.whole(target.get()));
  }

  private static void checkSum(OpCall call, CollectiveCall collective) {
    if (call.schema().name().namespace().equals("symm_mem")
        && collective.reduceOp().orElseThrow() != ReduceOp.SUM) {
      throw new OpTypeException(
          "only adds up, and cannot reduce with " + collective.reduceOp().orElseThrow(),
          "use _c10d_functional::" + collective.kind().text());
    }
  }

  private static TensorType expected(OpCall call, CollectiveCall collective, TensorType operand) {
    return switch (collective.kind()) {
      case ALL_REDUCE -> CollectiveOps.reduced(collective, operand);
      case ALL_GATHER -> resized(call, operand, true);
      case REDUCE_SCATTER -> resized(call, operand, false);
      case ALL_TO_ALL, BROADCAST, COLLECTIVE_PERMUTE, CUSTOM ->
          throw new IllegalStateException("is not in the table");
    };
  }

  /**
   * Along a dimension that is given, as many times as large as there are ranks, or a part of it.
   */
  private static TensorType resized(OpCall call, TensorType operand, boolean larger) {
    int dim = call.dim("dim", operand.rank());
    long ranks = call.integer("world_size");
    if (ranks < 1 || operand.rank() == 0 || (!larger && operand.size(dim) % ranks != 0)) {
      throw new OpTypeException(
          "%s has no dimension %s that world_size %s fits".formatted(operand, dim, ranks));
    }
    long size = larger ? Shapes.times(operand.size(dim), ranks) : operand.size(dim) / ranks;
    return TensorType.contiguous(operand.dtype(), Shapes.with(operand.sizes(), dim, size));
  }

  private static void check(CollectiveCall collective, TensorType operand, Value target) {
    var type = target.tensor();
    switch (collective.kind()) {
      case ALL_REDUCE -> CollectiveOps.written(target, operand);
      case ALL_GATHER -> checkParts(operand, type, collective.dim(operand.rank()), operand, type);
      case REDUCE_SCATTER ->
          checkParts(type, operand, collective.dim(operand.rank()), operand, type);
      case ALL_TO_ALL, BROADCAST, COLLECTIVE_PERMUTE, CUSTOM ->
          throw new IllegalStateException("is not in the table");
    }
  }

  private static void checkParts(
      TensorType part, TensorType whole, int dim, TensorType operand, TensorType target) {
    boolean fits =
        part.dtype() == whole.dtype()
            && part.rank() == whole.rank()
            && dim < part.rank()
            && part.size(dim) > 0
            && whole.size(dim) % part.size(dim) == 0
            && without(part, dim).equals(without(whole, dim));
    if (!fits) {
      throw new OpTypeException(
          "the result of %s does not fit %s: one must be a multiple of the other in dimension %s, and"
                  .formatted(operand, target, dim)
              + " they must be equal in all others");
    }
  }

  private static ImmutableLongArray without(TensorType type, int dim) {
    return Shapes.without(type.sizes(), dim);
  }
}
