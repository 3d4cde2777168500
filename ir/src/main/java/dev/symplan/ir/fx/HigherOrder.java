package dev.symplan.ir.fx;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Iterables;
import com.google.common.collect.Maps;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.fx.FxFunction.Param;
import dev.symplan.ir.fx.FxFunction.Statement;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Rewrites a graph into one that only calls operators: calls of subgraphs become their statements,
 * and other higher-order ops the operator that they wrap. Constants of the module become inputs
 * behind the others.
 */
final class HigherOrder {
  private static final String OPS = "torch.ops.";
  private static final String PREFIX = "torch.ops.higher_order.";
  private static final String SELF = "self.";
  private static final String SCATTER =
      "torch__inductor_fx_passes_post_grad_scatter_upon_const_tensor";

  /** Ops that run a subgraph once, by the position of the subgraph; its arguments follow. */
  private static final ImmutableMap<String, Integer> CALLS =
      ImmutableMap.of(
          "invoke_subgraph", 0,
          "invoke_quant", 0,
          "control_deps", 1,
          "wrap", 0,
          "tag_activation_checkpoint", 0,
          "wrap_with_set_grad_enabled", 1);

  /** Ops that are planned as they are: their subgraphs compute elements, and touch no tensor. */
  private static final ImmutableSet<String> WHOLE =
      ImmutableSet.of("flex_attention", "flex_attention_backward");

  private static final ImmutableSet<String> CONTROL_FLOW =
      ImmutableSet.of(
          "cond", "while_loop", "while_loop_stack_output", "map_impl", "scan", "associative_scan");

  /** Ops whose result has the type of their argument. */
  private static final ImmutableSet<String> SAME_TYPE =
      ImmutableSet.of(
          "torch.ops.aten.lift_fresh_copy.default",
          "torch.ops.aten.lift_fresh.default",
          "torch.ops.aten.clone.default",
          "torch.ops.aten.detach.default",
          "torch.ops.aten.alias.default");

  private static final ImmutableSet<String> SCATTER_PARAMS =
      ImmutableSet.of("shape", "background_val", "dtype", "dim", "selector", "val");

  /** No graph takes so many. */
  private static final long MAX_ARGUMENTS = 1 << 16;

  /** A few lines of subgraphs that call subgraphs can stand for any number of statements. */
  private static final int MAX_STATEMENTS = 1 << 20;

  private final FxFunction function;
  private final OpTargets targets;
  private final DiagnosticSink sink;
  private final Rewriting rewriting;
  private final List<Param> constants = new ArrayList<>();

  /** The inputs of constants, by the attributes that hold them. */
  private final Map<String, String> inputs = new HashMap<>();

  /** Attributes that the text says nothing of, by the values that they are assigned to. */
  private final Map<String, Statement> missing = new LinkedHashMap<>();

  private boolean refused;

  /** The warnings that were given already. */
  private final Set<String> warned = new HashSet<>();

  /** Subgraphs, by the values that they are assigned to. */
  private final Map<String, FxFunction> subgraphs = new HashMap<>();

  /** The subgraphs that were taken apart: many calls may be of one. */
  private final Map<FxFunction, FxFunction> done;

  private HigherOrder(
      FxFunction function,
      OpTargets targets,
      DiagnosticSink sink,
      Map<FxFunction, FxFunction> done) {
    this.done = done;
    this.function = function;
    this.targets = targets;
    this.sink = sink;
    this.rewriting = new Rewriting(function, targets);
  }

  /** {@return the graph without higher-order ops; those that cannot be taken apart are reported} */
  static FxFunction takeApart(FxFunction function, OpTargets targets, DiagnosticSink sink) {
    return new HigherOrder(function, targets, sink, new IdentityHashMap<>()).rewritten();
  }

  private FxFunction takenApart(FxFunction subgraph) {
    @Nullable FxFunction known = done.get(subgraph);
    if (known == null) {
      known = new HigherOrder(subgraph, targets, sink, done).rewritten();
      done.put(subgraph, known);
    }
    return known;
  }

