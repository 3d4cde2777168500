package dev.symplan.ir.fx;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;

/**
 * Finds the Python in what PyTorch prints: the lines around a graph, and the prefixes that logging
 * puts before each line, become blank. Line numbers stay as they are.
 */
final class FxText {
  private static final String LOG_MARK = "graphs] ";

  private FxText() {}

  static SourceFile python(SourceFile file) {
    var text = file.text();
    refuseOtherForms(file, text);
    var out = new StringBuilder(text.length());
    boolean inside = false;
    int open = -1;
    int start = 0;
    while (start < text.length()) {
      int end = text.indexOf('\n', start);
      int next = end < 0 ? text.length() : end + 1;
      int from = start + prefixLength(text, start, next);
      int first = firstVisible(text, from, next);
      if (text.startsWith("def ", first)) {
        inside = true;
      } else if (isHead(text, first, next)) {
        inside = false;
      }
      if (inside || looksLikeStatement(text, first, next)) {
        out.append(text, from, next);
      } else {
        out.append('\n');
      }
      if (inside && (open >= 0 || text.startsWith("return", first))) {
        open = Math.max(open, 0) + brackets(text, first, next);
        inside = open > 0;
        open = inside ? open : -1;
      }
      start = next;
    }
    return new SourceFile(file.name(), out.toString());
  }

  /** {@code [rank0]:V1120 21:20:19.4 7731 compile_fx.py:1382] [0/0] [__post_grad_graphs] } */
  private static int prefixLength(String text, int start, int end) {
    if (start == end || (text.charAt(start) != '[' && text.charAt(start) != 'V')) {
      return 0;
    }
    int mark = text.indexOf(LOG_MARK, start);
    return mark >= 0 && mark < end ? mark + LOG_MARK.length() - start : 0;
  }

  private static int firstVisible(String text, int from, int end) {
    int at = from;
    while (at < end && (text.charAt(at) == ' ' || text.charAt(at) == '\t')) {
      at++;
    }
    return at;
  }

  /** Opened less closed brackets on a line; what follows a graph's return is no part of it. */
  private static int brackets(String text, int from, int end) {
    int open = 0;
    for (int i = from; i < end && text.charAt(i) != '#'; i++) {
      char c = text.charAt(i);
      open += c == '(' || c == '[' ? 1 : c == ')' || c == ']' ? -1 : 0;
    }
    return open;
  }

  private static boolean isHead(String text, int first, int end) {
    return text.startsWith("class ", first)
        || (text.substring(first, end).contains(" class ")
            && text.substring(first, end).contains("Module)"));
  }

  /** Statements outside any function are kept, so that the reader can say what is missing. */
  private static boolean looksLikeStatement(String text, int first, int end) {
    return first < end
        && text.charAt(first) != '#'
        && text.substring(first, end).contains(" = torch.ops.");
  }

  private static void refuseOtherForms(SourceFile file, String text) {
    int at = text.indexOf("call_function[target=");
    if (at >= 0) {
      int line = 1 + (int) text.substring(0, at).chars().filter(c -> c == '\n').count();
      throw new CompileException(
          Diagnostic.error(
              DiagnosticCode.UNSUPPORTED,
              new Span(file, line, 1, 1),
              "this is str(graph), which leaves out shapes and the quotes of strings",
              "print the module instead: gm.print_readable(include_stride=True,"
                  + " include_device=True)"));
    }
  }
}
