package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpCall;
import dev.symplan.planner.pass.rewrite.OpEmitter.Target;
import java.util.stream.LongStream;

/**
 * {@code symm_mem::fused_all_gather_matmul} and {@code fused_matmul_reduce_scatter} as a collective
 * and products, which the planner overlaps itself.
 */
final class FusedCollective {
  private final Op op;
  private final OpCall call;
  private final OpEmitter emitter;

  private FusedCollective(OpEmitter emitter) {
    this.op = emitter.at();
    this.call = new OpCall(op.def(), emitter.copier().now(op.args()));
    this.emitter = emitter;
  }

  static boolean is(Op op) {
    var name = op.def().name();
    return name.namespace().equals("symm_mem")
        && (name.name().equals("fused_all_gather_matmul")
            || name.name().equals("fused_matmul_reduce_scatter"));
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
    var a = call.value("A");
    int dim = call.dim("gather_dim", a.tensor().rank());
    var bs = call.values("Bs");
    var given = op.results().getFirst();
    var products = op.results().subList(1, op.results().size());
    if (products.size() > bs.size()) {
      throw emitter.error("gives a product for each of Bs");
    }
    var target = given.isTensor() ? Target.of(given) : Target.of(a.name() + "_gathered");
    var gathered = emitter.allGather(target, a, dim, call.string("group_name"), Arg.None.NONE);
    if (given.isTensor()) {
      emitter.checkType(gathered, given.tensor(), true);
    }
    for (int i = 0; i < products.size(); i++) {
      if (products.get(i).isTensor()) {
        var product = multiply(Target.of(products.get(i)), gathered, bs.get(i));
        emitter.checkType(product, products.get(i).tensor(), true);
      }
    }
  }

  private void multiplyAndScatter() {
    var result = op.result();
    int dim = call.dim("scatter_dim", result.tensor().rank());
    var product = multiply(Target.of(result.name() + "_product"), call.value("A"), call.value("B"));
    var made =
        emitter.reduceScatter(
            Target.of(result),
            product,
            dim,
            call.string("reduce_op"),
            call.string("group_name"),
            Arg.None.NONE);
    emitter.checkType(made, result.tensor(), true);
  }

  /** The product of the last dimension of one with the first of the other. */
  private Value multiply(Target target, Value a, Value b) {
    var sizes = a.tensor().sizes();
    if (sizes.length() == 2) {
      return emitter.emit(target, "aten::mm", new Arg.Ref(a), new Arg.Ref(b));
    }
    var flat =
        emitter.emit(
            Target.of(a.name() + "_flat"),
            "aten::reshape",
            new Arg.Ref(a),
            sizes(-1, sizes.get(sizes.length() - 1)));
    var product =
        emitter.emit(
            Target.of(target.name() + "_flat"), "aten::mm", new Arg.Ref(flat), new Arg.Ref(b));
    var shape = sizes.toArray();
    shape[shape.length - 1] = b.tensor().size(1);
    return emitter.emit(target, "aten::view", new Arg.Ref(product), sizes(shape));
  }

  private static Arg sizes(long... sizes) {
    return new Arg.Seq(
        LongStream.of(sizes).<Arg>mapToObj(Arg.Int::new).collect(ImmutableList.toImmutableList()));
  }
}
