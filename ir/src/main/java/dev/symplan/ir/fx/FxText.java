package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.Iterables;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * Finds the Python of FX graphs in PyTorch's output: a listing alone, or a log of one or several
 * ranks, where the lines of listings have a prefix and other lines stand between them.
 *
 * <p>Where a log holds the listings of several phases of the compiler, those after Inductor's
 * passes are taken.
 */
final class FxText {

  /**
   * The Python that one rank printed. Lines and columns are those of the whole text; the rest is
   * blank.
   *
   * @param rank absent where the text does not say
   */
  record Listing(OptionalInt rank, SourceFile file) {}

  /** The lines of listings that come without the name of a phase. */
  private static final String NO_PHASE = "";

  /** What is taken first, the names as in {@code TORCH_LOGS}. */
  private static final ImmutableList<String> PHASES =
      ImmutableList.of("post_grad_graphs", NO_PHASE, "aot_graphs");

  private static final int NO_RANK = -1;
  private static final String HEAD = "def forward(";
  private static final String PRINT_HINT =
      "print it with gm.print_readable(include_stride=True, include_device=True), or run with"
          + " TORCH_LOGS=post_grad_graphs";

  private final SourceFile file;
  private final String text;
  private final Map<String, TreeMap<Integer, Cutter>> phases = new LinkedHashMap<>();

  // Of the line that is read.
  private String phase = NO_PHASE;
  private int rank = NO_RANK;
  private boolean message;

  private FxText(SourceFile file) {
    this.file = file;
    this.text = file.text();
  }

  /**
   * {@return the listings in a text, at least one; of several, each has a rank, in order}
   *
   * @throws CompileException when there is none
   */
  static ImmutableList<Listing> listings(SourceFile file) {
    var reader = new FxText(file);
    reader.split();
    return reader.chosen();
  }

  private void split() {
    int line = 0;
    int next;
    for (int start = 0; start < text.length(); start = next) {
      int end = text.indexOf('\n', start);
      next = end < 0 ? text.length() : end + 1;
      int from = prefixEnd(start, next);
      if (!message) {
        phases
            .computeIfAbsent(phase, s -> new TreeMap<>())
            .computeIfAbsent(rank, r -> new Cutter(text))
            .line(line, start, from, next);
      }
      line++;
    }
  }

  /**
   * {@return the offset behind the prefix of a line, which may be {@code [rank0]:V1120
   * 21:20:19.453000 7731 torch/_inductor/compile_fx.py:1382] [0/0] [__post_grad_graphs] }, or any
   * of its parts}
   */
  private int prefixEnd(int start, int end) {
    phase = NO_PHASE;
    rank = NO_RANK;
    message = false;
    int at = start;
    while (at < end && text.charAt(at) == '[') {
      int label = labelEnd(at, end);
      if (label < 0) {
        return at;
      }
      at = label;
    }
    if (isLogHeader(at, end)) {
      int mark = text.indexOf("] [__", at);
      int close = mark < 0 || mark >= end ? -1 : text.indexOf(']', mark + 1);
      if (close < 0 || close >= end) {
        message = true;
        return at;
      }
      phase = text.substring(mark + "] [__".length(), close);
      at = close + 1;
      return at < end && text.charAt(at) == ' ' ? at + 1 : at;
    }
    return at;
  }

  /** {@code [rank0]:}, as PyTorch labels lines, or {@code [default0]:}, as torchrun does. */
  private int labelEnd(int start, int end) {
    int at = start + 1;
    while (at < end && isLetter(text.charAt(at))) {
      at++;
    }
    int digits = at;
    while (at < end && at - digits < 6 && isDigit(text.charAt(at))) {
      at++;
    }
    if (digits == start + 1 || at == digits || !text.startsWith("]:", at)) {
      return -1;
    }
    if (rank == NO_RANK || text.startsWith("rank", start + 1)) {
      rank = Integer.parseInt(text, digits, at, 10);
    }
    at += 2;
    // torchrun puts a blank behind its label only where a line does not start with one itself.
    return at < end && text.charAt(at) == ' ' && text.startsWith("[rank", at + 1) ? at + 1 : at;
  }

  /** {@code V1120 }: level, month and day. */
  private boolean isLogHeader(int at, int end) {
    if (end - at < 6 || "VDIWEC".indexOf(text.charAt(at)) < 0 || text.charAt(at + 5) != ' ') {
      return false;
    }
    for (int i = 1; i <= 4; i++) {
      if (!isDigit(text.charAt(at + i))) {
        return false;
      }
    }
    return true;
  }

  private static boolean isDigit(char c) {
    return c >= '0' && c <= '9';
  }

