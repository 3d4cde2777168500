package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.NoneType;
import dev.symplan.ir.Notes;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.fx.Annotations.Annotation;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.GraphBuilder;
import dev.symplan.ir.graph.GraphBuilder.ResultSpec;
import dev.symplan.ir.op.ArgBinder;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpTypeException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Builds the graph of one {@link FxFunction}. */
final class FxGraphReader {
  static final String PRINT_HINT =
      "print it with gm.print_readable(include_stride=True, include_device=True)";

  private static final String OPS = "torch.ops.";
  private static final String ASSERT = "torch.ops.aten._assert_scalar";
  private static final String DYNAMO = "torch__dynamo_";
  private static final String STAGE_HINT =
      "operators have the form torch.ops.namespace.name.overload; if this graph is Dynamo's,"
          + " use the one after Inductor's passes: TORCH_LOGS=post_grad_graphs";

  private final FxFunction function;
  private final OpTargets targets;
  private final Symbols symbols;
  private final Annotations annotations;
  private final DiagnosticSink sink;
  private final GraphBuilder builder;
  private final FxScope scope;
  private final Getitems getitems;
  private final Set<String> reportedSymbols = new HashSet<>();
  private boolean reportedStage;

  FxGraphReader(
      FxFunction function, String name, OpTargets targets, Symbols symbols, DiagnosticSink sink) {
    this.function = function;
    this.targets = targets;
    this.symbols = symbols;
    this.annotations = new Annotations(symbols);
    this.sink = sink;
    this.builder = new GraphBuilder(name, function.span(), sink);
    this.scope = new FxScope(sink);
    this.getitems = new Getitems(function.statements());
  }

  Graph read(ImmutableIntArray ranks) {
    builder.ranks(ranks).notes(function.notes(), function.endNotes());
    if (annotationsMissing()) {
      error(
          DiagnosticCode.MISSING_ANNOTATION,
          function.span(),
          "the graph is printed without types",
          PRINT_HINT
              + "; folders of TORCH_COMPILE_DEBUG=1 have such texts: fx_graph_readable.py and"
              + " fx_graph_transformed.py");
      return builder.build();
    }
    function.params().forEach(this::input);
    warnOfMissingStrides();
    function.statements().forEach(this::statement);
    function.results().forEach(this::output);
    builder.notes(withSizes(function.notes()), function.endNotes());
    return builder.build();
  }

  /** Says in the graph which sizes it is for, as nothing else in it does. */
  private Notes withSizes(Notes head) {
    if (symbols.used().isEmpty()) {
      return head;
    }
    var sizes =
        symbols.used().entrySet().stream()
            .map(
                size ->
                    (symbols.isBound(size.getKey()) ? "%s = %s at most" : "%s = %s")
                        .formatted(size.getKey(), size.getValue()))
            .collect(Collectors.joining(", ", "# sizes: ", ""));
    return new Notes(
        ImmutableList.<String>builder().addAll(head.before()).add(sizes).build(), head.after());
  }

  private boolean annotationsMissing() {
    return !function.params().isEmpty()
        && function.params().stream().allMatch(p -> p.type().isEmpty());
  }

  private void error(DiagnosticCode code, Span span, String message, String hint) {
    sink.report(Diagnostic.error(code, span, message, hint));
  }

  private void input(FxFunction.Param param) {
    if (param.type().orElse(FxType.None.NONE) instanceof FxType.Symbolic(SizeExpr size)) {
      symbolic(param.name(), size, null, param.span());
    }
    var type = annotation(param.type(), param.span()).map(Annotation::type);
    scope.defineInput(
        param.name(), builder.input(param.name(), type.orElse(NoneType.NONE), param.span()));
    if (type.isEmpty() && param.type().isPresent()) {
      scope.defineBroken(param.name());
    }
  }

  private void warnOfMissingStrides() {
    function.params().stream()
        .filter(param -> hasOpenStrides(param.type()))
        .findFirst()
        .ifPresent(
            param ->
                sink.report(
                    Diagnostic.warning(
                        DiagnosticCode.MISSING_ANNOTATION,
                        param.span(),
                        "inputs are printed without strides; they are assumed to be row-major",
                        PRINT_HINT)));
  }

  private boolean hasOpenStrides(Optional<FxType> type) {
    return !sink.hasErrors()
        && type.orElse(FxType.None.NONE) instanceof FxType.Tensor(_, var sizes, var strides)
        && sizes.size() > 1
        && strides.isEmpty();
  }

  /** Finds the value of a size; the statement that computes it is not an op of the graph. */
  private void symbolic(String name, SizeExpr size, @Nullable FxExpr computed, Span span) {
    try {
      scope.defineConstant(name, symbols.constant(size));
    } catch (Symbols.Unknown e) {
      unknownSize(e, span);
      scope.defineBroken(name);
    } catch (IllegalArgumentException e) {
      @Nullable Arg value = computed == null ? null : scope.constant(computed);
      if (value != null) {
        scope.defineConstant(name, value);
      } else {
        scope.defineUnknown(name, String.valueOf(e.getMessage()));
      }
    }
  }

