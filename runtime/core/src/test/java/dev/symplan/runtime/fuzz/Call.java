package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.Param;
import dev.symplan.ir.op.SchemaType;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * The arguments of one op: those that {@link Recipes} knows how to choose, and for the others
 * something of the type that the schema asks for.
 */
final class Call {
  final Sketch sketch;
  final OpDef def;
  private final Map<String, Arg> args = new HashMap<>();
  private @Nullable Value main;

  Call(Sketch sketch, OpDef def) {
    this.sketch = sketch;
    this.def = def;
  }

  // For recipes.

  boolean has(String param) {
    return def.schema().hasParam(param);
  }

  /** {@return the argument of a parameter; None if it has none} */
  Arg arg(String param) {
    return args.getOrDefault(param, Arg.None.NONE);
  }

  /** Sets a parameter, if the op has it. */
  Call set(String param, Arg arg) {
    if (has(param)) {
      args.put(param, arg);
      if (main == null && arg instanceof Arg.Ref(Value value) && value.isTensor()) {
        main = value;
      }
    }
    return this;
  }

  Value set(String param, Value value) {
    set(param, new Arg.Ref(value));
    return value;
  }

  void set(String param, long number) {
    set(param, new Arg.Int(number));
  }

  void setAll(String param, long... numbers) {
    set(param, list(numbers));
  }

  static Arg.Seq list(long... numbers) {
    return Arg.Seq.of(numbers);
  }

  static Arg.Seq list(ImmutableLongArray numbers) {
    return list(numbers.toArray());
  }

  static Arg.Seq refs(List<Value> values) {
    return new Arg.Seq(
        values.stream().<Arg>map(Arg.Ref::new).collect(ImmutableList.toImmutableList()));
  }

  boolean isOptional(String param) {
    return def.schema().params().get(def.schema().indexOf(param)).type()
        instanceof SchemaType.OptionalOf;
  }

  /** Whether the op writes into a parameter. */
  boolean writes(String param) {
    return has(param) && def.schema().params().get(def.schema().indexOf(param)).alias().write();
  }

  /** The op's first tensor: one that is there, which the op may write if it does. */
  Value main(String param) {
    return main(param, _ -> true, sketch.dtype(), sketch.shape());
  }

  Value main(String param, Predicate<? super TensorType> wanted, DType otherwise, long... sizes) {
    Optional<Value> there =
        !sketch.chance(85)
            ? Optional.empty()
            : writes(param) ? sketch.writable(wanted) : sketch.find(wanted);
    var value = there.orElseGet(() -> fresh(param, otherwise, sizes));
    return set(param, value);
  }

  private Value fresh(String param, DType dtype, long... sizes) {
    // An op rather does not write into an input, so that the write need not reach the caller.
    return writes(param) && sketch.chance(50)
        ? sketch.must(
            "aten::clone", new Arg.Ref(sketch.input(dtype, sizes, Fill.ANY)), Arg.None.NONE)
        : sketch.input(dtype, sizes, Fill.ANY);
  }

  Value mainOfRank(String param, int from, int to) {
    return main(
        param,
        t -> t.rank() >= from && t.rank() <= to,
        sketch.dtype(),
        sketch.shape(from + sketch.random.nextInt(to - from + 1)));
  }

  Value floats(String param, int from, int to) {
    return main(
        param,
        t -> t.dtype().isFloat() && t.rank() >= from && t.rank() <= to,
        sketch.floatType(),
        sketch.shape(from + sketch.random.nextInt(to - from + 1)));
  }

  Value index(long bound, long... sizes) {
    return sketch.input(sketch.chance(80) ? DType.I64 : DType.I32, sizes, Fill.index(bound));
  }

  int anyDim(TensorType type) {
    return type.rank() == 0 ? 0 : sketch.random.nextInt(type.rank());
  }

  /** A dimension, now and then counted from the end. */
  int setDim(String param, TensorType type) {
    int dim = anyDim(type);
    set(param, sketch.chance(30) ? dim - Math.max(1, type.rank()) : dim);
    return dim;
  }

  // The rest.

  /** {@return all arguments} */
  ImmutableList<Arg> finish() {
    var bound = ImmutableList.<Arg>builder();
    for (var param : def.schema().params()) {
      @Nullable Arg known = args.get(param.name());
      if (known == null) {
        known = choose(param);
        set(param.name(), known);
      }
      bound.add(known);
    }
    return bound.build();
  }

  private Arg choose(Param param) {
    if (param.alias().write() && param.type() == SchemaType.Base.TENSOR) {
      return new Arg.Ref(main(param.name()));
    }
    boolean usual = param.defaultValue().isPresent() && sketch.chance(45);
    return usual ? param.defaultValue().get() : ofType(param, param.type());
  }

