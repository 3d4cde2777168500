package dev.symplan.planner.calibrate;

import com.google.common.base.CharMatcher;
import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import com.google.common.primitives.Doubles;
import com.google.common.primitives.Longs;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;

/** Measured times as CSV: a header, a line for each, and comments that begin with {@code #}. */
final class CsvReader {
  private final SourceFile file;
  private final DiagnosticSink sink;
  private final List<String> known;
  private final List<String> required;
  private final String header;
  private final Map<String, Integer> columns = new HashMap<>();
  private final List<String> comments = new ArrayList<>();
  private List<String> fields = List.of();
  private int line;
  private boolean wrong;

  /**
   * @param known the names of all columns that there may be
   * @param required those that there must be
   * @param header an example, for messages
   */
  CsvReader(
      SourceFile file,
      DiagnosticSink sink,
      List<String> known,
      List<String> required,
      String header) {
    this.file = file;
    this.sink = sink;
    this.known = known;
    this.required = required;
    this.header = header;
  }

  /**
   * {@return the rows that the lines give; at least one, unless the sink has an error}
   *
   * @param row reads the fields of the current line
   */
  <T> ImmutableList<T> read(Supplier<Optional<T>> row) {
    var rows = ImmutableList.<T>builder();
    for (var text : Splitter.on('\n').split(file.text())) {
      line++;
      var trimmed = CharMatcher.whitespace().trimTrailingFrom(text);
      if (trimmed.startsWith("#")) {
        comments.add(trimmed.substring(1).strip());
        continue;
      }
      if (trimmed.isEmpty()) {
        continue;
      }
      fields = Splitter.on(',').splitToList(trimmed);
      if (columns.isEmpty()) {
        readHeader();
        sink.throwIfErrors();
      } else if (fields.size() != columns.size()) {
        error(
            new Span(file, line, 1, trimmed.length()),
            "%s fields, but the header names %s".formatted(fields.size(), columns.size()),
            "write one field for each column of the header");
      } else {
        wrong = false;
        row.get().ifPresent(rows::add);
      }
    }
    var built = rows.build();
    if (built.isEmpty() && !sink.hasErrors()) {
      error(Span.ofFile(file), "the file has no points", expected());
    }
    return built;
  }

  private String expected() {
    return "expected the header '%s'".formatted(header);
  }

  private void readHeader() {
    for (int i = 0; i < fields.size(); i++) {
      var name = fields.get(i).strip();
      if (!known.contains(name)) {
        error(
            location(i),
            "unknown column '%s'".formatted(name),
            "known: " + String.join(", ", known));
      } else if (columns.putIfAbsent(name, i) != null) {
        error(location(i), "a second column '%s'".formatted(name), "leave one of them out");
      }
    }
    for (var name : required) {
      if (!columns.containsKey(name)) {
        error(location(0), "column '%s' is missing".formatted(name), expected());
      }
    }
  }

  /** {@return the lines that begin with {@code #}, without it} */
  ImmutableList<String> comments() {
    return ImmutableList.copyOf(comments);
  }

  /** {@return whether there was an error in the current line} */
  boolean isWrong() {
    return wrong;
  }

  /** {@return a field of the current line; empty if there is no such column} */
  String text(String column) {
    var index = columns.get(column);
    return index == null ? "" : fields.get(index).strip();
  }

  /** {@return a number from 1 to a limit; 1 if there is an error} */
  long count(String column, long max) {
    if (isMissing(column)) {
      return 1;
    }
    var value =
        Optional.ofNullable(Longs.tryParse(text(column)))
            .filter(number -> number >= 1 && number <= max);
    if (value.isEmpty()) {
      error(
          column,
          "'%s' is not a valid number of %s".formatted(text(column), column),
          "expected a whole number from 1");
      return 1;
    }
    return value.get();
  }

  /** {@return a number above 0; 1 if there is an error} */
  double positive(String column) {
    if (isMissing(column)) {
      return 1;
    }
    var value =
        Optional.ofNullable(Doubles.tryParse(text(column)))
            .filter(number -> number > 0 && number < Double.POSITIVE_INFINITY);
    if (value.isEmpty()) {
      error(
          column,
          "'%s' is not a valid %s".formatted(text(column), column),
          "expected a number above 0");
      return 1;
    }
    return value.get();
  }

  private boolean isMissing(String column) {
    if (columns.containsKey(column)) {
      return false;
    }
    var first = required.getFirst();
    error(
        first,
        "column '%s' is missing; %s requires it".formatted(column, text(first)),
        "add it to the header");
    return true;
  }

  /** Reports what is wrong with a field of the current line. */
  void error(String column, String message, String hint) {
    error(location(columns.getOrDefault(column, 0)), message, hint);
  }

  private Span location(int index) {
    int at = 1;
    for (int i = 0; i < index; i++) {
      at += fields.get(i).length() + 1;
    }
    return new Span(file, line, at, Math.max(1, fields.get(index).length()));
  }

  private void error(Span span, String message, String hint) {
    wrong = true;
    sink.report(Diagnostic.error(DiagnosticCode.BAD_POINTS, span, message, hint));
  }
}
