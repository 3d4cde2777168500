package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.Iterables;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import java.util.ArrayList;
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
   * @param rank absent where the text does not say
   */
  record Listing(OptionalInt rank, SourceFile file) {}

  /** The lines of listings that come without the name of a phase. */
  private static final String NO_PHASE = "";

  /** What is taken first, the names as in {@code TORCH_LOGS}. */
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

  /** Other texts of compilers, by words in them. */
  private static final ImmutableMap<String, String> OTHERS =
      ImmutableMap.<String, String>builder()
          .put(
              "call_function[target=",
              "this is str(graph), which leaves out shapes and the quotes of strings")
          .put("Node[rank=", "this is a list of torch.fx nodes, not the graph's Python")
          .put("Node(op=", "this is a list of torch.fx nodes, not the graph's Python")
          .put("opcode  ", "this is the table of graph.print_tabular(), which leaves out types")
          .put(
              "AsyncCompile()",
              "this is Inductor's output code, in which kernels have replaced operators")
          .put("HloModule ", "this is a module of XLA, not an FX graph")
          .put("func.func ", "this is a module of MLIR, not an FX graph")
          .put(
              "<!DOCTYPE html",
              "this is a page of tlparse; the graphs are in the .txt files beside it")
          .buildOrThrow();

  private static final Pattern FIRST_KEY = Pattern.compile("\\{\"(\\w+)\"");
  private static final Pattern ARTIFACT_NAME = Pattern.compile("\"name\": \"(\\w+)\"");
  private static final Pattern RECORD_RANK = Pattern.compile("\"rank\": ([0-9]{1,6})\\b");

  private static final int NO_RANK = -1;
  private static final String HEAD = "def forward(";
  private static final String PRINT_HINT =
      "print it with gm.print_readable(include_stride=True, include_device=True), or run with"
          + " TORCH_LOGS=post_grad_graphs";

  static final String POST_GRAD_HINT =
      "print the graphs that run: TORCH_LOGS=post_grad_graphs python PROGRAM 2> log.txt, and then:"
          + " symplan compile log.txt";

  private final SourceFile file;
  private final String text;
  private final Map<String, TreeMap<Integer, Cutter>> phases = new LinkedHashMap<>();

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
   * @throws CompileException when there is none
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
            .computeIfAbsent(rank, r -> new Cutter(file))
            .line(line, start, from, next);
      }
      line++;
    }
  }

  /**
   * {@return the offset behind the tab of a line that belongs to the record above it, as {@code
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

  private ImmutableList<Listing> chosen(DiagnosticSink sink) {
    for (var kind : List.of(Kind.GRAPH, Kind.UNTYPED)) {
      for (var name : Iterables.concat(PHASES, List.copyOf(phases.keySet()))) {
        @Nullable TreeMap<Integer, Cutter> ranks = phases.get(name);
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

  private void warnOfSkipped(Cutter cutter, Kind taken, DiagnosticSink sink) {
    for (var kind : Kind.values()) {
      var skipped = kind == taken ? List.<Function>of() : cutter.outermost(kind);
      if (!skipped.isEmpty()) {
        sink.report(
            Diagnostic.warning(
                DiagnosticCode.UNSUPPORTED,
                span(skipped.getFirst().head),
                skipped.size() == 1
                    ? "this function is skipped: it is " + kind.meaning
                    : "%d functions from here on are skipped: each is %s"
                        .formatted(skipped.size(), kind.meaning),
                ""));
      }
    }
  }

  private Span span(Line line) {
    int at = text.indexOf(HEAD, line.from);
    return new Span(file, line.number + 1, at - line.start + 1, HEAD.length() - 1);
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
                kind == Kind.PYTHON ? function.python : span(function.head),
                "this is " + kind.meaning,
                POST_GRAD_HINT);
          }
        }
      }
    }
    for (var other : OTHERS.entrySet()) {
      if (text.contains(other.getKey())) {
        return Diagnostic.error(
            DiagnosticCode.UNSUPPORTED, lineWith(other.getKey()), other.getValue(), PRINT_HINT);
      }
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

  /** What a function of a text is. */
  private enum Kind {
    GRAPH(""),
    JOINT("the joint graph of forward and backward, which PyTorch splits before it runs anything"),
    PYTHON("Dynamo's graph, or the source of a module: it calls Python functions, not operators"),
    UNTYPED("printed without types");

    private final String meaning;

    Kind(String meaning) {
      this.meaning = meaning;
    }
  }

  /** A line of the text: from its start, of which the prefix is blanked, to its end. */
  private record Line(int number, int start, int from, int end) {}

  /** One function, with the line of its class where it is a subgraph. */
  private static final class Function {
    private final List<Line> lines = new ArrayList<>();
    private final boolean nested;
    private final int column;
    private Line head = new Line(0, 0, 0, 0);
    private Span python = Span.NONE;
    private boolean typed;
    private boolean params;
    private boolean joint;
    private boolean dynamo;
    private boolean compiledAutograd;
    private int ops;
    private int others;

    Function(boolean nested, int column) {
      this.nested = nested;
      this.column = column;
    }

    Kind kind() {
      if (joint) {
        return Kind.JOINT;
      }
      if (others > 0 && (ops == 0 || dynamo)) {
        return Kind.PYTHON;
      }
      return params && !typed && !compiledAutograd ? Kind.UNTYPED : Kind.GRAPH;
    }
  }

  /** Takes the lines of one rank apart into functions. */
  private static final class Cutter {
    private static final Pattern CLASS = Pattern.compile("class [A-Za-z_][A-Za-z_0-9]*\\(");
    private static final Pattern JOINT_PARAMS = Pattern.compile("\\bprimals\\b.*\\btangents\\b");
    private static final Pattern AUTOGRAD_PARAMS = Pattern.compile("\\binputs, *sizes\\b");
    private static final Pattern DYNAMO_PARAM = Pattern.compile("\\bL_\\w+ *:");
    private static final Pattern TYPED = Pattern.compile("\\w+ *: *[\"A-Za-z].*");

    private final SourceFile file;
    private final String text;
    private final List<Function> functions = new ArrayList<>();
    private final StringBuilder head = new StringBuilder();
    private @Nullable Function open;
    private @Nullable Line subgraph;
    private boolean inHead;
    private int brackets;

    Cutter(SourceFile file) {
      this.file = file;
      this.text = file.text();
    }

    boolean has(Kind kind) {
      return !outermost(kind).isEmpty();
    }

    /** {@return the functions of a kind, but for subgraphs} */
    List<Function> outermost(Kind kind) {
      return functions.stream()
          .filter(function -> !function.nested && function.kind() == kind)
          .toList();
    }

    /** {@return the functions of a kind with their subgraphs, each line at its place} */
    String python(Kind kind) {
      var out = new StringBuilder();
      int lines = 0;
      boolean taken = false;
      for (var function : functions) {
        if (!function.nested) {
          taken = function.kind() == kind;
        }
        if (taken) {
          for (var line : function.lines) {
            out.repeat('\n', line.number - lines)
                .repeat(' ', line.from - line.start)
                .append(text, line.from, line.end);
            lines = line.number + (text.charAt(line.end - 1) == '\n' ? 1 : 0);
          }
        }
      }
      return out.toString();
    }

    void line(int number, int start, int from, int end) {
      int first = from;
      while (first < end && (text.charAt(first) == ' ' || text.charAt(first) == '\t')) {
        first++;
      }
      var line = new Line(number, start, from, end);
      if (text.startsWith(HEAD, first)) {
        begin(line, first - start);
      } else if (brackets == 0 && text.startsWith("class ", first)) {
        open = null;
        subgraph =
            isNested(first - start) && CLASS.matcher(text).region(first, end).lookingAt()
                ? line
                : null;
      }
      @Nullable Function function = open;
      if (function == null) {
        return;
      }
      if (from < end) {
        function.lines.add(line);
      }
      if (inHead) {
        head.append(text, first, end);
        brackets += opened(first, end);
        if (brackets <= 0) {
          brackets = 0;
          inHead = false;
          readHead(function);
        }
      } else if (brackets > 0 || text.startsWith("return", first)) {
        // What follows a graph's return is not part of it.
        brackets = Math.max(0, brackets + opened(first, end));
        open = brackets > 0 ? function : null;
      } else {
        readStatement(function, line, first);
      }
    }

    private void begin(Line line, int column) {
      @Nullable Line ofClass = subgraph;
      var function = new Function(ofClass != null, column);
      if (ofClass != null) {
        function.lines.add(ofClass);
      }
      function.head = line;
      functions.add(function);
      open = function;
      subgraph = null;
      inHead = true;
      brackets = 0;
      head.setLength(0);
    }

    /** A subgraph's class stands below the function that calls it, no further to the left. */
    private boolean isNested(int column) {
      for (int i = functions.size() - 1; i >= 0; i--) {
        if (!functions.get(i).nested) {
          return functions.get(i).column > 0 && column >= functions.get(i).column;
        }
      }
      return false;
    }

    private void readHead(Function function) {
      var params = head.substring(HEAD.length()).replace('\n', ' ');
      function.params = params.indexOf(',') >= 0;
      function.typed = params.indexOf(':') < params.lastIndexOf(':');
      function.joint = JOINT_PARAMS.matcher(params).find();
      function.dynamo = DYNAMO_PARAM.matcher(params).find();
      function.compiledAutograd = AUTOGRAD_PARAMS.matcher(params).find();
    }

    private void readStatement(Function function, Line line, int first) {
      var statement = text.substring(first, line.end).stripTrailing();
      function.typed |= TYPED.matcher(statement).lookingAt();
      int equals = statement.indexOf(" = ");
      if (equals < 0 || statement.startsWith("#")) {
        return;
      }
      if (statement.indexOf("torch.ops.", equals) >= 0) {
        function.ops++;
      } else if (statement.indexOf('(', equals) >= 0 && !isPlain(statement)) {
        if (function.others++ == 0) {
          function.python =
              new Span(file, line.number + 1, first - line.start + 1, statement.length());
        }
      }
    }

    /** What AOT graphs hold besides operators. */
    private static boolean isPlain(String statement) {
      return statement.contains(" = getattr(self")
          || statement.contains("fx_pytree.")
          || statement.contains("torch__inductor_");
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
