package dev.symplan.ir.text;

import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * The names of a graph's values in its text. A value keeps its own name, unless that is not a word
 * of the language or not unique, as in graphs that a program made.
 */
final class ValueNames {
  private final Map<Integer, String> names = new HashMap<>();
  private final Map<String, Integer> suffixes = new HashMap<>();
  private final Set<String> taken = new HashSet<>();

  ValueNames(Graph graph) {
    var values = new ArrayList<>(graph.inputs());
    graph.ops().forEach(op -> values.addAll(op.results()));
    values.forEach(this::keep);
    graph.inputs().forEach(this::invent);
    values.stream().filter(value -> !value.name().isEmpty()).forEach(this::invent);
    graph.ops().forEach(op -> op.operands().forEach(this::invent));
    graph.outputValues().forEach(this::invent);
  }

  /** {@return the name; {@code _} where nothing reads the value} */
  String of(Value value) {
    return names.getOrDefault(value.id(), "_");
  }

  private void keep(Value value) {
    if (isFree(value.name()) && taken.add(value.name())) {
      names.put(value.id(), value.name());
    }
  }

  private void invent(Value value) {
    if (names.containsKey(value.id())) {
      return;
    }
    var stem = stem(value.name());
    var name = stem;
    while (!isFree(name) || !taken.add(name)) {
      name = stem + "_" + suffixes.merge(stem, 1, Integer::sum);
    }
    names.put(value.id(), name);
  }

  private static boolean isFree(String name) {
    return GraphLanguage.isWord(name)
        && !name.equals("_")
        && !GraphLanguage.RESERVED.contains(name);
  }

  private static String stem(String name) {
    var stem = new StringBuilder();
    for (int i = 0; i < name.length(); i++) {
      char c = name.charAt(i);
      stem.append(GraphLanguage.isWord("_" + c) ? c : '_');
    }
    var text = stem.toString();
    return text.isEmpty() ? "v" : GraphLanguage.isWord(text) ? text : "_" + text;
  }
}
