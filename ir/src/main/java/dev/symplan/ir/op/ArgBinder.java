package dev.symplan.ir.op;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.NoneType;
import dev.symplan.ir.ScalarType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Puts the arguments of a call in the order of the schema, checked against its types. */
public final class ArgBinder {
  private static final int MAX_SHOWN = 4;

  private ArgBinder() {}

  /**
   * {@return one argument for each parameter, defaults filled in}
   *
   * @throws OpTypeException when arguments are missing, too many, unknown or of another type
   */
  public static ImmutableList<Arg> bind(
      OpSchema schema, List<? extends Arg> positional, Map<String, ? extends Arg> keywords) {
    var params = schema.params();
    var bound = new @Nullable Arg[params.size()];
    for (int i = 0; i < positional.size(); i++) {
      if (i == params.size() || params.get(i).keywordOnly()) {
        throw new OpTypeException(
            "%s takes %s positional arguments, not %s"
                .formatted(schema.name(), i, positional.size()),
            "schema: " + schema);
      }
      bound[i] = coerce(schema, params.get(i), positional.get(i));
    }
    keywords.forEach(
        (name, arg) -> {
          if (!schema.hasParam(name)) {
            throw new OpTypeException(
                "%s has no parameter '%s'".formatted(schema.name(), name),
                "schema: " + schema,
                name);
          }
          int i = schema.indexOf(name);
          if (bound[i] != null) {
            throw new OpTypeException("'%s' is given twice".formatted(name), "", name);
          }
          bound[i] = coerce(schema, params.get(i), arg);
        });
    return withDefaults(schema, bound);
  }

  private static ImmutableList<Arg> withDefaults(OpSchema schema, @Nullable Arg[] bound) {
    var missing = new ArrayList<String>();
    var args = ImmutableList.<Arg>builderWithExpectedSize(bound.length);
    for (int i = 0; i < bound.length; i++) {
      var param = schema.params().get(i);
      @Nullable Arg arg = bound[i];
      if (arg != null) {
        args.add(arg);
      } else if (param.defaultValue().isPresent()) {
        args.add(param.defaultValue().get());
      } else {
        missing.add(param.name());
      }
    }
    if (!missing.isEmpty()) {
      throw new OpTypeException(
          "%s needs %s"
              .formatted(
                  schema.name(),
                  missing.stream().map(n -> "'" + n + "'").collect(Collectors.joining(", "))),
          "schema: " + schema);
    }
    return args.build();
  }

  private static Arg coerce(OpSchema schema, Param param, Arg arg) {
    @Nullable Arg fitted = fit(param.type(), arg);
    if (fitted == null) {
      throw new OpTypeException(
          "'%s' of %s takes %s, not %s"
              .formatted(param.name(), schema.name(), param.type(), describe(arg)),
          "schema: " + schema,
          param.name());
    }
    return fitted;
  }

  /** {@return the argument as the type has it, or null if it does not fit} */
  static @Nullable Arg fit(SchemaType type, Arg arg) {
    return switch (type) {
      case SchemaType.Base base -> fitBase(base, arg);
      case SchemaType.OptionalOf(SchemaType element) ->
          arg instanceof Arg.None ? arg : fit(element, arg);
      case SchemaType.ListOf list -> fitList(list, arg);
      case SchemaType.TupleOf _, SchemaType.GenericOf _, SchemaType.Named _ -> arg;
    };
  }

  private static @Nullable Arg fitList(SchemaType.ListOf list, Arg arg) {
    if (arg instanceof Arg.Seq(ImmutableList<Arg> items)) {
      var fitted = ImmutableList.<Arg>builderWithExpectedSize(items.size());
      for (Arg item : items) {
        @Nullable Arg one = fit(list.element(), item);
        if (one == null) {
          return null;
        }
        fitted.add(one);
      }
      return new Arg.Seq(fitted.build());
    }
    // PyTorch broadcasts one number to a list of declared length: int[2] takes 3 for [3, 3].
    if (list.size().isPresent() && !(arg instanceof Arg.None)) {
      @Nullable Arg one = fit(list.element(), arg);
      return one == null
          ? null
          : new Arg.Seq(ImmutableList.copyOf(Collections.nCopies(list.size().getAsInt(), one)));
    }
    return null;
  }

  private static @Nullable Arg fitBase(SchemaType.Base base, Arg arg) {
    boolean fits =
        switch (base) {
          // A number stands for a tensor too: aten::add.Tensor(x, 1). None is the undefined tensor,
          // which PyTorch lets pass here whatever the schema says.
          case TENSOR -> isTensor(arg) || isNumber(arg) || arg instanceof Arg.None;
          case INT, SYM_INT, DEVICE_INDEX ->
              arg instanceof Arg.Int || isScalar(arg, ScalarType.INT);
          case FLOAT, SYM_FLOAT -> isNumber(arg);
          case BOOL, SYM_BOOL -> arg instanceof Arg.Bool || isScalar(arg, ScalarType.BOOL);
          case COMPLEX, NUMBER -> isNumber(arg) || arg instanceof Arg.Bool;
          case STRING, DIMNAME -> arg instanceof Arg.Str;
          case SCALAR_TYPE -> arg instanceof Arg.Dtype;
          case LAYOUT, MEMORY_FORMAT, Q_SCHEME -> arg instanceof Arg.Symbol;
          case DEVICE -> arg instanceof Arg.Device || arg instanceof Arg.Str;
          case NONE -> arg instanceof Arg.None;
          // By its name, or as its state.
          case GENERATOR -> !isNumber(arg) && !(arg instanceof Arg.Seq);
          case STORAGE, STREAM, ANY, CONST_QUANTIZER -> true;
        };
    if (!fits) {
      return null;
    }
    if (base == SchemaType.Base.FLOAT && arg instanceof Arg.Int(long value)) {
      return new Arg.Float(value);
    }
    return base == SchemaType.Base.DEVICE && arg instanceof Arg.Str(String name)
        ? new Arg.Device(name)
        : arg;
  }

  private static boolean isTensor(Arg arg) {
    return arg instanceof Arg.Ref(Value value) && value.type() instanceof TensorType;
  }

  private static boolean isNumber(Arg arg) {
    return arg instanceof Arg.Int
        || arg instanceof Arg.Float
        || arg instanceof Arg.Bool
        || isScalar(arg, ScalarType.INT)
        || isScalar(arg, ScalarType.FLOAT);
  }

  private static boolean isScalar(Arg arg, ScalarType type) {
    return arg instanceof Arg.Ref(Value value) && value.type() == type;
  }

  private static String describe(Arg arg) {
    return switch (arg) {
      case Arg.Ref(Value value) ->
          value.type() == NoneType.NONE
              ? "'%s', which has no value".formatted(value.name())
              : "'%s' (%s)".formatted(value.name(), value.type());
      case Arg.Literal literal -> literal.text();
      case Arg.Seq(ImmutableList<Arg> items) when items.size() <= MAX_SHOWN ->
          items.stream().map(ArgBinder::describe).collect(Collectors.joining(", ", "[", "]"));
      case Arg.Seq(ImmutableList<Arg> items) -> "a list of %s".formatted(items.size());
    };
  }
}
