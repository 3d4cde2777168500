package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Graph;
import dev.symplan.ir.GraphBuilder;
import dev.symplan.ir.GraphBuilder.ResultSpec;
import dev.symplan.ir.NoneType;
import dev.symplan.ir.ScalarType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.fx.Annotations.Annotation;
import dev.symplan.ir.op.ArgBinder;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.ir.op.SchemaType;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/** Builds the graph of one {@link FxFunction}. */
final class FxGraphReader {
  private final FxFunction function;
  private final OpTargets targets;
  private final Symbols symbols;
  private final Annotations annotations;
  private final DiagnosticSink sink;
  private final GraphBuilder builder;
  private final Getitems getitems;
  private final Map<String, ImmutableList<Value>> results = new HashMap<>();
  private final Map<String, ImmutableList<ImmutableList<Integer>>> resultPaths = new HashMap<>();
  private final Map<String, Long> numbers = new HashMap<>();
  private final Map<String, String> definedBy = new HashMap<>();

  FxGraphReader(
      FxFunction function, String name, OpTargets targets, Symbols symbols, DiagnosticSink sink) {
    this.function = function;
    this.targets = targets;
    this.symbols = symbols;
    this.annotations = new Annotations(symbols);
    this.sink = sink;
    this.builder = new GraphBuilder(name, function.span(), sink);
    this.getitems = new Getitems(function.statements());
  }

  Graph read(ImmutableIntArray ranks) {
    builder.ranks(ranks);
    if (annotationsMissing()) {
      error(
          DiagnosticCode.MISSING_ANNOTATION,
          function.span(),
          "the graph is printed without types",
          "print it with gm.print_readable(include_stride=True, include_device=True)");
      return builder.build();
    }
    function.params().forEach(this::input);
    function.statements().forEach(this::statement);
    for (var result : function.results()) {
      output(result);
    }
    return builder.build();
  }

  private boolean annotationsMissing() {
    return !function.params().isEmpty()
        && function.params().stream().allMatch(p -> p.annotation().isEmpty());
  }

  private void error(DiagnosticCode code, Span span, String message, String hint) {
    sink.report(Diagnostic.error(code, span, message, hint));
  }

  private void input(FxFunction.Param param) {
    if (param.annotation().startsWith("Sym(")) {
      var symbol = param.annotation().substring(4, param.annotation().length() - 1);
      definedBy.put(symbol, param.name());
      size(symbol, param.span()).ifPresent(size -> numbers.put(param.name(), size));
      builder.input(param.name(), ScalarType.INT, param.span());
      return;
    }
    var annotation = annotation(param.annotation(), param.span());
    builder.input(
        param.name(), annotation.map(Annotation::type).orElse(NoneType.NONE), param.span());
  }

  private Optional<Long> size(String expression, Span span) {
    try {
      return Optional.of(symbols.evaluate(expression));
    } catch (Symbols.Unknown e) {
      unknownSize(e, span);
    } catch (IllegalArgumentException e) {
      error(DiagnosticCode.SYNTAX, span, String.valueOf(e.getMessage()), "");
    }
    return Optional.empty();
  }

  private void unknownSize(Symbols.Unknown unknown, Span span) {
    @Nullable String input = definedBy.get(unknown.symbol());
    error(
        DiagnosticCode.DYNAMIC_SIZE,
        span,
        "the size %s has no value%s"
            .formatted(unknown.symbol(), input == null ? "" : "; input '" + input + "' brings it"),
        "give it: --dim %s=128, or a bound to plan with: --dim-max %s=4096"
            .formatted(unknown.symbol(), unknown.symbol()));
  }

  private Optional<Annotation> annotation(String text, Span span) {
    if (text.isEmpty()) {
      return Optional.empty();
    }
    try {
      return Optional.of(annotations.read(text));
    } catch (Symbols.Unknown e) {
      unknownSize(e, span);
    } catch (IllegalArgumentException e) {
      error(
          DiagnosticCode.SYNTAX,
          span,
          String.valueOf(e.getMessage()),
          "types look like \"f32[8, 16][16, 1]cuda:0\"");
    }
    return Optional.empty();
  }

  private void statement(FxFunction.Statement statement) {
    switch (statement.value()) {
      case FxExpr.Call call -> call(statement, call);
      case FxExpr.Index _ when getitems.isGetitem(statement.name()) -> getitem(statement);
      case FxExpr.Name(String text) when text.startsWith("self.") ->
          error(
              DiagnosticCode.UNSUPPORTED,
              statement.span(),
              "'%s' is a constant or a subgraph of the module, which the text does not hold"
                  .formatted(text),
              "export the module with torch.export, or pass it as an input");
      default ->
          number(statement.value(), statement.span())
              .ifPresent(number -> numbers.put(statement.name(), number));
    }
  }

