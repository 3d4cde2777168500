package dev.symplan.ir.text;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Notes;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.text.TokenRoles.Role;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import org.antlr.v4.runtime.CommonToken;
import org.antlr.v4.runtime.Lexer;
import org.antlr.v4.runtime.Token;
import org.antlr.v4.runtime.TokenStream;

/**
 * Hands out a text one statement at a time. Memory stays small however long the text is, and an
 * error in one statement does not disturb the next.
 *
 * <p>A statement ends at the end of its line, but not inside brackets. Comments run from {@code #}
 * to the end of the line; they are kept apart from the tokens, as {@link #notes()}.
 *
 * <p>This class finds the errors below the grammar and reports them to the sink as {@code SYNTAX}
 * or {@code TOO_LARGE}: characters outside the grammar, brackets that do not match or are never
 * closed, nesting, lines and statements beyond any sensible size. The statement is dropped, and
 * reading goes on at the next line that is not indented deeper.
 *
 * <p>Use: {@code while (reader.next()) parser.parse(…)} with a {@link StatementParser}.
 */
public final class StatementReader {

  /** Deepest nesting of brackets. */
  public static final int MAX_DEPTH = 200;

  /** Longest line, in UTF-16 units. */
  public static final int MAX_LINE = 16 << 20;

  /** Longest statement, in tokens. */
  public static final int MAX_TOKENS = 2_000_000;

  private enum Outcome {
    STATEMENT,
    FAILED,
    END
  }

  private final SourceFile file;
  private final String text;
  private final Lines lines;
  private final TextStream input;
  private final Lexer lexer;
  private final TokenRoles roles;
  private final DiagnosticSink sink;
  private final StatementTokens tokens;
  private final Brackets brackets;
  private final List<String> before = new ArrayList<>();
  private String after = "";
  private boolean atLineStart = true;
  private Consumer<TokenStream> dropped = _ -> {};
  private boolean failed;
  private boolean retreated;

  /**
   * @param lexer of a grammar that has a token for every character; white space is skipped, line
   *     ends and comments are not, and no other token crosses lines. Its input is set here.
   *     Characters outside ASCII look like DEL to it
   */
  public StatementReader(SourceFile file, Lexer lexer, TokenRoles roles, DiagnosticSink sink) {
    this.file = file;
    this.text = file.text();
    this.lines = new Lines(file);
    this.input = new TextStream(file.name(), text);
    this.lexer = lexer;
    this.roles = roles;
    this.brackets = new Brackets(roles);
    this.sink = sink;
    this.tokens = new StatementTokens(lexer);
    lexer.removeErrorListeners();
    lexer.setInputStream(input);
  }

  /** Sets the receiver of the tokens of dropped statements, as far as they were read. */
  void onDropped(Consumer<TokenStream> action) {
    dropped = action;
  }

  /**
   * Goes to the next statement.
   *
   * @return false at the end of the text; {@link #notes()} then are the comments there
   */
  public boolean next() {
    failed = retreated;
    retreated = false;
    while (true) {
      tokens.clear();
      brackets.clear();
      before.clear();
      after = "";
      switch (readStatement()) {
        case STATEMENT -> {
          return true;
        }
        case END -> {
          return false;
        }
        case FAILED -> {
          failed = true;
          dropped.accept(tokens);
        }
      }
    }
  }

  /** {@return whether something between the last statement and this one was wrong and left out} */
  public boolean failed() {
    return failed;
  }

  /** {@return the statement's tokens, at least one, and an EOF} */
  public TokenStream tokens() {
    return tokens;
  }

  /**
   * {@return the comments and blank lines above the statement, and the comment after it; comments
   * inside its brackets count as above}
   */
  public Notes notes() {
    return before.isEmpty() && after.isEmpty()
        ? Notes.NONE
        : new Notes(ImmutableList.copyOf(before), after);
  }

  public SourceFile file() {
    return file;
  }

  /** {@return where the statement stands: all of it, or its first line} */
  public Span span() {
    return span(tokens.get(0), tokens.get(tokens.count() - 2));
  }

  public Span span(Token token) {
    return new Span(
        file,
        token.getLine(),
        token.getCharPositionInLine() + 1,
        Math.max(1, token.getStopIndex() + 1 - token.getStartIndex()));
  }

  /** {@return from {@code first} to {@code last}, or to the end of {@code first}'s line} */
  public Span span(Token first, Token last) {
    int end = last.getStopIndex() + 1;
    if (last.getLine() != first.getLine()) {
      end = lines.end(first.getStartIndex());
    }
    return new Span(
        file,
        first.getLine(),
        first.getCharPositionInLine() + 1,
        Math.max(1, end - first.getStartIndex()));
  }

  /** {@return the location of a stretch of the current statement, by its offset in the text} */
  Span span(int offset, int length) {
    var first = tokens.get(0);
    int lineStart = first.getStartIndex() - first.getCharPositionInLine();
    return lines.span(lineStart, first.getLine(), offset, length);
  }

  /**
   * Takes back the lines below a forgotten bracket, if the bracket may be why the statement is
   * wrong. The line below the bracket then starts the next statement.
   *
   * @param wrong the token that does not fit
   * @return whether it was; if so, the sink has the error
   */
  boolean retreat(Token wrong) {
    if (!brackets.explain(wrong)) {
      return false;
    }
    fail(Fault.syntax(wrong, ""));
    retreated = true;
    return true;
  }

