package dev.symplan.ir.aten;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSchema;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.ir.op.SchemaType;
import java.util.List;
import java.util.Optional;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Ops that do the same to each tensor of a list: {@code _foreach_NAME} is {@code NAME} for each
 * item, with the item of every list argument and the other arguments as they are.
 */
public final class ForeachOps {
  private static final String PREFIX = "aten::_foreach_";

  private static final ImmutableList<String> UNARY =
      ImmutableList.copyOf(
          "abs exp expm1 log log10 log1p log2 max neg reciprocal round rsqrt sigmoid sign sqrt tanh"
              .split(" "));

  private static final ImmutableList<String> ARITHMETIC =
      ImmutableList.of("add", "sub", "mul", "div");

  private static final ImmutableList<String> BOUNDS =
      ImmutableList.of("clamp_max", "clamp_min", "maximum", "minimum");

  private static final ImmutableMap<String, String> ELEMENT_OPS = elementOps();

  private ForeachOps() {}

  private static ImmutableMap<String, String> elementOps() {
    var ops = ImmutableMap.<String, String>builder();
    for (var name : UNARY) {
      ops.put(name + "(Tensor[] self) -> Tensor[]", name);
    }
    for (var name : ARITHMETIC) {
      var alpha = name.equals("add") || name.equals("sub") ? ", *, Scalar alpha=1" : "";
      ops.put(name + ".Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", name + ".Scalar");
      ops.put(name + ".ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]", name + ".Scalar");
      ops.put(
          name + ".List(Tensor[] self, Tensor[] other" + alpha + ") -> Tensor[]", name + ".Tensor");
      if (!name.equals("sub")) {
        var scaled = name.equals("add") ? alpha : "";
        ops.put(
            name + ".Tensor(Tensor[] self, Tensor other" + scaled + ") -> Tensor[]",
            name + ".Tensor");
      }
    }
    for (var name : BOUNDS) {
      boolean above = name.equals("clamp_min") || name.equals("maximum");
      var scalar = above ? "clamp_min" : "clamp_max";
      ops.put(name + ".Scalar(Tensor[] self, Scalar scalar) -> Tensor[]", scalar);
      ops.put(name + ".ScalarList(Tensor[] self, Scalar[] scalars) -> Tensor[]", scalar);
      ops.put(
          name + ".List(Tensor[] self, Tensor[] other) -> Tensor[]", above ? "maximum" : "minimum");
    }
    for (var name : List.of("addcdiv", "addcmul")) {
      var tensors = "(Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, ";
      ops.put(name + ".Scalar" + tensors + "Scalar value=1) -> Tensor[]", name);
      ops.put(name + ".ScalarList" + tensors + "Scalar[] scalars) -> Tensor[]", name);
    }
    var lerp = "(Tensor[] self, Tensor[] tensors1, ";
    ops.put("lerp.List" + lerp + "Tensor[] weights) -> Tensor[]", "lerp.Tensor");
    ops.put("lerp.Scalar" + lerp + "Scalar weight) -> Tensor[]", "lerp.Scalar");
    ops.put("lerp.ScalarList" + lerp + "Scalar[] weight) -> Tensor[]", "lerp.Scalar");
    ops.put("pow.List(Tensor[] self, Tensor[] exponent) -> Tensor[]", "pow.Tensor_Tensor");
    ops.put("pow.Scalar(Tensor[] self, Scalar exponent) -> Tensor[]", "pow.Tensor_Scalar");
    ops.put("pow.ScalarList(Tensor[] self, Scalar[] exponent) -> Tensor[]", "pow.Tensor_Scalar");
    ops.put("pow.ScalarAndTensor(Scalar self, Tensor[] exponent) -> Tensor[]", "pow.Scalar");
    ops.put(
        "norm.Scalar(Tensor[] self, Scalar ord=2, ScalarType? dtype=None) -> Tensor[]",
        "linalg_vector_norm");
    ops.put("clone(Tensor[] self, *, MemoryFormat? memory_format=None) -> Tensor[]", "clone");
    ops.put(
        "copy(Tensor[] self, Tensor[] src, bool non_blocking=False) -> Tensor[] self_out", "copy");
    return ops.buildOrThrow();
  }

  static Stream<OpSpec> all() {
    return ELEMENT_OPS.keySet().stream()
        .flatMap(schema -> Table.ops(PREFIX + schema, ForeachOps::infer));
  }

  /** {@return the op that it applies to each item, if it is one of these} */
  public static Optional<Form> element(OpDef def) {
    var schema = def.schema().toString();
    @Nullable String name =
        schema.startsWith(PREFIX) ? ELEMENT_OPS.get(schema.substring(PREFIX.length())) : null;
    return name == null
        ? Optional.empty()
        : Optional.of(Form.byName(def, BuiltinOps.registry().get("aten::" + name), true));
  }

  /**
   * {@return the arguments for one item of an op's lists}
   *
   * @param args those of the op
   * @param pick takes an item out of an argument that is a list
   */
  public static <T> ImmutableList<T> item(OpSchema schema, List<T> args, UnaryOperator<T> pick) {
    var items = ImmutableList.<T>builder();
    for (int i = 0; i < args.size(); i++) {
      items.add(isList(schema, i) ? pick.apply(args.get(i)) : args.get(i));
    }
    return items.build();
  }

  private static List<OpResult> infer(OpCall call) {
    var def =
        BuiltinOps.registry()
            .find(call.schema().name())
            .flatMap(ForeachOps::element)
            .orElseThrow(() -> new IllegalStateException(call.schema().toString()));
    int count = count(call);
    var results = ImmutableList.<OpResult>builder();
    for (int i = 0; i < count; i++) {
      results.addAll(inferItem(call, def, i));
    }
    return results.build();
  }

  private static ImmutableList<OpResult> inferItem(OpCall call, Form element, int index) {
    var given = item(call.schema(), call.args(), list -> ((Arg.Seq) list).items().get(index));
    try {
      return element.def().infer(element.args(given, arg -> arg)).orElseThrow();
    } catch (OpTypeException e) {
      throw new OpTypeException("item %s: %s".formatted(index, e.getMessage()), e.hint());
    }
  }

  private static boolean isList(OpSchema schema, int param) {
    return schema.params().get(param).type() instanceof SchemaType.ListOf;
  }

  private static int count(OpCall call) {
    int count = -1;
    for (int i = 0; i < call.args().size(); i++) {
      if (isList(call.schema(), i)) {
        int own = ((Arg.Seq) call.args().get(i)).items().size();
        if (count >= 0 && own != count) {
          throw new OpTypeException(
              "'%s' has %s, but there are %s tensors"
                  .formatted(
                      call.schema().params().get(i).name(), Units.count(own, "item"), count));
        }
        count = own;
      }
    }
    if (count < 1) {
      throw new OpTypeException("the list of tensors is empty");
    }
    return count;
  }
}
