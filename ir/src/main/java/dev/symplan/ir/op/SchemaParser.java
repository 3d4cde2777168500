package dev.symplan.ir.op;

import java.util.LinkedHashSet;
import java.util.List;
import org.antlr.v4.runtime.BailErrorStrategy;
import org.antlr.v4.runtime.BaseErrorListener;
import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.CommonTokenStream;
import org.antlr.v4.runtime.RecognitionException;
import org.antlr.v4.runtime.Recognizer;
import org.antlr.v4.runtime.Token;
import org.antlr.v4.runtime.atn.PredictionMode;
import org.antlr.v4.runtime.misc.ParseCancellationException;
import org.jspecify.annotations.Nullable;

/** Reads PyTorch's schema language. */
public final class SchemaParser {
  private static final int MAX_LENGTH = 1 << 16;
  private static final int MAX_DEPTH = 64;
  private static final int MAX_WORDS = 4;

  private SchemaParser() {}

  /**
   * {@return the schema}
   *
   * @throws SchemaSyntaxException when the text is malformed; the message shows where
   */
  public static OpSchema parse(String text) {
    checkSize(text);
    var parser = parser(text);
    parser.setErrorHandler(new BailErrorStrategy());
    try {
      return new SchemaReader(text).schema(parser.schema());
    } catch (ParseCancellationException e) {
      // Only a text that fails pays for the search of what could have stood there.
      var second = parser(text);
      second.addErrorListener(new FirstError(text));
      return new SchemaReader(text).schema(second.schema());
    }
  }

  private static SchemaTextParser parser(String text) {
    var lexer = new SchemaTextLexer(CharStreams.fromString(text));
    lexer.removeErrorListeners();
    var parser = new SchemaTextParser(new CommonTokenStream(lexer));
    parser.removeErrorListeners();
    parser.setBuildParseTree(false);
    parser.getInterpreter().setPredictionMode(PredictionMode.SLL);
    return parser;
  }

  private static void checkSize(String text) {
    if (text.length() > MAX_LENGTH) {
      throw new SchemaSyntaxException(
          text, 0, 1, "a schema of more than %s characters".formatted(MAX_LENGTH), "");
    }
    int depth = 0;
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (Character.isSurrogate(c)) {
        throw new SchemaSyntaxException(text, i, 1, "a character beyond U+FFFF", "");
      }
      if (c == '(' || c == '[') {
        if (++depth > MAX_DEPTH) {
          throw new SchemaSyntaxException(
              text, i, 1, "brackets nest deeper than %s levels".formatted(MAX_DEPTH), "");
        }
      } else if (c == ')' || c == ']') {
        depth--;
      }
    }
  }

  /** Throws at the first error, with what could have stood there. */
  private static final class FirstError extends BaseErrorListener {
    private final String text;

    FirstError(String text) {
      this.text = text;
    }

    @Override
    public void syntaxError(
        Recognizer<?, ?> recognizer,
        @Nullable Object symbol,
        int line,
        int column,
        String message,
        @Nullable RecognitionException e) {
      var parser = (SchemaTextParser) recognizer;
      var found = e == null ? parser.getCurrentToken() : e.getOffendingToken();
      var words = new LinkedHashSet<String>();
      for (int type : (e == null ? parser.getExpectedTokens() : e.getExpectedTokens()).toList()) {
        words.add(describe(type));
      }
      var expected = words.size() > MAX_WORDS ? "a type or a value" : String.join(" or ", words);
      if (found.getType() == Token.EOF) {
        throw new SchemaSyntaxException(
            text, text.length(), 1, "expected %s at the end of the schema".formatted(expected), "");
      }
      int start = found.getStartIndex();
      int end = found.getStopIndex() + 1;
      var problem = "expected %s, not '%s'".formatted(expected, text.substring(start, end));
      throw new SchemaSyntaxException(text, start, end - start, problem, hint(parser));
    }

    private static String describe(int type) {
      return switch (type) {
        case SchemaTextParser.WORD -> "a name";
        case SchemaTextParser.GENERIC,
            SchemaTextParser.TRUE,
            SchemaTextParser.FALSE,
            SchemaTextParser.NONE ->
            "a name";
        case SchemaTextParser.INT, SchemaTextParser.FLOAT -> "a number";
        case SchemaTextParser.STRING -> "a string";
        case Token.EOF -> "the end of the schema";
        default -> SchemaTextParser.VOCABULARY.getDisplayName(type);
      };
    }

    private static String hint(SchemaTextParser parser) {
      List<String> rules = parser.getRuleInvocationStack();
      return rules.contains("opName") || rules.size() == 1
          ? "a schema reads ns::name.overload(Tensor self, int dim=0) -> Tensor"
          : "";
    }
  }
}
