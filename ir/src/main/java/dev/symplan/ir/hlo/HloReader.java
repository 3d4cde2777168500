package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.CompileException;
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
import org.antlr.v4.runtime.ParserRuleContext;
import org.antlr.v4.runtime.Token;
import org.jspecify.annotations.Nullable;

/** Reads the text of a module, with a schedule or without. */
public final class HloReader {
  /** The first word of every module. */
  public static final String KEYWORD = "HloModule";

  private static final String ON_HOST = "S(" + HloShape.Array.HOST + ")";
  private static final String HINT = "%name = f32[8,64]{1,0} add(%a, %b)";

  private static final TokenRoles ROLES =
      TokenRoles.builder(HloTextLexer.VOCABULARY, HloTextLexer.NEWLINE, HloTextLexer.COMMENT)
          .brackets(HloTextLexer.LPAREN, HloTextLexer.RPAREN)
          .brackets(HloTextLexer.LBRACKET, HloTextLexer.RBRACKET)
          .brackets(HloTextLexer.LBRACE, HloTextLexer.RBRACE)
          .frame(HloTextLexer.OPEN_BODY, HloTextLexer.CLOSE_BODY)
          .invalid(HloTextLexer.UNCLOSED_STRING)
          .invalid(HloTextLexer.UNKNOWN)
          .build();

  private static final TokenPhrases PHRASES =
      new TokenPhrases(
          HloTextLexer.VOCABULARY,
          ImmutableMap.of(
              HloTextLexer.NAME, "a name",
              HloTextLexer.NUMBER, "a number",
              HloTextLexer.STRING, "a string",
              HloTextLexer.SIGN, "a sign",
              HloTextLexer.OPEN_BODY, "'{' at the end of the line",
              HloTextLexer.CLOSE_BODY, "'}' at the start of a line"),
          ImmutableMap.of(
              HloTextParser.RULE_shape, "a shape such as f32[8,64]{1,0}",
              HloTextParser.RULE_operand, "an operand",
              HloTextParser.RULE_attribute, "an attribute such as dimensions={0}",
              HloTextParser.RULE_value, "a value"));

  /** A computation whose body is being read. */
  private static final class Open {
    private final String name;
    private final boolean entry;
    private final Span span;
    private final List<HloInstruction> instructions = new ArrayList<>();
    private final List<HloInstruction> notable = new ArrayList<>();
    private final Map<String, HloInstruction> byName = new HashMap<>();
    private @Nullable HloInstruction root;

    Open(String name, boolean entry, Span span) {
      this.name = name;
      this.entry = entry;
      this.span = span;
    }
  }

  private final SourceFile file;
  private final String text;
  private final DiagnosticSink sink;
  private final StatementReader statements;
  private final StatementParser<HloTextParser> parser;
  private final Map<String, HloShape> shapes = new HashMap<>();
  private final Map<String, String> words = new HashMap<>();
  private final Map<String, HloComputation> computations = new LinkedHashMap<>();
  private final SourceTables sources = new SourceTables();
  private String moduleName = "";
  private HloAttributes moduleAttributes = HloAttributes.NONE;
  private String table = "";
  private @Nullable Open open;
  private @Nullable HloComputation entry;

  /** Whether any array is in the host's memory, or an instruction moves one there. */
  private boolean onHost;

  /** Whether the elements of any array are not those of its tensor. */
  private boolean hasOpaque;

  /** Whether lines belong to a computation whose first line was wrong. */
  private boolean headLost;

  private HloReader(SourceFile file, DiagnosticSink sink) {
    this.file = file;
    this.text = file.text();
    this.sink = sink;
    this.statements = new StatementReader(file, new HloLexer(text), ROLES, sink);
    var grammar = new HloTextParser(statements.tokens());
    grammar.setBuildParseTree(false);
    this.parser = new StatementParser<>(grammar, statements, PHRASES, sink);
  }

  /** {@return whether a text is a module, after white space and comments} */
  public static boolean isModule(String text) {
    int at = 0;
    while (at < text.length()) {
      if (Character.isWhitespace(text.charAt(at))) {
        at++;
      } else if (text.startsWith("//", at)) {
        int end = text.indexOf('\n', at);
        at = end < 0 ? text.length() : end;
      } else {
        return text.startsWith(KEYWORD + " ", at);
      }
    }
    return false;
  }

  /**
   * {@return the module}
   *
   * @throws CompileException when the text is malformed
   */
  public static HloModule read(SourceFile file) {
    var sink = new DiagnosticSink();
    var module = new HloReader(file, sink).module();
    sink.throwIfErrors();
    return module.orElseThrow();
  }

