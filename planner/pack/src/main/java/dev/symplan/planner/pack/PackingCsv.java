package dev.symplan.planner.pack;

import com.google.common.base.CharMatcher;
import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.Longs;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.Set;

/**
 * Packing problems as minimalloc's CSV files hold them: a header that names the columns, then one
 * buffer per line.
 *
 * <p>Columns, in any order: {@code id} (also {@code buffer}, {@code buffer_id}), {@code lower}
 * (also {@code start}, {@code begin}), {@code upper} (the first step at which the buffer is not
 * live; or {@code end}: the last at which it is), {@code size} in bytes, and optionally {@code
 * alignment} in bytes, 1 if the column is missing. A column {@code offset} is read over.
 *
 * @param ids the buffers' names, by position
 */
public record PackingCsv(ImmutableList<String> ids, PackingProblem problem) {

  private enum Column {
    ID("id"),
    LOWER("lower"),
    UPPER("upper"),
    SIZE("size"),
    ALIGNMENT("alignment"),
    OFFSET("offset");

    final String word;

    Column(String word) {
      this.word = word;
    }

    boolean isRequired() {
      return this != ALIGNMENT && this != OFFSET;
    }
  }

  /** With the other names that minimalloc's reader takes. */
  private static final ImmutableMap<String, Column> NAMES =
      ImmutableMap.<String, Column>builder()
          .put("id", Column.ID)
          .put("buffer", Column.ID)
          .put("buffer_id", Column.ID)
          .put("lower", Column.LOWER)
          .put("start", Column.LOWER)
          .put("begin", Column.LOWER)
          .put("upper", Column.UPPER)
          .put("end", Column.UPPER)
          .put("size", Column.SIZE)
          .put("alignment", Column.ALIGNMENT)
          .put("offset", Column.OFFSET)
          .buildOrThrow();

  private static final String EXPECTED_HEADER = "expected the header 'id,lower,upper,size'";

  public PackingCsv {
    if (ids.size() != problem.count()) {
      throw new IllegalArgumentException(ids.size() + " names for " + problem.count() + " buffers");
    }
  }

  /**
   * Reads a file's text.
   *
   * @throws CompileException where the text is not such a file, with a diagnostic for each field
   *     that is wrong
   */
  public static PackingCsv read(SourceFile file) {
    var sink = new DiagnosticSink();
    var csv = new Reader(file, sink).read();
    sink.throwIfErrors();
    return csv;
  }

  /** {@return the file with the buffers' offsets, as minimalloc writes them} */
  public String write(Packing packing) {
    boolean aligned = problem.items().stream().anyMatch(buffer -> buffer.alignment() > 1);
    var out = new StringBuilder(32 * ids.size() + 64);
    out.append("id,lower,upper,size,").append(aligned ? "alignment," : "").append("offset\n");
    for (int i = 0; i < ids.size(); i++) {
      var buffer = problem.item(i);
      out.append(ids.get(i)).append(',').append(buffer.start()).append(',').append(buffer.end());
      out.append(',').append(buffer.size()).append(',');
      if (aligned) {
        out.append(buffer.alignment()).append(',');
      }
      out.append(packing.offset(i)).append('\n');
    }
    return out.toString();
  }

  /** Reads one text, line by line. */
  private static final class Reader {
    private final SourceFile file;
    private final DiagnosticSink sink;
    private final Map<Column, Integer> columns = new EnumMap<>(Column.class);
    private final ImmutableList.Builder<String> ids = ImmutableList.builder();
    private final Set<String> known = new HashSet<>();
    private final PackingProblem.Builder problem = PackingProblem.builder();
    private boolean upperIsLast;
    private int lineNumber;

    Reader(SourceFile file, DiagnosticSink sink) {
      this.file = file;
      this.sink = sink;
    }

    PackingCsv read() {
      for (var each : Splitter.on('\n').split(file.text())) {
        lineNumber++;
        var line = CharMatcher.whitespace().trimTrailingFrom(each);
        if (line.isEmpty()) {
          continue;
        }
        var fields = Splitter.on(',').splitToList(line);
        if (columns.isEmpty()) {
          readHeader(fields, line);
          sink.throwIfErrors();
        } else if (fields.size() != columns.size()) {
          error(
              0,
              line.length(),
              fields.size() + " fields, but the header names " + columns.size(),
              "write one field for each column of the header");
        } else {
          readBuffer(fields);
        }
      }
      if (columns.isEmpty()) {
        var span = Span.ofFile(file);
        sink.report(
            Diagnostic.error(DiagnosticCode.SYNTAX, span, "the file is empty", EXPECTED_HEADER));
      }
      return new PackingCsv(ids.build(), problem.build());
    }

