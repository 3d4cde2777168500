package dev.symplan.ir.text;

import com.google.common.collect.ImmutableMap;

/** What the reader must know of the grammar {@code GraphText}. */
final class GraphLanguage {
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
              GraphTextParser.RULE_call, "an argument",
              GraphTextParser.RULE_literal, "a value",
              GraphTextParser.RULE_arg, "an argument",
              GraphTextParser.RULE_expr, "a value",
              GraphTextParser.RULE_returnValues, "a value"));

  private GraphLanguage() {}
}
