package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Notes;
import dev.symplan.ir.PythonLiterals;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.fx.SizeExpr.Operator;
import dev.symplan.ir.text.StatementParser;
import dev.symplan.ir.text.StatementReader;
import dev.symplan.ir.text.TokenPhrases;
import dev.symplan.ir.text.TokenRoles;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.ParserRuleContext;
import org.antlr.v4.runtime.Token;
import org.jspecify.annotations.Nullable;

/** Reads the Python text of FX graphs into {@link FxFunction}s. */
final class FxReader {
  private static final TokenRoles ROLES =
      TokenRoles.builder(FxTextLexer.VOCABULARY, FxTextLexer.NEWLINE, FxTextLexer.COMMENT)
          .brackets(FxTextLexer.LPAREN, FxTextLexer.RPAREN)
          .brackets(FxTextLexer.LBRACKET, FxTextLexer.RBRACKET)
          .brackets(FxTextLexer.LBRACE, FxTextLexer.RBRACE)
          .invalid(FxTextLexer.UNCLOSED_STRING)
          .invalid(FxTextLexer.UNKNOWN)
          .build();

  private static final TokenPhrases PHRASES =
      new TokenPhrases(
          FxTextLexer.VOCABULARY,
          ImmutableMap.of(
              FxTextLexer.INT, "an integer",
              FxTextLexer.FLOAT, "a number",
              FxTextLexer.NAME, "a name",
              FxTextLexer.PATH, "a path such as torch.ops.aten.mm.default",
              FxTextLexer.STRING, "a string"),
          ImmutableMap.of(
              FxTextParser.RULE_arg, "an argument",
              FxTextParser.RULE_expr, "a value",
              FxTextParser.RULE_unary, "a value",
              FxTextParser.RULE_primary, "a value"),
          ImmutableMap.of(FxTextParser.RULE_call, "an argument"));

  /** Gives the caller the results in its own nested form. */
  private static final String UNFLATTEN = "pytree.tree_unflatten";

  /** Of the only integer that fits 64 bits with a minus sign but not without. */
  private static final String SMALLEST_DIGITS = Long.toString(Long.MIN_VALUE).substring(1);

  private final String text;
  private final DiagnosticSink sink;
  private final StatementReader statements;
  private final StatementParser<FxTextParser> parser;
  private final Map<String, String> comments = new HashMap<>();
  private final Map<String, FxType> types = new HashMap<>();

  private FxReader(SourceFile file, DiagnosticSink sink) {
    this.text = file.text();
    this.sink = sink;
    this.statements =
        new StatementReader(file, new FxTextLexer(CharStreams.fromString("")), ROLES, sink);
    this.parser =
        new StatementParser<>(new FxTextParser(statements.tokens()), statements, PHRASES, sink);
  }

  /** {@return the graphs in a text that holds nothing else} */
  static List<FxFunction> read(SourceFile file, DiagnosticSink sink) {
    return new FxReader(file, sink).functions();
  }

  /**
   * One function of the text.
   *
   * @param name the attribute that holds it, where it is a subgraph; empty for others
   * @param column where it starts: what it calls starts further to the right
   */
  private record Draft(FxFunction function, String name, int column) {}

  /** What is known of a function before its return. */
  private final class Open {
    private final FxTextParser.ForwardContext head;
    private final Span span;
    private final ImmutableList.Builder<FxFunction.Statement> body = ImmutableList.builder();
    private final Map<String, FxFunction.Param> declared = new LinkedHashMap<>();
    private ImmutableList<FxFunction.Param> flattened = ImmutableList.of();
    private boolean first = true;

    Open(FxTextParser.ForwardContext head) {
      this.head = head;
      this.span = statements.span();
    }

    void statement() {
      if (isDropList()) {
        return;
      }
      var tokens = statements.tokens();
      int second = tokens.size() > 2 ? tokens.get(1).getType() : Token.EOF;
      if (second == FxTextLexer.COLON && !isAssignment()) {
        parser.parse(FxTextParser::declarations).ifPresent(this::declare);
      } else if (second == FxTextLexer.COMMA) {
        parser.parse(FxTextParser::flattening).ifPresent(this::flatten);
      } else {
        FxReader.this.statement(first).ifPresent(body::add);
        first = false;
      }
    }

