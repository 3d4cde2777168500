package dev.symplan.ir.text;

import com.google.common.collect.ImmutableMap;
import org.antlr.v4.runtime.Vocabulary;
import org.jspecify.annotations.Nullable;

/**
 * The words of messages for the tokens and rules of a grammar.
 *
 * @param tokens words for tokens without a fixed text, by type: {@code a name}
 * @param rules words for what a rule reads, by rule index, where its first token is wrong: {@code a
 *     type}
 * @param items words for the items of a rule's list, by rule index, where one is wrong, and where
 *     many tokens could stand: {@code an argument}
 */
public record TokenPhrases(
    Vocabulary vocabulary,
    ImmutableMap<Integer, String> tokens,
    ImmutableMap<Integer, String> rules,
    ImmutableMap<Integer, String> items) {

  /** Takes the words of a rule for the items of its list too. */
  public TokenPhrases(
      Vocabulary vocabulary,
      ImmutableMap<Integer, String> tokens,
      ImmutableMap<Integer, String> rules) {
    this(vocabulary, tokens, rules, rules);
  }

  String token(int type) {
    @Nullable String phrase = tokens.get(type);
    return phrase != null ? phrase : vocabulary.getDisplayName(type);
  }
}
