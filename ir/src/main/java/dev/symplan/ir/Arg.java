package dev.symplan.ir;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import java.util.Optional;
import java.util.function.UnaryOperator;
import java.util.stream.LongStream;

/** An argument of an op, or an output of a graph. */
public sealed interface Arg {

  /** A value of the graph. */
  record Ref(Value value) implements Arg {}

  /** An argument without values of the graph. */
  sealed interface Literal extends Arg {

    /** {@return the text in a graph, which is Python's} */
    default String text() {
      return switch (this) {
        case Int(long value) -> Long.toString(value);
        case Float(double value) -> PythonLiterals.repr(value);
        case Bool(boolean value) -> value ? "True" : "False";
        case Str(String value) -> PythonLiterals.quote(value);
        case Dtype(DType value) -> "torch." + value.torchName();
        case Symbol(String name) -> "torch." + name;
        case Device(String name) -> "device(" + PythonLiterals.quote(name) + ")";
        case None _ -> "None";
      };
    }
  }

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
  record Seq(ImmutableList<Arg> items) implements Arg {
    /** {@return a list of integers} */
    public static Seq of(long... values) {
      var items = ImmutableList.<Arg>builderWithExpectedSize(values.length);
      for (long value : values) {
        items.add(new Int(value));
      }
      return new Seq(items.build());
    }

    /** {@return a list of integers} */
    public static Seq of(LongStream values) {
      return new Seq(values.<Arg>mapToObj(Int::new).collect(ImmutableList.toImmutableList()));
    }
  }

  /** {@code None}: an optional argument that is not there. */
  enum None implements Literal {
    NONE
  }

  /** {@return the number that this is, a {@code Long} or a {@code Double}; a bool is 1 or 0} */
  default Optional<Number> number() {
    return switch (this) {
      case Int(long value) -> Optional.of(value);
      case Float(double value) -> Optional.of(value);
      case Bool(boolean value) -> Optional.of(value ? 1L : 0L);
      case Str _, Dtype _, Symbol _, Device _, None _, Ref _, Seq _ -> Optional.empty();
    };
  }

  /** {@return the integer that this is; a bool is 1 or 0} */
  default Optional<Long> integer() {
    return number().filter(Long.class::isInstance).map(Long.class::cast);
  }

  /** {@return a list of integers; one alone counts as a list} */
  default Optional<ImmutableLongArray> integers() {
    return switch (this) {
      case Int(long value) -> Optional.of(ImmutableLongArray.of(value));
      case Seq(var items) -> integers(items);
      case Ref _, Literal _ -> Optional.empty();
    };
  }

  private static Optional<ImmutableLongArray> integers(ImmutableList<Arg> items) {
    var values = ImmutableLongArray.builder(items.size());
    for (var item : items) {
      if (!(item instanceof Int(long value))) {
        return Optional.empty();
      }
      values.add(value);
    }
    return Optional.of(values.build());
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

  /** {@return the argument with other values; the same where none of its values is another} */
  default Arg map(UnaryOperator<Value> change) {
    return switch (this) {
      case Ref(Value value) -> {
        var other = change.apply(value);
        yield other == value ? this : new Ref(other);
      }
      case Seq(ImmutableList<Arg> items) -> {
        var others = ImmutableLists.map(items, item -> item.map(change));
        yield others == items ? this : new Seq(others);
      }
      case Literal _ -> this;
    };
  }
}