  private Optional<HloModule> module() {
    while (statements.next()) {
      statement();
    }
    if (open != null) {
      error(
          open.span,
          "computation '%s' ends without a '}'".formatted(open.name),
          "the text seems to be truncated: dump the whole module");
    }
    if (sink.hasErrors()) {
      return Optional.empty();
    }
    @Nullable HloComputation main = entry;
    if (main == null) {
      error(
          Span.ofFile(file),
          "the module has no entry computation",
          "the text seems to be truncated: one computation starts with ENTRY");
      return Optional.empty();
    }
    return Optional.of(
        new HloModule(
            moduleName,
            moduleAttributes,
            ImmutableMap.copyOf(computations),
            main,
            onHost
                || moduleAttributes.text("entry_computation_layout").orElse("").contains(ON_HOST),
            hasOpaque,
            sources));
  }

  private void statement() {
    var tokens = statements.tokens();
    int first = tokens.LA(1);
    int last = tokens.get(tokens.size() - 2).getType();
    if (last == HloTextLexer.OPEN_BODY) {
      head();
    } else if (first == HloTextLexer.CLOSE_BODY) {
      parser.parse(HloTextParser::end).ifPresent(end -> close());
    } else if (first == HloTextLexer.COMMA) {
      parser.parse(HloTextParser::afterEnd);
    } else if (open != null) {
      parser.parse(HloTextParser::instruction, HINT).ifPresent(this::instruction);
    } else if (first == HloTextLexer.NUMBER) {
      parser.parse(HloTextParser::row).ifPresent(this::row);
    } else if (tokens.size() == 2) {
      parser.parse(HloTextParser::table).ifPresent(name -> table = name.keyword.getText());
    } else if (tokens.get(0).getText().equals(KEYWORD)) {
      parser.parse(HloTextParser::module).ifPresent(this::header);
    } else if (!headLost) {
      error(
          statements.span(),
          "this line is in no computation",
          "computations start with %name (x: f32[4]) -> f32[4] {");
    }
  }

  private void header(HloTextParser.ModuleContext context) {
    if (!moduleName.isEmpty()) {
      sink.report(
          Diagnostic.error(
              DiagnosticCode.UNSUPPORTED,
              statements.span(),
              "a second module in one text",
              "give each module a file of its own"));
    }
    moduleName = HloAttributes.unquoted(context.name.getText());
    moduleAttributes = attributes(context.attributes);
  }

  private void row(HloTextParser.RowContext context) {
    int number = integer(context.number);
    if (context.text != null) {
      sources.name(table, number, HloAttributes.unquoted(context.text.getText()));
      return;
    }
    var fields = new HashMap<String, Integer>();
    for (int i = 0; i < context.keys.size(); i++) {
      fields.put(context.keys.get(i).getText(), integer(context.values.get(i)));
    }
    sources.row(table, number, fields);
  }

  private int integer(Token token) {
    return SourceTables.number(token.getText())
        .orElseGet(
            () -> {
              error(
                  statements.span(token), "'%s' is not an integer".formatted(token.getText()), "");
              return 0;
            });
  }

  private void head() {
    if (open != null) {
      error(
          open.span,
          "computation '%s' ends without a '}'".formatted(open.name),
          "a '}' at the start of a line ends it");
    }
    headLost = false;
    open = null;
    var head = parser.parse(HloTextParser::computation);
    if (head.isEmpty()) {
      headLost = true;
      return;
    }
    var names = head.get().words;
    var name = plain(names.getLast().getText());
    boolean main = names.size() == 2 && names.getFirst().getText().equals("ENTRY");
    if (names.size() > 1 && !main) {
      error(
          statements.span(names.getFirst()),
          "expected ENTRY or nothing before '%s'".formatted(name),
          "");
    }
    if (main && entry != null) {
      error(statements.span(), "a second entry computation", "the first is at " + entry.span());
    }
    open = new Open(name, main, statements.span());
  }

  private void close() {
    @Nullable Open closed = open;
    open = null;
    if (closed == null) {
      if (!headLost) {
        error(statements.span(), "no computation is open for this '}'", "");
      }
      headLost = false;
      return;
    }
    // Lines after a wrong one are read for their own errors only.
    if (closed.instructions.isEmpty()) {
      if (!sink.hasErrors()) {
        error(closed.span, "computation '%s' is empty".formatted(closed.name), "");
      }
      return;
    }
    var root = closed.root == null ? closed.instructions.getLast() : closed.root;
    var made =
        new HloComputation(
            closed.name,
            ImmutableList.copyOf(closed.instructions),
            ImmutableList.copyOf(closed.notable),
            root,
            closed.span);
    if (computations.putIfAbsent(closed.name, made) != null) {
      duplicate(closed.span, closed.name);
    }
    if (closed.entry) {
      entry = made;
    }
  }