    private void declare(FxTextParser.DeclarationsContext context) {
      for (var one : context.declared) {
        declared.put(
            one.name.getText(),
            new FxFunction.Param(
                one.name.getText(), type(one.annotation()), statements.span(one.name)));
      }
    }

    /** The values that the nested arguments of the caller hold: those are the real ones. */
    private void flatten(FxTextParser.FlatteningContext context) {
      var params = ImmutableList.<FxFunction.Param>builder();
      for (var name : context.names) {
        params.add(
            declared.getOrDefault(
                name.getText(),
                new FxFunction.Param(name.getText(), Optional.empty(), statements.span(name))));
      }
      flattened = params.build();
    }

    FxFunction function(FxTextParser.ReturnedContext returned) {
      return FxFunction.of(
          flattened.isEmpty() ? params(head) : flattened,
          body.build(),
          results(returned),
          span,
          statements.span(),
          Notes.NONE,
          Notes.NONE);
    }
  }

  private List<FxFunction> functions() {
    var drafts = new ArrayList<Draft>();
    @Nullable Open open = null;
    var name = "";
    while (statements.next()) {
      switch (statements.tokens().get(0).getType()) {
        case FxTextLexer.CLASS ->
            name =
                parser
                    .parse(FxTextParser::subgraph)
                    .map(context -> context.name.getText())
                    .orElse("");
        case FxTextLexer.DEF -> {
          if (open != null) {
            noReturn(open.span);
          }
          open = parser.parse(FxTextParser::forward).map(Open::new).orElse(null);
        }
        case FxTextLexer.RETURN -> {
          var returned = parser.parse(FxTextParser::returned);
          if (open != null && returned.isPresent()) {
            drafts.add(new Draft(open.function(returned.get()), name, open.span.column()));
          }
          open = null;
          name = "";
        }
        default -> {
          // Nothing after a wrong head can be understood; the head is reported already.
          if (open != null) {
            open.statement();
          }
        }
      }
    }
    if (open != null) {
      noReturn(open.span);
    }
    var functions = new ArrayList<FxFunction>();
    for (int i = 0; i < drafts.size(); i = endOf(drafts, i)) {
      functions.add(nested(drafts, i));
    }
    return functions;
  }

  /** {@return where the subgraphs of a function end} */
  private static int endOf(List<Draft> drafts, int at) {
    int end = at + 1;
    while (end < drafts.size()
        && !drafts.get(end).name().isEmpty()
        && drafts.get(end).column() > drafts.get(at).column()) {
      end++;
    }
    return end;
  }

  private static FxFunction nested(List<Draft> drafts, int at) {
    var subgraphs = ImmutableMap.<String, FxFunction>builder();
    for (int i = at + 1; i < endOf(drafts, at); i = endOf(drafts, i)) {
      subgraphs.put(drafts.get(i).name(), nested(drafts, i));
    }
    return drafts.get(at).function().withSubgraphs(subgraphs.buildKeepingLast());
  }

  private void noReturn(Span span) {
    sink.report(
        Diagnostic.error(
            DiagnosticCode.SYNTAX,
            span,
            "this function ends without a return statement",
            "the text seems to be cut: copy the whole graph, to its return"));
  }

  private Optional<FxFunction.Statement> statement(boolean first) {
    return parser
        .parse(FxTextParser::assignment)
        .map(
            context ->
                new FxFunction.Statement(
                    context.name.getText(),
                    type(context.annotation()),
                    expr(context.value),
                    statements.span(context.start, context.value.stop),
                    notes(first)));
  }

  /** The comments above a statement, apart from the statement before it. */
  private Notes notes(boolean first) {
    var given = statements.notes();
    var before = ImmutableList.<String>builder();
    boolean any = false;
    for (var line : given.before()) {
      if (!line.isEmpty()) {
        if (!any && !first) {
          before.add("");
        }
        any = true;
        before.add(comments.computeIfAbsent(line, same -> same));
      }
    }
    return any || !given.after().isEmpty() ? new Notes(before.build(), given.after()) : Notes.NONE;
  }

  /** {@return whether an equals sign stands outside brackets before any semicolon} */
  private boolean isAssignment() {
    var tokens = statements.tokens();
    int depth = 0;
    for (int i = 0; i < tokens.size(); i++) {
      switch (tokens.get(i).getType()) {
        case FxTextLexer.LPAREN, FxTextLexer.LBRACKET -> depth++;
        case FxTextLexer.RPAREN, FxTextLexer.RBRACKET -> depth--;
        case FxTextLexer.EQUALS -> {
          if (depth == 0) {
            return true;
          }
        }
        case FxTextLexer.SEMICOLON -> {
          return false;
        }
        default -> {}
      }
    }
    return false;
  }

