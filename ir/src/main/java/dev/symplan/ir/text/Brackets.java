package dev.symplan.ir.text;

import dev.symplan.ir.diag.DiagnosticCode;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Optional;
import org.antlr.v4.runtime.Token;
import org.jspecify.annotations.Nullable;

/** The brackets that are open in a statement, and the one that it seems to have forgotten. */
final class Brackets {
  private final TokenRoles roles;
  private final Deque<Token> open = new ArrayDeque<>();

  /** An open bracket that a line seems to have forgotten; null while there is none. */
  private @Nullable Token forgotten;

  Brackets(TokenRoles roles) {
    this.roles = roles;
  }

  void clear() {
    open.clear();
    forgotten = null;
  }

  boolean anyOpen() {
    return !open.isEmpty();
  }

  /** {@return the fault of this opening bracket; empty if it has none} */
  Optional<Fault> open(Token token) {
    open.push(token);
    return open.size() <= StatementReader.MAX_DEPTH
        ? Optional.empty()
        : Optional.of(
            new Fault(
                DiagnosticCode.TOO_LARGE,
                token,
                "brackets nest deeper than %s levels".formatted(StatementReader.MAX_DEPTH),
                ""));
  }

  /** {@return the fault of this closing bracket; empty if it has none} */
  Optional<Fault> close(Token token) {
    @Nullable Token opening = open.poll();
    if (opening == null) {
      return Optional.of(
          Fault.syntax(token, "no bracket is open for this '%s'".formatted(token.getText())));
    }
    return roles.closing(opening.getType()) == token.getType()
        ? Optional.empty()
        : Optional.of(
            Fault.syntax(
                token,
                "'%s' does not close the '%s' at %s"
                    .formatted(token.getText(), opening.getText(), location(opening))));
  }

  /** Notes that the next line, inside brackets, looks like a statement of its own. */
  void lineStartsStatement() {
    if (forgotten == null) {
      forgotten = open.peek();
    }
  }

  /**
   * {@return the fault of a statement that ends inside brackets}
   *
   * @param found the token that cannot stand inside brackets; null at the end of the file
   */
  Fault unclosed(@Nullable Token found) {
    var opening = open.element();
    return Fault.syntax(
        opening,
        "'%s' is never closed".formatted(opening.getText()),
        found == null
            ? "the file ends first"
            : "it is still open at '%s' in line %s".formatted(found.getText(), found.getLine()));
  }

  /** {@return whether a forgotten bracket may be why something is wrong at a token} */
  boolean explain(Token wrong) {
    return forgotten != null && wrong.getLine() > forgotten.getLine();
  }

  /** {@return the real fault: a forgotten bracket explains whatever is wrong after it} */
  Fault cause(Fault found) {
    return forgotten == null
        ? found
        : Fault.syntax(
            forgotten,
            "'%s' is not closed before the next statement".formatted(forgotten.getText()));
  }

  /** {@return the outermost bracket that is open} */
  Optional<Token> outermost() {
    return Optional.ofNullable(open.peekLast());
  }

  static String location(Token token) {
    return token.getLine() + ":" + (token.getCharPositionInLine() + 1);
  }
}
