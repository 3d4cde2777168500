package dev.symplan.ir.text;

import java.util.Arrays;
import org.antlr.v4.runtime.Vocabulary;

/** The meaning of a grammar's token types to a {@link StatementReader}. */
public final class TokenRoles {

  enum Role {
    PLAIN,
    LINE_END,
    COMMENT,
    OPEN,
    CLOSE,
    FRAME_OPEN,
    FRAME_CLOSE,
    INVALID;

    /** {@return whether such a token never stands inside brackets} */
    boolean isOutsideBrackets() {
      return this == FRAME_OPEN || this == FRAME_CLOSE;
    }
  }

  private final Role[] roles;
  private final int[] closing;

  private TokenRoles(Role[] roles, int[] closing) {
    this.roles = roles;
    this.closing = closing;
  }

  /**
   * @param lineEnd the token of a line's end
   * @param comment the token from {@code #} to the end of the line
   */
  public static Builder builder(Vocabulary vocabulary, int lineEnd, int comment) {
    var builder = new Builder(vocabulary.getMaxTokenType());
    builder.set(Role.LINE_END, lineEnd);
    builder.set(Role.COMMENT, comment);
    return builder;
  }

  Role of(int type) {
    return roles[type];
  }

  /** {@return the token type that closes this bracket} */
  int closing(int openType) {
    return closing[openType];
  }

  /** Collects the roles; token types that are not named are plain. */
  public static final class Builder {
    private final Role[] roles;
    private final int[] closing;

    private Builder(int maxType) {
      roles = new Role[maxType + 1];
      Arrays.fill(roles, Role.PLAIN);
      closing = new int[maxType + 1];
    }

    /** A pair of brackets, inside which lines go on. */
    public Builder brackets(int openType, int closeType) {
      set(Role.OPEN, openType);
      set(Role.CLOSE, closeType);
      closing[openType] = closeType;
      return this;
    }

    /**
     * A pair around statements: the opening one ends its statement, the closing one is a statement
     * of its own.
     */
    public Builder frame(int openType, int closeType) {
      set(Role.FRAME_OPEN, openType);
      set(Role.FRAME_CLOSE, closeType);
      return this;
    }

    /** A token that is an error wherever it stands: a stray character, a string without its end. */
    public Builder invalid(int type) {
      set(Role.INVALID, type);
      return this;
    }

    public TokenRoles build() {
      return new TokenRoles(roles.clone(), closing.clone());
    }

    private void set(Role role, int type) {
      roles[type] = role;
    }
  }
}
