package dev.symplan.ir.pt2;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Notes;
import dev.symplan.ir.PythonLiterals;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.fx.FxExpr;
import dev.symplan.ir.fx.FxFunction;
import dev.symplan.ir.fx.FxFunction.Param;
import dev.symplan.ir.fx.FxFunction.Statement;
import dev.symplan.ir.fx.FxType;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The graph of an archive as lines of text for messages to point at: one for each input, one for
 * each node, and the return.
 */
final class Listing {

  /** The most characters of a statement that a line shows. */
  private static final int MAX_LINE = 300;

  private final List<Param> params = new ArrayList<>();
  private final List<Draft> drafts = new ArrayList<>();

  /** A statement without its location; one that takes a result out has that of the op above it. */
  private record Draft(String name, Optional<FxType> type, FxExpr value, Notes notes) {
    boolean hasLine() {
      return !(value instanceof FxExpr.Index);
    }

    String line() {
      return head(name, type) + " = " + show(value);
    }
  }

  void param(String name, Optional<FxType> type) {
    params.add(new Param(name, type, Span.NONE));
  }

  void statement(String name, Optional<FxType> type, FxExpr value, Notes notes) {
    drafts.add(new Draft(name, type, value, notes));
  }

  private static String head(String name, Optional<FxType> type) {
    return name + type.map(known -> ": \"" + known.text() + "\"").orElse("");
  }

  FxFunction function(
      String fileName, ImmutableList<FxExpr> results, ImmutableList<String> endNotes) {
    var lines = new ArrayList<String>();
    params.forEach(param -> lines.add(cut(head(param.name(), param.type()))));
    drafts.stream().filter(Draft::hasLine).forEach(draft -> lines.add(cut(draft.line())));
    lines.add(cut("return " + showAll(results)));
    var file = new SourceFile(fileName, String.join("\n", lines));

    int line = 0;
    var placed = ImmutableList.<Param>builder();
    for (var param : params) {
      placed.add(new Param(param.name(), param.type(), span(file, lines, ++line)));
    }
    var statements = ImmutableList.<Statement>builder();
    for (var draft : drafts) {
      line += draft.hasLine() ? 1 : 0;
      var span = span(file, lines, line);
      var value =
          draft.value instanceof FxExpr.Call(String target, var args, var keywords, Span _)
              ? new FxExpr.Call(target, args, keywords, wordSpan(file, lines, line, target))
              : draft.value;
      statements.add(new Statement(draft.name, draft.type, value, span, draft.notes));
    }
    return FxFunction.of(
        placed.build(),
        statements.build(),
        results,
        Span.ofFile(file),
        span(file, lines, lines.size()),
        Notes.NONE,
        new Notes(endNotes, ""));
  }

  private static Span span(SourceFile file, List<String> lines, int line) {
    return new Span(file, line, 1, Math.max(1, lines.get(line - 1).length()));
  }

  private static Span wordSpan(SourceFile file, List<String> lines, int line, String word) {
    int at = lines.get(line - 1).indexOf(word + "(");
    return at < 0 ? span(file, lines, line) : new Span(file, line, at + 1, word.length());
  }

  private static String cut(String line) {
    var shown = line.length() > MAX_LINE ? line.substring(0, MAX_LINE) + "…" : line;
    return shown.replace('\n', ' ').replace('\r', ' ');
  }

  private static String show(FxExpr expr) {
    return switch (expr) {
      case FxExpr.Name(String name) -> name;
      case FxExpr.Int(long value) -> Long.toString(value);
      case FxExpr.Float(double value) -> PythonLiterals.repr(value);
      case FxExpr.Str(String value) -> PythonLiterals.quote(value);
      case FxExpr.Bool(boolean value) -> value ? "True" : "False";
      case FxExpr.Seq(var items) -> "[" + showAll(items) + "]";
      case FxExpr.Index(FxExpr of, FxExpr index) -> show(of) + "[" + show(index) + "]";
      case FxExpr.Binary(var operator, FxExpr left, FxExpr right) ->
          show(left) + " " + operator + " " + show(right);
      case FxExpr.Negative(FxExpr operand) -> "-" + show(operand);
      case FxExpr.Call(String target, var args, var keywords, Span _) ->
          Stream.concat(
                  args.stream().map(Listing::show),
                  keywords.entrySet().stream()
                      .map(entry -> entry.getKey() + "=" + show(entry.getValue())))
              .collect(Collectors.joining(", ", target + "(", ")"));
      case FxExpr.Dict _ -> "{}";
      case FxExpr.None _ -> "None";
    };
  }

  private static String showAll(List<FxExpr> items) {
    return items.stream().map(Listing::show).collect(Collectors.joining(", "));
  }
}