  private FxFunction rewritten() {
    var params = params();
    function.statements().forEach(this::statement);
    // What calls them is refused already, whatever they are.
    if (!refused) {
      reportMissing();
    }
    return function.with(
        ImmutableList.<Param>builder().addAll(params).addAll(constants).build(),
        rewriting.statements(),
        function.results().stream().map(rewriting.renaming()::resolved).collect(toImmutableList()));
  }

  /** Compiled autograd takes lists: what is taken out of them are the real arguments. */
  private ImmutableList<Param> params() {
    var lists =
        function.params().stream()
            .filter(param -> param.type().isEmpty())
            .map(Param::name)
            .collect(toImmutableList());
    if (!lists.contains("inputs") || !lists.contains("sizes")) {
      return function.params();
    }
    rewriting.items("hooks").stream()
        .findFirst()
        .ifPresent(
            hook ->
                error(
                    DiagnosticCode.UNSUPPORTED,
                    hook.span(),
                    "the graph of compiled autograd calls hooks, which are Python functions of the"
                        + " program",
                    "Dynamo traces through them and compiles the result: "
                        + FxText.POST_GRAD_HINT));
    var params = ImmutableList.<Param>builder();
    for (var list : List.of("inputs", "sizes")) {
      var values = ImmutableMap.<FxExpr, FxExpr>builder();
      for (long i = 0; i <= lastIndex(list); i++) {
        var index = new FxExpr.Int(i);
        var item = rewriting.item(list, index);
        if (item.isEmpty()) {
          // A hole: nothing reads the argument at this place.
          params.add(
              new Param(rewriting.unique(list + "_" + i), Optional.empty(), function.span()));
        } else {
          params.add(new Param(item.get().name(), item.get().type(), item.get().span()));
          values.put(index, new FxExpr.Name(item.get().name()));
        }
      }
      rewriting.renaming().takeApart(list, values.buildOrThrow());
    }
    return params.build();
  }

  private long lastIndex(String list) {
    return rewriting.items(list).stream()
        .mapToLong(item -> item.value() instanceof FxExpr.Index(_, FxExpr.Int(long i)) ? i : -1)
        .filter(i -> i < MAX_ARGUMENTS)
        .max()
        .orElse(-1);
  }

  private void statement(Statement statement) {
    var value = rewriting.renaming().resolved(statement.value());
    switch (value) {
      case FxExpr.Call call when call.target().startsWith(PREFIX) -> higherOrder(statement, call);
      case FxExpr.Call call
          when call.target().equals(SCATTER)
              && call.keywords().keySet().containsAll(SCATTER_PARAMS) ->
          scatter(statement, call.keywords());
      case FxExpr.Call(String target, var args, _, _)
          when target.equals("getattr")
              && args.size() == 2
              && args.getFirst() instanceof FxExpr.Name(String of)
              && (of + ".").startsWith(SELF)
              && args.getLast() instanceof FxExpr.Str(String attribute) ->
          attribute(statement, (of + ".").substring(SELF.length()) + attribute);
      case FxExpr.Call(String target, _, _, _)
          when target.equals("torch.ops.prims._make_token.default") ->
          rewriting.emit(
              statement,
              statement.name(),
              statement.type(),
              "torch.ops.aten.empty.memory_format",
              new FxExpr.Seq(ImmutableList.of(new FxExpr.Int(0))));
      case FxExpr.Call(String target, _, _, _)
          when target.equals("torch.ops.prims._sink_tokens.default") -> {}
      case FxExpr.Name(String name) when name.startsWith(SELF) ->
          attribute(statement, name.substring(SELF.length()));
      case FxExpr.Name(String name) when rewriting.isDefined(name) -> alias(statement, value);
      default -> {
        if (statement.value() instanceof FxExpr.Index && !(value instanceof FxExpr.Index)) {
          alias(statement, value);
        } else {
          rewriting.keep(statement, value);
        }
      }
    }
  }

