package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Notes;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
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

  private final String text;
  private final DiagnosticSink sink;
  private final StatementReader statements;
  private final StatementParser<FxTextParser> parser;
  private final ExprReader exprs;
  private final Map<String, String> comments = new HashMap<>();
  private final Map<String, FxType> types = new HashMap<>();

  private FxReader(SourceFile file, DiagnosticSink sink) {
    this.text = file.text();
    this.sink = sink;
    this.statements =
        new StatementReader(file, new FxTextLexer(CharStreams.fromString("")), ROLES, sink);
    this.exprs = new ExprReader(statements, sink);
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

  /** A function of which the return is not read yet. */
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
            "the text seems to be truncated: copy the whole graph, to its return"));
  }

  private Optional<FxFunction.Statement> statement(boolean first) {
    return parser
        .parse(FxTextParser::assignment)
        .map(
            context ->
                new FxFunction.Statement(
                    context.name.getText(),
                    type(context.annotation()),
                    exprs.expr(context.value),
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
    var values = exprs.exprs(returned.values);
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
}