  /** {@code a = b = None}: names that are not used any more. */
  private boolean isDropList() {
    var tokens = statements.tokens();
    if (tokens.size() < 4 || tokens.get(tokens.size() - 2).getType() != FxTextLexer.NONE) {
      return false;
    }
    for (int i = 0; i < tokens.size() - 2; i++) {
      int wanted = i % 2 == 0 ? FxTextLexer.NAME : FxTextLexer.EQUALS;
      if (tokens.get(i).getType() != wanted) {
        return false;
      }
    }
    return tokens.size() % 2 == 0;
  }

  private ImmutableList<FxFunction.Param> params(FxTextParser.ForwardContext head) {
    var params = ImmutableList.<FxFunction.Param>builder();
    for (var param : head.params) {
      if (!param.name.getText().equals("self")) {
        params.add(
            new FxFunction.Param(
                param.name.getText(), type(param.annotation()), statements.span(param.name)));
      }
    }
    return params.build();
  }

  /** {@code return (a, b)} and {@code return a, b} are the same; {@code return [a]} is too. */
  private ImmutableList<FxExpr> results(FxTextParser.ReturnedContext returned) {
    var values = exprs(returned.values);
    if (values.size() != 1 || returned.comma != null) {
      return values;
    }
    var value =
        values.getFirst() instanceof FxExpr.Call call
                && call.target().equals(UNFLATTEN)
                && !call.args().isEmpty()
            ? call.args().getFirst()
            : values.getFirst();
    return value instanceof FxExpr.Seq(var items) ? items : ImmutableList.of(value);
  }

  private Optional<FxType> type(FxTextParser.@Nullable AnnotationContext annotation) {
    if (annotation == null) {
      return Optional.empty();
    }
    @Nullable Token quoted = annotation.quoted;
    var written =
        quoted == null
            ? text.substring(annotation.start.getStartIndex(), annotation.stop.getStopIndex() + 1)
            : quoted.getText().substring(1, quoted.getText().length() - 1);
    return written.isEmpty()
        ? Optional.empty()
        : Optional.of(types.computeIfAbsent(written, TypeReader::type));
  }

  private ImmutableList<FxExpr> exprs(List<FxTextParser.ExprContext> contexts) {
    var items = ImmutableList.<FxExpr>builderWithExpectedSize(contexts.size());
    for (var context : contexts) {
      items.add(expr(context));
    }
    return items.build();
  }

  private FxExpr expr(FxTextParser.ExprContext context) {
    if (context.operands.size() == 1) {
      return unary(context.operands.getFirst());
    }
    var operands = new ArrayList<FxExpr>();
    var operators = new ArrayList<String>();
    context.operators.forEach(operator -> operators.add(operator.getText()));
    for (int i = 0; i < context.operands.size(); i++) {
      var operand = context.operands.get(i);
      boolean power = i < operators.size() && operators.get(i).equals("**");
      operands.add(power ? primary(operand.operand) : unary(operand));
    }
    // Power binds to the right, and tighter than a minus in front of it; the others bind to the
    // left, products before sums before comparisons.
    for (int i = operators.size() - 1; i >= 0; i--) {
      if (operators.get(i).equals("**")) {
        join(operands, operators, i);
        if (context.operands.get(i).minus != null) {
          operands.set(i, new FxExpr.Negative(operands.get(i)));
        }
      }
    }
    joinAll(operands, operators, List.of("*", "/", "//", "%"));
    joinAll(operands, operators, List.of("+", "-"));
    joinAll(operands, operators, List.of("<", "<=", ">", ">=", "==", "!="));
    return operands.getFirst();
  }

  private static void joinAll(List<FxExpr> operands, List<String> operators, List<String> wanted) {
    int i = 0;
    while (i < operators.size()) {
      if (wanted.contains(operators.get(i))) {
        join(operands, operators, i);
      } else {
        i++;
      }
    }
  }

  private static void join(List<FxExpr> operands, List<String> operators, int i) {
    var joined =
        new FxExpr.Binary(
            Operator.ofSign(operators.remove(i)), operands.get(i), operands.remove(i + 1));
    operands.set(i, joined);
  }