  private void alias(Statement statement, FxExpr value) {
    if (!value.equals(new FxExpr.Name(statement.name()))) {
      rewriting.renaming().rename(statement.name(), value);
    }
  }

  private void warnOnce(DiagnosticCode code, Span span, String message, String hint) {
    if (warned.add(message)) {
      sink.report(Diagnostic.warning(code, span, message, hint));
    }
  }

  private void error(DiagnosticCode code, Span span, String message, String hint) {
    sink.report(Diagnostic.error(code, span, message, hint));
  }

  /** {@code x = self.name}: a subgraph, or a constant, which becomes an input. */
  private void attribute(Statement statement, String attribute) {
    var subgraph = Optional.ofNullable(function.subgraphs().get(attribute));
    if (subgraph.isPresent()) {
      subgraphs.put(statement.name(), subgraph.get());
      return;
    }
    var known = Optional.ofNullable(inputs.get(attribute));
    if (known.isPresent()) {
      rewriting.renaming().rename(statement.name(), new FxExpr.Name(known.get()));
      return;
    }
    var type = statement.type().or(() -> typeOfUse(statement.name()));
    if (type.isEmpty()) {
      missing.put(statement.name(), statement);
      return;
    }
    inputs.put(attribute, statement.name());
    constants.add(new Param(statement.name(), type, statement.span()));
    sink.report(
        Diagnostic.warning(
            DiagnosticCode.MISSING_ANNOTATION,
            statement.span(),
            "the text does not hold the constant 'self.%s'; it becomes the input '%s'"
                .formatted(attribute, statement.name()),
            "to run the graph with its value: --weights FILE, a safetensors file with this name"));
  }

  private void reportMissing() {
    missing
        .values()
        .forEach(
            statement -> {
              // As torch.export and AOTAutograd name them.
              boolean scriptObject = statement.name().contains("torchbind_obj");
              error(
                  DiagnosticCode.UNSUPPORTED,
                  statement.span(),
                  scriptObject
                      ? "this is a TorchBind object, such as a handle of symmetric memory; what ops"
                          + " do with it is not known, and plans make their own handles"
                      : "this is a constant or a subgraph of the module, which the text does not"
                          + " hold",
                  scriptObject
                      ? "write ops that take a group's name: torch.ops.symm_mem.one_shot_all_reduce"
                      : "with its type, a constant can be an input, and with its class below, a"
                          + " subgraph can be planned: "
                          + FxGraphReader.PRINT_HINT);
            });
  }

  private Optional<FxType> typeOfUse(String name) {
    var wanted = new FxExpr.Name(name);
    return function.statements().stream()
        .filter(
            statement ->
                statement.value() instanceof FxExpr.Call(String target, var args, _, _)
                    && SAME_TYPE.contains(target)
                    && !args.isEmpty()
                    && args.getFirst().equals(wanted))
        .flatMap(statement -> statement.type().stream())
        .findFirst();
  }

  private void higherOrder(Statement statement, FxExpr.Call call) {
    var op = call.target().substring(PREFIX.length());
    switch (op) {
      case "run_with_rng_state" -> withState(statement, call, 1, "");
      case "graphsafe_run_with_rng_state" -> withState(statement, call, 0, "rng_state");
      case "with_effects" -> withEffects(statement, call);
      case "auto_functionalized", "auto_functionalized_v2" -> {
        if (!Functionalized.takeApart(rewriting, targets, statement, call)) {
          warnOfUnknownWrites(call);
          whole(statement, call);
        }
      }
      case "triton_kernel_wrapper_functional", "triton_kernel_wrapper_mutation" ->
          tritonKernel(statement, call);
      default -> {
        @Nullable Integer at = CALLS.get(op);
        var subgraph = at == null ? Optional.<FxFunction>empty() : subgraph(call, at);
        if (at != null && subgraph.isPresent()) {
          inline(statement, call, op, subgraph.get(), at + 1);
        } else if (CONTROL_FLOW.contains(op) || (at == null && !isWhole(call, op))) {
          refuse(call, op);
        } else {
          whole(statement, call);
        }
      }
    }
  }