  private Arg ofType(Param param, SchemaType type) {
    return switch (type) {
      case SchemaType.Base base -> ofType(param, base);
      case SchemaType.OptionalOf(var element) ->
          sketch.chance(40) ? Arg.None.NONE : ofType(param, element);
      case SchemaType.ListOf list -> listOf(param, list);
      case SchemaType.TupleOf _, SchemaType.GenericOf _, SchemaType.Named _ -> Arg.None.NONE;
    };
  }

  private Arg listOf(Param param, SchemaType.ListOf list) {
    if (list.element() == SchemaType.Base.TENSOR) {
      var first = sketch.any();
      var all = new ArrayList<>(List.of(first));
      for (int i = sketch.random.nextInt(3); i > 0; i--) {
        all.add(sketch.like(first));
      }
      return refs(all);
    }
    if (list.element() == SchemaType.Base.BOOL) {
      var items = ImmutableList.<Arg>builder();
      for (int i = 0; i < list.size().orElse(2); i++) {
        items.add(new Arg.Bool(sketch.chance(70)));
      }
      return new Arg.Seq(items.build());
    }
    return param.name().startsWith("dim") ? list(dims()) : list(sketch.shape());
  }

  private long[] dims() {
    int rank = main == null ? 0 : main.tensor().rank();
    int count = sketch.random.nextInt(rank + 1);
    return Arrays.stream(sketch.order(rank)).limit(count).mapToLong(i -> i).toArray();
  }

  private Arg ofType(Param param, SchemaType.Base type) {
    return switch (type) {
      case TENSOR -> new Arg.Ref(tensor(param.name()));
      case INT, SYM_INT, DEVICE_INDEX -> new Arg.Int(integer(param.name()));
      case FLOAT, SYM_FLOAT -> new Arg.Float(floating(param.name()));
      case BOOL, SYM_BOOL -> new Arg.Bool(sketch.chance(50));
      case NUMBER, COMPLEX -> number();
      case STRING -> new Arg.Str(text(param.name()));
      case SCALAR_TYPE -> new Arg.Dtype(sketch.dtype());
      case LAYOUT -> Arg.None.NONE;
      case MEMORY_FORMAT -> new Arg.Symbol(sketch.pick("contiguous_format", "preserve_format"));
      case DEVICE -> new Arg.Device("cpu");
      case DIMNAME, Q_SCHEME, GENERATOR, STORAGE, STREAM, ANY, NONE, CONST_QUANTIZER ->
          Arg.None.NONE;
    };
  }

  /** Another operand: of a shape that the first one's broadcasts with, mostly of its type. */
  private Value tensor(String name) {
    if (main == null) {
      return main(name);
    }
    var type = main.tensor();
    if (sketch.chance(25)) {
      return sketch.sharing(main);
    }
    var dtype =
        name.equals("mask") || name.equals("condition")
            ? DType.BOOL
            : sketch.chance(75) ? type.dtype() : sketch.dtype();
    var sizes = type.sizes().toArray();
    boolean smaller = sketch.chance(20);
    for (int i = 0; smaller && i < sizes.length; i++) {
      sizes[i] = sketch.chance(40) ? 1 : sizes[i];
    }
    if (smaller && sketch.chance(30) && sizes.length > 0) {
      sizes = Arrays.copyOfRange(sizes, 1, sizes.length);
    }
    return sketch.tensor(dtype, sizes);
  }

  private long integer(String name) {
    int rank = main == null ? 2 : main.tensor().rank();
    return name.startsWith("dim") || name.startsWith("axis")
        ? sketch.random.nextInt(-Math.max(1, rank), Math.max(1, rank))
        : sketch.random.nextInt(-1, 5);
  }

  private double floating(String name) {
    return switch (name) {
      case "eps" -> sketch.pick(1e-5, 1e-3, 0.0);
      case "p", "dropout_p" -> 0.0;
      default -> sketch.pick(0.5, 1.0, 2.0, -1.5, 0.0, 0.125);
    };
  }

  private Arg number() {
    boolean whole =
        main != null && !main.tensor().dtype().isFloat() ? sketch.chance(80) : sketch.chance(40);
    return whole
        ? new Arg.Int(sketch.random.nextInt(1, 6) * (sketch.chance(20) ? -1 : 1))
        : new Arg.Float(sketch.pick(0.5, 1.0, 2.0, -1.5, 3.25, 0.0, 1e-3, Double.NaN));
  }

  private String text(String name) {
    return switch (name.toLowerCase(Locale.ROOT)) {
      case "reduce" ->
          def.name().name().startsWith("scatter_reduce")
              ? sketch.pick("sum", "prod", "mean", "amax", "amin")
              : sketch.pick("add", "multiply");
      case "rounding_mode" -> sketch.pick("trunc", "floor");
      case "approximate" -> sketch.pick("none", "tanh");
      case "mode" -> "constant";
      case "side" -> sketch.pick("left", "right");
      default -> "a message";
    };
  }
}
