package dev.symplan.ir.text;

import com.google.common.base.Strings;
import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Type;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.diag.Suggestions;
import dev.symplan.ir.graph.GraphBuilder.ResultSpec;
import dev.symplan.ir.op.ArgBinder;
import dev.symplan.ir.op.CollectiveSpec;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpName;
import dev.symplan.ir.op.OpRegistry;
import dev.symplan.ir.op.OpTypeException;
import dev.symplan.ir.op.Param;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.antlr.v4.runtime.Token;

/** Adds the ops of parsed statements to a graph. */
final class CallReader {
  private static final int MAX_OVERLOADS_SHOWN = 8;

  private final StatementReader statements;
  private final ValueReader values;
  private final OpRegistry registry;
  private final Set<String> groups;
  private final Set<String> wrongGroups;

  /** The names of ops whose declarations are wrong, without overloads. */
  private final Set<String> wrongOps = new HashSet<>();

  private final DiagnosticSink sink;

  CallReader(
      StatementReader statements,
      ValueReader values,
      OpRegistry registry,
      Set<String> groups,
      Set<String> wrongGroups,
      DiagnosticSink sink) {
    this.statements = statements;
    this.values = values;
    this.registry = registry;
    this.groups = groups;
    this.wrongGroups = wrongGroups;
    this.sink = sink;
  }

  /** A target of an assignment. An invalid one has the parts that could be read. */
  private record Target(ResultSpec spec, boolean valid) {}

  void read(
      GraphScope scope,
      List<GraphTextParser.TargetContext> targets,
      GraphTextParser.CallContext call) {
    var parsed = targets.stream().map(this::target).toList();
    var def = find(call.op);
    var args = args(scope, call);
    var bound = def.flatMap(d -> args.flatMap(a -> bind(d, a, call)));
    if (bound.isEmpty() || parsed.stream().anyMatch(target -> !target.valid())) {
      parsed.forEach(target -> lose(scope, target.spec()));
      return;
    }
    var specs = parsed.stream().map(Target::spec).toList();
    int errors = errors();
    var results =
        scope
            .builder()
            .op(
                def.orElseThrow(),
                bound.get(),
                specs,
                statements.span(call.start, call.stop),
                statements.notes());
    boolean wrong = errors() > errors;
    for (int i = 0; i < specs.size(); i++) {
      var spec = specs.get(i);
      scope.define(spec.name());
      if (wrong && spec.annotation().isEmpty()) {
        scope.loseResult(spec.name(), i < results.size() ? results.get(i) : null);
      }
    }
  }

  /** Errors are few, as reading ends after some; a sink without one is not asked to list them. */
  private int errors() {
    return sink.hasErrors() ? sink.diagnostics().size() : 0;
  }

  private static void lose(GraphScope scope, ResultSpec spec) {
    spec.annotation()
        .ifPresentOrElse(
            type -> scope.loseTyped(spec.name(), type, spec.span()), () -> scope.lose(spec.name()));
  }

  private Target target(GraphTextParser.TargetContext context) {
    var word = context.name.getText();
    boolean valid = checkDefinable(context.name);
    var name = word.equals("_") ? "" : word;
    var span = statements.span(context.start, context.stop);
    if (context.annotation == null) {
      return new Target(ResultSpec.named(name, span), valid);
    }
    Optional<Type> type = values.type(context.annotation);
    boolean strides = context.annotation.strides != null;
    return new Target(new ResultSpec(name, type, strides, span), valid && type.isPresent());
  }

  /** {@return whether a value may be called so; if not, that is reported} */
  boolean checkDefinable(Token name) {
    var word = name.getText();
    if (!GraphLanguage.RESERVED.contains(word)) {
      return true;
    }
    values.report(DiagnosticCode.SYNTAX, name, "'%s' cannot name a value".formatted(word), "");
    return false;
  }

  /** Remembers that the declaration of an op is wrong, so that calls of it are not reported. */
  void lose(OpName op) {
    wrongOps.add(op.base());
  }

  private Optional<OpDef> find(Token token) {
    var name = OpName.parse(token.getText());
    var def = registry.find(name);
    if (def.isPresent()) {
      return def;
    }
    if (wrongOps.contains(name.base())) {
      return Optional.empty();
    }
    var overloads = registry.overloads(name.base());
    if (overloads.isEmpty()) {
      var bases =
          registry.names().stream()
              .map(OpName::base)
              .collect(Collectors.toCollection(LinkedHashSet::new));
      var hint = Suggestions.hint(name.base(), bases);
      values.report(
          DiagnosticCode.UNKNOWN_OP,
          token,
          "no op '%s'".formatted(name.base()),
          hint.isEmpty()
              ? "declare it: op %s(Tensor input) -> Tensor".formatted(name.base())
              : hint);
    } else {
      values.report(
          DiagnosticCode.UNKNOWN_OP,
          token,
          name.overload().isEmpty()
              ? "%s has no default overload".formatted(name)
              : "%s has no overload '%s'".formatted(name.base(), name.overload()),
          "overloads: " + list(overloads));
    }
    return Optional.empty();
  }