  private void refuse(FxExpr.Call call, String op) {
    refused = true;
    boolean controlFlow = CONTROL_FLOW.contains(op);
    error(
        DiagnosticCode.UNSUPPORTED,
        call.span(),
        controlFlow
            ? "higher_order.%s decides while it runs which ops run; a plan is for a fixed list of ops"
                .formatted(op)
            : "higher_order.%s calls another graph, and this release does not know how"
                .formatted(op),
        controlFlow
            ? "compile the branch or the body of the loop by itself, and print its graph:"
                + " TORCH_LOGS=post_grad_graphs python PROGRAM 2> log.txt"
            : FxText.POST_GRAD_HINT);
  }

  private Optional<FxFunction> subgraph(FxExpr.Call call, int at) {
    return at < call.args().size() && call.args().get(at) instanceof FxExpr.Name(String name)
        ? Optional.ofNullable(subgraphs.get(name))
        : Optional.empty();
  }

  private boolean isWhole(FxExpr.Call call, String op) {
    return WHOLE.contains(op)
        || Iterables.all(
            Iterables.concat(call.args(), call.keywords().values()),
            arg -> !(arg instanceof FxExpr.Name(String name) && subgraphs.containsKey(name)));
  }

  /** Keeps an op, with strings for the subgraphs and operators among its arguments. */
  private void whole(Statement statement, FxExpr.Call call) {
    rewriting.keep(
        statement,
        new FxExpr.Call(
            call.target(),
            call.args().stream().map(this::asString).collect(toImmutableList()),
            ImmutableMap.copyOf(Maps.transformValues(call.keywords(), this::asString)),
            call.span()));
  }

  private FxExpr asString(FxExpr arg) {
    return switch (arg) {
      case FxExpr.Name(String name) when subgraphs.containsKey(name) || name.startsWith(OPS) ->
          new FxExpr.Str(name);
      case FxExpr.Seq(var list) ->
          new FxExpr.Seq(list.stream().map(this::asString).collect(toImmutableList()));
      default -> arg;
    };
  }

  private void warnOfUnknownWrites(FxExpr.Call call) {
    operator(call, 0)
        .ifPresent(
            op ->
                warnOnce(
                    DiagnosticCode.OPAQUE_OP,
                    call.span(),
                    "%s is not known, so %s around it is planned as it is"
                        .formatted(op, call.target().substring(OPS.length())),
                    "for a better plan: print(%s._schema) prints the op's schema; put it into a"
                            .formatted(op)
                        + " file and give --declare FILE"));
  }

  /** {@return the operator at a position of a call} */
  static Optional<String> operator(FxExpr.Call call, int at) {
    return at < call.args().size()
            && call.args().get(at) instanceof FxExpr.Name(String name)
            && name.startsWith(OPS)
            && !name.startsWith(PREFIX)
        ? Optional.of(name)
        : Optional.empty();
  }

  /** An operator that runs with another state of the random generator than the current one. */
  private void withState(Statement statement, FxExpr.Call call, int at, String state) {
    var op = operator(call, at);
    if (op.isEmpty()) {
      refuse(call, call.target().substring(PREFIX.length()));
      return;
    }
    warnOnce(
        DiagnosticCode.UNSUPPORTED,
        call.span(),
        "%s is planned without the random state that it is given".formatted(op.get()),
        "the plan does not depend on it, but a run draws other numbers than the forward graph, and"
            + " gradients are wrong; Inductor's own random numbers have seeds in the graph:"
            + " torch._inductor.config.fallback_random = False");
    var keywords = ImmutableMap.<String, FxExpr>builder();
    call.keywords().entrySet().stream()
        .filter(entry -> !entry.getKey().equals(state))
        .forEach(keywords::put);
    rewriting.emit(
        statement,
        statement.name(),
        statement.type(),
        new FxExpr.Call(
            op.get(),
            call.args().subList(at + 1, call.args().size()),
            keywords.buildOrThrow(),
            call.span()));
  }