  private Outcome readStatement() {
    while (true) {
      if (atLineStart && tokens.count() == 0) {
        readTrivia();
      }
      Token token = lexer.nextToken();
      if (token.getType() == Token.EOF) {
        return atEnd();
      }
      var role = roles.of(token.getType());
      if (brackets.anyOpen() && role.isOutsideBrackets()) {
        return fail(brackets.unclosed(token));
      }
      switch (role) {
        case PLAIN -> {
          if (!add(token)) {
            return Outcome.FAILED;
          }
        }
        case LINE_END -> {
          if (brackets.anyOpen()) {
            if (tooLong(input.index(), lexer.getLine())) {
              return recover(token);
            }
            if (lines.startsStatement(input.index(), indent())) {
              brackets.lineStartsStatement();
            }
          } else {
            atLineStart = true;
            if (tokens.count() > 0) {
              return done();
            }
          }
        }
        case COMMENT -> {
          var comment = token.getText().stripTrailing();
          if (!brackets.anyOpen() && tokens.count() > 0) {
            after = comment;
          } else {
            before.add(comment);
          }
        }
        case OPEN, CLOSE -> {
          var fault = role == Role.OPEN ? brackets.open(token) : brackets.close(token);
          if (fault.isPresent()) {
            return fail(fault.get());
          }
          if (!add(token)) {
            return Outcome.FAILED;
          }
        }
        case FRAME_OPEN, FRAME_CLOSE -> {
          if (role == Role.FRAME_CLOSE && tokens.count() > 0) {
            moveTo(token.getStartIndex(), token.getLine(), token.getCharPositionInLine());
            return done();
          }
          if (!add(token)) {
            return Outcome.FAILED;
          }
          finishLine();
          return done();
        }
        case INVALID -> {
          return fail(Fault.invalid(token, text));
        }
      }
    }
  }

  private Outcome atEnd() {
    if (brackets.anyOpen()) {
      return fail(brackets.unclosed(null));
    }
    return tokens.count() == 0 ? Outcome.END : done();
  }

  private boolean add(Token token) {
    if (tokens.count() < MAX_TOKENS) {
      tokens.add(token);
      return true;
    }
    var first = tokens.get(0);
    var bracket = brackets.outermost();
    report(
        new Fault(
            DiagnosticCode.TOO_LARGE,
            first,
            "a statement of more than %s tokens".formatted(MAX_TOKENS),
            bracket
                .map(at -> "is the bracket at %s closed?".formatted(Brackets.location(at)))
                .orElse("")));
    recover(bracket.orElse(first));
    return false;
  }

  private Outcome done() {
    var last = tokens.get(tokens.count() - 1);
    int length = last.getStopIndex() + 1 - last.getStartIndex();
    var eof = new CommonToken(last);
    eof.setType(Token.EOF);
    eof.setText("");
    eof.setStartIndex(last.getStopIndex() + 1);
    eof.setStopIndex(last.getStopIndex());
    eof.setCharPositionInLine(last.getCharPositionInLine() + length);
    tokens.add(eof);
    return Outcome.STATEMENT;
  }

  /** Takes blank lines and lines of nothing but a comment, which need no lexer. */
  private void readTrivia() {
    int start = input.index();
    int line = lexer.getLine();
    while (start < text.length()) {
      int end = lines.end(start);
      if (tooLong(start, line)) {
        failed = true;
        before.clear();
      } else {
        int first = lines.skipBlanks(start, end);
        if (lines.isEmpty(first, end)) {
          before.add("");
        } else if (lines.isComment(first, end)) {
          before.add(lines.comment(first, end));
        } else {
          break;
        }
      }
      start = Math.min(end + 1, text.length());
      line++;
    }
    moveTo(start, line, 0);
    atLineStart = false;
  }

  /** Takes the comment after a statement that ended before its line did. */
  private void finishLine() {
    int start = input.index();
    int end = lines.end(start);
    int first = lines.skipBlanks(start, end);
    if (lines.isComment(first, end)) {
      after = lines.comment(first, end);
    } else if (!lines.isEmpty(first, end)) {
      return;
    }
    moveTo(Math.min(end + 1, text.length()), lexer.getLine() + 1, 0);
    atLineStart = true;
  }

  private void moveTo(int index, int line, int column) {
    input.seek(index);
    lexer.setLine(line);
    lexer.setCharPositionInLine(column);
    lexer._hitEOF = false;
  }

  private boolean tooLong(int start, int line) {
    int length = lines.end(start) - start;
    if (length <= MAX_LINE) {
      return false;
    }
    sink.report(
        Diagnostic.error(
            DiagnosticCode.TOO_LARGE,
            new Span(file, line, 1, 1),
            "a line of %s characters; %s are allowed".formatted(length, MAX_LINE)));
    return true;
  }

  private Outcome fail(Fault found) {
    var fault = brackets.cause(found);
    report(fault);
    return recover(fault.at());
  }

  private void report(Fault fault) {
    sink.report(Diagnostic.error(fault.code(), span(fault.at()), fault.message(), fault.hint()));
  }

  /** Goes to the first line below {@code bad} that can start a statement like the failed one. */
  private Outcome recover(Token bad) {
    int indent = tokens.count() > 0 ? indent() : bad.getCharPositionInLine();
    int start = lines.end(bad.getStartIndex()) + 1;
    int line = bad.getLine() + 1;
    while (start < text.length() && !lines.startsStatement(start, indent)) {
      start = lines.end(start) + 1;
      line++;
    }
    moveTo(start, line, 0);
    atLineStart = true;
    return Outcome.FAILED;
  }

  private int indent() {
    return tokens.get(0).getCharPositionInLine();
  }
}
