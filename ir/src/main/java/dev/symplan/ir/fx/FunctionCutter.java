package dev.symplan.ir.fx;

import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Takes the lines that one rank printed apart into functions. */
final class FunctionCutter {
  private static final String HEAD = "def forward(";

  /** The kind of a function in a text. */
  enum Kind {
    GRAPH(""),
    JOINT("the joint graph of forward and backward, which PyTorch splits before it runs anything"),
    PYTHON("Dynamo's graph, or the source of a module: it calls Python functions, not operators"),
    UNTYPED("printed without types");

    private final String meaning;

    Kind(String meaning) {
      this.meaning = meaning;
    }

    /** {@return the name of this kind of text, for messages} */
    String meaning() {
      return meaning;
    }
  }

  /** A line of the text: from its start, of which the prefix is blanked, to its end. */
  private record Line(int number, int start, int from, int end) {}

  /** One function, with the line of its class where it is a subgraph. */
  static final class Function {
    private final List<Line> lines = new ArrayList<>();
    private final boolean nested;
    private final int column;
    private final Span head;
    private Span python = Span.NONE;
    private boolean typed;
    private boolean params;
    private boolean joint;
    private boolean dynamo;
    private boolean compiledAutograd;
    private int ops;
    private int others;

    private Function(boolean nested, int column, Span head) {
      this.nested = nested;
      this.column = column;
      this.head = head;
    }

    /** {@return where it begins} */
    Span head() {
      return head;
    }

    /** {@return the first statement that calls Python; none in most kinds} */
    Span python() {
      return python;
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

  FunctionCutter(SourceFile file) {
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
      // Text after a graph's return is not part of it.
      brackets = Math.max(0, brackets + opened(first, end));
      open = brackets > 0 ? function : null;
    } else {
      readStatement(function, line, first);
    }
  }

  private void begin(Line line, int column) {
    @Nullable Line ofClass = subgraph;
    var start = new Span(file, line.number + 1, column + 1, HEAD.length() - 1);
    var function = new Function(ofClass != null, column, start);
    if (ofClass != null) {
      function.lines.add(ofClass);
    }
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

  /** Statements that AOT graphs hold besides operators. */
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