  private FxExpr unary(FxTextParser.UnaryContext context) {
    if (context.minus == null) {
      return primary(context.operand);
    }
    @Nullable Token token = context.operand.token;
    if (token != null
        && token.getType() == FxTextLexer.INT
        && token.getText().equals(SMALLEST_DIGITS)
        && context.operand.indices.isEmpty()) {
      return new FxExpr.Int(Long.MIN_VALUE);
    }
    var operand = primary(context.operand);
    return switch (operand) {
      case FxExpr.Int(long value) -> new FxExpr.Int(-value);
      case FxExpr.Float(double value) -> new FxExpr.Float(-value);
      default -> new FxExpr.Negative(operand);
    };
  }

  private FxExpr primary(FxTextParser.PrimaryContext context) {
    FxExpr value;
    if (context.call() != null) {
      value = attribute(call(context.call()), context.attribute);
    } else if (context.name != null) {
      value = name(context.name.getText());
    } else if (context.token != null) {
      value = literal(context.token);
    } else if (context.dict() != null) {
      value = new FxExpr.Dict(exprs(context.dict().keys), exprs(context.dict().values));
    } else if (context.paren != null && context.items.size() == 1 && context.commas.isEmpty()) {
      value = expr(context.items.getFirst());
    } else {
      value = new FxExpr.Seq(exprs(context.items));
    }
    for (var index : context.indices) {
      value = new FxExpr.Index(value, expr(index.value));
    }
    return value;
  }

  /** {@code getattr(self, "0").weight}: an attribute whose path is no Python name. */
  private static FxExpr attribute(FxExpr.Call call, @Nullable Token attribute) {
    if (attribute == null) {
      return call;
    }
    return call.target().equals("getattr")
            && call.args().size() == 2
            && call.args().getLast() instanceof FxExpr.Str(String name)
        ? new FxExpr.Call(
            call.target(),
            ImmutableList.of(call.args().getFirst(), new FxExpr.Str(name + attribute.getText())),
            call.keywords(),
            call.span())
        : new FxExpr.Call(
            call.target() + "(…)" + attribute.getText(), call.args(), call.keywords(), call.span());
  }

  private static FxExpr name(String text) {
    return switch (text) {
      case "inf", "math.inf" -> new FxExpr.Float(Double.POSITIVE_INFINITY);
      case "nan", "math.nan" -> new FxExpr.Float(Double.NaN);
      default -> new FxExpr.Name(text);
    };
  }

  private FxExpr literal(Token token) {
    var text = token.getText();
    return switch (token.getType()) {
      case FxTextLexer.INT -> integer(token);
      case FxTextLexer.FLOAT -> new FxExpr.Float(Double.parseDouble(text));
      case FxTextLexer.STRING -> string(token);
      case FxTextLexer.TRUE -> new FxExpr.Bool(true);
      case FxTextLexer.FALSE -> new FxExpr.Bool(false);
      default -> FxExpr.None.NONE;
    };
  }

  private FxExpr integer(Token token) {
    try {
      return new FxExpr.Int(Long.parseLong(token.getText()));
    } catch (NumberFormatException e) {
      wrong(token, "%s does not fit 64 bits".formatted(token.getText()));
      return new FxExpr.Int(0);
    }
  }

  private FxExpr string(Token token) {
    try {
      return new FxExpr.Str(PythonLiterals.unquote(token.getText()));
    } catch (IllegalArgumentException e) {
      wrong(token, String.valueOf(e.getMessage()));
      return new FxExpr.Str("");
    }
  }

  private void wrong(Token token, String message) {
    sink.report(Diagnostic.error(DiagnosticCode.SYNTAX, statements.span(token), message));
  }

  private FxExpr.Call call(FxTextParser.CallContext context) {
    var args = ImmutableList.<FxExpr>builderWithExpectedSize(context.args.size());
    var keywords = ImmutableMap.<String, FxExpr>builder();
    for (var arg : context.args) {
      if (arg.keyword == null) {
        args.add(expr(arg.value));
      } else {
        keywords.put(arg.keyword.getText(), expr(arg.value));
      }
    }
    return new FxExpr.Call(
        context.target.getText(), args.build(), keywords.buildKeepingLast(), span(context));
  }

  private Span span(ParserRuleContext context) {
    return statements.span(context.start, context.stop);
  }
}
