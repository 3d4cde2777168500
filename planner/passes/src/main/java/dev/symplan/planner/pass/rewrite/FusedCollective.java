package dev.symplan.planner.pass.rewrite;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpDef;
import dev.symplan.planner.pass.rewrite.OpEmitter.Target;
import java.util.Optional;
import java.util.Set;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/**
 * Takes the fused ops of PyTorch's {@code symm_mem} library apart: a gather before products, or a
 * product before a reduce_scatter. The planner overlaps the parts as it does all others.
 */
final class FusedCollective {
  private static final Set<String> NAMES =
      Set.of(
          "fused_all_gather_matmul",
          "fused_all_gather_scaled_matmul",
          "fused_matmul_reduce_scatter",
          "fused_scaled_matmul_reduce_scatter");

  private final Op op;
  private final OpCall call;
  private final OpEmitter emitter;

  private FusedCollective(OpEmitter emitter) {
    this.op = emitter.at();
    this.call = new OpCall(op.def(), emitter.copier().now(op.args()));
    this.emitter = emitter;
  }

  static boolean is(OpDef def) {
    var name = def.name();
    return name.namespace().equals("symm_mem") && NAMES.contains(name.name());
  }

  /**
   * Emits what the op does.
   *
   * @throws CompileException when a result is not of its annotated type
   */
  static void emit(OpEmitter emitter) {
    var fused = new FusedCollective(emitter);
    if (emitter.at().def().schema().hasParam("gather_dim")) {
      fused.gatherAndMultiply();
    } else {
      fused.multiplyAndScatter();
    }
  }

  /** The first result is the gathered operand, if it is wanted; products follow. */
  private void gatherAndMultiply() {
    var shard = call.value("A");
    int dim = call.dim("gather_dim", shard.tensor().rank());
    var bs = call.values("Bs");
    var given = op.results().getFirst();
    var products = op.results().subList(1, op.results().size());
    if (products.size() > bs.size()) {
      throw emitter.error("gives a product for each of Bs");
    }
    var gathered = gather(Target.of(given, shard.name() + "_gathered"), shard, dim);
    emitter.checkType(gathered, given, true);
    var scale =
        isScaled() ? Optional.of(gatheredScale(shard, gathered, dim)) : Optional.<Value>empty();
    for (int i = 0; i < products.size(); i++) {
      var product = products.get(i);
      if (product.isTensor()) {
        int index = i;
        var scales = scale.map(own -> scales(own, index)).orElse(ImmutableList.of());
        var made = multiply(Target.of(product), gathered, bs.get(i), leading(gathered), scales);
        emitter.checkType(made, product, true);
      }
    }
  }

  /** The arguments of {@code aten::_scaled_mm} after the factors, for one of several products. */
  private ImmutableList<Arg> scales(Value scale, int index) {
    return Stream.concat(
            Stream.of(new Arg.Ref(scale)),
            Stream.of("B_scales", "biases", "result_scales", "out_dtypes", "use_fast_accum")
                .map(param -> item(param, index)))
        .collect(toImmutableList());
  }

  private void multiplyAndScatter() {
    var result = op.result();
    var a = call.value("A");
    var scales =
        isScaled()
            ? Stream.concat(
                    Stream.of(new Arg.Ref(flatScale(call.value("A_scale"), leading(a)))),
                    Stream.of("B_scale", "bias", "result_scale", "out_dtype", "use_fast_accum")
                        .map(call::arg))
                .collect(toImmutableList())
            : ImmutableList.<Arg>of();
    var b = call.value("B");
    var product = multiply(Target.of(a.name() + "_product"), a, b, rowsOfProduct(a, b), scales);
    var made =
        emitter.reduceScatter(
            Target.of(result, a.name() + "_scattered"),
            product,
            call.dim(isScaled() ? "orig_scatter_dim" : "scatter_dim", product.tensor().rank()),
            emitter.reduceOp(call.string("reduce_op")),
            call.string("group_name"),
            Arg.None.NONE);
    emitter.checkType(made, result, true);
  }

