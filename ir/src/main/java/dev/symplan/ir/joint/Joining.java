package dev.symplan.ir.joint;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Notes;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpDef;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Puts tied graphs of some ranks one after the other, in one graph. */
final class Joining {
  private static final OpDef AS_STRIDED = BuiltinOps.registry().get("aten::as_strided");
  private static final OpDef CLONE = BuiltinOps.registry().get("aten::clone");

  private final TiedGraphs tied;
  private final ImmutableList<Graph> graphs;

  /** By graph and id, the value of the joint graph. */
  private final List<Value[]> now = new ArrayList<>();

  private final ImmutableList.Builder<Op> ops = ImmutableList.builder();
  private final Set<String> names = new HashSet<>();
  private int nextId;

  Joining(TiedGraphs tied) {
    this.tied = tied;
    this.graphs = tied.graphs();
    graphs.forEach(graph -> now.add(new Value[graph.valueCount()]));
  }

  Graph join(ImmutableIntArray ranks) {
    var inputs = ImmutableList.<Value>builder();
    var inputsBefore = new int[graphs.size()];
    for (int g = 0; g < graphs.size(); g++) {
      inputsBefore[g] = nextId;
      for (var input : graphs.get(g).inputs()) {
        if (!tied.isTied(g, input)) {
          now.get(g)[input.id()] = define(input, input.name());
          inputs.add(now.get(g)[input.id()]);
        }
      }
    }
    var outputs = new ArrayList<Arg>();
    var called = new HashSet<String>();
    for (int g = 0; g < graphs.size(); g++) {
      var own = now.get(g);
      var graph = graphs.get(g);
      var name = unique(graph.name(), called);
      if (g > 0) {
        ops.add(ProgramGraph.border(name, inputsBefore[g], outputs.size(), graph.span()));
      }
      var copies = new LinkedHashMap<Value, Tie>();
      for (var tie : tied.into(g)) {
        if (tied.isCopy(tie)) {
          copies.put(tied.taken(tie), tie);
        } else {
          handOn(tie);
        }
      }
      for (var op : graphs.get(g).ops()) {
        if (ProgramGraph.endsSetup(op)) {
          // The setup of one graph would run before those in front of it: it is part of each run.
          continue;
        }
        copy(op.operands(), copies);
        op.results().forEach(result -> own[result.id()] = define(result, result.name()));
        ops.add(op.map(value -> own[value.id()]));
      }
      copy(graphs.get(g).outputValues(), copies);
      outputsForCaller(g).forEach(output -> outputs.add(output.map(value -> own[value.id()])));
    }
    var first = graphs.getFirst();
    return new Graph(
        first.name(),
        ranks,
        inputs.build(),
        ops.build(),
        ImmutableList.copyOf(outputs),
        nextId,
        first.span(),
        first.notes(),
        graphs.getLast().endNotes());
  }

  private Value define(Value value, String wanted) {
    var name = unique(wanted, names);
    return new Value(nextId++, name, value.type(), value.span(), value.annotated());
  }

  private static String unique(String wanted, Set<String> taken) {
    var name = wanted;
    for (int i = 1; !name.isEmpty() && !taken.add(name); i++) {
      name = wanted + "_" + i;
    }
    return name;
  }

  private void handOn(Tie tie) {
    var input = tied.taken(tie);
    var value = now.get(tie.from())[tied.given(tie).id()];
    now.get(tie.to())[input.id()] =
        value.type() instanceof TensorType type && !type.strides().equals(input.tensor().strides())
            ? restrided(value, input)
            : value;
  }

  /** Makes copies with other strides directly before they are read, so that they live shortly. */
  private void copy(List<Value> read, Map<Value, Tie> copies) {
    for (var input : read) {
      @Nullable Tie tie = copies.remove(input);
      if (tie != null) {
        var value = now.get(tie.from())[tied.given(tie).id()];
        var copied = define(input, input.name());
        ops.add(
            new Op(
                CLONE,
                ImmutableList.of(new Arg.Ref(value), Arg.None.NONE),
                ImmutableList.of(copied),
                input.span(),
                Notes.NONE));
        now.get(tie.to())[input.id()] = copied;
      }
    }
  }

  /** A dimension of one element may have any stride, but ops see the one that they were given. */
  private Value restrided(Value value, Value input) {
    var seen = define(input, input.name());
    ops.add(
        new Op(
            AS_STRIDED,
            ImmutableList.of(
                new Arg.Ref(value),
                Arg.Seq.of(input.tensor().sizes().stream()),
                Arg.Seq.of(input.tensor().strides().stream()),
                Arg.None.NONE),
            ImmutableList.of(seen),
            input.span(),
            Notes.NONE));
    return seen;
  }

  private List<Arg> outputsForCaller(int g) {
    var outputs = new ArrayList<>(graphs.get(g).outputs());
    tied.outOf(g).stream()
        .filter(tie -> !tie.kept())
        .map(tied::given)
        .distinct()
        .map(Arg.Ref::new)
        .map(outputs::lastIndexOf)
        .filter(last -> last >= 0)
        .sorted(Comparator.reverseOrder())
        .forEach(last -> outputs.remove(last.intValue()));
    return outputs;
  }
}
