package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Program;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/** Texts as PyTorch prints them. */
final class FxTexts {
  private FxTexts() {}

  /** {@return a listing of one graph} */
  static String listing(String params, String statements) {
    return """
    class <lambda>(torch.nn.Module):
        def forward(self, %s):
    %s\
    """
        .formatted(params, statements.indent(8));
  }

  /** {@return the lines as the logger of one rank writes them} */
  static String logged(int rank, String stage, String text) {
    var prefix =
        "[rank%s]:V1120 21:20:19.453000 7731 torch/_inductor/compile_fx.py:1382] [0/0] [__%s] "
            .formatted(rank, stage);
    return text.lines().map(line -> prefix + line + "\n").collect(Collectors.joining());
  }

  static ImportOptions options(int ranks, ImmutableMap<String, Long> dims) {
    return new ImportOptions(
        "g", ImmutableList.of(), ranks, dims, ImmutableMap.of(), BuiltinOps.registry());
  }

  static Program read(String text, int ranks, Consumer<? super Diagnostic> warnings) {
    return FxImporter.read(
        new SourceFile("g.fx.txt", text), options(ranks, ImmutableMap.of()), warnings);
  }

  /** {@return the only graph of a text that gives no warning} */
  static Graph graph(String text) {
    return graph(text, ImmutableMap.of());
  }

  static Graph graph(String text, ImmutableMap<String, Long> dims) {
    var graphs =
        FxImporter.read(
                new SourceFile("g.fx.txt", text),
                options(4, dims),
                warning -> {
                  throw new CompileException(warning);
                })
            .graphs();
    if (graphs.size() != 1) {
      throw new AssertionError(graphs.size() + " graphs");
    }
    return graphs.getFirst();
  }
}
