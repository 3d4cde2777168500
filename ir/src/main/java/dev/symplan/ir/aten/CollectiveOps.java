package dev.symplan.ir.aten;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.CollectiveCall;
import dev.symplan.ir.op.CollectiveSpec;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.CollectiveSpec.Role;
import dev.symplan.ir.op.InferRule;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.ir.op.ReduceOp;
import java.util.stream.Stream;

/**
 * {@code _c10d_functional} and {@code _c10d_functional_autograd}, registered as any library's
 * collectives are: by which parameters they send, reduce and name the group.
 *
 * <p>PyTorch's schemas say {@code Any group_name}; here it is the name. The trailing {@code
 * config}, which newer versions have, changes nothing that a type shows; a string names the
 * algorithm.
 */
final class CollectiveOps {
  private CollectiveOps() {}

  /** The type of the result for one operand. */
  @FunctionalInterface
  interface Shape {
    TensorType of(CollectiveCall call, TensorType input);
  }

  static Stream<OpSpec> all() {
    return Stream.of(
            fresh("_c10d_functional"), fresh("_c10d_functional_autograd"), inPlace(), waits())
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> fresh(String namespace) {
    return Stream.of(
            table(
                Kind.ALL_REDUCE,
                """
                NS::all_reduce(Tensor input, str reduce_op, str group_name, Any? config=None) -> Tensor
                NS::all_reduce_coalesced(Tensor[] inputs, str reduce_op, str group_name) -> Tensor[]
                """,
                CollectiveOps::reduced),
            table(
                Kind.ALL_GATHER,
                """
                NS::all_gather_into_tensor(Tensor input, int group_size, str group_name, Any? config=None) -> Tensor
                NS::all_gather_into_tensor_coalesced(Tensor[] inputs, int group_size, str group_name) -> Tensor[]
                """,
                CollectiveOps::gathered),
            table(
                Kind.REDUCE_SCATTER,
                """
                NS::reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, str group_name, Any? config=None) -> Tensor
                NS::reduce_scatter_tensor_coalesced(Tensor[] inputs, str reduce_op, int group_size, str group_name) -> Tensor[]
                """,
                CollectiveOps::scattered),
            table(
                Kind.ALL_TO_ALL,
                """
                NS::all_to_all_single(Tensor input, SymInt[] output_split_sizes, SymInt[] input_split_sizes, str group_name, Any? config=None) -> Tensor
                """,
                CollectiveOps::exchanged),
            table(
                Kind.BROADCAST,
                """
                NS::broadcast(Tensor input, int src, str group_name) -> Tensor
                """,
                (_, input) -> likeInput(input)))
        .flatMap(specs -> specs)
        .map(spec -> spec.schema(spec.schemaText().replace("NS::", namespace + "::")));
  }

  /** The forms that write into an argument, which they also give. */
  private static Stream<OpSpec> inPlace() {
    return Stream.of(
            table(
                Kind.ALL_REDUCE,
                """
                _c10d_functional::all_reduce_(Tensor(a!) input, str reduce_op, str group_name) -> Tensor(a!)
                _c10d_functional::all_reduce_coalesced_(Tensor[](a!) inputs, str reduce_op, str group_name) -> Tensor[](a!)
                """,
                CollectiveOps::reduced),
            table(
                Kind.BROADCAST,
                """
                _c10d_functional::broadcast_(Tensor(a!) input, int src, str group_name) -> Tensor(a!)
                """,
                (_, input) -> likeInput(input)),
            table(
                Kind.ALL_GATHER,
                """
                _c10d_functional::all_gather_into_tensor_out(Tensor input, int group_size, str group_name, *, Tensor(a!) out) -> Tensor(a!)
                """,
                CollectiveOps::gathered),
            table(
                Kind.REDUCE_SCATTER,
                """
                _c10d_functional::reduce_scatter_tensor_out(Tensor input, str reduce_op, int group_size, str group_name, *, Tensor(a!) out) -> Tensor(a!)
                """,
                CollectiveOps::scattered))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> waits() {
    return Stream.of("_c10d_functional", "_c10d_functional_autograd")
        .map(
            namespace ->
                OpSpec.of(namespace + "::wait_tensor(Tensor tensor) -> Tensor")
                    .rule(InferRule.single(call -> ViewOps.whole(call.value("tensor"))))
                    .traits(OpTrait.WAIT));
  }

  static Stream<OpSpec> table(Kind kind, String schemas, Shape shape) {
    return schemas.lines().map(schema -> spec(kind, schema, shape));
  }

  private static OpSpec spec(Kind kind, String schema, Shape shape) {
    boolean coalesced = schema.contains("Tensor[]");
    boolean out = schema.contains("Tensor(a!) out");
    boolean writes = schema.contains("(a!)");
    return OpSpec.of(schema)
        .collective(CollectiveSpec.of(kind))
        .rule(
            call -> {
              var collective = call.collective().orElseThrow();
              var operand = collective.spec().operand();
              var inputs = coalesced ? call.values(operand) : ImmutableList.of(call.value(operand));
              return inputs.stream()
                  .map(
                      input -> {
                        var type = shape.of(collective, input.tensor());
                        return writes
                            ? written(out ? call.value("out") : input, type)
                            : OpResult.fresh(type);
                      })
                  .toList();
            });
  }

  static OpResult written(Value target, TensorType result) {
    if (target.tensor().dtype() != result.dtype()
        || !target.tensor().sizes().equals(result.sizes())) {
      throw new OpTypeException(
          "'%s' is %s, but the result is %s".formatted(target.name(), target.type(), result));
    }
    return ViewOps.whole(target);
  }

  static TensorType likeInput(TensorType input) {
    return input.isDense() ? Layouts.preserved(input) : Layouts.fresh(input);
  }

  static TensorType reduced(CollectiveCall call, TensorType input) {
    checkReduction(call, input.dtype());
    return likeInput(input);
  }

  static void checkReduction(CollectiveCall call, DType dtype) {
    var op = call.reduceOp().orElseThrow();
    if (op.isDefinedOn(dtype)) {
      return;
    }
    var type = dtype.shortName();
    if (op.isBitwise()) {
      throw new OpTypeException("%s works on integers and bool, not on %s".formatted(op, type));
    }
    if (op == ReduceOp.AVG) {
      throw new OpTypeException(
          "avg works on floats, not on " + type,
          "reduce with sum, then divide with aten::div.Tensor_mode");
    }
    throw new OpTypeException(
        "%s works on real numbers, not on %s".formatted(op, type),
        "reductions of complex numbers: sum, avg");
  }

  private static long groupSize(CollectiveCall call) {
    var param = call.spec().param(Role.GROUP_SIZE);
    long size = call.call().integer(param);
    if (size < 1) {
      throw new OpTypeException("%s is %s, but must be at least 1".formatted(param, size));
    }
    return size;
  }

  static TensorType gathered(CollectiveCall call, TensorType input) {
    long ranks = groupSize(call);
    // Tensors without dimensions count as one row.
    return input.rank() == 0
        ? TensorType.contiguous(input.dtype(), ranks)
        : times(input, call.sliceDims().result(), ranks);
  }

  static TensorType scattered(CollectiveCall call, TensorType input) {
    checkReduction(call, input.dtype());
    long ranks = groupSize(call);
    if (input.rank() == 0) {
      throw new OpTypeException("a tensor without dimensions has no rows to scatter");
    }
    var share = divided(input, call.sliceDims().operand(), ranks);
    return call.dtype().map(dtype -> share.withDType(widened(input.dtype(), dtype))).orElse(share);
  }

  private static DType widened(DType from, DType to) {
    boolean wider = to == DType.F32 && (from == DType.F16 || from == DType.BF16);
    if (!wider && from != to) {
      throw new OpTypeException(
          "elements of %s cannot be reduced as %s".formatted(from.shortName(), to.shortName()),
          "only f16 and bf16 can be reduced as another type, which is f32");
    }
    return to;
  }

  /** Every rank gets an equal part along one dimension, which it puts together along another. */
  static TensorType exchangedAlong(CollectiveCall call, TensorType input) {
    long ranks = groupSize(call);
    if (input.rank() == 0) {
      throw new OpTypeException("a tensor without dimensions has no rows to exchange");
    }
    var dims = call.sliceDims();
    return times(divided(input, dims.operand(), ranks), dims.result(), ranks);
  }

  private static TensorType times(TensorType type, int dim, long ranks) {
    return withSize(type, dim, Shapes.times(type.size(dim), ranks));
  }

  private static TensorType divided(TensorType type, int dim, long ranks) {
    if (type.size(dim) % ranks != 0) {
      throw new OpTypeException(
          "%s cannot be divided evenly among %s"
              .formatted(Units.count(type.size(dim), "row"), Units.count(ranks, "rank")),
          "pad dimension %s to a multiple of %s".formatted(dim, ranks));
    }
    return withSize(type, dim, type.size(dim) / ranks);
  }

  /** Without split sizes, every rank gets an equal part. */
  private static TensorType exchanged(CollectiveCall call, TensorType input) {
    if (input.rank() == 0) {
      throw new OpTypeException("a tensor without dimensions has no rows to exchange");
    }
    var sent = nonNegative(call, Role.INPUT_SPLIT_SIZES, call.inputSplits());
    var received = nonNegative(call, Role.OUTPUT_SPLIT_SIZES, call.outputSplits());
    if (!sent.isEmpty() && !received.isEmpty() && sent.length() != received.length()) {
      throw new OpTypeException(
          "%s input splits, but %s output splits".formatted(sent.length(), received.length()),
          "each has an entry for every rank of the group");
    }
    if (!sent.isEmpty() && Shapes.sum(sent) != input.size(0)) {
      throw new OpTypeException(
          "%s add up to %s, but the input has %s"
              .formatted(
                  call.spec().param(Role.INPUT_SPLIT_SIZES),
                  Shapes.sum(sent),
                  Units.count(input.size(0), "row")),
          "if only a run knows the splits, bound their sum: --dim-max u0+u1=%s"
              .formatted(input.size(0)));
    }
    return withSize(input, 0, received.isEmpty() ? input.size(0) : Shapes.sum(received));
  }

  private static ImmutableLongArray nonNegative(
      CollectiveCall call, Role role, ImmutableLongArray splits) {
    if (splits.stream().anyMatch(size -> size < 0)) {
      throw new OpTypeException(
          "%s %s has a negative entry".formatted(call.spec().param(role), Shapes.text(splits)));
    }
    return splits;
  }

  private static TensorType withSize(TensorType type, int dim, long size) {
    return TensorType.contiguous(type.dtype(), Shapes.with(type.sizes(), dim, size));
  }
}
