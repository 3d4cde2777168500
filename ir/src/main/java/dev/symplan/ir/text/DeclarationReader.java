package dev.symplan.ir.text;

import com.google.common.base.Strings;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.op.CollectiveSpec;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpName;
import dev.symplan.ir.op.OpRegistry;
import dev.symplan.ir.op.OpSchema;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.Param;
import dev.symplan.ir.op.SchemaParser;
import dev.symplan.ir.op.SchemaResult;
import dev.symplan.ir.op.SchemaSyntaxException;
import dev.symplan.ir.op.SchemaType;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;
import org.antlr.v4.runtime.Token;
import org.antlr.v4.runtime.TokenStream;

/**
 * Reads {@code op <schema> symm_mem(…) symm_mem_results(…) group(…)}; the word op may be left out.
 */
final class DeclarationReader {
  static final String SYMM_MEM = "symm_mem";
  static final String SYMM_MEM_RESULTS = "symm_mem_results";
  static final String GROUP = "group";

  private static final List<String> CLAUSES = List.of(SYMM_MEM, SYMM_MEM_RESULTS, GROUP);

  private final StatementReader statements;
  private final StatementParser<GraphTextParser> parser;
  private final OpRegistry registry;
  private final DiagnosticSink sink;
  private final Set<OpName> declared = new HashSet<>();

  DeclarationReader(
      StatementReader statements,
      StatementParser<GraphTextParser> parser,
      OpRegistry registry,
      DiagnosticSink sink) {
    this.statements = statements;
    this.parser = parser;
    this.registry = registry;
    this.sink = sink;
  }

  /** {@return the op, which the registry knows from now on; empty where it is wrong} */
  Optional<OpDef> read() {
    var tokens = statements.tokens();
    int clauses = clausesStart(tokens);
    int first = tokens.get(0).getType() == GraphTextLexer.OP_NAME ? 0 : 1;
    if (clauses <= first) {
      var end = tokens.get(first);
      report(
          DiagnosticCode.SYNTAX, end, "expected a schema", "op ns::name(Tensor input) -> Tensor");
      return Optional.empty();
    }
    int start = tokens.get(first).getStartIndex();
    int end = tokens.get(clauses - 1).getStopIndex() + 1;
    var text = statements.file().text().substring(start, end);
    var schema = schema(text, start);
    tokens.seek(clauses);
    var parsed = parser.parse(GraphTextParser::clauses);
    if (schema.isEmpty() || parsed.isEmpty()) {
      return Optional.empty();
    }
    var spec = spec(schema.get(), parsed.get().list);
    var name = schema.get().name();
    if (spec.isEmpty()) {
      return Optional.empty();
    }
    if (!declared.add(name)) {
      reportKnown(name, tokens.get(first), "declared already in this file");
      return Optional.empty();
    }
    var known = registry.find(name);
    if (known.isEmpty()) {
      return define(spec.get(), tokens.get(first));
    }
    if (!isSame(known.get(), spec.get().resolve())) {
      reportKnown(name, tokens.get(first), "already defined, as another op");
      return Optional.empty();
    }
    return known;
  }

  private void reportKnown(OpName name, Token at, String how) {
    report(
        DiagnosticCode.DUPLICATE_NAME,
        at,
        "%s is %s".formatted(name, how),
        registry.find(name).map(def -> "it is op " + GraphPrinter.declaration(def)).orElse(""));
  }

  private static boolean isSame(OpDef known, OpDef declared) {
    return GraphPrinter.declaration(known).equals(GraphPrinter.declaration(declared));
  }

  private Optional<OpDef> define(OpSpec spec, Token at) {
    try {
      registry.define(spec);
      return registry.find(spec.name());
    } catch (IllegalArgumentException e) {
      report(DiagnosticCode.BAD_REGISTRATION, at, Strings.nullToEmpty(e.getMessage()), "");
      return Optional.empty();
    }
  }

  /** {@return the index of the first clause: behind the arrow, a word and a bracket} */
  private static int clausesStart(TokenStream tokens) {
    int last = tokens.size() - 1;
    int depth = 0;
    int arrow = last;
    for (int i = 1; i < last; i++) {
      switch (tokens.get(i).getType()) {
        case GraphTextLexer.LPAREN, GraphTextLexer.LBRACKET -> depth++;
        case GraphTextLexer.RPAREN, GraphTextLexer.RBRACKET -> depth--;
        case GraphTextLexer.SCHEMA_SIGN -> {
          if (depth == 0 && tokens.get(i).getText().equals("->")) {
            arrow = i;
          }
        }
        case GraphTextLexer.NAME -> {
          boolean called = tokens.get(i + 1).getType() == GraphTextLexer.LPAREN;
          if (depth == 0 && i > arrow + 1 && called) {
            return i;
          }
        }
        default -> {}
      }
    }
    return last;
  }

  private Optional<OpSchema> schema(String text, int start) {
    try {
      return Optional.of(SchemaParser.parse(text));
    } catch (SchemaSyntaxException e) {
      sink.report(
          Diagnostic.error(
              DiagnosticCode.BAD_SCHEMA,
              statements.span(start + e.start(), e.length()),
              e.problem(),
              e.hint()));
      return Optional.empty();
    }
  }