  private static String list(List<OpName> overloads) {
    var shown =
        overloads.stream()
            .limit(MAX_OVERLOADS_SHOWN)
            .map(OpName::toString)
            .collect(Collectors.joining(", "));
    return overloads.size() > MAX_OVERLOADS_SHOWN ? shown + ", …" : shown;
  }

  private record Args(List<Arg> positional, Map<String, Arg> keywords) {}

  private Optional<Args> args(GraphScope scope, GraphTextParser.CallContext call) {
    var positional = new ArrayList<Arg>(call.args.size());
    var keywords = new LinkedHashMap<String, Arg>();
    boolean complete = true;
    for (var context : call.args) {
      var arg = values.value(scope, context);
      complete &= arg.isPresent();
      if (context.value == null) {
        if (!keywords.isEmpty()) {
          report(context, "a positional argument follows a keyword argument");
          complete = false;
        }
        arg.ifPresent(positional::add);
      } else if (arg.isPresent() && keywords.put(context.name.getText(), arg.get()) != null) {
        report(context, "'%s' is given twice".formatted(context.name.getText()));
        complete = false;
      }
    }
    return complete ? Optional.of(new Args(positional, keywords)) : Optional.empty();
  }

  private void report(GraphTextParser.ArgContext at, String message) {
    sink.report(
        Diagnostic.error(DiagnosticCode.BAD_ARGUMENT, statements.span(at.start, at.stop), message));
  }

  private Optional<ImmutableList<Arg>> bind(
      OpDef def, Args args, GraphTextParser.CallContext call) {
    try {
      var bound = ArgBinder.bind(def.schema(), args.positional(), args.keywords());
      return checkGroup(def, bound, call) ? Optional.of(bound) : Optional.empty();
    } catch (OpTypeException e) {
      sink.report(
          Diagnostic.error(
              DiagnosticCode.BAD_ARGUMENT,
              argument(def, e.param(), call),
              Strings.nullToEmpty(e.getMessage()),
              hint(def, e)));
      return Optional.empty();
    }
  }

  /** A parameter that does not exist may be a misspelt one. */
  private static String hint(OpDef def, OpTypeException e) {
    if (e.param().isEmpty() || def.schema().hasParam(e.param())) {
      return e.hint();
    }
    var meant =
        Suggestions.hint(e.param(), def.schema().params().stream().map(Param::name).toList());
    return meant.isEmpty() ? e.hint() : meant;
  }

  private boolean checkGroup(
      OpDef def, ImmutableList<Arg> bound, GraphTextParser.CallContext call) {
    var named = def.collective().flatMap(CollectiveSpec::group);
    if (named.isEmpty()) {
      return true;
    }
    var param = named.get();
    if (!(bound.get(def.schema().indexOf(param)) instanceof Arg.Str(String group))
        || groups.contains(group)
        || wrongGroups.contains(group)) {
      return true;
    }
    var meant = Suggestions.hint(group, groups);
    sink.report(
        Diagnostic.error(
            DiagnosticCode.UNKNOWN_GROUP,
            argument(def, param, call),
            "no group '%s' is declared".formatted(group),
            meant.isEmpty()
                ? "declare it above the graph: group %s = [0, 1]"
                    .formatted(GraphLanguage.nameText(group))
                : meant));
    return false;
  }

  /** {@return where the argument of a parameter stands, or the op's name where it is left out} */
  private Span argument(OpDef def, String param, GraphTextParser.CallContext call) {
    int position = def.schema().hasParam(param) ? def.schema().indexOf(param) : -1;
    for (int i = 0; i < call.args.size(); i++) {
      var arg = call.args.get(i);
      if (arg.value == null ? i == position : arg.name.getText().equals(param)) {
        return statements.span(arg.start, arg.stop);
      }
    }
    return param.isEmpty() ? extra(def, call) : statements.span(call.op);
  }

  /** {@return where the first positional argument too many stands, or the op's name} */
  private Span extra(OpDef def, GraphTextParser.CallContext call) {
    long positional = def.schema().params().stream().filter(p -> !p.keywordOnly()).count();
    return call.args.stream()
        .filter(arg -> arg.value == null)
        .skip(positional)
        .findFirst()
        .map(arg -> statements.span(arg.start, arg.stop))
        .orElseGet(() -> statements.span(call.op));
  }
}
