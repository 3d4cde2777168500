package dev.symplan.ir;

import com.google.common.collect.ImmutableList;

/** An argument of an op, or an output of a graph. */
public sealed interface Arg {

  /** A value of the graph. */
  record Ref(Value value) implements Arg {}

  record Int(long value) implements Arg {}

  record Float(double value) implements Arg {}

  record Bool(boolean value) implements Arg {}

  record Str(String value) implements Arg {}

  /** {@code torch.float32} */
  record Dtype(DType value) implements Arg {}

  /**
   * Another constant of the {@code torch} module, as {@code strided} or {@code contiguous_format}.
   */
  record Symbol(String name) implements Arg {}

  /** A device, as {@code cuda:0} or {@code cpu}. */
  record Device(String name) implements Arg {}

  /** A list or tuple. */
  record Seq(ImmutableList<Arg> items) implements Arg {}

  /** {@code None}: an optional argument that is not there. */
  enum None implements Arg {
    NONE
  }

  /** {@return the values in this argument, left to right} */
  default ImmutableList<Value> operands() {
    return switch (this) {
      case Ref(Value value) -> ImmutableList.of(value);
      case Seq(ImmutableList<Arg> items) -> operandsOf(items);
      case Int _, Float _, Bool _, Str _, Dtype _, Symbol _, Device _, None _ -> ImmutableList.of();
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
