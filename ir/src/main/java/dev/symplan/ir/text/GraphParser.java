package dev.symplan.ir.text;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.NoneType;
import dev.symplan.ir.Notes;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.diag.Suggestions;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpName;
import dev.symplan.ir.op.OpRegistry;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.Token;
import org.antlr.v4.runtime.TokenStream;
import org.jspecify.annotations.Nullable;

/** Reads {@code .graph} files; {@code docs/language.md} describes the language. */
public final class GraphParser {
  private static final String HEAD_HINT = "graph name(x: f32[8, 64]) { … }, or with ranks [0, 1] {";

  private final SourceFile file;
  private final DiagnosticSink sink;
  private final StatementReader statements;
  private final StatementParser<GraphTextParser> parser;
  private final ValueReader values;
  private final RankReader ranks;
  private final CallReader calls;
  private final DeclarationReader declarationReader;
  private final Map<String, ProcessGroup> groups = new LinkedHashMap<>();

  /** The names of groups whose declarations are wrong. */
  private final Set<String> wrongGroups = new HashSet<>();

  private final List<OpDef> declarations = new ArrayList<>();
  private final List<OpenGraph> heads = new ArrayList<>();
  private final List<Graph> graphs = new ArrayList<>();
  private final List<Notes> groupNotes = new ArrayList<>();
  private final List<Notes> declarationNotes = new ArrayList<>();
  private Notes headerNotes = Notes.NONE;
  private boolean started;
  private @Nullable OpenGraph open;

  /** Whether statements belong to a graph whose first line was wrong. */
  private boolean headLost;

  private GraphParser(SourceFile file, OpRegistry registry, DiagnosticSink sink) {
    this.file = file;
    this.sink = sink;
    var lexer = new GraphTextLexer(CharStreams.fromString(""));
    this.statements = new StatementReader(file, lexer, GraphLanguage.ROLES, sink);
    var grammar = new GraphTextParser(statements.tokens());
    grammar.setBuildParseTree(false);
    statements.onDropped(this::loseTargets);
    this.parser = new StatementParser<>(grammar, statements, GraphLanguage.PHRASES, sink);
    this.values = new ValueReader(statements, sink);
    this.ranks = new RankReader(statements, values, sink);
    this.calls = new CallReader(statements, values, registry, groups.keySet(), wrongGroups, sink);
    this.declarationReader = new DeclarationReader(statements, parser, registry, sink);
  }

  /**
   * {@return the program; ops are those of the global registry and those that the file declares}
   *
   * @throws CompileException when the file has errors
   */
  public static Program parse(SourceFile file) {
    var sink = new DiagnosticSink();
    var program = parse(file, BuiltinOps.registry(), sink);
    sink.throwIfErrors();
    return program;
  }

  /**
   * {@return the program; it means nothing when the sink has errors}
   *
   * @param registry the ops that the file may use; those that it declares go to a child of it
   * @throws CompileException when there are more errors than the sink takes
   */
  public static Program parse(SourceFile file, OpRegistry registry, DiagnosticSink sink) {
    return new GraphParser(file, registry.child(), sink).program();
  }

  private Program program() {
    while (statements.next()) {
      statement();
    }
    if (!started && !sink.hasErrors()) {
      error(Span.ofFile(file), "the file is empty", "a graph file starts with 'graph version 1'");
    }
    leaveOpenGraph();
    var headNotes = ImmutableList.<Notes>builder().add(headerNotes);
    headNotes.addAll(groupNotes).addAll(declarationNotes);
    return new Program(
        ImmutableList.copyOf(groups.values()),
        ImmutableList.copyOf(declarations),
        ImmutableList.copyOf(graphs),
        statements.notes(),
        headNotes.build());
  }

  private void statement() {
    var tokens = statements.tokens();
    var first = tokens.LT(1);
    int second = tokens.LA(2);
    var word = first.getType() == GraphTextLexer.NAME ? first.getText() : "";
    boolean named =
        second == GraphTextLexer.NAME
            || second == GraphTextLexer.STRING
            || second == GraphTextLexer.OP_NAME;
    boolean headed = named || (open == null && !GraphLanguage.ASSIGNMENT_SIGNS.contains(second));
    if (!started) {
      started = true;
      if (isVersion(word)) {
        version();
        return;
      }
      if (!statements.failed()) {
        error(
            statements.span(first),
            "expected 'graph version 1' as the first line",
            "the version says how to read the file");
      }
    }
    if (first.getType() == GraphTextLexer.RBRACE) {
      endGraph();
    } else if (word.equals("return")) {
      returnValues();
    } else if (word.equals("graph") && headed) {
      if (isVersion(word)) {
        error(statements.span(), "the version belongs only in the first line", "");
      } else {
        graphHead();
      }
    } else if (word.equals("group") && headed) {
      group();
    } else if (word.equals("op") && headed) {
      declaration();
    } else if (first.getType() == GraphTextLexer.OP_NAME) {
      action();
    } else if (open != null || headLost || GraphLanguage.ASSIGNMENT_SIGNS.contains(second)) {
      assignment();
    } else {
      error(
          statements.span(first),
          "expected 'graph', 'group' or 'op', not '%s'".formatted(first.getText()),
          Suggestions.hint(first.getText(), List.of("graph", "group", "op")));
    }
  }