  private void unknownSize(Symbols.Unknown unknown, Span span) {
    var symbol = unknown.symbol();
    if (!reportedSymbols.add(symbol)) {
      return;
    }
    error(
        DiagnosticCode.DYNAMIC_SIZE,
        span,
        "the %s %s has no value%s"
            .formatted(
                isFloat(symbol) ? "float" : "size",
                symbol,
                bringer(symbol).map(name -> "; input '" + name + "' provides it").orElse("")),
        hintFor(symbol));
  }

  /** Whether a symbol is a float, which PyTorch names {@code zf0} or, of a run, {@code zuf0}. */
  private static boolean isFloat(String symbol) {
    return symbol.startsWith("zf") || symbol.startsWith("zuf");
  }

  private static String hintFor(String symbol) {
    if (isFloat(symbol)) {
      return "give a whole number, with which runs then compute: --dim %s=1".formatted(symbol);
    }
    return symbol.matches("u[0-9]+")
        ? "it is known only when the program runs; give a bound to plan with: --dim-max"
            + " %s=4096, or for the sum of the splits of a collective: --dim-max u0+u1=4096"
                .formatted(symbol)
        : "give it: --dim %s=128, or a bound to plan with: --dim-max %s=4096"
            .formatted(symbol, symbol);
  }

  /** {@return the input that is the size, or else the first that has it in its type} */
  private Optional<String> bringer(String symbol) {
    var exact = Optional.of(new FxType.Symbolic(new SizeExpr.Symbol(symbol)));
    return function.params().stream()
        .filter(param -> param.type().equals(exact))
        .findFirst()
        .or(
            () ->
                function.params().stream()
                    .filter(param -> param.type().filter(type -> type.mentions(symbol)).isPresent())
                    .findFirst())
        .map(FxFunction.Param::name);
  }

  private Optional<Annotation> annotation(Optional<FxType> type, Span span) {
    try {
      return type.map(annotations::read);
    } catch (Symbols.Unknown e) {
      unknownSize(e, span);
    } catch (IllegalArgumentException e) {
      error(
          DiagnosticCode.SYNTAX,
          span,
          String.valueOf(e.getMessage()),
          type.orElseThrow() instanceof FxType.Malformed(_, _, String hint)
              ? hint
              : FxType.Malformed.HINT);
    }
    return Optional.empty();
  }

  private void statement(FxFunction.Statement statement) {
    if (statement.type().orElse(FxType.None.NONE) instanceof FxType.Symbolic(SizeExpr size)) {
      symbolic(statement.name(), size, statement.value(), statement.span());
      return;
    }
    switch (statement.value()) {
      case FxExpr.Call call -> call(statement, call);
      case FxExpr.Index _ when getitems.path(statement.name()).isPresent() -> getitem(statement);
      default -> {
        @Nullable Arg value = scope.constant(statement.value());
        if (value != null) {
          scope.defineConstant(statement.name(), value);
        } else {
          notAten(
              statement.name(), statement.span(), "this is not a call of an operator", STAGE_HINT);
        }
      }
    }
  }

  private void notAten(String name, Span span, String message, String hint) {
    scope.defineBroken(name);
    if (!reportedStage) {
      reportedStage = true;
      error(DiagnosticCode.UNSUPPORTED, span, message, hint);
    }
  }

  private void getitem(FxFunction.Statement statement) {
    var path = getitems.path(statement.name()).orElseThrow();
    FxScope.@Nullable Results of = scope.results(path.root());
    int at = of == null ? -1 : of.paths().indexOf(path.indices());
    if (of != null && at >= 0) {
      var value = of.values().get(at);
      boolean described = value.type() != NoneType.NONE || !value.name().isEmpty();
      scope.define(
          statement.name(), described ? FxScope.Results.one(value) : FxScope.Results.NOTHING);
    } else if (scope.isBroken(path.root())) {
      scope.defineBroken(statement.name());
    } else if (of == null || getitems.of(path.root()).containsKey(path.indices())) {
      scope.defineBroken(statement.name());
      error(
          DiagnosticCode.UNKNOWN_VALUE,
          statement.span(),
          of == null && !scope.isValue(path.root())
              ? "'%s' is not defined above".formatted(path.root())
              : "'%s' has no result %s".formatted(path.root(), shown(path.indices())),
          "");
    } else {
      scope.defineUnknown(statement.name(), "it is a list, which is taken apart below");
    }
  }

  private static String shown(List<Integer> indices) {
    var text = new StringBuilder();
    indices.forEach(index -> text.append('[').append(index).append(']'));
    return text.toString();
  }

