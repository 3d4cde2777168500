package dev.symplan.ir.text;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import java.util.ArrayList;
import java.util.List;
import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.Token;
import org.junit.jupiter.api.Test;

class StatementReaderTest {
  private final DiagnosticSink sink = new DiagnosticSink();

  private StatementReader reader(String text) {
    return new StatementReader(
        new SourceFile("test", text),
        new GraphTextLexer(CharStreams.fromString("")),
        GraphLanguage.ROLES,
        sink);
  }

  private List<String> statements(String text) {
    var reader = reader(text);
    var all = new ArrayList<String>();
    while (reader.next()) {
      all.add(reader.tokens().getText());
    }
    return all;
  }

  @Test
  void endsStatementsAtLineEndsOutsideBrackets() {
    assertThat(statements("a = b\n\n  c = f(1,\n 2)  [3\n]\nd"))
        .containsExactly("a=b", "c=f(1,2)[3]", "d");
    assertThat(sink.diagnostics()).isEmpty();
  }

  @Test
  void framesStatementsOnOneLineOrSeveral() {
    assertThat(statements("graph g() { return x }  # c\ngraph h() {\n  return\n}\n"))
        .containsExactly("graphg(){", "returnx", "}", "graphh(){", "return", "}");
  }

  @Test
  void keepsCommentsAndBlankLinesApart() {
    var reader =
        reader("# one  \n\n a = b  # two\n{ # three\n  f( # four\n 1) # five\n}# six\n\n# end\n\n");
    var notes = new ArrayList<String>();
    while (reader.next()) {
      notes.add(reader.notes().before() + " " + reader.notes().after());
    }
    notes.add(reader.notes().before().toString());

    assertThat(notes)
        .containsExactly(
            "[# one, ] # two", "[] # three", "[# four] # five", "[] # six", "[, # end, ]");
  }

  @Test
  void placesTokensInUtf16Units() {
    var reader = reader("\n# \uD83D\uDE00\n\"\uD83D\uDE00é\" x\r\n  y z");

    assertThat(reader.next()).isTrue();
    var x = reader.tokens().get(1);
    assertThat(reader.span(x).toString()).isEqualTo("test:3:7");
    assertThat(reader.tokens().get(0).getText()).isEqualTo("\"\uD83D\uDE00é\"");
    assertThat(reader.next()).isTrue();
    assertThat(reader.span().toString()).isEqualTo("test:4:3");
    assertThat(reader.span().length()).isEqualTo(3);
    var end = reader.tokens().get(2);
    assertThat(end.getType()).isEqualTo(Token.EOF);
    assertThat(reader.span(end).toString()).isEqualTo("test:4:6");
  }

  @Test
  void spansOfSeveralLinesEndWithTheFirst() {
    var reader = reader("f(1,\n  2)");
    assertThat(reader.next()).isTrue();
    assertThat(reader.span().length()).isEqualTo(4);
  }

  @Test
  void goesOnBehindWhatIsWrong() {
    assertThat(statements("a = f(\nb = 1\nc = f(])\n  d = 2\ne = $\nf = 3"))
        .containsExactly("b=1", "f=3");
    assertThat(sink.diagnostics())
        .extracting(Diagnostic::message)
        .containsExactly(
            "'(' is not closed before the next statement",
            "']' does not close the '(' at 3:6",
            "unexpected character '$'");
  }

  @Test
  void saysWhetherSomethingWasLeftOut() {
    var reader = reader("a\n$\nb\nc");
    var failed = new ArrayList<Boolean>();
    while (reader.next()) {
      failed.add(reader.failed());
    }
    assertThat(failed).containsExactly(false, true, false);
  }

  @Test
  void takesContinuationLinesAtTheMargin() {
    assertThat(statements("a = f([\nx,\ny\n])\nb")).containsExactly("a=f([x,y])", "b");
    assertThat(sink.diagnostics()).isEmpty();
  }
}
