package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpDef;
import dev.symplan.planner.pass.analysis.GraphCopier;
import java.util.Map;

/**
 * Gives ops that read nothing but the type of a tensor the sizes instead: {@code rand_like} becomes
 * {@code rand}. The tensor need not live for them, or need not be computed at all.
 */
final class SizedCreation {
  private static final ImmutableMap<OpDef, OpDef> SIZED =
      defs(
          ImmutableMap.<String, String>builder()
              .put("zeros_like", "zeros")
              .put("ones_like", "ones")
              .put("full_like", "full")
              .put("rand_like", "rand")
              .put("rand_like.generator", "rand.generator")
              .put("randn_like", "randn")
              .put("randn_like.generator", "randn.generator")
              .put("randint_like", "randint")
              .put("randint_like.generator", "randint.generator")
              .put("randint_like.low_dtype", "randint.low")
              .put("randint_like.low_generator_dtype", "randint.low_generator")
              .buildOrThrow());

  private SizedCreation() {}

  private static ImmutableMap<OpDef, OpDef> defs(Map<String, String> names) {
    var defs = ImmutableMap.<OpDef, OpDef>builder();
    names.forEach(
        (like, sized) ->
            defs.put(
                BuiltinOps.registry().get("aten::" + like),
                BuiltinOps.registry().get("aten::" + sized)));
    return defs.buildOrThrow();
  }

  static boolean is(OpDef def) {
    return SIZED.containsKey(def);
  }

  /** {@return the graph with sizes, and without what nothing reads then} */
  static Graph run(Graph graph) {
    var copier = new GraphCopier(graph);
    for (var op : graph.ops()) {
      if (SIZED.get(op.def()) instanceof OpDef sized && op.result().tensor().isContiguous()) {
        copier.emit(op, sized, args(op, sized, copier));
      } else {
        copier.keep(op);
      }
    }
    return Normalize.removeDeadCode(copier.finish());
  }

  private static ImmutableList<Arg> args(Op op, OpDef sized, GraphCopier copier) {
    var type = op.result().tensor();
    var args = ImmutableList.<Arg>builder();
    for (var param : sized.schema().params()) {
      args.add(
          switch (param.name()) {
            case "size" -> Arg.Seq.of(type.sizes().stream());
            case "dtype" -> new Arg.Dtype(type.dtype());
            default -> copier.now(op.arg(param.name()));
          });
    }
    return args.build();
  }
}
