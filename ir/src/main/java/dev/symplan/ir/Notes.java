package dev.symplan.ir;

import com.google.common.collect.ImmutableList;

/**
 * The comments around a statement, kept so that printing gives them back.
 *
 * @param before the lines above it: {@code "# text"}, or {@code ""} for a blank line
 * @param after the comment after it on its own line, {@code "# text"}, or {@code ""}
 */
public record Notes(ImmutableList<String> before, String after) {
  public static final Notes NONE = new Notes(ImmutableList.of(), "");
}
