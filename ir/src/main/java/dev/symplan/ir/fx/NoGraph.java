package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;

/** Says of a text in which no graph was found what it is, and how to get a graph. */
final class NoGraph {
  private static final String PRINT_HINT =
      FxGraphReader.PRINT_HINT + ", or run with TORCH_LOGS=post_grad_graphs";
  private static final String JAX_HINT =
      "compile the HLO module: print(jax.jit(f).lower(ARGUMENTS).compile().as_text())";

  /** A text that is not Python of a graph, by words in it. */
  private record Form(String words, String meaning, String hint) {
    Form(String words, String meaning) {
      this(words, meaning, PRINT_HINT);
    }
  }

  private static final ImmutableList<Form> FORMS =
      ImmutableList.of(
          new Form(
              "call_function[target=",
              "this is a node as str(graph) prints it, without shapes and the quotes of strings"),
          new Form("Node[rank=", "this is a list of torch.fx nodes, not the graph's Python"),
          new Form("Node(op=", "this is a list of torch.fx nodes, not the graph's Python"),
          new Form(
              "opcode  ", "this is the table of graph.print_tabular(), which leaves out types"),
          new Form(
              "AsyncCompile()",
              "this is Inductor's output code, in which kernels have replaced operators"),
          new Form("graph(%", "this is a graph of TorchScript, not an FX graph"),
          new Form(
              "HloModule ",
              "a module of XLA begins here, with other text above it",
              "put the module alone into a file"),
          new Form(
              "func.func ", "this is a module of MLIR; modules of XLA are read as HLO", JAX_HINT),
          new Form(
              "<!DOCTYPE html",
              "this is an HTML page; next to the pages of tlparse are the graphs, as .txt files"));

  private static final String HEAD = "def forward(";
  private static final String OPERATOR = " = torch.ops.";
  private static final int MAX_SHOWN = 60;

  private final SourceFile file;
  private final String text;

  NoGraph(SourceFile file) {
    this.file = file;
    this.text = file.text();
  }

  Diagnostic diagnostic() {
    for (var form : FORMS) {
      if (text.contains(form.words)) {
        return Diagnostic.error(
            DiagnosticCode.UNSUPPORTED, spanOf(form.words), form.meaning, form.hint);
      }
    }
    if (text.isBlank()) {
      return syntax(Span.ofFile(file), "the text contains no graph: it is empty", PRINT_HINT);
    }
    if (!text.contains(OPERATOR)) {
      return syntax(
          Span.ofFile(file),
          "the text contains no graph: it neither begins with 'graph version 1' nor contains def"
              + " forward(…):",
          PRINT_HINT);
    }
    int head = text.indexOf(HEAD);
    if (head < 0) {
      return syntax(
          spanOf(OPERATOR), "no def forward(…): was found above the statements", PRINT_HINT);
    }
    var prefix = text.substring(text.lastIndexOf('\n', head) + 1, head).strip();
    return syntax(
        spanOf(HEAD),
        "the lines of the graph begin with '%s', a prefix that is not known here"
            .formatted(prefix.length() > MAX_SHOWN ? prefix.substring(0, MAX_SHOWN) + "…" : prefix),
        "remove it from each line, but leave the line's indentation");
  }

  private static Diagnostic syntax(Span span, String message, String hint) {
    return Diagnostic.error(DiagnosticCode.SYNTAX, span, message, hint);
  }

  private Span spanOf(String part) {
    int at = text.indexOf(part);
    int line = 1;
    int start = 0;
    for (int end = text.indexOf('\n'); end >= 0 && end < at; end = text.indexOf('\n', start)) {
      start = end + 1;
      line++;
    }
    return new Span(file, line, at - start + 1, part.length());
  }
}
