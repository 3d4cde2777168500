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
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Rewrites a graph into one that only calls operators: calls of subgraphs become their statements,
 * and other higher-order ops the operator that they wrap. Constants of the module become inputs
 * after the others.
 */
final class HigherOrder {
  private static final String OPS = "torch.ops.";
  static final String PREFIX = "torch.ops.higher_order.";
  static final String SELF = "self.";
  private static final String SCATTER =
      "torch__inductor_fx_passes_post_grad_scatter_upon_const_tensor";

  /** Ops that run a subgraph once, by the position of the subgraph; its arguments follow. */
  static final ImmutableMap<String, Integer> CALLS =
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

  private static final ImmutableSet<String> SCATTER_PARAMS =
      ImmutableSet.of("shape", "background_val", "dtype", "dim", "selector", "val");

  /** A few lines of subgraphs that call subgraphs can stand for any number of statements. */
  private static final int MAX_STATEMENTS = 1 << 20;

  private final FxFunction function;
  private final OpTargets targets;
  private final DiagnosticSink sink;
  private final StatementWriter writer;
  private final ModuleAttributes attributes;
  private final RandomStates states;

  /** Whether an op could not be taken apart. */
  private boolean refused;

  /** The warnings that were given already. */
  private final Set<String> warned = new HashSet<>();

  /** The subgraphs that were taken apart: many calls may be of one. */
  private final Map<FxFunction, FxFunction> done;

  private final InlinedSizes sizes;

  private HigherOrder(
      FxFunction function,
      OpTargets targets,
      DiagnosticSink sink,
      Map<FxFunction, FxFunction> done,
      InlinedSizes sizes) {
    this.done = done;
    this.sizes = sizes;
    this.function = function;
    this.targets = targets;
    this.sink = sink;
    this.writer = new StatementWriter(function, targets);
    this.attributes = new ModuleAttributes(function, writer, sink);
    this.states = new RandomStates(writer, targets);
  }

  /** {@return the graph without higher-order ops; those that cannot be taken apart are reported} */
  static FxFunction takeApart(FxFunction function, OpTargets targets, DiagnosticSink sink) {
    return new HigherOrder(function, targets, sink, new IdentityHashMap<>(), new InlinedSizes())
        .rewritten();
  }

  private FxFunction takenApart(FxFunction subgraph) {
    @Nullable FxFunction known = done.get(subgraph);
    if (known == null) {
      known = new HigherOrder(subgraph, targets, sink, done, sizes).rewritten();
      done.put(subgraph, known);
    }
    return known;
  }

  private FxFunction rewritten() {
    var params = CompiledAutograd.params(function, writer, sink);
    function.statements().forEach(this::statement);
    // Their call is refused already, whatever they are.
    if (!refused) {
      attributes.reportMissing();
    }
    return function.with(
        ImmutableList.<Param>builder()
            .addAll(states.sized(params))
            .addAll(attributes.constants())
            .build(),
        writer.statements(),
        function.results().stream().map(writer.renaming()::resolved).collect(toImmutableList()));
  }

