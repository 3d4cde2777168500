package dev.symplan.ir.op;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import java.util.Optional;

/**
 * The arguments of one op, read by parameter name.
 *
 * @param args one for each parameter of the schema, defaults filled in
 */
public record OpCall(OpDef def, ImmutableList<Arg> args) {

  public OpSchema schema() {
    return def.schema();
  }

  /** {@return the arguments by role, if the op is a collective} */
  public Optional<CollectiveCall> collective() {
    return def.collective().map(spec -> new CollectiveCall(spec, this));
  }

  public Arg arg(String param) {
    return args.get(schema().indexOf(param));
  }

  /** {@return whether an argument other than {@code None} is given} */
  public boolean has(String param) {
    return !(arg(param) instanceof Arg.None);
  }

  public Value value(String param) {
    if (arg(param) instanceof Arg.Ref(Value value) && value.isTensor()) {
      return value;
    }
    throw wrong(param, "a tensor");
  }

  public TensorType tensor(String param) {
    return value(param).tensor();
  }

  /** {@return the tensors of a {@code Tensor[]} argument} */
  public ImmutableList<Value> values(String param) {
    if (arg(param) instanceof Arg.Seq(ImmutableList<Arg> items)) {
      var values = ImmutableList.<Value>builderWithExpectedSize(items.size());
      for (Arg item : items) {
        if (!(item instanceof Arg.Ref(Value value) && value.isTensor())) {
          throw wrong(param, "a list of tensors");
        }
        values.add(value);
      }
      return values.build();
    }
    throw wrong(param, "a list of tensors");
  }

  public long integer(String param) {
    return arg(param).integer().orElseThrow(() -> wrong(param, "an integer"));
  }

  public boolean bool(String param) {
    return arg(param).integer().orElseThrow(() -> wrong(param, "True or False")) != 0;
  }

  /** {@return a {@code Scalar} or {@code float} argument as a double} */
  public double number(String param) {
    return arg(param).number().orElseThrow(() -> wrong(param, "a number")).doubleValue();
  }

  public String string(String param) {
    if (arg(param) instanceof Arg.Str(String value)) {
      return value;
    }
    throw wrong(param, "a string");
  }

  public Optional<DType> dtype(String param) {
    var arg = arg(param);
    if (arg instanceof Arg.Dtype(DType value)) {
      return Optional.of(value);
    } else if (arg instanceof Arg.None) {
      return Optional.empty();
    }
    throw wrong(param, "an element type such as torch.float32");
  }

  /** {@return an {@code int[]} argument; a single integer counts as a list of one} */
  public ImmutableLongArray integers(String param) {
    return arg(param).integers().orElseThrow(() -> wrong(param, "a list of integers"));
  }

  /**
   * {@return a dimension argument, counted from the front}
   *
   * @param rank the number of dimensions; a scalar tensor counts as having one
   */
  public int dim(String param, int rank) {
    return wrapDim(integer(param), rank, param);
  }

  /** {@return {@code dim} counted from the front, if it names one of {@code rank} dimensions} */
  public static int wrapDim(long dim, int rank, String param) {
    int count = Math.max(1, rank);
    if (dim < -count || dim >= count) {
      throw new OpTypeException(
          "%s is %s, but must lie in [%s, %s]".formatted(param, dim, -count, count - 1));
    }
    return (int) (dim < 0 ? dim + count : dim);
  }

  private OpTypeException wrong(String param, String expected) {
    return new OpTypeException("%s must be %s".formatted(param, expected));
  }
}
