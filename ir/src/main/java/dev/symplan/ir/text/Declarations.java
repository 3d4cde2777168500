package dev.symplan.ir.text;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.NativeSchemas;
import dev.symplan.ir.op.OpName;
import dev.symplan.ir.op.OpRegistry;
import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.Token;

/**
 * Reads files of op declarations, one in a line: PyTorch's schema, and after it the clauses of the
 * graph language, as {@code my_lib::exchange(Tensor input, str group) -> Tensor symm_mem(input)}.
 */
public final class Declarations {
  private Declarations() {}

  /**
   * {@return {@code known} and the ops that a file declares}
   *
   * @throws CompileException when the file has errors, or declares a known op as another one
   */
  public static OpRegistry read(SourceFile file, OpRegistry known) {
    return read(file, known, false);
  }

  /**
   * {@return {@code known} and the ops that PyTorch listed in a file; ops that are known already
   * stay as they are}
   *
   * @throws CompileException when the file has errors
   */
  public static OpRegistry readCaptured(SourceFile file, OpRegistry known) {
    return read(file, known, true);
  }

  private static OpRegistry read(SourceFile file, OpRegistry known, boolean captured) {
    var sink = new DiagnosticSink();
    var registry = known.child();
    var lexer = new GraphTextLexer(CharStreams.fromString(""));
    var statements = new StatementReader(file, lexer, GraphLanguage.ROLES, sink);
    var grammar = new GraphTextParser(statements.tokens());
    grammar.setBuildParseTree(false);
    var parser = new StatementParser<>(grammar, statements, GraphLanguage.PHRASES, sink);
    var reader = new DeclarationReader(statements, parser, registry, sink);
    while (statements.next()) {
      var first = statements.tokens().get(0);
      boolean op = first.getType() == GraphTextLexer.NAME && first.getText().equals("op");
      if (!op && first.getType() != GraphTextLexer.OP_NAME) {
        sink.report(
            Diagnostic.error(
                DiagnosticCode.SYNTAX,
                statements.span(first),
                "expected an op declaration, not '%s'".formatted(first.getText()),
                "a line declares an op: my_lib::pack_(Tensor(a!) out, Tensor input) -> ()"));
      } else if (!captured || !isKnown(statements.tokens().get(op ? 1 : 0), known)) {
        reader.read();
      }
    }
    sink.throwIfErrors();
    return registry;
  }

  private static boolean isKnown(Token name, OpRegistry known) {
    if (name.getType() != GraphTextLexer.OP_NAME) {
      return false;
    }
    var op = OpName.parse(name.getText());
    return known.find(op).isPresent() || !NativeSchemas.of(op).isEmpty();
  }
}
