package dev.symplan.ir.diag;

import java.util.Arrays;
import java.util.Optional;

/** Finds the name that was probably meant by a misspelled one. */
public final class Suggestions {
  private static final int MAX_LENGTH = 100;

  private Suggestions() {}

  /** {@return "did you mean …?" for the closest name, or an empty text where none is close} */
  public static String hint(String name, Iterable<String> known) {
    return closest(name, known).map(close -> "did you mean '" + close + "'?").orElse("");
  }

  /** {@return the first of the names that differ least, if that is by a third of it at most} */
  public static Optional<String> closest(String name, Iterable<String> known) {
    var best = Optional.<String>empty();
    int limit = Math.min(3, name.length() / 3) + 1;
    for (var candidate : known) {
      if (Math.abs(candidate.length() - name.length()) < limit && candidate.length() < MAX_LENGTH) {
        int distance = distance(name, candidate);
        if (distance < limit) {
          limit = distance;
          best = Optional.of(candidate);
        }
      }
    }
    return best;
  }

  /**
   * {@return how many characters must be inserted, deleted, replaced or swapped with their
   * neighbour: the restricted Damerau-Levenshtein distance}
   */
  static int distance(String a, String b) {
    var older = new int[b.length() + 1];
    var old = new int[b.length() + 1];
    var row = new int[b.length() + 1];
    Arrays.setAll(old, i -> i);
    for (int i = 1; i <= a.length(); i++) {
      row[0] = i;
      for (int j = 1; j <= b.length(); j++) {
        int replace = old[j - 1] + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
        row[j] = Math.min(replace, 1 + Math.min(old[j], row[j - 1]));
        if (i > 1
            && j > 1
            && a.charAt(i - 1) == b.charAt(j - 2)
            && a.charAt(i - 2) == b.charAt(j - 1)) {
          row[j] = Math.min(row[j], older[j - 2] + 1);
        }
      }
      var spare = older;
      older = old;
      old = row;
      row = spare;
    }
    return old[b.length()];
  }
}
