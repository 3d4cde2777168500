package dev.symplan.ir.op.aten;

import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.CollectiveSpec;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.InferRule;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import java.util.List;
import java.util.Optional;
import java.util.function.BiFunction;
import java.util.stream.Stream;

/**
 * {@code _c10d_functional} and {@code _c10d_functional_autograd}, registered as any library's
 * collectives are: by which parameters they send, reduce and name the group.
 */
final class CollectiveOps {
  private static final ImmutableSet<String> REDUCTIONS =
      ImmutableSet.of("sum", "avg", "product", "min", "max", "band", "bor", "bxor");

  private CollectiveOps() {}

  static Stream<OpSpec> all() {
    return Stream.concat(
        Stream.of("_c10d_functional", "_c10d_functional_autograd")
            .flatMap(CollectiveOps::outOfPlace),
        writing("_c10d_functional"));
  }

  private static Stream<OpSpec> outOfPlace(String ns) {
    return Stream.of(
        collective(
            ns
                + "::all_reduce(Tensor input, str reduce_op, str group_name, Any? config=None) ->"
                + " Tensor",
            Kind.ALL_REDUCE,
            "input",
            CollectiveOps::allReduced),
        collective(
            ns
                + "::all_gather_into_tensor(Tensor input, int group_size, str group_name, Any?"
                + " config=None) -> Tensor",
            Kind.ALL_GATHER,
            "input",
            CollectiveOps::gathered),
        collective(
            ns
                + "::reduce_scatter_tensor(Tensor input, str reduce_op, int group_size, str"
                + " group_name, Any? config=None) -> Tensor",
            Kind.REDUCE_SCATTER,
            "input",
            CollectiveOps::scattered),
        collective(
            ns
                + "::all_to_all_single(Tensor input, SymInt[] output_split_sizes, SymInt[]"
                + " input_split_sizes, str group_name, Any? config=None) -> Tensor",
            Kind.ALL_TO_ALL,
            "input",
            CollectiveOps::exchanged),
        collective(
            ns + "::broadcast(Tensor input, int src, str group_name) -> Tensor",
            Kind.BROADCAST,
            "input",
            (call, input) -> OpResult.fresh(denseLike(input.tensor()))),
        collective(
            ns
                + "::all_reduce_coalesced(Tensor[] inputs, str reduce_op, str group_name) ->"
                + " Tensor[]",
            Kind.ALL_REDUCE,
            "inputs",
            CollectiveOps::allReduced),
        collective(
            ns
                + "::all_gather_into_tensor_coalesced(Tensor[] inputs, int group_size, str"
                + " group_name) -> Tensor[]",
            Kind.ALL_GATHER,
            "inputs",
            CollectiveOps::gathered),
        collective(
            ns
                + "::reduce_scatter_tensor_coalesced(Tensor[] inputs, str reduce_op, int"
                + " group_size, str group_name) -> Tensor[]",
            Kind.REDUCE_SCATTER,
            "inputs",
            CollectiveOps::scattered),
        OpSpec.of(ns + "::wait_tensor(Tensor tensor) -> Tensor")
            .rule(InferRule.single(call -> whole(call.value("tensor"))))
            .traits(OpTrait.WAIT));
  }

  /** The forms that write into an argument; only the plain namespace has them. */
  private static Stream<OpSpec> writing(String ns) {
    return Stream.of(
        into(
            ns + "::all_reduce_(Tensor(a!) input, str reduce_op, str group_name) -> Tensor(a!)",
            Kind.ALL_REDUCE,
            "input",
            CollectiveOps::allReduced),
        into(
            ns
                + "::all_reduce_coalesced_(Tensor(a!)[] inputs, str reduce_op, str group_name) ->"
                + " Tensor(a!)[]",
            Kind.ALL_REDUCE,
            "inputs",
            CollectiveOps::allReduced),
        into(
            ns + "::broadcast_(Tensor(a!) input, int src, str group_name) -> Tensor(a!)",
            Kind.BROADCAST,
            "input",
            (call, input) -> OpResult.fresh(input.tensor())),
        into(
            ns
                + "::all_gather_into_tensor_out(Tensor input, int group_size, str group_name, *,"
                + " Tensor(a!) out) -> Tensor(a!)",
            Kind.ALL_GATHER,
            "input",
            CollectiveOps::gathered),
        into(
            ns
                + "::reduce_scatter_tensor_out(Tensor input, str reduce_op, int group_size, str"
                + " group_name, *, Tensor(a!) out) -> Tensor(a!)",
            Kind.REDUCE_SCATTER,
            "input",
            CollectiveOps::scattered));
  }

