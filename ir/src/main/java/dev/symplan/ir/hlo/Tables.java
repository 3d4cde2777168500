package dev.symplan.ir.hlo;

import com.google.common.base.CharMatcher;
import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.regex.Pattern;

/** Constant arrays of a few numbers: tables of offsets by device, mostly. */
final class Tables {
  /** Numbers of the largest table that ops make. */
  private static final int MOST = 1024;

  private static final Pattern COMMENT = Pattern.compile("/\\*[^*]*\\*/");
  private static final Splitter NUMBERS =
      Splitter.on(CharMatcher.anyOf("{}, \t\n")).omitEmptyStrings();

  private Tables() {}

  /** {@return the tensor that the text of a constant stands for; empty if it leaves out numbers} */
  static Optional<Bound> read(String text, Array shape) {
    long count = shape.tensor().numel();
    if (!shape.exact() || shape.tensor().rank() == 0 || count > MOST) {
      return Optional.empty();
    }
    var element = HloShape.number(shape);
    if (count == 0) {
      return Optional.of(new Bound.Splat(Literals.zero(element), shape));
    }
    var numbers = ImmutableList.<Arg.Literal>builder();
    long found = 0;
    for (var word : NUMBERS.split(COMMENT.matcher(text).replaceAll(""))) {
      var number = Literals.number(word, element);
      if (number.isEmpty()) {
        return Optional.empty();
      }
      numbers.add(number.get());
      found++;
    }
    return found == count ? Optional.of(of(numbers.build(), shape)) : Optional.empty();
  }

  private static Bound of(ImmutableList<Arg.Literal> numbers, Array shape) {
    return numbers.stream().distinct().count() == 1
        ? new Bound.Splat(numbers.getFirst(), shape)
        : new Bound.Table(numbers, shape);
  }

  /** {@return the part of a table along its only dimension; empty if its start is not known} */
  static Optional<Bound> part(List<Bound> operands, Array shape) {
    if (operands.size() != 2
        || !(operands.getFirst() instanceof Bound.Table(var numbers, Array whole))
        || whole.tensor().rank() != 1
        || shape.tensor().rank() != 1
        || !(operands.getLast() instanceof Bound.Splat(Arg.Int(long at), Array _))) {
      return Optional.empty();
    }
    int count = (int) Math.min(shape.tensor().numel(), numbers.size());
    int start = (int) Math.clamp(at, 0, numbers.size() - count);
    return Optional.of(of(numbers.subList(start, start + count), shape));
  }

  /** {@return the table as a tensor} */
  static Value value(GraphEmitter emitter, Bound.Table table, String hlo) {
    var shape = table.shape();
    var step = step(table.numbers());
    Value flat;
    if (step.isPresent() && table.numbers().getFirst() instanceof Arg.Int(long first)) {
      flat =
          emitter.op(
              hlo + ".table",
              "aten::arange.start_step",
              new Arg.Int(first),
              new Arg.Int(first + step.getAsLong() * table.numbers().size()),
              new Arg.Int(step.getAsLong()),
              new Arg.Dtype(shape.dtype()));
    } else {
      var runs = new ArrayList<Value>();
      int start = 0;
      for (int i = 1; i <= table.numbers().size(); i++) {
        var number = table.numbers().get(start);
        if (i == table.numbers().size() || !table.numbers().get(i).equals(number)) {
          runs.add(
              emitter.op(
                  hlo + ".run",
                  "aten::full",
                  Arg.Seq.of(i - start),
                  number,
                  new Arg.Dtype(shape.dtype())));
          start = i;
        }
      }
      flat = emitter.op(hlo + ".table", "aten::cat", GraphEmitter.refs(runs), new Arg.Int(0));
    }
    var sizes = ImmutableLongArray.copyOf(shape.tensor().sizes().toArray());
    return emitter.reshaped(flat, sizes, hlo);
  }

  /** {@return by how much each integer is above the one before, if that is always the same} */
  private static OptionalLong step(List<Arg.Literal> numbers) {
    var steps = new ArrayList<Long>();
    for (int i = 1; i < numbers.size(); i++) {
      if (!(numbers.get(i) instanceof Arg.Int(long next))
          || !(numbers.get(i - 1) instanceof Arg.Int(long last))
          || Math.abs(next) > Integer.MAX_VALUE
          || Math.abs(last) > Integer.MAX_VALUE) {
        return OptionalLong.empty();
      }
      steps.add(next - last);
    }
    return steps.stream().distinct().count() == 1
        ? OptionalLong.of(steps.getFirst())
        : OptionalLong.empty();
  }
}