  /**
   * {@code (token, result…) = with_effects(token, op, arg…)}. Tokens keep such ops in order, which
   * the planner does with all ops that it does not know.
   */
  private void withEffects(Statement statement, FxExpr.Call call) {
    var op = operator(call, 1);
    if (op.isEmpty()) {
      refuse(call, "with_effects");
      return;
    }
    var items = rewriting.items(statement.name());
    boolean several =
        targets
            .schema(op.get(), ImmutableSet.of())
            .map(schema -> schema.results().size() > 1)
            .orElse(rewriting.item(statement.name(), new FxExpr.Int(2)).isPresent());
    var first = rewriting.item(statement.name(), new FxExpr.Int(1)).filter(item -> !several);
    var name = first.map(Statement::name).orElse(statement.name());
    var results = new LinkedHashMap<FxExpr, FxExpr>();
    results.put(new FxExpr.Int(0), call.args().getFirst());
    for (var item : items) {
      if (item.value() instanceof FxExpr.Index(_, FxExpr.Int(long i)) && i > 0) {
        results.put(
            new FxExpr.Int(i),
            several
                ? new FxExpr.Index(new FxExpr.Name(name), new FxExpr.Int(i - 1))
                : new FxExpr.Name(name));
      }
    }
    rewriting.emit(
        statement,
        name,
        first.flatMap(Statement::type),
        new FxExpr.Call(
            op.get(), call.args().subList(2, call.args().size()), call.keywords(), call.span()));
    rewriting.renaming().takeApart(statement.name(), ImmutableMap.copyOf(results));
  }

  /** A kernel of the user's, which may write each tensor that it is given. */
  private void tritonKernel(Statement statement, FxExpr.Call call) {
    if (!(call.keywords().get("kwargs") instanceof FxExpr.Dict(var keys, var values))) {
      refuse(call, call.target().substring(PREFIX.length()));
      return;
    }
    var copied =
        call.keywords().get("tensors_to_clone") instanceof FxExpr.Seq(var list)
            ? list
            : ImmutableList.<FxExpr>of();
    var keywords = new LinkedHashMap<String, FxExpr>();
    call.keywords()
        .forEach(
            (key, value) -> {
              if (!key.equals("tensors_to_clone") && !(value instanceof FxExpr.Dict)) {
                keywords.put(key, value);
              }
            });
    var results = ImmutableMap.<FxExpr, FxExpr>builder();
    for (int i = 0; i < keys.size(); i++) {
      if (keys.get(i) instanceof FxExpr.Str(String key)) {
        var value = values.get(i);
        if (copied.contains(keys.get(i))) {
          value = rewriting.copied(statement, value, keys.get(i), key);
          results.put(keys.get(i), value);
        }
        keywords.put(keywords.containsKey(key) ? key + "_" : key, value);
      }
    }
    rewriting.emit(
        statement,
        statement.name(),
        Optional.empty(),
        new FxExpr.Call(
            PREFIX + "triton_kernel_wrapper_mutation",
            ImmutableList.of(),
            ImmutableMap.copyOf(keywords),
            call.span()));
    rewriting.renaming().takeApart(statement.name(), results.buildOrThrow());
  }