  private boolean isVersion(String word) {
    var tokens = statements.tokens();
    return word.equals("graph")
        && tokens.LA(2) == GraphTextLexer.NAME
        && tokens.LT(2).getText().equals("version")
        && tokens.LA(3) != GraphTextLexer.LPAREN;
  }

  private void version() {
    headerNotes = statements.notes();
    parser
        .parse(GraphTextParser::version, "graph version 1")
        .filter(
            version -> !version.number.getText().equals(Integer.toString(GraphLanguage.VERSION)))
        .ifPresent(
            version -> {
              sink.report(
                  Diagnostic.error(
                      DiagnosticCode.UNSUPPORTED_VERSION,
                      statements.span(version.number),
                      "version %s of the graph language".formatted(version.number.getText()),
                      "this release reads version " + GraphLanguage.VERSION));
              throw new CompileException(sink.diagnostics());
            });
  }

  private void group() {
    leaveOpenGraph();
    var named = statements.tokens().LT(2);
    var parsed =
        parser.parse(
            GraphTextParser::group, "group name = [0, 1], or group name = mesh [2, 4] dim 1");
    var name = isName(named) ? values.name(named) : Optional.<String>empty();
    if (name.isEmpty()) {
      return;
    }
    parsed
        .flatMap(context -> ranks.group(context, name.get()))
        .ifPresentOrElse(group -> addGroup(named, group), () -> wrongGroups.add(name.get()));
  }

  private static boolean isName(Token token) {
    return token.getType() == GraphTextLexer.NAME || token.getType() == GraphTextLexer.STRING;
  }

  private void addGroup(Token name, ProcessGroup group) {
    if (groups.containsKey(group.name())) {
      values.report(
          DiagnosticCode.DUPLICATE_NAME,
          name,
          "group '%s' is declared already".formatted(group.name()),
          "");
      return;
    }
    groups.put(group.name(), group);
    groupNotes.add(statements.notes());
  }

  private void declaration() {
    leaveOpenGraph();
    var named = statements.tokens().LT(2);
    var def = declarationReader.read();
    if (def.isPresent()) {
      declarations.add(def.get());
      declarationNotes.add(statements.notes());
    } else if (named.getType() == GraphTextLexer.OP_NAME) {
      calls.lose(OpName.parse(named.getText()));
    }
  }

  private void graphHead() {
    leaveOpenGraph();
    var parsed = parser.parse(GraphTextParser::graphHead, HEAD_HINT);
    if (parsed.isEmpty()) {
      headLost = true;
      return;
    }
    var context = parsed.get();
    var span = statements.span(context.name);
    var name = values.name(context.name);
    var own = graphRanks(context);
    if (name.isEmpty() || own.isEmpty()) {
      headLost = true;
      return;
    }
    var graph = new OpenGraph(name.get(), own.get(), span, statements.notes(), sink);
    checkNew(graph);
    heads.add(graph);
    open = graph;
    context.params.forEach(param -> param(graph.scope(), param));
  }

  private Optional<ImmutableIntArray> graphRanks(GraphTextParser.GraphHeadContext context) {
    if (context.ranks == null) {
      return Optional.of(ImmutableIntArray.of());
    }
    if (!context.ranksWord.getText().equals("ranks")) {
      values.report(
          DiagnosticCode.SYNTAX,
          context.ranksWord,
          "expected 'ranks' or '{', not '%s'".formatted(context.ranksWord.getText()),
          "");
      return Optional.empty();
    }
    var listed = ranks.list(context.ranks);
    if (listed.isPresent()
        && listed.get().stream().distinct().count() < Math.max(1, listed.get().length())) {
      sink.report(
          Diagnostic.error(
              DiagnosticCode.BAD_GROUP,
              statements.span(context.ranks.start, context.ranks.stop),
              listed.get().isEmpty() ? "no rank runs the graph" : "a rank is named twice",
              "all ranks run a graph without 'ranks'"));
      return Optional.empty();
    }
    return listed;
  }

  private void checkNew(OpenGraph graph) {
    heads.stream()
        .filter(graph::collidesWith)
        .findFirst()
        .ifPresent(
            other ->
                sink.report(
                    Diagnostic.error(
                        DiagnosticCode.DUPLICATE_NAME,
                        graph.span(),
                        "graph '%s' is already defined, at %s"
                            .formatted(graph.name(), other.span().shortForm()),
                        "give each version its ranks: ranks [0, 1]")));
  }

