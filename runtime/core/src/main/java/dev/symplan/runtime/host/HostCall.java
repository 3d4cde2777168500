package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.op.OpSchema;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** The arguments and results of one call of an op, with tensors in memory. */
public final class HostCall {

  /** An argument. */
  public sealed interface Value {
    /** A tensor. */
    record Tensor(HostTensor tensor) implements Value {}

    /** A list that holds tensors. */
    record Many(ImmutableList<Value> items) implements Value {}

    /** Anything else. */
    record Constant(Arg arg) implements Value {}
  }

  /**
   * The ranks that a custom op communicates with. They meet before the op runs and after it, so
   * that a kernel needs barriers of its own only between its steps.
   */
  public interface Group {
    /** {@return the number of ranks} */
    int size();

    /** {@return this rank's position} */
    int self();

    /** {@return the tensor argument {@code param} of each rank, in group order, in its memory} */
    List<HostTensor> peers(String param);

    /** {@return a result that is registered as symmetric, of each rank, in group order} */
    List<HostTensor> peerResults(int result);

    /** Waits until every rank of the group is here. */
    void barrier();
  }

  private final OpSchema schema;
  private final ImmutableList<Value> args;
  private final ImmutableList<Optional<HostTensor>> results;
  private final Optional<Group> group;
  private final String name;

  /**
   * @param name of the first result; what ops that draw random numbers are seeded by
   * @param args one for each parameter of the schema
   * @param results one for each tensor that the op gives; empty if it does not exist
   */
  public HostCall(
      OpSchema schema,
      String name,
      ImmutableList<Value> args,
      ImmutableList<Optional<HostTensor>> results,
      Optional<Group> group) {
    this.schema = schema;
    this.name = name;
    this.args = args;
    this.results = results;
    this.group = group;
  }

  public OpSchema schema() {
    return schema;
  }

  /** {@return the name of the first result in the graph; empty if it has none} */
  public String name() {
    return name;
  }

  /** {@return a result's memory, to be filled} */
  public HostTensor result(int index) {
    return results
        .get(index)
        .orElseThrow(() -> new IllegalStateException(schema.name() + " has no result " + index));
  }

  /** {@return whether a result exists; nothing reads one that does not} */
  public boolean hasResult(int index) {
    return results.get(index).isPresent();
  }

  public int resultCount() {
    return results.size();
  }

  public HostTensor result() {
    return result(0);
  }

  /** {@return the ranks that a custom op communicates with} */
  public Group group() {
    return group.orElseThrow(
        () -> new IllegalStateException(schema.name() + " does not communicate"));
  }

  /** {@return the arguments, one for each parameter of the schema} */
  ImmutableList<Value> args() {
    return args;
  }

  Value value(String param) {
    return args.get(schema.indexOf(param));
  }

  boolean hasParam(String param) {
    return schema.hasParam(param);
  }

  /** {@return whether an optional argument is there} */
  public boolean has(String param) {
    return !(value(param) instanceof Value.Constant(Arg.None _));
  }

  public HostTensor tensor(String param) {
    if (value(param) instanceof Value.Tensor(HostTensor tensor)) {
      return tensor;
    }
    throw wrong(param, "a tensor");
  }

  /** {@return a tensor argument, if it is there} */
  public Optional<HostTensor> optionalTensor(String param) {
    return has(param) ? Optional.of(tensor(param)) : Optional.empty();
  }

  /** {@return the tensors of a list argument, of which some may not be there} */
  public ImmutableList<Optional<HostTensor>> optionalTensors(String param) {
    return switch (value(param)) {
      case Value.Many(ImmutableList<Value> items) ->
          items.stream()
              .map(
                  item ->
                      item instanceof Value.Tensor(HostTensor tensor)
                          ? Optional.of(tensor)
                          : Optional.<HostTensor>empty())
              .collect(ImmutableList.toImmutableList());
      case Value.Constant(Arg.Seq(ImmutableList<Arg> items)) ->
          items.stream()
              .map(_ -> Optional.<HostTensor>empty())
              .collect(ImmutableList.toImmutableList());
      case Value.Tensor _, Value.Constant _ -> throw wrong(param, "a list of tensors");
    };
  }

  /** {@return all arguments that are tensors, and all results} */
  Stream<HostTensor> tensors() {
    return Stream.concat(
        args.stream()
            .filter(Value.Tensor.class::isInstance)
            .map(value -> ((Value.Tensor) value).tensor()),
        results.stream().flatMap(Optional::stream));
  }

  /** {@return the tensors of a list argument} */
  public ImmutableList<HostTensor> tensors(String param) {
    if (value(param) instanceof Value.Many(ImmutableList<Value> items)) {
      var tensors = ImmutableList.<HostTensor>builder();
      for (var item : items) {
        if (item instanceof Value.Tensor(HostTensor tensor)) {
          tensors.add(tensor);
        }
      }
      return tensors.build();
    }
    throw wrong(param, "a list of tensors");
  }

  Arg constant(String param) {
    if (value(param) instanceof Value.Constant(Arg arg)) {
      return known(param, arg);
    }
    throw wrong(param, "a constant");
  }

  public double number(String param) {
    return constant(param).number().orElseThrow(() -> wrong(param, "a number")).doubleValue();
  }

  public long integer(String param) {
    return constant(param).integer().orElseThrow(() -> wrong(param, "an integer"));
  }

  public boolean bool(String param) {
    return integer(param) != 0;
  }

  public String string(String param) {
    if (constant(param) instanceof Arg.Str(String text)) {
      return text;
    }
    throw wrong(param, "a string");
  }

  public Optional<DType> dtype(String param) {
    return constant(param) instanceof Arg.Dtype(DType dtype)
        ? Optional.of(dtype)
        : Optional.empty();
  }

  /** {@return a list of integers; a single one counts as a list of one, None as none} */
  public ImmutableLongArray integers(String param) {
    var constant = constant(param);
    return constant instanceof Arg.None
        ? ImmutableLongArray.of()
        : constant.integers().orElseThrow(() -> wrong(param, "a list of integers"));
  }

  private IllegalArgumentException wrong(String param, String expected) {
    return new IllegalArgumentException(
        "%s: '%s' is not %s".formatted(schema.name(), param, expected));
  }

  /** Refuses a call with a number that only the caller of the graph knows. */
  void checkKnown() {
    for (int i = 0; i < args.size(); i++) {
      if (args.get(i) instanceof Value.Constant(Arg arg)) {
        known(schema.params().get(i).name(), arg);
      }
    }
  }

  private static Arg known(String param, Arg arg) {
    var first =
        arg instanceof Arg.Seq(ImmutableList<Arg> items)
            ? items.stream().filter(Arg.Ref.class::isInstance).findFirst().orElse(arg)
            : arg;
    if (first instanceof Arg.Ref(var value)) {
      throw new UnsupportedOperationException(
          "'%s' is '%s', but the host backend takes only numbers that are written in the graph"
              .formatted(param, value.name()));
    }
    return arg;
  }
}
