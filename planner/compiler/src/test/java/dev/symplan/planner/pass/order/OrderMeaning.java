package dev.symplan.planner.pass.order;

import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpTrait;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The effect of a graph, in the order of its ops, where each op is a hash of its name and of the
 * memory that it finds.
 *
 * @param found by the name of each op's first result, what it makes of what it finds
 * @param outputs the contents of the outputs and the inputs in the end
 * @param collectives in order
 * @param effects the ops that are more than their results, in order
 */
record OrderMeaning(
    Map<String, Integer> found,
    List<Integer> outputs,
    List<String> collectives,
    List<String> effects) {

  static OrderMeaning of(Graph graph) {
    var found = new HashMap<String, Integer>();
    var outputs = new ArrayList<Integer>();
    var collectives = new ArrayList<String>();
    var effects = new ArrayList<String>();
    // By value, the number of its memory; by number, what is there.
    var memoryOf = new HashMap<Value, Integer>();
    var memory = new ArrayList<Integer>();
    for (var input : graph.inputs()) {
      memoryOf.put(input, memory.size());
      memory.add(input.name().hashCode());
    }
    for (var op : graph.ops()) {
      var name = op.results().isEmpty() ? op.span().toString() : op.results().getFirst().name();
      int hash = 31 * name.hashCode() + op.def().name().hashCode();
      var read = op.operands();
      boolean isView = share(op, memoryOf, memory);
      if (isView || op.def().has(OpTrait.WAIT)) {
        continue;
      }
      for (var value : read) {
        hash = 31 * hash + memory.get(memoryOf.get(value));
      }
      found.put(name, hash);
      for (var value : op.results()) {
        memory.set(memoryOf.get(value), hash);
      }
      if (op.def().schema().mutates()) {
        for (var value : read) {
          memory.set(memoryOf.get(value), hash);
        }
      }
      if (op.def().collective().isPresent()) {
        collectives.add(name);
      }
      if (op.def().has(OpTrait.SIDE_EFFECT)) {
        effects.add(name);
      }
    }
    graph.outputValues().forEach(v -> outputs.add(memory.get(memoryOf.get(v))));
    graph.inputs().forEach(v -> outputs.add(memory.get(memoryOf.get(v))));
    return new OrderMeaning(found, outputs, collectives, effects);
  }

  /** Gives results their memory, and says whether that is all that the op does. */
  private static boolean share(Op op, Map<Value, Integer> memoryOf, List<Integer> memory) {
    boolean isView = !op.def().schema().mutates() && !op.def().has(OpTrait.SIDE_EFFECT);
    var inferred = op.infer();
    for (int i = 0; i < op.results().size(); i++) {
      var view = inferred.get(i).view();
      if (view.isPresent()) {
        memoryOf.put(op.results().get(i), memoryOf.get(view.get().of()));
      } else {
        memoryOf.put(op.results().get(i), memory.size());
        memory.add(0);
        isView = false;
      }
    }
    return isView;
  }
}