  private static boolean isLetter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  }

  private ImmutableList<Listing> chosen() {
    for (var name : Iterables.concat(PHASES, List.copyOf(phases.keySet()))) {
      @Nullable TreeMap<Integer, Cutter> ranks = phases.get(name);
      if (ranks != null && ranks.values().stream().anyMatch(Cutter::hasGraph)) {
        ranks.values().removeIf(cutter -> !cutter.hasGraph());
        // Where some lines have a label, those without one do not make a rank.
        if (ranks.size() > 1) {
          ranks.remove(NO_RANK);
        }
        var listings = ImmutableList.<Listing>builder();
        ranks.forEach(
            (number, cutter) ->
                listings.add(
                    new Listing(
                        number == NO_RANK ? OptionalInt.empty() : OptionalInt.of(number),
                        new SourceFile(file.name(), cutter.python()))));
        return listings.build();
      }
    }
    throw new CompileException(noGraph());
  }

  private Diagnostic noGraph() {
    if (text.contains("call_function[target=")) {
      return Diagnostic.error(
          DiagnosticCode.UNSUPPORTED,
          lineWith("call_function[target="),
          "this is str(graph), which leaves out shapes and the quotes of strings",
          PRINT_HINT);
    }
    if (text.contains(" = torch.ops.")) {
      return Diagnostic.error(
          DiagnosticCode.SYNTAX,
          lineWith(" = torch.ops."),
          "there is no def forward(…): above the statements",
          PRINT_HINT);
    }
    return Diagnostic.error(
        DiagnosticCode.SYNTAX,
        Span.ofFile(file),
        "there is no graph in the text: no def forward(…):",
        PRINT_HINT);
  }

  private Span lineWith(String part) {
    int at = text.indexOf(part);
    int line = 1;
    int start = 0;
    for (int end = text.indexOf('\n'); end >= 0 && end < at; end = text.indexOf('\n', start)) {
      start = end + 1;
      line++;
    }
    return new Span(file, line, at - start + 1, part.length());
  }

  /**
   * {@return the text without what differs between ranks only because each prints its own device:
   * two ranks whose texts are the same then run the same graph}
   */
  static String withoutDevices(String python) {
    var out = new StringBuilder(python.length());
    int at = 0;
    while (at < python.length() && isBlank(python.charAt(at))) {
      at++;
    }
    int copied = at;
    while (at < python.length()) {
      char c = python.charAt(at);
      int digits = -1;
      if (c == '\n') {
        // Where a statement stands does not matter either.
        int first = at + 1;
        while (first < python.length() && isBlank(python.charAt(first))) {
          first++;
        }
        if (first > at + 1) {
          out.append(python, copied, at + 1);
          copied = first;
          at = first;
          continue;
        }
      } else if (c == ':' && at > 0 && isLetter(python.charAt(at - 1))) {
        digits = at + 1;
      } else if (c == 'i' && python.startsWith("index=", at)) {
        digits = at + "index=".length();
      }
      int end = digits;
      while (end >= 0 && end < python.length() && isDigit(python.charAt(end))) {
        end++;
      }
      if (end > digits && end < python.length() && "\")".indexOf(python.charAt(end)) >= 0) {
        out.append(python, copied, digits);
        copied = end;
        at = end;
      } else {
        at++;
      }
    }
    return out.append(python, copied, python.length()).toString();
  }

  private static boolean isBlank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
  }

  /** Takes the lines of one rank and keeps those of its graphs, at their place. */
  private static final class Cutter {
    private final String text;
    private final StringBuilder out = new StringBuilder();
    private int lines;
    private boolean inside;
    private int brackets;
    private boolean found;

    Cutter(String text) {
      this.text = text;
    }

    boolean hasGraph() {
      return found;
    }

    String python() {
      return out.toString();
    }

    void line(int number, int start, int from, int end) {
      int first = from;
      while (first < end && (text.charAt(first) == ' ' || text.charAt(first) == '\t')) {
        first++;
      }
      if (text.startsWith(HEAD, first)) {
        found = true;
        inside = true;
        brackets = 0;
      } else if (brackets == 0 && text.startsWith("class ", first)) {
        inside = false;
      }
      if (!inside) {
        return;
      }
      out.repeat('\n', number - lines).repeat(' ', from - start).append(text, from, end);
      lines = number + (end > from && text.charAt(end - 1) == '\n' ? 1 : 0);
      // What follows a graph's return is not part of it.
      if (brackets > 0 || text.startsWith("return", first)) {
        brackets = Math.max(0, brackets + opened(first, end));
        inside = brackets > 0;
      }
    }

    /** Opened less closed brackets on a line. */
    private int opened(int from, int end) {
      int open = 0;
      for (int i = from; i < end && text.charAt(i) != '#'; i++) {
        char c = text.charAt(i);
        open += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
      }
      return open;
    }
  }
}
