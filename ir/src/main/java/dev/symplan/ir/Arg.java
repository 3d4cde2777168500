package dev.symplan.ir;

import com.google.common.collect.ImmutableList;

/** An argument of an op, or an output of a graph. */
public sealed interface Arg {

  /** A value of the graph. */
  record Ref(Value value) implements Arg {}

  /** An argument without values of the graph. */
  sealed interface Literal extends Arg {}

  record Int(long value) implements Literal {}

  record Float(double value) implements Literal {}

  record Bool(boolean value) implements Literal {}

  record Str(String value) implements Literal {}

  /** {@code torch.float32} */
  record Dtype(DType value) implements Literal {}

  /**
   * Another constant of the {@code torch} module, as {@code strided} or {@code contiguous_format}.
   */
  record Symbol(String name) implements Literal {}

  /** A device, as {@code cuda:0} or {@code cpu}. */
  record Device(String name) implements Literal {}

  /** A list or tuple. */
  record Seq(ImmutableList<Arg> items) implements Arg {}

  /** {@code None}: an optional argument that is not there. */
  enum None implements Literal {
    NONE
  }

  /** {@return the values in this argument, left to right} */
  default ImmutableList<Value> operands() {
    return switch (this) {
      case Ref(Value value) -> ImmutableList.of(value);
      case Seq(ImmutableList<Arg> items) -> operandsOf(items);
      case Literal _ -> ImmutableList.of();
    };
  }

  /** {@return the values in several arguments, left to right} */
  static ImmutableList<Value> operandsOf(ImmutableList<Arg> args) {
    var values = ImmutableList.<Value>builderWithExpectedSize(args.size());
    for (var arg : args) {
      if (arg instanceof Ref(Value value)) {
        values.add(value);
      } else if (arg instanceof Seq(ImmutableList<Arg> items)) {
        values.addAll(operandsOf(items));
      }
    }
    return values.build();
  }
}
