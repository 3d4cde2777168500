package dev.symplan.ir.text;

import dev.symplan.ir.Arg;
import dev.symplan.ir.Graph;
import dev.symplan.ir.Op;
import dev.symplan.ir.Value;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * What the values of a graph are called in its text: their own names, unless these are no words of
 * the language, or not unique, as in graphs that a program made.
 */
final class ValueNames {
  private final Map<Integer, String> names = new HashMap<>();
  private final Set<String> taken = new HashSet<>();

  ValueNames(Graph graph) {
    var unnamed = new HashSet<Integer>();
    graph.inputs().forEach(value -> add(value, unnamed));
    for (Op op : graph.ops()) {
      op.results().forEach(value -> add(value, unnamed));
    }
    graph.inputs().forEach(value -> invent(value, unnamed));
    for (Op op : graph.ops()) {
      op.forEachOperand(value -> invent(value, unnamed));
    }
    for (Arg output : graph.outputs()) {
      output.forEachValue(value -> invent(value, unnamed));
    }
  }

  /** {@return the name; {@code _} where nothing reads the value} */
  String of(Value value) {
    return names.getOrDefault(value.id(), "_");
  }

  private void add(Value value, Set<Integer> unnamed) {
    var name = value.name();
    if (isFree(name) && taken.add(name)) {
      names.put(value.id(), name);
    } else {
      unnamed.add(value.id());
      if (!name.isEmpty()) {
        invent(value, unnamed);
      }
    }
  }

  private void invent(Value value, Set<Integer> unnamed) {
    if (!unnamed.remove(value.id())) {
      return;
    }
    var stem = stem(value.name());
    var name = stem;
    for (int i = 1; !isFree(name) || !taken.add(name); i++) {
      name = stem + "_" + i;
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
