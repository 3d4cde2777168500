package dev.symplan.ir.hlo;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.testkit.Fuzz;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.Lexer;
import org.antlr.v4.runtime.Token;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The tokens that are found without ANTLR's tables are those of the grammar. */
@Tag("random")
class HloLexerTest {
  private static final long SEED = Fuzz.seed(91_000);
  private static final int TEXTS = Fuzz.times(2000);

  private static final String[] PIECES = {
    "%", "a", "Z_9", "-", ".", "#", "#1", "0", "-7", "1e-5", " ", "\t", "\n", "\r\n", "(", ")", "[",
    "]", "{", "}", ",", "=", "<=", "->", "\"s\"", "'t'", "\"", "//c", "/*5*/", "/", "inf", "S(5)"
  };

  private static List<String> tokens(Lexer lexer, String text) {
    lexer.removeErrorListeners();
    lexer.setInputStream(CharStreams.fromString(text));
    var found = new ArrayList<String>();
    for (var token = lexer.nextToken(); token.getType() != Token.EOF; token = lexer.nextToken()) {
      found.add(
          "%s '%s' %s..%s at %s:%s"
              .formatted(
                  type(token.getType()),
                  token.getText(),
                  token.getStartIndex(),
                  token.getStopIndex(),
                  token.getLine(),
                  token.getCharPositionInLine()));
    }
    return found;
  }

  /** The braces of bodies are told apart later. */
  private static int type(int type) {
    return switch (type) {
      case HloTextLexer.OPEN_BODY -> HloTextLexer.LBRACE;
      case HloTextLexer.CLOSE_BODY -> HloTextLexer.RBRACE;
      default -> type;
    };
  }

  @Test
  void tokensAreThoseOfTheGrammar() {
    var random = new Random(SEED);
    for (int i = 0; i < TEXTS; i++) {
      var text = new StringBuilder();
      for (int k = random.nextInt(20); k >= 0; k--) {
        text.append(PIECES[random.nextInt(PIECES.length)]);
      }
      var all = text.toString();

      assertThat(tokens(new HloLexer(all), all))
          .isEqualTo(tokens(new HloTextLexer(CharStreams.fromString("")), all));
    }
  }
}
