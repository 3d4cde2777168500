package dev.symplan.ir.hlo.ops;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.InferRule;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.op.OpTypeException;
import java.util.Arrays;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * One op for each opcode of HLO. {@code results} are the types of what the instruction gives, as
 * the graph language writes them; {@code attributes} is what the module says of it; {@code flops}
 * are its floating-point operations, where these decide how long it takes.
 *
 * <p>HLO's instructions are pure: results are in memory of their own and operands stay as they are,
 * apart from the ops named here. No op has a kernel.
 */
public final class HloOps {
  /** The namespace of these ops. */
  public static final String NAMESPACE = "hlo";

  private static final String REST = "str[] results, str attributes='', float flops=0.0) -> ";

  private static final String PURE =
      """
      abs add add_dependency after_all and atan2 batch_norm_grad batch_norm_inference
      batch_norm_training bitcast_convert broadcast cbrt ceil cholesky clamp compare complex
      concatenate constant convert convolution copy cosine count_leading_zeros custom_call divide
      domain dot dynamic_reshape dynamic_slice erf exponential exponential_minus_one fft floor
      fusion gather get_dimension_size imag iota is_finite log log_plus_one logistic map maximum
      minimum multiply negate not or pad partition_id popcnt power ragged_dot real reduce
      reduce_precision reduce_window remainder replica_id reshape reverse rng_bit_generator
      round_nearest_afz round_nearest_even rsqrt scaled_dot scatter select select_and_scatter
      set_dimension_size shift_left shift_right_arithmetic shift_right_logical sign sine slice sort
      sqrt stochastic_convert subtract tan tanh topk transpose triangular_solve xor
      """;

  /** Those that do more than give results; the condition of a loop decides how often that runs. */
  private static final String EFFECTS =
      "custom_call_with_side_effect rng_get_and_update_state while_condition";

  /** Instructions whose result may take the memory of an operand. */
  private static final String UPDATES =
      "dynamic_update_slice updating_custom_call updating_fusion updating_scatter";

  private HloOps() {}

  /** {@return the ops, for the registry} */
  public static Stream<OpSpec> all() {
    return Stream.of(
            named(PURE, "(Tensor[] operands, " + REST + "Tensor[]", HloOps::fresh),
            named(EFFECTS, "(Tensor[] operands, " + REST + "Tensor[]", HloOps::fresh)
                .map(spec -> spec.traits(OpTrait.SIDE_EFFECT)),
            named(UPDATES, "(Tensor self, Tensor[] operands, " + REST + "Tensor", HloOps::fresh)
                .map(spec -> spec.traits(OpTrait.UPDATES_SELF)),
            Stream.of(
                OpSpec.of("hlo::bitcast(Tensor(a) self, str[] results) -> Tensor(a)")
                    .rule(HloOps::view),
                OpSpec.of(
                        "hlo::while(Tensor(a) self, str[] results, str attributes='') -> Tensor(a)")
                    .rule(HloOps::view)))
        .flatMap(specs -> specs);
  }

  private static Stream<OpSpec> named(String names, String params, InferRule rule) {
    return Arrays.stream(names.strip().split("\\s+"))
        .map(
            name ->
                OpSpec.of(NAMESPACE + "::" + name + params)
                    .rule(rule)
                    .flops((call, result) -> call.number("flops")));
  }

  private static ImmutableList<OpResult> fresh(OpCall call) {
    var types = types(call);
    boolean one = !call.schema().results().getFirst().type().toString().endsWith("[]");
    if (one && types.size() != 1) {
      throw new OpTypeException("results must name one type, not " + types.size());
    }
    return types.stream().map(OpResult::fresh).collect(toImmutableList());
  }

  /** The same bytes as other elements. */
  private static ImmutableList<OpResult> view(OpCall call) {
    var types = types(call);
    var self = call.value("self");
    if (types.size() != 1 || types.getFirst().storageBytes() > self.tensor().storageBytes()) {
      throw new OpTypeException(
          "a bitcast of %s gives its bytes, not %s".formatted(self.type(), types));
    }
    return ImmutableList.of(
        new OpResult(types.getFirst(), Optional.of(new OpResult.View(self, 0)), false));
  }

  private static ImmutableList<TensorType> types(OpCall call) {
    if (!(call.arg("results") instanceof Arg.Seq(ImmutableList<Arg> items))) {
      throw new OpTypeException("results must be a list of types");
    }
    var types = ImmutableList.<TensorType>builderWithExpectedSize(items.size());
    for (var item : items) {
      if (!(item instanceof Arg.Str(String text))) {
        throw new OpTypeException("results must be a list of types");
      }
      types.add(type(text));
    }
    return types.build();
  }

  /** Reads {@code f32[8, 64]} and {@code f32[8, 64][1, 8]}. */
  private static TensorType type(String text) {
    var parts = Splitter.on('[').splitToList(text);
    var dtype =
        DType.ofShortName(parts.getFirst().strip())
            .filter(known -> parts.size() == 2 || parts.size() == 3)
            .orElseThrow(() -> wrong(text));
    var sizes = integers(parts.get(1), text);
    return parts.size() == 2
        ? TensorType.contiguous(dtype, sizes)
        : new TensorType(dtype, sizes, integers(parts.get(2), text), MemorySpace.ANY);
  }

  private static ImmutableLongArray integers(String list, String text) {
    var inside = list.strip();
    if (!inside.endsWith("]")) {
      throw wrong(text);
    }
    var numbers = ImmutableLongArray.builder();
    for (var item :
        Splitter.on(',')
            .trimResults()
            .omitEmptyStrings()
            .split(inside.substring(0, inside.length() - 1))) {
      try {
        numbers.add(Long.parseLong(item));
      } catch (NumberFormatException e) {
        throw wrong(text);
      }
    }
    return numbers.build();
  }

  private static OpTypeException wrong(String text) {
    return new OpTypeException(
        "'%s' is not a type".formatted(text), "types look like f32[8, 64] or f32[8, 64][1, 8]");
  }
}