    private void readHeader(List<String> fields, String line) {
      int at = 0;
      for (var field : fields) {
        var name = field.strip();
        var column = NAMES.get(name);
        if (column == null) {
          error(at, field.length(), "unknown column '" + name + "'", EXPECTED_HEADER);
        } else if (columns.putIfAbsent(column, columns.size()) != null) {
          error(at, field.length(), "a second column for " + column.word, "leave one of them out");
        }
        upperIsLast |= name.equals("end");
        at += field.length() + 1;
      }
      for (var column : Column.values()) {
        if (column.isRequired() && !columns.containsKey(column)) {
          error(0, line.length(), "no column '" + column.word + "'", EXPECTED_HEADER);
        }
      }
    }

    private void readBuffer(List<String> fields) {
      var id = field(fields, Column.ID).strip();
      if (!known.add(id)) {
        error(
            DiagnosticCode.DUPLICATE_NAME,
            fields,
            Column.ID,
            "a second buffer '" + id + "'",
            "give each buffer its own id");
      }
      var lower = number(fields, Column.LOWER, Integer.MIN_VALUE, Integer.MAX_VALUE - 1L);
      var upper = number(fields, Column.UPPER, Integer.MIN_VALUE, Integer.MAX_VALUE - 1L);
      var size = number(fields, Column.SIZE, 1, Item.MAX_SIZE);
      var alignment =
          columns.containsKey(Column.ALIGNMENT)
              ? number(fields, Column.ALIGNMENT, 1, Item.MAX_SIZE)
              : OptionalLong.of(1);
      long begin = lower.orElse(Integer.MIN_VALUE);
      long end = upper.orElse(Integer.MAX_VALUE) + (upperIsLast ? 1 : 0);
      if (lower.isPresent() && upper.isPresent() && end <= begin) {
        error(
            DiagnosticCode.SYNTAX,
            fields,
            Column.UPPER,
            "the buffer ends at %s, but begins at %s".formatted(upper.getAsLong(), begin),
            "a buffer lives for at least one step");
      }
      if (Long.bitCount(alignment.orElse(1)) != 1) {
        error(
            DiagnosticCode.SYNTAX,
            fields,
            Column.ALIGNMENT,
            "the alignment " + alignment.getAsLong() + " is not a power of two",
            "expected 1, 2, 4, 8 …");
      }
      if (!sink.hasErrors()) {
        ids.add(id);
        problem.add((int) begin, (int) end, size.getAsLong(), alignment.getAsLong());
      }
    }

    private String field(List<String> fields, Column column) {
      return fields.get(columns.getOrDefault(column, 0));
    }

    /** {@return the number in a field; empty if it is wrong, which is said} */
    private OptionalLong number(List<String> fields, Column column, long min, long max) {
      var text = field(fields, column).strip();
      var value = Longs.tryParse(text);
      if (value != null && value >= min && value <= max) {
        return OptionalLong.of(value);
      }
      error(
          DiagnosticCode.SYNTAX,
          fields,
          column,
          "'" + text + "' is not a valid " + column.word,
          "expected a whole number from " + min + " to " + max);
      return OptionalLong.empty();
    }

    private void error(
        DiagnosticCode code, List<String> fields, Column column, String message, String hint) {
      int index = columns.getOrDefault(column, 0);
      int at = 0;
      for (int i = 0; i < index; i++) {
        at += fields.get(i).length() + 1;
      }
      var span = new Span(file, lineNumber, at + 1, Math.max(1, fields.get(index).length()));
      sink.report(Diagnostic.error(code, span, message, hint));
    }

    private void error(int at, int length, String message, String hint) {
      var span = new Span(file, lineNumber, at + 1, Math.max(1, length));
      sink.report(Diagnostic.error(DiagnosticCode.SYNTAX, span, message, hint));
    }
  }
}
