package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.NoneType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.fx.SizeExpr.Operator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** The meaning of the names in an FX graph, and the arguments that their expressions make. */
final class FxScope {

  /**
   * The results of one statement.
   *
   * @param paths where each is taken out by index: empty for the statement's only result
   * @param list whether the statement's own name stands for all of them, as a list
   */
  record Results(
      ImmutableList<Value> values, ImmutableList<ImmutableList<Integer>> paths, boolean list) {

    /** Results of which nothing is known; an error only where they are used. */
    static final Results NOTHING = new Results(ImmutableList.of(), ImmutableList.of(), false);

    static Results one(Value value) {
      return new Results(ImmutableList.of(value), ImmutableList.of(ImmutableList.of()), false);
    }
  }

  /** An expression that cannot be an argument; the message says why. */
  private static class NoArgument extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final DiagnosticCode code;
    private final String hint;

    NoArgument(DiagnosticCode code, String message, String hint) {
      super(message, null, false, false);
      this.code = code;
      this.hint = hint;
    }
  }

  /** A use of a name whose statement is wrong, of which nothing need be said. */
  private static final class Follows extends NoArgument {
    private static final long serialVersionUID = 1L;

    Follows(String name) {
      super(DiagnosticCode.UNKNOWN_VALUE, name, "");
    }
  }

  private final DiagnosticSink sink;
  private final Map<String, Value> inputs = new HashMap<>();
  private final Map<String, Results> results = new HashMap<>();
  private final Map<String, Arg> constants = new HashMap<>();
  private final Map<String, String> notConstant = new HashMap<>();
  private final Set<String> broken = new HashSet<>();

  FxScope(DiagnosticSink sink) {
    this.sink = sink;
  }

  void defineInput(String name, Value value) {
    inputs.put(name, value);
  }

  void define(String name, Results result) {
    results.put(name, result);
  }

  /** Gives a name the value of a size or condition, wherever it is used. */
  void defineConstant(String name, Arg value) {
    constants.put(name, value);
  }

  /** Says why a name has no value; an error only where it is used. */
  void defineUnknown(String name, String reason) {
    notConstant.put(name, reason);
  }

  /** Marks a name whose definition is wrong, so that its uses are not reported again. */
  void defineBroken(String name) {
    broken.add(name);
  }

  /** {@return the results of the statement that defines a name, or null} */
  @Nullable Results results(String name) {
    return results.get(name);
  }

  boolean isBroken(String name) {
    return broken.contains(name);
  }

  /** {@return whether the name stands for a tensor, or for an op's results} */
  boolean isValue(String name) {
    return results.containsKey(name) || (inputs.containsKey(name) && !constants.containsKey(name));
  }

  /** {@return the argument of an expression; null after an error, which goes to the sink} */
  @Nullable Arg arg(FxExpr expr, Span span) {
    try {
      return convert(expr);
    } catch (Follows e) {
      return null;
    } catch (NoArgument e) {
      sink.report(Diagnostic.error(e.code, span, String.valueOf(e.getMessage()), e.hint));
      return null;
    }
  }

  /** {@return the value of an expression of sizes, or null if it is none} */
  @Nullable Arg constant(FxExpr expr) {
    try {
      return switch (expr) {
        case FxExpr.Int _, FxExpr.Bool _, FxExpr.Binary _, FxExpr.Negative _ -> convert(expr);
        case FxExpr.Name(String name) -> constants.get(name);
        case FxExpr.Float _,
            FxExpr.Str _,
            FxExpr.Seq _,
            FxExpr.Index _,
            FxExpr.Call _,
            FxExpr.Dict _,
            FxExpr.None _ ->
            null;
      };
    } catch (NoArgument e) {
      return null;
    }
  }

  private Arg convert(FxExpr expr) {
    return switch (expr) {
      case FxExpr.Int(long value) -> new Arg.Int(value);
      case FxExpr.Float(double value) -> new Arg.Float(value);
      case FxExpr.Str(String value) -> new Arg.Str(value);
      case FxExpr.Bool(boolean value) -> new Arg.Bool(value);
      case FxExpr.None _ -> Arg.None.NONE;
      case FxExpr.Seq(ImmutableList<FxExpr> items) -> {
        var list = ImmutableList.<Arg>builderWithExpectedSize(items.size());
        for (var item : items) {
          list.add(convert(item));
        }
        yield new Arg.Seq(list.build());
      }
      case FxExpr.Name(String name) -> named(name);
      case FxExpr.Call call when isDevice(call.target()) -> device(call);
      case FxExpr.Index index -> element(index);
      case FxExpr.Binary(Operator operator, FxExpr left, FxExpr right) ->
          binary(operator, integer(left), integer(right));
      case FxExpr.Negative(FxExpr.Float(double value)) -> new Arg.Float(-value);
      case FxExpr.Negative(FxExpr operand) -> binary(Operator.SUBTRACT, 0, integer(operand));
      case FxExpr.Dict(var keys, var values) -> {
        var pairs = ImmutableList.<Arg>builderWithExpectedSize(keys.size());
        for (int i = 0; i < keys.size(); i++) {
          pairs.add(new Arg.Seq(ImmutableList.of(convert(keys.get(i)), convert(values.get(i)))));
        }
        yield new Arg.Seq(pairs.build());
      }
      case FxExpr.Call _ ->
          throw new NoArgument(
              DiagnosticCode.UNSUPPORTED,
              "an argument is neither a value nor a constant",
              "arguments are names, numbers, strings, lists, torch constants and devices");
    };
  }

  private static Arg binary(Operator operator, long left, long right) {
    try {
      return operator.apply(left, right);
    } catch (ArithmeticException e) {
      throw new NoArgument(
          DiagnosticCode.UNSUPPORTED,
          "%s %s %s: %s".formatted(left, operator, right, e.getMessage()),
          "");
    }
  }

  private long integer(FxExpr expr) {
    if (convert(expr) instanceof Arg.Int(long value)) {
      return value;
    }
    throw new NoArgument(
        DiagnosticCode.UNSUPPORTED,
        expr instanceof FxExpr.Name(String name)
            ? "'%s' is not an integer".formatted(name)
            : "an operand is not an integer",
        "outside operators, only sizes can be computed");
  }

  private Arg named(String name) {
    if (broken.contains(name)) {
      throw new Follows(name);
    }
    @Nullable Arg constant = constants.get(name);
    if (constant != null) {
      return constant;
    }
    @Nullable Results found = results.get(name);
    if (found != null) {
      return found.list() ? listOf(found.values()) : only(name, found.values());
    }
    @Nullable Value input = inputs.get(name);
    if (input != null) {
      if (input.type() == NoneType.NONE) {
        throw new NoArgument(
            DiagnosticCode.UNSUPPORTED,
            "input '%s' is printed without a type: it is an object, and what ops do with it is not"
                    .formatted(name)
                + " known",
            "ops may take tensors, numbers, strings and lists of them");
      }
      return new Arg.Ref(input);
    }
    if (name.startsWith("torch.")) {
      var word = name.substring("torch.".length());
      return DType.ofTorchName(word).<Arg>map(Arg.Dtype::new).orElseGet(() -> new Arg.Symbol(word));
    }
    @Nullable String reason = notConstant.get(name);
    if (reason != null) {
      throw new NoArgument(
          DiagnosticCode.UNSUPPORTED, "'%s' has no known value: %s".formatted(name, reason), "");
    }
    if (name.startsWith("self.")) {
      throw new NoArgument(
          DiagnosticCode.UNSUPPORTED,
          "'%s' is a constant of the module, which the text does not contain".formatted(name),
          "give it a statement of its own, with its type: c: \"f32[4]\" = %s".formatted(name));
    }
    throw new NoArgument(
        DiagnosticCode.UNKNOWN_VALUE, "'%s' is not defined above".formatted(name), "");
  }

  private static Arg only(String name, List<Value> values) {
    if (values.isEmpty()) {
      throw new NoArgument(
          DiagnosticCode.MISSING_ANNOTATION,
          "'%s' has no type: its op is not known".formatted(name),
          "write the type of its result: %s: \"f32[8, 16][16, 1]cuda:0\" = …".formatted(name));
    }
    if (values.size() > 1) {
      throw new NoArgument(
          DiagnosticCode.UNKNOWN_VALUE,
          "'%s' stands for %s".formatted(name, Units.count(values.size(), "result")),
          "take them out by index: getitem = %s[0]".formatted(name));
    }
    return new Arg.Ref(values.getFirst());
  }

  private static Arg listOf(List<Value> values) {
    var items = ImmutableList.<Arg>builderWithExpectedSize(values.size());
    values.forEach(value -> items.add(new Arg.Ref(value)));
    return new Arg.Seq(items.build());
  }

  /** {@code op[1][0]} inside an argument. */
  private Arg element(FxExpr.Index expr) {
    var path = Getitems.path(expr);
    if (path.isPresent()) {
      var root = path.get().root();
      @Nullable Results found = results.get(root);
      int at = found == null ? -1 : found.paths().indexOf(path.get().indices());
      if (found != null && at >= 0) {
        return new Arg.Ref(found.values().get(at));
      }
      if (broken.contains(root)) {
        throw new Follows(root);
      }
      throw new NoArgument(
          DiagnosticCode.UNKNOWN_VALUE,
          "'%s' has no result %s".formatted(root, path.get().indices()),
          "");
    }
    throw new NoArgument(
        DiagnosticCode.UNSUPPORTED, "an index can only take one result of an op", "");
  }

  private static boolean isDevice(String target) {
    return target.equals("device") || target.equals("torch.device");
  }

  private static Arg device(FxExpr.Call call) {
    var type =
        call.keywords().get("type") instanceof FxExpr.Str(String word)
            ? word
            : !call.args().isEmpty() && call.args().getFirst() instanceof FxExpr.Str(String first)
                ? first
                : "";
    if (type.isEmpty()) {
      throw new NoArgument(
          DiagnosticCode.UNSUPPORTED,
          "the device has no type",
          "write device(type='cuda', index=0)");
    }
    return new Arg.Device(
        call.keywords().get("index") instanceof FxExpr.Int(long index) ? type + ":" + index : type);
  }
}
