package dev.symplan.codegen.composite;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.expr.Expr;
import dev.symplan.ir.Arg;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.stream.Stream;

/**
 * Steps of optimizers: Adam (Kingma, Ba 2015), AdamW (Loshchilov, Hutter 2019) and SGD, as PyTorch
 * fuses them. One step for each item of the lists. Numbers in tensors are broadcast, so that no
 * value decides what is computed.
 */
final class Optimizers {
  static final ImmutableMap<String, Composite> TABLE =
      Stream.of("_fused_adam", "_fused_adamw", "_fused_sgd")
          .flatMap(name -> Stream.of("aten::" + name, "aten::" + name + ".tensor_lr"))
          .collect(ImmutableMap.toImmutableMap(name -> name, _ -> Optimizers::expand));

  private Optimizers() {}

  private static ImmutableList<Step> expand(Expansion call) {
    var steps = ImmutableList.<Step>builder();
    for (int item = 0; item < call.call().values("self").size(); item++) {
      steps.addAll(step(call, item));
    }
    return steps.build();
  }

  /** The results are the first lists, with what the values are, one after another. */
  private static ImmutableList<Step> step(Expansion call, int item) {
    var sizes = call.call().values("self").get(item).tensor().sizes();
    var one = ImmutableLongArray.copyOf(Collections.nCopies(sizes.length(), 1L));
    var operands = new HashMap<String, Seen>();
    var exprs = new ArrayList<Expr>();
    var results = new ArrayList<Seen>();
    int next = item;
    var params = call.call().schema().params();
    for (int i = 0; i < params.size(); i++) {
      var param = params.get(i).name();
      if (call.call().arg(param) instanceof Arg.Seq(var items) && !items.isEmpty()) {
        var source = new Source.Argument(param, item);
        var type = call.call().values(param).get(item).tensor();
        if (param.equals("state_steps")) {
          operands.put(param, Seen.of(source, type, one));
          continue;
        }
        operands.put(param, Seen.of(source, type, sizes));
        if (call.needs(next)) {
          exprs.add(call.value(i));
          results.add(call.result(next, sizes));
        }
        next += items.size();
      } else if (call.isTensor(param)) {
        operands.put(param, call.argument(param, one));
      }
    }
    return exprs.isEmpty()
        ? ImmutableList.of()
        : ImmutableList.of(
            Expansion.step(exprs, sizes, ImmutableSet.of(), operands, call.constants(), results));
  }
}