  /** A tensor of one value, with another at one index of a dimension. */
  private void scatter(Statement statement, ImmutableMap<String, FxExpr> keywords) {
    var background = rewriting.unique(statement.name() + "_background");
    rewriting.emit(
        statement,
        background,
        statement.type(),
        new FxExpr.Call(
            "torch.ops.aten.full.default",
            ImmutableList.of(keyword(keywords, "shape"), keyword(keywords, "background_val")),
            ImmutableMap.of("dtype", keyword(keywords, "dtype")),
            statement.span()));
    rewriting.emit(
        statement,
        statement.name(),
        statement.type(),
        "torch.ops.aten.scatter.value",
        new FxExpr.Name(background),
        keyword(keywords, "dim"),
        keyword(keywords, "selector"),
        keyword(keywords, "val"));
  }

  private static FxExpr keyword(ImmutableMap<String, FxExpr> keywords, String key) {
    return keywords.getOrDefault(key, FxExpr.None.NONE);
  }

  /** Puts the statements of a subgraph in the place of its call. */
  private void inline(
      Statement statement, FxExpr.Call call, String op, FxFunction subgraph, int first) {
    var args = arguments(call, op, first);
    int given = subgraph.params().size();
    if (args.size() != given) {
      error(
          DiagnosticCode.BAD_ARGUMENT,
          call.span(),
          "the subgraph takes %s, not %d".formatted(Units.count(given, "argument"), args.size()),
          "");
      return;
    }
    var inner = takenApart(subgraph);
    if (rewriting.size() + inner.statements().size() > MAX_STATEMENTS) {
      throw new CompileException(
          Diagnostic.error(
              DiagnosticCode.UNSUPPORTED,
              call.span(),
              "with the statements of all subgraphs, the graph has more than %d"
                  .formatted(MAX_STATEMENTS),
              "plan the subgraph by itself"));
    }
    var names = new Renaming();
    for (int i = 0; i < inner.params().size(); i++) {
      var param = inner.params().get(i);
      if (i < given) {
        names.rename(param.name(), args.get(i));
      } else {
        var constant = rewriting.unique(param.name());
        constants.add(new Param(constant, param.type(), param.span()));
        names.rename(param.name(), new FxExpr.Name(constant));
      }
    }
    // The subgraph of control_deps is one op, whose results the call stands for.
    boolean tuple =
        !rewriting.items(statement.name()).isEmpty()
            && !(op.equals("control_deps") && inner.results().size() == 1);
    for (int i = 0; i < inner.results().size(); i++) {
      if (inner.results().get(i) instanceof FxExpr.Name(String name) && !names.renames(name)) {
        var outer =
            tuple
                ? rewriting.item(statement.name(), new FxExpr.Int(i)).map(Statement::name)
                : Optional.of(statement.name());
        outer.ifPresent(wanted -> names.rename(name, new FxExpr.Name(wanted)));
      }
    }
    for (var one : inner.statements()) {
      if (!names.renames(one.name())) {
        names.rename(one.name(), new FxExpr.Name(rewriting.unique(one.name())));
      }
      if (names.resolved(new FxExpr.Name(one.name())) instanceof FxExpr.Name(String name)) {
        rewriting.emitInner(
            new Statement(name, one.type(), names.resolved(one.value()), one.span(), one.notes()));
      }
    }
    var results = ImmutableMap.<FxExpr, FxExpr>builder();
    for (int i = 0; i < inner.results().size(); i++) {
      results.put(new FxExpr.Int(i), names.resolved(inner.results().get(i)));
    }
    if (tuple || inner.results().size() != 1) {
      rewriting.renaming().takeApart(statement.name(), results.buildOrThrow());
    } else {
      alias(statement, names.resolved(inner.results().getFirst()));
    }
  }

  /** What is passed to the subgraph; PyTorch 2.6 passes it as a tuple. */
  private static ImmutableList<FxExpr> arguments(FxExpr.Call call, String op, int first) {
    boolean named =
        op.equals("invoke_subgraph")
            && first < call.args().size()
            && call.args().get(first) instanceof FxExpr.Str;
    var args = call.args().subList(named ? first + 1 : first, call.args().size());
    return args.size() == 1 && args.getFirst() instanceof FxExpr.Seq(var list) ? list : args;
  }
}
