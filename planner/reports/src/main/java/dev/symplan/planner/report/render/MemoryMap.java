package dev.symplan.planner.report.render;

import com.google.common.base.Ascii;
import com.google.common.base.Strings;
import dev.symplan.ir.diag.Units;
import dev.symplan.planner.report.Fact;
import dev.symplan.planner.report.Row;
import dev.symplan.planner.report.Section;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/**
 * A map of an arena for terminals: steps from left to right, offsets from the bottom up, a letter
 * for each of the largest buffers, and which these are below.
 *
 * <p>Colours are of Okabe and Ito's palette, which all people can distinguish, in the nearest of
 * 256; what they say is also written.
 */
final class MemoryMap {
  private static final int HEIGHT = 16;
  private static final int LABEL = 10;
  private static final int MIN_WIDTH = 20;
  private static final String LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  private static final char OTHER_SYMMETRIC = '#';
  private static final char OTHER = '=';
  private static final char FREE = '.';

  private final Row arena;
  private final List<Row> buffers;
  private final List<Row> named;
  private final int columns;
  private final int steps;
  private final boolean colour;

  private MemoryMap(Row arena, int width, boolean colour) {
    this.arena = arena;
    this.buffers = arena.rows();
    this.colour = colour;
    // From the step before the first to the one after the last.
    this.steps = Math.toIntExact(arena.whole("steps")) + 2;
    this.columns = Math.max(MIN_WIDTH, width - LABEL - 1);
    this.named =
        buffers.stream()
            .sorted(
                Comparator.comparingLong((Row row) -> -area(row))
                    .thenComparingLong(row -> row.whole("id")))
            .limit(LETTERS.length())
            .toList();
  }

  static String render(Section section, int width, boolean colour) {
    var out = new StringBuilder();
    for (var arena : section.rows()) {
      out.append(out.isEmpty() ? "" : "\n");
      new MemoryMap(arena, width, colour).draw(out);
    }
    return out.toString();
  }

  private static long area(Row buffer) {
    return buffer.whole("bytes") * (last(buffer) - first(buffer) + 1);
  }

  private static long first(Row buffer) {
    return number(buffer, "first");
  }

  private static long last(Row buffer) {
    return number(buffer, "last");
  }

  private static long number(Row row, String fact) {
    return row.facts().get(fact) instanceof Fact.Whole(long value) ? value : 0;
  }

  private void draw(StringBuilder out) {
    out.append(
        "%s arena · %s · at most %s live, %s · %s fragmented\n"
            .formatted(
                arena.title(),
                arena.details().get(0),
                arena.details().get(1),
                arena.details().get(2),
                arena.details().get(3)));
    var cells = cells();
    int height = cells.length;
    for (int line = height - 1; line >= 0; line--) {
      boolean labelled = line == height - 1 || line % 4 == 0;
      var label = labelled ? Units.bytes(bytes() * line / height) : "";
      out.append(Strings.padStart(label, LABEL - 1, ' ')).append(" |");
      line(out, cells[line]);
      out.append('\n');
    }
    axis(out);
    graphs(out);
    legend(out);
  }

  private long bytes() {
    return Math.max(1, arena.whole("bytes"));
  }

  /** Lines of cells from the lowest offset up; each the number of a buffer, or -1. */
  private int[][] cells() {
    int height = Math.toIntExact(Math.min(HEIGHT, Math.max(1, buffers.size() * 4L)));
    var cells = new int[height][columns];
    var taken = new long[height][columns];
    for (var line : cells) {
      Arrays.fill(line, -1);
    }
    double lineBytes = (double) bytes() / height;
    for (int b = 0; b < buffers.size(); b++) {
      var buffer = buffers.get(b);
      long from = buffer.whole("offset");
      long to = from + buffer.whole("bytes");
      int low = (int) Math.min(height - 1, from / lineBytes);
      int high = (int) Math.min(height - 1, (to - 1) / lineBytes);
      for (int line = low; line <= high; line++) {
        long here =
            (long) (Math.min(to, (line + 1) * lineBytes) - Math.max(from, line * lineBytes));
        int first = column(first(buffer));
        // Of many steps, several share a column.
        int end = Math.max(column(last(buffer)) + 1, column(last(buffer) + 1));
        for (int c = first; c < Math.min(end, columns); c++) {
          if (here > taken[line][c]) {
            taken[line][c] = here;
            cells[line][c] = b;
          }
        }
      }
    }
    return cells;
  }

