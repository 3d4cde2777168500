package dev.symplan.ir.text;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.base.Strings;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Suggestions;
import dev.symplan.ir.op.CollectiveSpec;
import dev.symplan.ir.op.CollectiveSpec.Foreign;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.CollectiveSpec.Role;
import dev.symplan.ir.op.Library;
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
import java.util.Arrays;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.IntStream;
import org.antlr.v4.runtime.Token;
import org.antlr.v4.runtime.TokenStream;

/**
 * Reads {@code op <schema> symm_mem(…) symm_mem_results(…) collective(…) algorithm(…) group(…)};
 * the word op may be left out.
 */
final class DeclarationReader {
  static final String SYMM_MEM = "symm_mem";
  static final String SYMM_MEM_RESULTS = "symm_mem_results";
  static final String COLLECTIVE = "collective";
  static final String ALGORITHM = "algorithm";
  static final String GROUP = "group";

  private static final ImmutableList<String> CLAUSES =
      ImmutableList.of(SYMM_MEM, SYMM_MEM_RESULTS, COLLECTIVE, ALGORITHM, GROUP);

  /** The words that demand symmetric memory. */
  private static final ImmutableSet<String> DEMANDS = ImmutableSet.of(SYMM_MEM, SYMM_MEM_RESULTS);

  private static final ImmutableList<String> KINDS =
      Arrays.stream(Kind.values())
          .filter(kind -> kind != Kind.CUSTOM)
          .map(Kind::text)
          .collect(toImmutableList());

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

  /** {@return the op, which the registry knows from now on; empty if it is wrong} */
  Optional<OpDef> read() {
    var tokens = statements.tokens();
    int clausesAt = clausesStart(tokens);
    int first = tokens.get(0).getType() == GraphTextLexer.OP_NAME ? 0 : 1;
    if (clausesAt <= first) {
      var end = tokens.get(first);
      report(
          DiagnosticCode.SYNTAX, end, "expected a schema", "op ns::name(Tensor input) -> Tensor");
      return Optional.empty();
    }
    int start = tokens.get(first).getStartIndex();
    int end = tokens.get(clausesAt - 1).getStopIndex() + 1;
    var text = statements.file().text().substring(start, end);
    var schema = schema(text, start);
    tokens.seek(clausesAt);
    var parsed = parser.parse(GraphTextParser::clauses);
    if (schema.isEmpty() || parsed.isEmpty()) {
      return Optional.empty();
    }
    var name = schema.get().name();
    var clauses = clauses(schema.get(), parsed.get().list);
    if (clauses.isEmpty()) {
      return Optional.empty();
    }
    var at = tokens.get(first);
    if (!declared.add(name)) {
      reportKnown(name, at, "declared already in this file");
      return Optional.empty();
    }
    var known = registry.find(name);
    if (known.isEmpty()) {
      var list = parsed.get().list;
      return define(schema.get(), clauses.get(), list.isEmpty() ? at : list.getFirst().word);
    }
    return reuse(known.get(), schema.get(), clauses.get(), at);
  }

  private void reportKnown(OpName name, Token at, String how) {
    report(
        DiagnosticCode.DUPLICATE_NAME,
        at,
        "%s is %s".formatted(name, how),
        registry.find(name).map(def -> "it is op " + GraphPrinter.declaration(def)).orElse(""));
  }

  /** An op that is known stays as it is, but a functional collective takes on demands. */
  private Optional<OpDef> reuse(OpDef known, OpSchema schema, Clauses clauses, Token at) {
    boolean functional =
        known
            .collective()
            .filter(spec -> spec.kind() != Kind.CUSTOM && spec.foreign().isEmpty())
            .isPresent();
    var clausesOfKnown = GraphPrinter.clauses(known);
    boolean same =
        (known.schema().equals(schema) || (functional && isExtended(schema, known.schema())))
            && clauses.names.keySet().stream()
                .filter(word -> !(functional && DEMANDS.contains(word)))
                .allMatch(word -> clauses.names(word).equals(clausesOfKnown.get(word)));
    if (!same) {
      reportKnown(known.name(), at, "already defined, as another op");
      return Optional.empty();
    }
    if (functional) {
      var library = Library.in(registry, known.name().namespace());
      var op = known.name().toString();
      if (clauses.has(SYMM_MEM)) {
        var _ = library.registerSymmMemArgs(op, clauses.names(SYMM_MEM));
      }
      if (clauses.has(SYMM_MEM_RESULTS)) {
        var _ = library.registerSymmMemResults(op, clauses.names(SYMM_MEM_RESULTS));
      }
    }
    return registry.find(known.name());
  }