  private void statement(Statement statement) {
    var value = writer.renaming().resolved(statement.value());
    switch (value) {
      case FxExpr.Call call when call.target().startsWith(PREFIX) -> higherOrder(statement, call);
      case FxExpr.Call call
          when call.target().equals(SCATTER)
              && call.keywords().keySet().containsAll(SCATTER_PARAMS) ->
          scatter(statement, call);
      case FxExpr.Call(String target, var args, _, _)
          when target.equals("getattr")
              && args.size() == 2
              && args.getFirst() instanceof FxExpr.Name(String of)
              && (of + ".").startsWith(SELF)
              && args.getLast() instanceof FxExpr.Str(String attribute) ->
          attributes.read(statement, (of + ".").substring(SELF.length()) + attribute);
      case FxExpr.Call(String target, _, _, _)
          when target.equals("torch.ops.prims._make_token.default") ->
          writer.emit(
              statement,
              statement.name(),
              statement.type(),
              "torch.ops.aten.empty.memory_format",
              new FxExpr.Seq(ImmutableList.of(new FxExpr.Int(0))));
      case FxExpr.Call(String target, _, _, _)
          when target.equals("torch.ops.prims._sink_tokens.default") -> {}
      case FxExpr.Name(String name) when name.startsWith(SELF) ->
          attributes.read(statement, name.substring(SELF.length()));
      case FxExpr.Name(String name) when writer.isDefined(name) -> writer.alias(statement, value);
      default -> {
        if (statement.value() instanceof FxExpr.Index && !(value instanceof FxExpr.Index)) {
          writer.alias(statement, value);
        } else {
          writer.keep(statement, value);
        }
      }
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

  private void higherOrder(Statement statement, FxExpr.Call call) {
    var op = call.target().substring(PREFIX.length());
    switch (op) {
      case "run_and_save_rng_state" -> withState(statement, call, 0, "");
      case "run_with_rng_state" -> withState(statement, call, 1, "");
      case "graphsafe_run_with_rng_state" -> withState(statement, call, 0, "rng_state");
      case "with_effects" -> {
        if (!Effects.takeApart(writer, targets, statement, call)) {
          refuse(call, op);
        }
      }
      case "auto_functionalized", "auto_functionalized_v2" -> {
        if (!Functionalized.takeApart(writer, targets, statement, call)) {
          warnOfUnknownWrites(call);
          whole(statement, call);
        }
      }
      case "triton_kernel_wrapper_functional", "triton_kernel_wrapper_mutation" -> {
        if (!TritonKernels.takeApart(writer, statement, call)) {
          refuse(call, op);
        }
      }
      default -> {
        @Nullable Integer at = CALLS.get(op);
        var subgraph =
            at == null || at >= call.args().size()
                ? Optional.<FxFunction>empty()
                : attributes.subgraph(call.args().get(at));
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
            ? "higher_order.%s chooses at run time which ops to run; a plan needs a fixed list of ops"
                .formatted(op)
            : "higher_order.%s calls another graph, which this release does not support"
                .formatted(op),
        controlFlow
            ? "compile the branch or the body of the loop by itself, and print its graph:"
                + " TORCH_LOGS=post_grad_graphs python PROGRAM 2> log.txt"
            : FxText.POST_GRAD_HINT);
  }

  private boolean isWhole(FxExpr.Call call, String op) {
    return WHOLE.contains(op)
        || Iterables.all(
            Iterables.concat(call.args(), call.keywords().values()),
            arg -> attributes.subgraph(arg).isEmpty());
  }

  /** Keeps an op, with strings for the subgraphs and operators among its arguments. */
  private void whole(Statement statement, FxExpr.Call call) {
    writer.keep(
        statement,
        new FxExpr.Call(
            call.target(),
            call.args().stream().map(this::asString).collect(toImmutableList()),
            ImmutableMap.copyOf(Maps.transformValues(call.keywords(), this::asString)),
            call.span()));
  }

  private FxExpr asString(FxExpr arg) {
    return switch (arg) {
      case FxExpr.Name(String name)
          when attributes.subgraph(arg).isPresent() || name.startsWith(OPS) ->
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
                    "%s is not known, so %s around it is planned as an unknown op"
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

  /** An operator that runs with a state of the random generator, or saves it. */
  private void withState(Statement statement, FxExpr.Call call, int at, String keyword) {
    var name = call.target().substring(PREFIX.length());
    var op = operator(call, at);
    if (op.isEmpty()) {
      refuse(call, name);
      return;
    }
    boolean same =
        name.equals("run_and_save_rng_state")
            ? states.runAndSave(statement, call, op.get())
            : states.run(statement, call, op.get(), at + 1, keyword);
    if (!same) {
      warnOnce(
          DiagnosticCode.UNSUPPORTED,
          call.span(),
          "%s cannot draw from the random state that it is given".formatted(op.get()),
          "the graph can be planned, but not run; "
              + (states.isAttention(op.get())
                  ? "run attention without dropout"
                  : "Inductor's own random numbers have seeds in the graph:"
                      + " torch._inductor.config.fallback_random = False"));
    }
  }

  /** A tensor of one value, with another at one index of a dimension. */
  private void scatter(Statement statement, FxExpr.Call call) {
    var background = writer.unique(statement.name() + "_background");
    writer.emit(
        statement,
        background,
        statement.type(),
        new FxExpr.Call(
            "torch.ops.aten.full.default",
            ImmutableList.of(call.keyword("shape"), call.keyword("background_val")),
            ImmutableMap.of("dtype", call.keyword("dtype")),
            statement.span()));
    writer.emit(
        statement,
        statement.name(),
        statement.type(),
        "torch.ops.aten.scatter.value",
        new FxExpr.Name(background),
        call.keyword("dim"),
        call.keyword("selector"),
        call.keyword("val"));
  }

  private void inline(
      Statement statement, FxExpr.Call call, String op, FxFunction subgraph, int first) {
    var args = Inlining.arguments(call, op, first);
    int given = subgraph.params().size();
    if (args.size() != given) {
      error(
          DiagnosticCode.BAD_ARGUMENT,
          call.span(),
          "the subgraph takes %s, not %s".formatted(Units.count(given, "argument"), args.size()),
          "");
      return;
    }
    limit(call, sizes.atLeast(subgraph));
    var inner = takenApart(subgraph);
    limit(call, inner.statements().size());
    Inlining.inline(writer, attributes, statement, op, inner, args);
  }

  private void limit(FxExpr.Call call, long added) {
    if (writer.size() + added > MAX_STATEMENTS) {
      throw new CompileException(
          Diagnostic.error(
              DiagnosticCode.UNSUPPORTED,
              call.span(),
              "with the statements of all subgraphs, the graph has more than %s"
                  .formatted(MAX_STATEMENTS),
              "plan the subgraph by itself"));
    }
  }
}
