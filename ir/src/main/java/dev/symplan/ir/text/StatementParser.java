package dev.symplan.ir.text;

import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import org.antlr.v4.runtime.BailErrorStrategy;
import org.antlr.v4.runtime.DefaultErrorStrategy;
import org.antlr.v4.runtime.InputMismatchException;
import org.antlr.v4.runtime.Parser;
import org.antlr.v4.runtime.ParserRuleContext;
import org.antlr.v4.runtime.RecognitionException;
import org.antlr.v4.runtime.RuleContext;
import org.antlr.v4.runtime.Token;
import org.antlr.v4.runtime.atn.PredictionMode;
import org.antlr.v4.runtime.misc.ParseCancellationException;
import org.jspecify.annotations.Nullable;

/**
 * Parses the statements of a {@link StatementReader} with one ANTLR parser, used again for each.
 *
 * <p>The first reading only follows the grammar. A statement that fails is read again, with the
 * checks that find the expected tokens.
 *
 * @param <P> the generated parser; its rules for statements end with {@code EOF}
 */
public final class StatementParser<P extends Parser> {
  private static final int MAX_PHRASES = 4;
  private static final int MAX_SHOWN = 40;

  private final P parser;
  private final StatementReader statements;
  private final TokenPhrases phrases;
  private final DiagnosticSink sink;
  private final BailErrorStrategy bail = new BailErrorStrategy();

  public StatementParser(
      P parser, StatementReader statements, TokenPhrases phrases, DiagnosticSink sink) {
    this.parser = parser;
    this.statements = statements;
    this.phrases = phrases;
    this.sink = sink;
    parser.removeErrorListeners();
    parser.getInterpreter().setPredictionMode(PredictionMode.SLL);
  }

  /**
   * {@return the result of {@code rule} for the reader's current statement, from the position of
   * its token stream on; empty after a syntax error, which goes to the sink}
   *
   * @param hint how such a statement looks; may be empty
   */
  public <T> Optional<T> parse(Function<? super P, ? extends T> rule, String hint) {
    int start = statements.tokens().index();
    try {
      return Optional.of(run(rule, bail, start));
    } catch (ParseCancellationException e) {
      try {
        run(rule, new Explaining(), start);
      } catch (Explained explained) {
        if (!statements.retreat(explained.cause.getOffendingToken())) {
          report(explained.cause, hint);
        }
        return Optional.empty();
      }
      throw new IllegalStateException("a statement parses at the second reading only", e);
    }
  }

  /** As {@link #parse(Function, String)}, without a hint. */
  public <T> Optional<T> parse(Function<? super P, ? extends T> rule) {
    return parse(rule, "");
  }

  private <T> T run(
      Function<? super P, ? extends T> rule, DefaultErrorStrategy strategy, int start) {
    parser.setErrorHandler(strategy);
    parser.setTokenStream(statements.tokens());
    statements.tokens().seek(start);
    return rule.apply(parser);
  }

  private void report(RecognitionException e, String hint) {
    var found = e.getOffendingToken();
    var message =
        found.getType() == Token.EOF
            ? "expected %s at the end of the statement".formatted(expected(e))
            : "expected %s, not %s".formatted(expected(e), shown(found));
    sink.report(Diagnostic.error(DiagnosticCode.SYNTAX, statements.span(found), message, hint));
  }

  private String expected(RecognitionException e) {
    var found = e.getOffendingToken();
    if (e.getCtx() instanceof ParserRuleContext rule && rule.getStart() == found) {
      @Nullable String phrase = phrases.rules().get(rule.getRuleIndex());
      if (phrase != null) {
        return phrase;
      }
    }
    var words = new LinkedHashSet<String>();
    for (int type : e.getExpectedTokens().toList()) {
      words.add(type == Token.EOF ? "the end of the statement" : phrases.token(type));
    }
    int before = found.getTokenIndex() - 1;
    boolean item = before >= 0 && statements.tokens().get(before).getText().equals(",");
    if (item || words.size() > MAX_PHRASES) {
      for (@Nullable RuleContext at = e.getCtx(); at != null; at = at.getParent()) {
        @Nullable String phrase = phrases.items().get(at.getRuleIndex());
        if (phrase != null) {
          return phrase;
        }
      }
    }
    return join(List.copyOf(words));
  }

  private static String join(List<String> words) {
    if (words.isEmpty()) {
      return "something else";
    }
    int last = words.size() - 1;
    return last == 0
        ? words.getFirst()
        : String.join(", ", words.subList(0, last)) + " or " + words.get(last);
  }

  private static String shown(Token token) {
    var text = token.getText();
    var cut = text.length() > MAX_SHOWN ? text.substring(0, MAX_SHOWN) + "…" : text;
    return cut.startsWith("'") || cut.startsWith("\"") ? cut : "'" + cut + "'";
  }

  /** Stops at the first wrong token, at a state that knows everything that could stand there. */
  private static final class Explaining extends DefaultErrorStrategy {
    @Override
    public void recover(Parser recognizer, RecognitionException e) {
      throw new Explained(e);
    }

    @Override
    public Token recoverInline(Parser recognizer) {
      throw new Explained(new InputMismatchException(recognizer));
    }

    @Override
    public void sync(Parser recognizer) {
      var state = recognizer.getInterpreter().atn.states.get(recognizer.getState());
      int type = recognizer.getInputStream().LA(1);
      if (!recognizer.getInterpreter().atn.nextTokens(state).contains(type)
          && !recognizer.isExpectedToken(type)) {
        throw new Explained(new InputMismatchException(recognizer));
      }
    }
  }

  private static final class Explained extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final RecognitionException cause;

    Explained(RecognitionException cause) {
      super(null, null, false, false);
      this.cause = cause;
    }
  }
}