  /** Built-in collectives take more arguments than PyTorch's. */
  private static boolean isExtended(OpSchema schema, OpSchema known) {
    int count = schema.params().size();
    return known.params().size() > count
        && known.params().subList(0, count).equals(schema.params())
        && known.params().stream().skip(count).allMatch(p -> p.defaultValue().isPresent())
        && known.results().equals(schema.results());
  }

  private Optional<OpDef> define(OpSchema schema, Clauses clauses, Token at) {
    try {
      registry.define(spec(schema, clauses));
      return registry.find(schema.name());
    } catch (IllegalArgumentException e) {
      var hint = clauses.has(GROUP) ? "" : groupHint(schema);
      report(DiagnosticCode.BAD_REGISTRATION, at, Strings.nullToEmpty(e.getMessage()), hint);
      return Optional.empty();
    }
  }

  /** The group is unclear only where several parameters may name it. */
  private static String groupHint(OpSchema schema) {
    var named = schema.params().stream().filter(p -> p.type() == SchemaType.Base.STRING).toList();
    return named.size() < 2 ? "" : "name it: group(%s)".formatted(named.getLast().name());
  }

  private static OpSpec spec(OpSchema schema, Clauses clauses) {
    var spec =
        OpSpec.of(schema.toString())
            .symmMemArgs(clauses.names(SYMM_MEM))
            .symmMemResults(clauses.names(SYMM_MEM_RESULTS));
    if (clauses.names.isEmpty()) {
      return spec;
    }
    var kind = clauses.first(COLLECTIVE).flatMap(Kind::ofText);
    var collective = CollectiveSpec.of(kind.orElse(Kind.CUSTOM));
    if (kind.isPresent()) {
      collective = collective.with(new Foreign(clauses.first(ALGORITHM)));
    } else if (clauses.has(SYMM_MEM)) {
      collective = collective.with(Role.OPERAND, clauses.names(SYMM_MEM).getFirst());
    }
    var group = clauses.first(GROUP);
    return spec.collective(
        group.isPresent() ? collective.with(Role.GROUP, group.get()) : collective);
  }

  /** {@return the index of the first clause: after the arrow, a word and a bracket} */
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

  /** The names in each clause. */
  private record Clauses(ImmutableMap<String, ImmutableList<String>> names) {
    boolean has(String word) {
      return names.containsKey(word);
    }

    ImmutableList<String> names(String word) {
      return names.getOrDefault(word, ImmutableList.of());
    }

    Optional<String> first(String word) {
      return names(word).stream().findFirst();
    }
  }

  private Optional<Clauses> clauses(OpSchema schema, List<GraphTextParser.ClauseContext> clauses) {
    var names = new LinkedHashMap<String, ImmutableList<String>>();
    boolean valid = true;
    for (var clause : clauses) {
      var word = clause.word.getText();
      if (!CLAUSES.contains(word)) {
        report(
            DiagnosticCode.SYNTAX,
            clause.word,
            "expected one of %s, not '%s'".formatted(String.join(", ", CLAUSES), word),
            Suggestions.hint(word, CLAUSES));
        return Optional.empty();
      }
      var list = clause.names.stream().map(Token::getText).collect(toImmutableList());
      if (names.put(word, list) != null) {
        report(DiagnosticCode.BAD_REGISTRATION, clause.word, "a second %s".formatted(word), "");
        return Optional.empty();
      }
      valid &= checkNames(schema, word, clause.names);
    }
    if (names.containsKey(ALGORITHM) && !names.containsKey(COLLECTIVE)) {
      report(
          DiagnosticCode.BAD_REGISTRATION,
          clauses.getFirst().word,
          "only a collective has an algorithm",
          "add collective(%s)".formatted(KINDS.getFirst()));
      valid = false;
    }
    return valid ? Optional.of(new Clauses(ImmutableMap.copyOf(names))) : Optional.empty();
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
            switch (clause) {
              case SYMM_MEM_RESULTS -> checkResult(schema, name);
              case COLLECTIVE -> checkKind(name);
              case ALGORITHM -> true;
              default -> checkParam(schema, clause, name);
            };
      }
    }
    if (!DEMANDS.contains(clause) && names.size() > 1) {
      report(DiagnosticCode.BAD_REGISTRATION, names.get(1), "an op has one " + clause, "");
      return false;
    }
    return valid;
  }

  private boolean checkKind(Token name) {
    boolean known = KINDS.contains(name.getText());
    if (!known) {
      var meant = Suggestions.hint(name.getText(), KINDS);
      report(
          DiagnosticCode.BAD_REGISTRATION,
          name,
          "'%s' is not a kind of collective".formatted(name.getText()),
          meant.isEmpty() ? "kinds: " + String.join(", ", KINDS) : meant);
    }
    return known;
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

  private void report(DiagnosticCode code, Token at, String message, String hint) {
    sink.report(Diagnostic.error(code, statements.span(at), message, hint));
  }
}