  private void getitem(FxFunction.Statement statement) {
    var path = getitems.path(statement.name());
    if (getitems.of(statement.name()).isEmpty()) {
      @Nullable ImmutableList<ImmutableList<Integer>> paths = resultPaths.get(path.root());
      int index = paths == null ? -1 : paths.indexOf(path.indices());
      if (index >= 0 && results.get(path.root()) instanceof ImmutableList<Value> values) {
        results.put(statement.name(), ImmutableList.of(values.get(index)));
      } else if (!sink.hasErrors()) {
        error(
            DiagnosticCode.UNKNOWN_VALUE,
            statement.span(),
            "'%s' has no result %s".formatted(path.root(), path.indices()),
            "");
      }
    }
  }

  private void call(FxFunction.Statement statement, FxExpr.Call call) {
    if (!call.target().startsWith("torch.ops.")) {
      error(
          DiagnosticCode.UNSUPPORTED,
          call.span(),
          "'%s' is no operator".formatted(call.target()),
          "operators are called torch.ops.namespace.name.overload");
      return;
    }
    var args = new ArrayList<Arg>();
    for (var arg : call.args()) {
      args.add(arg(arg, call.span()));
    }
    var keywords = new TreeMap<String, Arg>();
    call.keywords().forEach((key, value) -> keywords.put(key, arg(value, call.span())));
    var annotation = annotation(statement.annotation(), statement.span());
    var known = targets.find(call.target());
    OpDef def = known.orElseGet(() -> targets.opaque(call.target(), args, keywords, call.span()));
    ImmutableList<Arg> bound;
    try {
      bound = ArgBinder.bind(def.schema(), args, keywords);
    } catch (OpTypeException e) {
      error(DiagnosticCode.BAD_ARGUMENT, call.span(), String.valueOf(e.getMessage()), e.hint());
      return;
    }
    if (annotation.isPresent() && annotation.get().type() == ScalarType.INT) {
      size(statement.annotation().substring(4, statement.annotation().length() - 1), call.span())
          .ifPresent(number -> numbers.put(statement.name(), number));
      return;
    }
    build(statement, call, def, bound, annotation);
  }

  private void build(
      FxFunction.Statement statement,
      FxExpr.Call call,
      OpDef def,
      ImmutableList<Arg> bound,
      Optional<Annotation> annotation) {
    var items = getitems.of(statement.name());
    boolean several = !items.isEmpty() || givesList(def);
    var paths = new ArrayList<ImmutableList<Integer>>();
    var specs = new ArrayList<ResultSpec>();
    if (several) {
      collect(def, items, paths, specs, call.span());
    } else {
      paths.add(ImmutableList.of());
      specs.add(spec(statement.name(), annotation, statement.span()));
    }
    var values = builder.op(def, bound, specs, statement.span(), statement.notes());
    results.put(statement.name(), values);
    for (int i = paths.size(); i < values.size(); i++) {
      paths.add(ImmutableList.of(i));
    }
    resultPaths.put(statement.name(), ImmutableList.copyOf(paths));
  }

  private static boolean givesList(OpDef def) {
    var declared = def.schema().results();
    return declared.size() == 1 && declared.getFirst().type() instanceof SchemaType.ListOf;
  }

  /** One result for each that is taken out, and a nameless one for each between. */
  private void collect(
      OpDef def,
      Map<ImmutableList<Integer>, Getitems.Item> items,
      List<ImmutableList<Integer>> paths,
      List<ResultSpec> specs,
      Span span) {
    for (var entry : items.entrySet()) {
      var path = entry.getKey();
      if (path.size() == 1) {
        while (def.rule().isPresent() && specs.size() < path.getFirst()) {
          paths.add(ImmutableList.of(specs.size()));
          specs.add(new ResultSpec("", Optional.empty(), false, span));
        }
      }
      var item = entry.getValue();
      paths.add(path);
      specs.add(spec(item.name(), annotation(item.annotation(), item.span()), item.span()));
    }
  }

  private static ResultSpec spec(String name, Optional<Annotation> annotation, Span span) {
    return new ResultSpec(
        name,
        annotation.map(Annotation::type),
        annotation.map(Annotation::stridesGiven).orElse(false),
        span);
  }

  private Optional<Long> number(FxExpr expr, Span span) {
    try {
      return Optional.of(evaluate(expr));
    } catch (IllegalArgumentException | ArithmeticException e) {
      error(
          DiagnosticCode.UNSUPPORTED,
          span,
          "not a size: " + e.getMessage(),
          "statements are operator calls, results taken out by index, and arithmetic on sizes");
      return Optional.empty();
    }
  }

