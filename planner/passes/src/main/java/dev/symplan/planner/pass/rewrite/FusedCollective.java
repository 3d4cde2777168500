package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpCall;
import dev.symplan.planner.pass.analysis.GraphCopier;
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

  private FusedCollective(GraphCopier copier, Op op) {
    this.op = op;
    this.call = new OpCall(op.def(), copier.now(op.args()));
    this.emitter = new OpEmitter(copier, op);
  }

  static boolean is(Op op) {
    var name = op.def().name();
    return name.namespace().equals("symm_mem")
        && (name.name().equals("fused_all_gather_matmul")
            || name.name().equals("fused_matmul_reduce_scatter"));
  }

  /** Emits what the op does. */
  static void emit(GraphCopier copier, Op op) {
    var fused = new FusedCollective(copier, op);
    if (op.def().schema().hasParam("gather_dim")) {
      fused.gatherAndMultiply();
    } else {
      fused.multiplyAndScatter();
    }
  }

  /** The first result is the gathered operand, if it is wanted; products follow. */
  private void gatherAndMultiply() {
    var a = call.value("A");
    int dim = call.dim("gather_dim", a.tensor().rank());
    boolean contracts = dim == a.tensor().rank() - 1;
    var bs = call.values("Bs");
    var given = op.results().getFirst();
    var products = op.results().subList(1, op.results().size());
    if (bs.isEmpty() || products.size() > bs.size()) {
      throw emitter.error("gives a product for each of Bs");
    }
    long whole =
        contracts
            ? bs.getFirst().tensor().size(0)
            : products.stream()
                .filter(Value::isTensor)
                .findFirst()
                .orElseThrow(() -> emitter.error("the type of a product must be annotated"))
                .tensor()
                .size(dim);
    var target = given.isTensor() ? Target.of(given) : Target.of(a.name() + "_gathered");
    var gathered =
        emitter.allGather(
            target,
            a,
            dim,
            ranks(whole, a.tensor().size(dim)),
            call.string("group_name"),
            Arg.None.NONE);
    for (int i = 0; i < products.size(); i++) {
      if (products.get(i).isTensor()) {
        multiply(Target.of(products.get(i)), gathered, bs.get(i));
      }
    }
  }

  private void multiplyAndScatter() {
    var result = op.result();
    int dim = call.dim("scatter_dim", result.tensor().rank());
    var product = multiply(Target.of(result.name() + "_product"), call.value("A"), call.value("B"));
    emitter.reduceScatter(
        Target.of(result),
        product,
        dim,
        ranks(product.tensor().size(dim), result.tensor().size(dim)),
        call.string("reduce_op"),
        call.string("group_name"),
        Arg.None.NONE);
  }

  private long ranks(long whole, long part) {
    if (part == 0 || whole % part != 0) {
      throw emitter.error("%d is not a multiple of %d".formatted(whole, part));
    }
    return whole / part;
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
