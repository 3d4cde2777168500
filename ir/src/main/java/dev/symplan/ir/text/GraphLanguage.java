package dev.symplan.ir.text;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.PythonLiterals;

/** The facts about the grammar {@code GraphText} that reader and printer need. */
final class GraphLanguage {
  /** The version of the language that this release reads and writes. */
  static final int VERSION = 1;

  /** The tokens that can follow the first word of an assignment. */
  static final ImmutableSet<Integer> ASSIGNMENT_SIGNS =
      ImmutableSet.of(GraphTextLexer.EQUALS, GraphTextLexer.COMMA, GraphTextLexer.COLON);

  /** Words that cannot name a value. */
  static final ImmutableSet<String> RESERVED =
      ImmutableSet.of("True", "False", "None", "return", "inf", "nan");

  static final TokenRoles ROLES =
      TokenRoles.builder(GraphTextLexer.VOCABULARY, GraphTextLexer.NEWLINE, GraphTextLexer.COMMENT)
          .brackets(GraphTextLexer.LPAREN, GraphTextLexer.RPAREN)
          .brackets(GraphTextLexer.LBRACKET, GraphTextLexer.RBRACKET)
          .frame(GraphTextLexer.LBRACE, GraphTextLexer.RBRACE)
          .invalid(GraphTextLexer.UNCLOSED_STRING)
          .invalid(GraphTextLexer.UNKNOWN)
          .build();

  static final TokenPhrases PHRASES =
      new TokenPhrases(
          GraphTextLexer.VOCABULARY,
          ImmutableMap.of(
              GraphTextLexer.INT, "an integer",
              GraphTextLexer.FLOAT, "a number",
              GraphTextLexer.NAME, "a name",
              GraphTextLexer.OP_NAME, "an op such as aten::mm",
              GraphTextLexer.STRING, "a string",
              GraphTextLexer.TORCH, "torch.NAME"),
          ImmutableMap.of(
              GraphTextParser.RULE_type, "a type such as f32[8, 64]",
              GraphTextParser.RULE_arg, "an argument",
              GraphTextParser.RULE_expr, "a value",
              GraphTextParser.RULE_literal, "a value"),
          ImmutableMap.of(
              GraphTextParser.RULE_graphHead, "a parameter",
              GraphTextParser.RULE_call, "an argument",
              GraphTextParser.RULE_parenthesized, "a value",
              GraphTextParser.RULE_literal, "a value",
              GraphTextParser.RULE_returnValues, "a value"));

  private GraphLanguage() {}

  static boolean isWord(String text) {
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      boolean letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
      if (!letter && (i == 0 || c < '0' || c > '9')) {
        return false;
      }
    }
    return !text.isEmpty();
  }

  /** {@return the name of a group or graph as written: a word, or a string where it is none} */
  static String nameText(String name) {
    return isWord(name) && !RESERVED.contains(name) ? name : PythonLiterals.quote(name);
  }
}