  /** {@return the sizes of the product but for the last, which {@code output_shape} may give} */
  private ImmutableLongArray rowsOfProduct(Value a, Value b) {
    var own = leading(a);
    if (!isScaled() || !call.has("output_shape")) {
      return own;
    }
    var shape = call.integers("output_shape");
    var rows = allButLast(shape);
    var columns = b.tensor().sizes();
    if (count(rows) != count(own)
        || shape.isEmpty()
        || columns.isEmpty()
        || shape.get(shape.length() - 1) != columns.get(columns.length() - 1)) {
      throw emitter.error(
          "output_shape %s is not that of a product of %s and %s"
              .formatted(shape, a.type(), b.type()));
    }
    return rows;
  }

  private static long count(ImmutableLongArray sizes) {
    return sizes.stream().reduce(1, (x, y) -> x * y);
  }

  private boolean isScaled() {
    return call.schema().hasParam("A_scale");
  }

  private Arg item(String param, int index) {
    int products = call.values("Bs").size();
    if (call.arg(param) instanceof Arg.Seq(var items) && items.size() == products) {
      return items.get(index);
    }
    throw emitter.error(
        "%s must have %s, one for each of Bs".formatted(param, Units.count(products, "item")));
  }

  private Value gather(Target target, Value shard, int dim) {
    return emitter.allGather(target, shard, dim, call.string("group_name"), Arg.None.NONE);
  }

  /** The scale of the whole operand: of one element, or one for each row, of all ranks or this. */
  private Value gatheredScale(Value shard, Value gathered, int dim) {
    var scale = call.value("A_scale");
    if (dim == shard.tensor().rank() - 1) {
      throw emitter.error("cannot gather along the last dimension, along which rows are scaled");
    }
    boolean sharded =
        scale.tensor().numel() > 1
            && leading(scale).equals(leading(shard))
            && !leading(shard).equals(leading(gathered));
    return flatScale(
        sharded ? gather(Target.of(scale.name() + "_gathered"), scale, dim) : scale,
        leading(gathered));
  }

  private Value flatScale(Value scale, ImmutableLongArray rows) {
    var type = scale.tensor();
    if (type.numel() == 1) {
      return scale;
    }
    if (type.rank() != rows.length() + 1
        || !leading(scale).equals(rows)
        || type.size(type.rank() - 1) != 1) {
      throw emitter.error(
          "'%s' is %s; a scale has one element, or one for each row of the operand"
              .formatted(scale.name(), type));
    }
    return flat(scale);
  }

  private static ImmutableLongArray leading(Value value) {
    return allButLast(value.tensor().sizes());
  }

  private static ImmutableLongArray allButLast(ImmutableLongArray sizes) {
    return sizes.subArray(0, Math.max(0, sizes.length() - 1));
  }

  /**
   * The product of the last dimension of one with the first of the other.
   *
   * @param rows the sizes of the product but for the last
   * @param scales the other arguments of {@code aten::_scaled_mm}; empty for {@code aten::mm}
   */
  private Value multiply(
      Target target, Value a, Value b, ImmutableLongArray rows, ImmutableList<Arg> scales) {
    var args =
        Stream.concat(Stream.of(new Arg.Ref(flat(a)), new Arg.Ref(b)), scales.stream())
            .toArray(Arg[]::new);
    var multiply = scales.isEmpty() ? "aten::mm" : "aten::_scaled_mm";
    if (rows.length() == 1) {
      return emitter.emit(target, multiply, args);
    }
    var product = emitter.emit(Target.of(target.name() + "_flat"), multiply, args);
    return emitter.emit(
        target,
        "aten::view",
        new Arg.Ref(product),
        Arg.Seq.of(
            LongStream.concat(
                rows.stream(), LongStream.of(b.tensor().size(b.tensor().rank() - 1)))));
  }

  /** The same as rows of the last dimension. */
  private Value flat(Value value) {
    var sizes = value.tensor().sizes();
    return sizes.length() == 2
        ? value
        : emitter.emit(
            Target.of(value.name() + "_flat"),
            "aten::reshape",
            new Arg.Ref(value),
            Arg.Seq.of(-1, sizes.length() == 0 ? 1 : sizes.get(sizes.length() - 1)));
  }
}