  private void call(FxFunction.Statement statement, FxExpr.Call call) {
    var name = statement.name();
    if (!call.target().startsWith(OPS)) {
      notAten(
          name,
          call.span(),
          "'%s' is not an operator".formatted(call.target()),
          call.target().startsWith(DYNAMO) ? CompiledAutograd.HINT : STAGE_HINT);
      return;
    }
    if (targets.reachesPeers(call.target())) {
      scope.defineBroken(name);
      error(
          DiagnosticCode.UNSUPPORTED,
          call.span(),
          "%s reads or writes a peer's tensor, without an op of the peer that names it; so a plan"
                  .formatted(call.target().substring(OPS.length()))
              + " cannot know how long that tensor is in use",
          "use a collective: torch.ops._c10d_functional.all_to_all_single, for example");
      return;
    }
    if (call.target().startsWith(ASSERT) && isKnown(call)) {
      return;
    }
    boolean whole = true;
    var args = new ArrayList<Arg>();
    for (var expr : call.args()) {
      @Nullable Arg arg = scope.arg(expr, call.span());
      whole &= arg != null;
      args.add(arg == null ? Arg.None.NONE : arg);
    }
    var keywords = new TreeMap<String, Arg>();
    for (var entry : call.keywords().entrySet()) {
      @Nullable Arg arg = scope.arg(entry.getValue(), call.span());
      whole &= arg != null;
      keywords.put(entry.getKey(), arg == null ? Arg.None.NONE : arg);
    }
    var annotation = annotation(statement.type(), statement.span());
    if (!whole || (annotation.isEmpty() && statement.type().isPresent())) {
      scope.defineBroken(name);
      return;
    }
    OpDef def =
        targets
            .find(call.target())
            .orElseGet(() -> targets.opaque(call.target(), args, keywords, call.span()));
    try {
      build(statement, call, def, ArgBinder.bind(def.schema(), args, keywords), annotation);
    } catch (OpTypeException e) {
      error(DiagnosticCode.BAD_ARGUMENT, call.span(), String.valueOf(e.getMessage()), e.hint());
      scope.defineBroken(name);
    }
  }

  /** Conditions on sizes are known here; those that do not hold are the caller's mistake. */
  private boolean isKnown(FxExpr.Call call) {
    if (call.args().isEmpty()
        || (call.args().getFirst() instanceof FxExpr.Name(String name) && scope.isValue(name))) {
      return false;
    }
    if (scope.constant(call.args().getFirst()) instanceof Arg.Bool(boolean holds) && !holds) {
      error(
          DiagnosticCode.DYNAMIC_SIZE,
          call.span(),
          "the graph's own condition does not hold for the sizes given",
          "see the message in the call, and choose other sizes: --dim, --dim-max");
    }
    return true;
  }

  private void build(
      FxFunction.Statement statement,
      FxExpr.Call call,
      OpDef def,
      ImmutableList<Arg> bound,
      Optional<Annotation> annotation) {
    var items = getitems.of(statement.name());
    var layout = ResultLayout.of(def, bound, items, annotation.isPresent());
    var specs = new ArrayList<ResultSpec>();
    for (var path : layout.paths()) {
      Getitems.@Nullable Item item = items.get(path);
      if (path.isEmpty()) {
        specs.add(spec(statement.name(), annotation, statement.span()));
      } else if (item == null || (def.rule().isEmpty() && item.type().isEmpty())) {
        specs.add(new ResultSpec("", Optional.empty(), false, call.span()));
      } else {
        specs.add(spec(item.name(), annotation(item.type(), item.span()), item.span()));
      }
    }
    ImmutableList<Value> values =
        builder.op(def, bound, specs, statement.span(), statement.notes());
    boolean given = values.size() >= layout.paths().size();
    if (given && (!values.isEmpty() || items.isEmpty())) {
      scope.define(statement.name(), new FxScope.Results(values, layout.paths(), layout.list()));
    } else {
      scope.defineBroken(statement.name());
    }
    for (var value : values) {
      if (sink.hasErrors() && value.type() == NoneType.NONE && !value.name().isEmpty()) {
        scope.defineBroken(value.name());
      }
    }
  }

  private static ResultSpec spec(String name, Optional<Annotation> annotation, Span span) {
    return new ResultSpec(
        name,
        annotation.map(Annotation::type),
        annotation.map(Annotation::stridesGiven).orElse(false),
        span);
  }

  private void output(FxExpr result) {
    @Nullable Arg arg = scope.arg(result, function.returnSpan());
    switch (arg) {
      case null -> {}
      case Arg.Ref _, Arg.None _, Arg.Int _, Arg.Float _, Arg.Bool _ -> builder.output(arg);
      case Arg.Str _, Arg.Dtype _, Arg.Symbol _, Arg.Device _, Arg.Seq _ ->
          error(
              DiagnosticCode.UNSUPPORTED,
              function.returnSpan(),
              "an output is neither a value, a number nor None",
              "return tensors one by one, not in lists");
    }
  }
}
