package dev.symplan.ir.pt2;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/** Makes an archive's names into words, each into one of its own. */
final class Names {
  private final Map<String, String> legal = new HashMap<>();
  private final Set<String> taken = new HashSet<>();

  /** {@return the word for a name; the same for the same name} */
  String of(String name) {
    return legal.computeIfAbsent(name, this::free);
  }

  /** {@return a word that is like the name, and that no other name has} */
  String free(String name) {
    var stem = new StringBuilder();
    for (int i = 0; i < name.length(); i++) {
      char c = name.charAt(i);
      boolean letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
      boolean digit = c >= '0' && c <= '9';
      stem.append(i == 0 && digit ? "_" : "").append(letter || digit ? c : '_');
    }
    var word = stem.isEmpty() ? "v" : stem.toString();
    var free = word;
    for (int i = 1; !taken.add(free); i++) {
      free = word + "_" + i;
    }
    return free;
  }
}