  private Optional<OpSpec> spec(OpSchema schema, List<GraphTextParser.ClauseContext> clauses) {
    var spec = OpSpec.of(schema.toString());
    var group = Optional.<Token>empty();
    var seen = new HashSet<String>();
    boolean valid = true;
    for (var clause : clauses) {
      var word = clause.word.getText();
      if (!CLAUSES.contains(word)) {
        report(
            DiagnosticCode.SYNTAX,
            clause.word,
            "expected symm_mem, symm_mem_results or group, not '%s'".formatted(word),
            Suggestions.hint(word, CLAUSES));
        return Optional.empty();
      }
      if (!seen.add(word)) {
        report(DiagnosticCode.BAD_REGISTRATION, clause.word, "a second %s".formatted(word), "");
        return Optional.empty();
      }
      valid &= checkNames(schema, word, clause.names);
      var names = clause.names.stream().map(Token::getText).toList();
      switch (word) {
        case SYMM_MEM -> spec = spec.symmMemArgs(names);
        case SYMM_MEM_RESULTS -> spec = spec.symmMemResults(names);
        default -> group = Optional.of(clause.names.getFirst());
      }
    }
    if (!valid) {
      return Optional.empty();
    }
    return group.isPresent()
        ? withGroup(schema, spec, group.get())
        : withOnlyGroup(schema, spec, clauses);
  }

  private boolean checkNames(OpSchema schema, String clause, List<Token> names) {
    var seen = new HashSet<String>();
    boolean valid = true;
    for (var name : names) {
      var text = name.getText();
      if (!seen.add(text)) {
        report(DiagnosticCode.BAD_REGISTRATION, name, "'%s' is named twice".formatted(text), "");
        valid = false;
      } else {
        valid &=
            clause.equals(SYMM_MEM_RESULTS)
                ? checkResult(schema, name)
                : checkParam(schema, clause, name);
      }
    }
    if (clause.equals(GROUP) && names.size() > 1) {
      report(DiagnosticCode.BAD_REGISTRATION, names.get(1), "an op has one group", "");
      return false;
    }
    return valid;
  }

  private boolean checkParam(OpSchema schema, String clause, Token name) {
    var text = name.getText();
    if (!schema.hasParam(text)) {
      var known = schema.params().stream().map(Param::name).toList();
      var meant = Suggestions.hint(text, known);
      report(
          DiagnosticCode.BAD_REGISTRATION,
          name,
          "%s has no parameter '%s'".formatted(schema.name(), text),
          meant.isEmpty() ? "it has " + String.join(", ", known) : meant);
      return false;
    }
    var type = schema.params().get(schema.indexOf(text)).type();
    boolean fits = clause.equals(GROUP) ? type == SchemaType.Base.STRING : type.holdsTensors();
    if (!fits) {
      report(
          DiagnosticCode.BAD_REGISTRATION,
          name,
          clause.equals(GROUP)
              ? "'%s' is of type %s; a group is named by a str".formatted(text, type)
              : "'%s' is of type %s; only tensors can be in symmetric memory".formatted(text, type),
          "");
    }
    return fits;
  }

  private boolean checkResult(OpSchema schema, Token name) {
    var results = schema.results();
    var text = name.getText();
    var found =
        IntStream.range(0, results.size())
            .filter(i -> text.equals(Integer.toString(i)) || text.equals(results.get(i).name()))
            .findFirst();
    if (found.isEmpty()) {
      var known =
          results.stream().map(SchemaResult::name).filter(result -> !result.isEmpty()).toList();
      report(
          DiagnosticCode.BAD_REGISTRATION,
          name,
          "%s has no result '%s'".formatted(schema.name(), text),
          "results are named by position from 0"
              + (known.isEmpty() ? "" : ", or " + String.join(", ", known)));
      return false;
    }
    var type = results.get(found.getAsInt()).type();
    if (!type.holdsTensors()) {
      report(
          DiagnosticCode.BAD_REGISTRATION,
          name,
          "result '%s' is of type %s; only tensors can be in symmetric memory"
              .formatted(text, type),
          "");
    }
    return type.holdsTensors();
  }

  private Optional<OpSpec> withGroup(OpSchema schema, OpSpec spec, Token group) {
    var operand =
        spec.symmMemArgs().stream()
            .findFirst()
            .or(
                () ->
                    schema.params().stream()
                        .filter(param -> param.type().holdsTensors())
                        .map(Param::name)
                        .findFirst());
    if (operand.isEmpty()) {
      report(
          DiagnosticCode.BAD_REGISTRATION,
          group,
          "%s takes no tensor that its group could exchange".formatted(schema.name()),
          "");
      return Optional.empty();
    }
    return Optional.of(spec.collective(CollectiveSpec.custom(operand.get(), group.getText())));
  }

  /** Without a group clause, the only parameter of type str names the group. */
  private Optional<OpSpec> withOnlyGroup(
      OpSchema schema, OpSpec spec, List<GraphTextParser.ClauseContext> clauses) {
    if (clauses.isEmpty()) {
      return Optional.of(spec);
    }
    var strings =
        schema.params().stream()
            .filter(param -> param.type() == SchemaType.Base.STRING)
            .map(Param::name)
            .toList();
    if (strings.size() == 1) {
      return Optional.of(spec);
    }
    report(
        DiagnosticCode.BAD_REGISTRATION,
        clauses.getFirst().word,
        strings.isEmpty()
            ? "%s has no parameter of type str that names its group".formatted(schema.name())
            : "%s has %d parameters of type str, and one names its group"
                .formatted(schema.name(), strings.size()),
        strings.isEmpty()
            ? "add one: str group_name"
            : "say which: group(%s)".formatted(strings.getLast()));
    return Optional.empty();
  }

  private void report(DiagnosticCode code, Token at, String message, String hint) {
    sink.report(Diagnostic.error(code, statements.span(at), message, hint));
  }
}
