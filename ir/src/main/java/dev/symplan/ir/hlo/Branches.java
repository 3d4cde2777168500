package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** The branches of {@code conditional}, and what becomes of their results. */
final class Branches {
  private final GraphEmitter emitter;
  private final ImmutableMap<String, HloComputation> computations;

  Branches(GraphEmitter emitter, ImmutableMap<String, HloComputation> computations) {
    this.emitter = emitter;
    this.computations = computations;
  }

  /** {@return the branches, the one that runs for {@code true} first} */
  ImmutableList<HloComputation> of(HloInstruction conditional) {
    var found = ImmutableList.<HloComputation>builder();
    for (var key : new String[] {"true_computation", "false_computation", "branch_computations"}) {
      for (var name : conditional.attributes().names(key)) {
        @Nullable HloComputation branch = computations.get(name);
        if (branch != null) {
          found.add(branch);
        }
      }
    }
    return found.build();
  }

  /**
   * {@return the number of the branch that runs, if the module says it} Any number that no branch
   * has stands for the last one.
   */
  Optional<Integer> chosen(Bound selector, int branches) {
    if (!(selector instanceof Bound.Splat(Arg.Literal number, Array shape))
        || shape.tensor().rank() > 0) {
      return Optional.empty();
    }
    return switch (number) {
      case Arg.Bool(boolean value) -> Optional.of(value ? 0 : 1);
      case Arg.Int(long value) ->
          Optional.of(value >= 0 && value < branches ? (int) value : branches - 1);
      default -> Optional.empty();
    };
  }

  /**
   * {@return of the results of all branches, those of the branch that a run takes}
   *
   * @param selector a boolean, or the number of a branch
   */
  Bound picked(HloInstruction conditional, Bound selector, List<Bound> results) {
    var chooser = emitter.value(selector, conditional.name() + ".choice");
    if (chooser.tensor().rank() > 0
        || chooser.tensor().dtype() == DType.BOOL && results.size() != 2) {
      throw new IllegalArgumentException("one number chooses among its branches");
    }
    var picked = results.getLast();
    for (int i = results.size() - 2; i >= 0; i--) {
      var takes =
          chooser.tensor().dtype() == DType.BOOL
              ? chooser
              : emitter.op(
                  conditional.name() + ".takes" + i,
                  "aten::eq.Scalar",
                  new Arg.Ref(chooser),
                  new Arg.Int(i));
      picked = either(conditional.name(), takes, results.get(i), picked);
    }
    return picked;
  }

  private Bound either(String name, Value takes, Bound first, Bound second) {
    if (first.equals(second)) {
      return first;
    }
    if (first instanceof Bound.Tuple(ImmutableList<Bound> own)
        && second instanceof Bound.Tuple(ImmutableList<Bound> other)
        && own.size() == other.size()) {
      var parts = new ArrayList<Bound>();
      for (int i = 0; i < own.size(); i++) {
        parts.add(either(name + "." + i, takes, own.get(i), other.get(i)));
      }
      return new Bound.Tuple(ImmutableList.copyOf(parts));
    }
    return new Bound.Tensor(
        emitter.op(
            name,
            "aten::where.self",
            new Arg.Ref(takes),
            new Arg.Ref(emitter.value(first, name + ".own")),
            new Arg.Ref(emitter.value(second, name + ".other"))));
  }
}
