package dev.symplan.runtime.tensor;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.runtime.tensor.SeededInputs.Need;
import java.util.HashSet;
import java.util.OptionalLong;
import java.util.Set;
import java.util.stream.LongStream;

/**
 * The values that ops need in an input that they index with, so that suitable inputs can be made
 * up.
 */
public final class InputNeeds {
  private static final ImmutableSet<String> COPIES = ImmutableSet.of("clone", "lift_fresh_copy");

  private InputNeeds() {}

  /** {@return the needs of the ops that read an input of a graph, or copies or views of it} */
  public static Need of(Graph graph, Value input) {
    if (!input.isTensor() || input.tensor().dtype().kind() == DType.Kind.FLOAT) {
      return Need.NOTHING;
    }
    long below = Long.MAX_VALUE;
    var trues = OptionalLong.empty();
    Set<Value> same = new HashSet<>();
    same.add(input);
    for (var op : graph.ops()) {
      for (var value : Set.copyOf(op.operands())) {
        if (same.contains(value)) {
          below = LongStream.concat(LongStream.of(below), indexed(op, value)).min().orElse(below);
          trues = trues.isPresent() ? trues : trues(op, value);
        }
      }
      if (passesOn(op) && op.operands().stream().anyMatch(same::contains)) {
        same.addAll(op.results());
      }
    }
    return new Need(below, input.tensor().dtype() == DType.BOOL ? trues : OptionalLong.empty());
  }

  /** Whether an op's only result has elements of its only operand, of the same type. */
  private static boolean passesOn(Op op) {
    return op.results().size() == 1
        && op.operands().size() == 1
        && op.result().isTensor()
        && (op.infer().getFirst().view().isPresent() || COPIES.contains(op.def().name().name()));
  }

  private static Arg arg(Op op, String param) {
    return op.def().schema().hasParam(param) ? op.arg(param) : Arg.None.NONE;
  }

  private static boolean is(Arg arg, Value value) {
    return arg instanceof Arg.Ref(Value other) && other.equals(value);
  }

  private static ImmutableList<Arg> indices(Op op) {
    return arg(op, "indices") instanceof Arg.Seq(var items) ? items : ImmutableList.of();
  }

  /** The sizes of the dimensions that an op indexes with an input. */
  private static LongStream indexed(Op op, Value input) {
    if (is(arg(op, "indices"), input) && arg(op, "weight") instanceof Arg.Ref(Value weight)) {
      return LongStream.of(weight.tensor().size(0));
    }
    if (!(arg(op, "self") instanceof Arg.Ref(Value self)) || !self.isTensor()) {
      return LongStream.empty();
    }
    if (is(arg(op, "index"), input) && arg(op, "dim") instanceof Arg.Int(long dim)) {
      int rank = self.tensor().rank();
      long at = dim < 0 ? dim + rank : dim;
      return at < rank ? LongStream.of(self.tensor().size((int) at)) : LongStream.empty();
    }
    var indices = indices(op);
    return LongStream.range(0, Math.min(indices.size(), self.tensor().rank()))
        .filter(i -> is(indices.get((int) i), input))
        .map(i -> self.tensor().size((int) i));
  }

  /** How many places an op takes a mask to name, which its values or its result have. */
  private static OptionalLong trues(Op op, Value mask) {
    var indices = indices(op);
    if (indices.size() != 1
        || !is(indices.getFirst(), mask)
        || !mask.isTensor()
        || mask.tensor().dtype() != DType.BOOL
        || !(arg(op, "self") instanceof Arg.Ref(Value self))) {
      return OptionalLong.empty();
    }
    var counted =
        arg(op, "values") instanceof Arg.Ref(Value values)
            ? values
            : op.results().isEmpty() ? self : op.results().getFirst();
    int rank = self.tensor().rank() - mask.tensor().rank() + 1;
    boolean given = counted.isTensor() && !counted.equals(self) && counted.tensor().rank() == rank;
    long count = given ? counted.tensor().size(0) : 1;
    // One value is for all places.
    return given && count != 1 && count <= mask.tensor().numel()
        ? OptionalLong.of(count)
        : OptionalLong.empty();
  }
}