  /** {@return where a step begins, which is where the one before ends} */
  private int column(long step) {
    return (int) Math.clamp((step + 1) * columns / steps, 0, columns);
  }

  private void line(StringBuilder out, int[] cells) {
    int run = -2;
    for (int b : cells) {
      if (colour && b != run) {
        out.append(b < 0 ? "\u001b[0m" : ansi(buffers.get(b)));
      }
      run = b;
      out.append(b < 0 ? FREE : letter(buffers.get(b)));
    }
    out.append(colour ? "\u001b[0m" : "");
  }

  private char letter(Row buffer) {
    int at = named.indexOf(buffer);
    if (at < 0) {
      return buffer.flag("symmetric") ? OTHER_SYMMETRIC : OTHER;
    }
    char letter = LETTERS.charAt(at);
    return buffer.flag("symmetric") ? letter : Ascii.toLowerCase(letter);
  }

  private static String ansi(Row buffer) {
    int code =
        switch (buffer.text("role")) {
          case "input" -> 74;
          case "output" -> 36;
          case "collective" -> 214;
          case "staging" -> 166;
          case "workspace" -> 175;
          default -> 250;
        };
    return "\u001b[30;48;5;%sm".formatted(code);
  }

  private void axis(StringBuilder out) {
    out.append(" ".repeat(LABEL)).append('+').append("-".repeat(columns)).append('\n');
    var marks = new StringBuilder(" ".repeat(LABEL + 1 + columns));
    var numbers = new StringBuilder(marks);
    int peak = LABEL + 1 + Math.min(columns - 1, column(number(arena, "peak_step")));
    marks.setCharAt(peak, '^');
    var text = "peak";
    int at = Math.min(peak, marks.length() - text.length());
    numbers.replace(at, at + text.length(), text);
    out.append(marks.toString().stripTrailing()).append('\n');
    var end = Integer.toString(steps - 2);
    int first = LABEL + 1 + column(0);
    if (at > first + 7) {
      numbers.replace(first, first + 6, "step 0");
    }
    if (at + text.length() + end.length() + 1 < numbers.length()) {
      numbers.replace(numbers.length() - end.length(), numbers.length(), end);
    }
    out.append(numbers.toString().stripTrailing()).append('\n');
  }

  /** Where the graphs of a program begin. */
  private void graphs(StringBuilder out) {
    var steps = arena.wholes("graph_steps");
    var names = arena.texts("graphs");
    if (names.isEmpty()) {
      return;
    }
    var line = new StringBuilder(" ".repeat(LABEL + 1));
    for (int g = 0; g < names.size(); g++) {
      int begin = LABEL + 1 + column(steps.get(g));
      int end = g + 1 < names.size() ? LABEL + 1 + column(steps.get(g + 1)) : LABEL + columns + 1;
      line.append(" ".repeat(Math.max(0, begin - line.length())));
      var text = "|" + names.get(g);
      line.append(text, 0, Math.clamp(end - line.length(), 0, text.length()));
    }
    out.append(line.toString().stripTrailing()).append('\n');
  }

  private void legend(StringBuilder out) {
    var entries = new ArrayList<String>();
    for (var buffer : named) {
      entries.add(
          "%s %s %s"
              .formatted(letter(buffer), buffer.text("name"), Units.bytes(buffer.whole("bytes"))));
    }
    out.append("capital letters are symmetric, the others local");
    if (buffers.size() > named.size()) {
      out.append(
          "; %s and %s are %s"
              .formatted(
                  OTHER_SYMMETRIC,
                  OTHER,
                  Units.count(buffers.size() - named.size(), "smaller buffer")));
    }
    out.append('\n');
    var line = new StringBuilder();
    for (var entry : entries) {
      if (!line.isEmpty() && line.length() + entry.length() + 3 > columns + LABEL) {
        out.append(line).append('\n');
        line.setLength(0);
      }
      line.append(line.isEmpty() ? "" : "   ").append(entry);
    }
    out.append(line).append('\n');
  }
}