  private void param(GraphScope scope, GraphTextParser.ParamContext context) {
    var name = context.name.getText();
    boolean valid = calls.checkDefinable(context.name);
    if (name.equals("_")) {
      values.report(DiagnosticCode.SYNTAX, context.name, "a parameter needs a name", "");
      valid = false;
    }
    var type = values.type(context.annotation);
    if (!valid || type.isEmpty()) {
      scope.lose(name);
      return;
    }
    scope.builder().input(name, type.get(), statements.span(context.start, context.stop));
    scope.define(name);
  }

  private void assignment() {
    var parsed = parser.parse(GraphTextParser::assignment);
    @Nullable OpenGraph graph = graphForStatement();
    if (parsed.isPresent()) {
      if (graph != null) {
        calls.read(graph.scope(), parsed.get().targets, parsed.get().value);
      }
    } else if (graph != null) {
      loseTargets(statements.tokens());
    }
  }

  /**
   * Marks the names that a malformed statement would have defined: that of a group, or those before
   * its equals sign.
   */
  private void loseTargets(TokenStream tokens) {
    if (open == null) {
      if (tokens.size() > 1 && tokens.get(0).getText().equals("group") && isName(tokens.get(1))) {
        values.name(tokens.get(1)).ifPresent(wrongGroups::add);
      }
      return;
    }
    for (int i = 0; i < tokens.size(); i++) {
      int type = tokens.get(i).getType();
      if (type == GraphTextLexer.NAME) {
        open.scope().lose(tokens.get(i).getText());
      } else if (type != GraphTextLexer.COMMA) {
        return;
      }
    }
  }

  private void action() {
    var parsed = parser.parse(GraphTextParser::action);
    @Nullable OpenGraph graph = graphForStatement();
    if (graph != null && parsed.isPresent()) {
      calls.read(graph.scope(), List.of(), parsed.get().value);
    }
  }

  private void returnValues() {
    var parsed = parser.parse(GraphTextParser::returnValues);
    @Nullable OpenGraph graph = graphForStatement();
    if (graph == null) {
      return;
    }
    graph.returns(statements.notes());
    parsed.ifPresent(context -> context.values.forEach(value -> output(graph.scope(), value)));
  }

  private void output(GraphScope scope, GraphTextParser.ExprContext context) {
    var value = values.value(scope, context);
    if (value.isEmpty()) {
      return;
    }
    var output = value.get();
    var span = statements.span(context.start, context.stop);
    switch (output) {
      case Arg.Ref(Value of) when of.type() == NoneType.NONE ->
          sink.report(
              Diagnostic.error(
                  DiagnosticCode.BAD_ARGUMENT, span, "'%s' has no value".formatted(of.name())));
      case Arg.Ref _, Arg.Int _, Arg.Float _, Arg.Bool _, Arg.None _ ->
          scope.builder().output(output);
      case Arg.Str _, Arg.Dtype _, Arg.Symbol _, Arg.Device _, Arg.Seq _ ->
          sink.report(
              Diagnostic.error(
                  DiagnosticCode.BAD_ARGUMENT,
                  span,
                  "a graph returns values, numbers and None, nothing else"));
    }
  }

  /** {@return the graph that the statement is in; null if none exists, which is reported} */
  private @Nullable OpenGraph graphForStatement() {
    if (open == null) {
      if (!headLost) {
        error(
            statements.span(),
            "this statement is outside a graph",
            "statements belong between the braces: graph name(…) { … }");
        headLost = true;
      }
      return null;
    }
    if (open.hasReturned()) {
      error(statements.span(), "only '}' can follow 'return'", "");
      return null;
    }
    return open;
  }

  private void endGraph() {
    @Nullable OpenGraph graph = open;
    if (graph == null) {
      if (!headLost && !statements.failed()) {
        error(statements.span(), "no graph is open for this '}'", "");
      }
      headLost = false;
      return;
    }
    if (!graph.hasReturned() && !statements.failed()) {
      error(
          statements.span(),
          "graph '%s' ends without 'return'".formatted(graph.name()),
          "a graph without results ends with a plain 'return'");
    }
    if (!sink.hasErrors()) {
      graphs.add(graph.build(statements.notes()));
    }
    open = null;
  }

  private void leaveOpenGraph() {
    headLost = false;
    if (open != null && !statements.failed()) {
      error(open.span(), "graph '%s' is not closed".formatted(open.name()), "end it with '}'");
    }
    open = null;
  }

  private void error(Span at, String message, String hint) {
    sink.report(Diagnostic.error(DiagnosticCode.SYNTAX, at, message, hint));
  }
}
