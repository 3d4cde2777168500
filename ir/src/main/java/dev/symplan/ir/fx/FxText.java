package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.Iterables;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.fx.FunctionCutter.Function;
import dev.symplan.ir.fx.FunctionCutter.Kind;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.TreeMap;
import java.util.regex.Pattern;
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
   * @param rank absent if the text does not say
   */
  record Listing(OptionalInt rank, SourceFile file) {}

  /** The lines of listings that come without the name of a phase. */
  private static final String NO_PHASE = "";

  /** The graphs that are taken first, with their names in {@code TORCH_LOGS}. */
  private static final ImmutableList<String> PHASES =
      ImmutableList.of("post_grad_graphs", NO_PHASE, "aot_graphs");

  /** The records of {@code TORCH_TRACE} that hold graphs, with the names of the phases. */
  private static final ImmutableMap<String, String> RECORDS =
      ImmutableMap.of(
          "inductor_post_grad_graph", "post_grad_graphs",
          "aot_forward_graph", "aot_graphs",
          "aot_backward_graph", "aot_graphs",
          "aot_inference_graph", "aot_graphs",
          "aot_joint_graph", "aot_joint_graph",
          "dynamo_output_graph", "graph_code");

  private static final char ESCAPE = '\u001B';
  private static final Pattern COLOUR = Pattern.compile(ESCAPE + "\\[[0-9;]*m");

  private static final Pattern FIRST_KEY = Pattern.compile("\\{\"(\\w+)\"");
  private static final Pattern ARTIFACT_NAME = Pattern.compile("\"name\": \"(\\w+)\"");
  private static final Pattern RECORD_RANK = Pattern.compile("\"rank\": ([0-9]{1,6})\\b");

  private static final int NO_RANK = -1;
  static final String POST_GRAD_HINT =
      "print the graphs that run: TORCH_LOGS=post_grad_graphs python PROGRAM 2> log.txt, and then:"
          + " symplan compile log.txt";

  private final SourceFile file;
  private final String text;
  private final Map<String, TreeMap<Integer, FunctionCutter>> phases = new LinkedHashMap<>();

  // Of the line that is read.
  private String phase = NO_PHASE;
  private int rank = NO_RANK;
  private boolean message;

  // Of the record of TORCH_TRACE that the line may belong to; empty for none.
  private String record = "";
  private int recordRank = NO_RANK;

  private FxText(SourceFile file) {
    this.file = file;
    this.text = file.text();
  }

  /**
   * {@return the listings in a text, at least one; of several, each has a rank, in order}
   *
   * @param sink gets warnings of functions that are left out
   * @throws CompileException when none exists
   */
  static ImmutableList<Listing> listings(SourceFile file, DiagnosticSink sink) {
    var reader = new FxText(withoutColours(file));
    reader.split();
    return reader.chosen(sink);
  }

  /** PyTorch colours the graphs in logs, also in those that no terminal shows. */
  private static SourceFile withoutColours(SourceFile file) {
    return file.text().indexOf(ESCAPE) < 0
        ? file
        : new SourceFile(file.name(), COLOUR.matcher(file.text()).replaceAll(""));
  }

  private void split() {
    int line = 0;
    int next;
    for (int start = 0; start < text.length(); start = next) {
      int end = text.indexOf('\n', start);
      next = end < 0 ? text.length() : end + 1;
      int from = payloadStart(start, next);
      if (from < 0) {
        from = prefixEnd(start, next);
      }
      if (!message) {
        phases
            .computeIfAbsent(phase, s -> new TreeMap<>())
            .computeIfAbsent(rank, r -> new FunctionCutter(file))
            .line(line, start, from, next);
      }
      line++;
    }
  }

  /**
   * {@return the offset after the tab of a line that belongs to the record above it, as {@code
   * TORCH_TRACE} writes graphs; -1 for other lines}
   */
  private int payloadStart(int start, int end) {
    if (record.isEmpty() || start == end || text.charAt(start) != '\t') {
      return -1;
    }
    phase = record;
    rank = recordRank;
    message = false;
    return start + 1;
  }

  /** {@code {"inductor_post_grad_graph": {}, …, "rank": 1, …}}: what the lines below are. */
  private void readRecord(int from, int end) {
    var json = text.substring(from, end);
    var key = FIRST_KEY.matcher(json);
    if (!key.lookingAt()) {
      return;
    }
    var name = key.group(1);
    if (name.equals("artifact")) {
      var artifact = ARTIFACT_NAME.matcher(json);
      name = artifact.find() ? artifact.group(1) : name;
    }
    record = RECORDS.getOrDefault(name, name);
    var of = RECORD_RANK.matcher(json);
    recordRank = of.find() ? Integer.parseInt(of.group(1)) : NO_RANK;
  }

  /**
   * {@return the offset after the prefix of a line, which may be {@code [rank0]:V1120
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
      int mark = text.indexOf("] [__", at, end);
      int close = mark < 0 ? -1 : text.indexOf(']', mark + 1, end);
      if (close < 0) {
        message = true;
        record = "";
        int json = text.indexOf("] {", at, end);
        if (json >= 0) {
          readRecord(json + "] ".length(), end);
        }
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
    // torchrun puts a blank after its label only where a line does not start with one itself.
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

  private ImmutableList<Listing> chosen(DiagnosticSink sink) {
    for (var kind : List.of(Kind.GRAPH, Kind.UNTYPED)) {
      for (var name : Iterables.concat(PHASES, List.copyOf(phases.keySet()))) {
        @Nullable TreeMap<Integer, FunctionCutter> ranks = phases.get(name);
        if (ranks != null && ranks.values().stream().anyMatch(cutter -> cutter.has(kind))) {
          ranks.values().removeIf(cutter -> !cutter.has(kind));
          // Where some lines have a label, those without one do not make a rank.
          if (ranks.size() > 1) {
            ranks.remove(NO_RANK);
          }
          var listings = ImmutableList.<Listing>builder();
          ranks.forEach(
              (number, cutter) -> {
                warnOfSkipped(cutter, kind, sink);
                listings.add(
                    new Listing(
                        number == NO_RANK ? OptionalInt.empty() : OptionalInt.of(number),
                        new SourceFile(file.name(), cutter.python(kind))));
              });
          return listings.build();
        }
      }
    }
    throw new CompileException(noGraph());
  }

  private void warnOfSkipped(FunctionCutter cutter, Kind taken, DiagnosticSink sink) {
    for (var kind : Kind.values()) {
      var skipped = kind == taken ? List.<Function>of() : cutter.outermost(kind);
      if (!skipped.isEmpty()) {
        sink.report(
            Diagnostic.warning(
                DiagnosticCode.UNSUPPORTED,
                skipped.getFirst().head(),
                skipped.size() == 1
                    ? "this function is skipped: it is " + kind.meaning()
                    : "%s functions from here on are skipped: each is %s"
                        .formatted(skipped.size(), kind.meaning()),
                ""));
      }
    }
  }

  private Diagnostic noGraph() {
    for (var kind : List.of(Kind.JOINT, Kind.PYTHON)) {
      for (var ranks : phases.values()) {
        for (var cutter : ranks.values()) {
          var found = cutter.outermost(kind);
          if (!found.isEmpty()) {
            var function = found.getFirst();
            return Diagnostic.error(
                DiagnosticCode.UNSUPPORTED,
                kind == Kind.PYTHON ? function.python() : function.head(),
                "this is " + kind.meaning(),
                POST_GRAD_HINT);
          }
        }
      }
    }
    return new NoGraph(file).diagnostic();
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
}