  private long evaluate(FxExpr expr) {
    return switch (expr) {
      case FxExpr.Int(long value) -> value;
      case FxExpr.Negative(FxExpr operand) -> Math.negateExact(evaluate(operand));
      case FxExpr.Binary(String operator, FxExpr left, FxExpr right) ->
          Symbols.apply(operator, evaluate(left), evaluate(right));
      case FxExpr.Name(String text) -> {
        @Nullable Long number = numbers.get(text);
        if (number == null) {
          throw new IllegalArgumentException("'" + text + "' has no integer value");
        }
        yield number;
      }
      case FxExpr.Float _,
          FxExpr.Str _,
          FxExpr.Bool _,
          FxExpr.Seq _,
          FxExpr.Index _,
          FxExpr.Call _,
          FxExpr.None _ ->
          throw new IllegalArgumentException("an expression of another kind");
    };
  }

  private Arg arg(FxExpr expr, Span span) {
    return switch (expr) {
      case FxExpr.Int(long value) -> new Arg.Int(value);
      case FxExpr.Float(double value) -> new Arg.Float(value);
      case FxExpr.Str(String value) -> new Arg.Str(value);
      case FxExpr.Bool(boolean value) -> new Arg.Bool(value);
      case FxExpr.None _ -> Arg.None.NONE;
      case FxExpr.Seq(ImmutableList<FxExpr> items) -> {
        var list = ImmutableList.<Arg>builderWithExpectedSize(items.size());
        items.forEach(item -> list.add(arg(item, span)));
        yield new Arg.Seq(list.build());
      }
      case FxExpr.Name(String text) -> named(text, span);
      case FxExpr.Call call when call.target().equals("device") -> device(call);
      case FxExpr.Index(FxExpr.Name(String of), FxExpr.Int(long i)) -> element(of, i, span);
      case FxExpr.Binary _, FxExpr.Negative _ ->
          number(expr, span).<Arg>map(Arg.Int::new).orElse(Arg.None.NONE);
      case FxExpr.Call _, FxExpr.Index _ -> {
        error(DiagnosticCode.UNSUPPORTED, span, "a call stands inside a call", "");
        yield Arg.None.NONE;
      }
    };
  }

  private Arg named(String text, Span span) {
    if (text.startsWith("torch.")) {
      var constant = text.substring("torch.".length());
      return DType.ofTorchName(constant)
          .<Arg>map(Arg.Dtype::new)
          .orElseGet(() -> new Arg.Symbol(constant));
    }
    @Nullable Long number = numbers.get(text);
    if (number != null) {
      return new Arg.Int(number);
    }
    return value(text, span).<Arg>map(Arg.Ref::new).orElse(Arg.None.NONE);
  }

  private Optional<Value> value(String text, Span span) {
    @Nullable ImmutableList<Value> values = results.get(text);
    if (values != null && values.size() == 1) {
      return Optional.of(values.getFirst());
    }
    var input = builder.find(text);
    if (input.isEmpty() && !sink.hasErrors()) {
      error(
          DiagnosticCode.UNKNOWN_VALUE,
          span,
          values == null
              ? "'%s' is not defined above".formatted(text)
              : "'%s' stands for %d results".formatted(text, values.size()),
          "");
    }
    return input;
  }

  private Arg element(String of, long index, Span span) {
    @Nullable ImmutableList<Value> values = results.get(of);
    if (values != null && index >= 0 && index < values.size()) {
      return new Arg.Ref(values.get((int) index));
    }
    error(DiagnosticCode.UNKNOWN_VALUE, span, "'%s' has no result %d".formatted(of, index), "");
    return Arg.None.NONE;
  }

  private static Arg device(FxExpr.Call call) {
    var type =
        call.keywords().get("type") instanceof FxExpr.Str(String t)
            ? t
            : !call.args().isEmpty() && call.args().getFirst() instanceof FxExpr.Str(String t)
                ? t
                : "cpu";
    return new Arg.Device(
        call.keywords().get("index") instanceof FxExpr.Int(long index) ? type + ":" + index : type);
  }

  private void output(FxExpr result) {
    var arg = arg(result, function.returnSpan());
    switch (arg) {
      case Arg.Ref _, Arg.None _, Arg.Int _ -> builder.output(arg);
      default ->
          error(
              DiagnosticCode.UNSUPPORTED,
              function.returnSpan(),
              "an output is neither a value nor None",
              "");
    }
  }
}