  private static OpSpec collective(
      String schema, Kind kind, String operand, BiFunction<OpCall, Value, OpResult> rule) {
    return OpSpec.of(schema)
        .collective(
            new CollectiveSpec(
                kind,
                operand,
                "group_name",
                schema.contains("reduce_op") ? Optional.of("reduce_op") : Optional.empty(),
                schema.contains(" out)") ? Optional.of("out") : Optional.empty()))
        .symmMemArgs(List.of(operand))
        .symmMemResults(List.of("0"))
        .rule(call -> tensors(call, operand).map(input -> rule.apply(call, input)).toList());
  }

  private static OpSpec into(
      String schema, Kind kind, String operand, BiFunction<OpCall, Value, OpResult> rule) {
    boolean out = schema.contains(" out)");
    return collective(schema, kind, operand, rule)
        .rule(
            call ->
                tensors(call, operand)
                    .map(
                        input -> {
                          var target = out ? call.value("out") : input;
                          checkTarget(target, (TensorType) rule.apply(call, input).type());
                          return whole(target);
                        })
                    .toList());
  }

  private static void checkTarget(Value target, TensorType needed) {
    if (target.tensor().dtype() != needed.dtype()
        || !target.tensor().sizes().equals(needed.sizes())) {
      throw new OpTypeException(
          "'%s' is %s, but the result is %s".formatted(target.name(), target.type(), needed));
    }
  }

  private static Stream<Value> tensors(OpCall call, String operand) {
    return operand.equals("inputs")
        ? call.values("inputs").stream()
        : Stream.of(call.value(operand));
  }

  private static OpResult whole(Value value) {
    return OpResult.view(value, value.tensor().sizes(), value.tensor().strides(), 0);
  }

  private static TensorType denseLike(TensorType type) {
    return type.isDense() ? type : type.contiguous();
  }

  private static OpResult allReduced(OpCall call, Value input) {
    checkReduction(call, input.tensor());
    return OpResult.fresh(denseLike(input.tensor()));
  }

  private static void checkReduction(OpCall call, TensorType type) {
    var op = call.string("reduce_op");
    if (!REDUCTIONS.contains(op)) {
      throw new OpTypeException(
          "there is no reduction '%s'".formatted(op),
          "reductions: " + String.join(", ", REDUCTIONS));
    }
    if (op.startsWith("b") && type.dtype().kind().compareTo(DType.Kind.INTEGER) > 0) {
      throw new OpTypeException(
          "%s works on integers, not on %s".formatted(op, type.dtype().shortName()));
    }
    if (op.equals("avg") && type.dtype().kind().compareTo(DType.Kind.FLOAT) < 0) {
      throw new OpTypeException("avg works on floats, not on " + type.dtype().shortName());
    }
  }

  private static long groupSize(OpCall call) {
    long size = call.integer("group_size");
    if (size < 1) {
      throw new OpTypeException("group_size is %d, but must be at least 1".formatted(size));
    }
    return size;
  }

  private static OpResult gathered(OpCall call, Value input) {
    var type = input.tensor();
    if (type.rank() == 0) {
      throw new OpTypeException("a scalar tensor has no rows to gather");
    }
    return withRows(type, Math.multiplyExact(type.size(0), groupSize(call)));
  }

  private static OpResult scattered(OpCall call, Value input) {
    var type = input.tensor();
    checkReduction(call, type);
    long size = groupSize(call);
    if (type.rank() == 0 || type.size(0) % size != 0) {
      throw new OpTypeException(
          "the first dimension of %s does not divide by %d ranks".formatted(type, size),
          "pad it, or scatter along another dimension");
    }
    return withRows(type, type.size(0) / size);
  }

  private static OpResult exchanged(OpCall call, Value input) {
    var type = input.tensor();
    var sent = call.integers("input_split_sizes");
    var received = call.integers("output_split_sizes");
    if (type.rank() == 0) {
      throw new OpTypeException("a scalar tensor has no rows to exchange");
    }
    if (!sent.isEmpty() && sent.stream().sum() != type.size(0)) {
      throw new OpTypeException(
          "input_split_sizes add up to %d, but the input has %d rows"
              .formatted(sent.stream().sum(), type.size(0)));
    }
    if (sent.stream().anyMatch(n -> n < 0) || received.stream().anyMatch(n -> n < 0)) {
      throw new OpTypeException("split sizes cannot be negative");
    }
    if (!sent.isEmpty() && !received.isEmpty() && sent.length() != received.length()) {
      throw new OpTypeException(
          "%d input splits, but %d output splits".formatted(sent.length(), received.length()));
    }
    return withRows(type, received.isEmpty() ? type.size(0) : received.stream().sum());
  }

  private static OpResult withRows(TensorType type, long rows) {
    var sizes = type.sizes().toArray();
    sizes[0] = rows;
    return OpResult.fresh(type.dtype(), ImmutableLongArray.copyOf(sizes));
  }
}