  private void instruction(HloTextParser.InstructionContext context) {
    @Nullable Open to = open;
    if (to == null) {
      return;
    }
    var names = context.names;
    var name = plain(names.getLast().getText());
    boolean root = names.size() == 2 && names.getFirst().getText().equals("ROOT");
    if (names.size() > 1 && !root) {
      error(
          statements.span(names.getFirst()),
          "expected ROOT or nothing before '%s'".formatted(name),
          HINT);
    }
    var span = statements.span(names.getLast());
    var opcode = word(context.opcode.getText());
    var operands = ImmutableList.<String>builder();
    var literal = "";
    boolean isLiteral = opcode.equals("constant") || opcode.equals("parameter");
    if (isLiteral) {
      literal = between(context.opcode);
    } else {
      for (var operand : context.operands) {
        operands.add(operand(operand, to));
      }
    }
    var instruction =
        new HloInstruction(
            name,
            shape(context.type),
            opcode,
            operands.build(),
            literal,
            attributes(context.attributes),
            span);
    onHost |= HostArrays.isDemand(instruction);
    if (opcode.equals("parameter") && SourceTables.number(literal).isEmpty()) {
      error(span, "parameter(%s) has no number".formatted(literal), "parameters count from 0");
    }
    if (to.byName.putIfAbsent(name, instruction) != null) {
      duplicate(span, name);
    }
    to.instructions.add(instruction);
    if (Fusions.isNotable(opcode)) {
      to.notable.add(instruction);
    }
    if (root) {
      to.root = instruction;
    }
  }

  /** The text in the parentheses after an opcode. */
  private String between(Token opcode) {
    var tokens = statements.tokens();
    int depth = 0;
    int start = opcode.getTokenIndex() + 1;
    for (int i = start; i < tokens.size(); i++) {
      int type = tokens.get(i).getType();
      if (type == HloTextLexer.LPAREN) {
        depth++;
      } else if (type == HloTextLexer.RPAREN && --depth == 0) {
        return text.substring(tokens.get(start).getStopIndex() + 1, tokens.get(i).getStartIndex());
      }
    }
    return "";
  }

  private String operand(HloTextParser.OperandContext context, Open in) {
    var token = context.name != null ? context.name : context.first;
    var written = token.getText();
    var name = plain(written);
    int part = name.indexOf('#');
    @Nullable HloInstruction found = in.byName.get(part < 0 ? name : name.substring(0, part));
    if (found == null) {
      sink.report(
          Diagnostic.error(
              DiagnosticCode.UNKNOWN_VALUE,
              statements.span(token),
              "'%s' is not defined above".formatted(written),
              "operands are instructions of the same computation"));
      return name;
    }
    return part < 0 ? found.name() : name;
  }

  private HloShape shape(ParserRuleContext context) {
    var written = text.substring(context.start.getStartIndex(), context.stop.getStopIndex() + 1);
    @Nullable HloShape known = shapes.get(written);
    if (known == null) {
      try {
        known = ShapeReader.read(written);
      } catch (ShapeReader.WrongShape e) {
        sink.report(
            Diagnostic.error(
                DiagnosticCode.UNKNOWN_NAME,
                statements.span(context.start, context.stop),
                e.text(),
                e.hint()));
        known = new HloShape.Token("wrong");
      }
      onHost |= known.arrays().anyMatch(array -> array.space() == HloShape.Array.HOST);
      hasOpaque |= known.arrays().anyMatch(array -> !array.exact());
      shapes.put(written, known);
    }
    return known;
  }

  private HloAttributes attributes(List<HloTextParser.AttributeContext> list) {
    if (list.isEmpty()) {
      return HloAttributes.NONE;
    }
    var values = ImmutableMap.<String, String>builderWithExpectedSize(list.size());
    for (var attribute : list) {
      int end = attribute.stop.getStopIndex() + 1;
      int start = Math.min(attribute.key.getStopIndex() + 2, end);
      values.put(word(attribute.key.getText()), word(text.substring(start, end)));
    }
    return new HloAttributes(values.buildKeepingLast());
  }

  /** Many texts come again and again. */
  private String word(String given) {
    @Nullable String known = words.get(given);
    if (known == null) {
      words.put(given, given);
      return given;
    }
    return known;
  }

  private static String plain(String name) {
    return name.startsWith("%") ? name.substring(1) : name;
  }

  private void duplicate(Span at, String name) {
    sink.report(
        Diagnostic.error(
            DiagnosticCode.DUPLICATE_NAME, at, "'%s' is already defined".formatted(name)));
  }

  private void error(Span at, String message, String hint) {
    sink.report(Diagnostic.error(DiagnosticCode.SYNTAX, at, message, hint));
  }
}
