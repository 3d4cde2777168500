package dev.symplan.ir.text;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.AliasInfo;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpName;
import dev.symplan.ir.op.OpSchema;
import dev.symplan.ir.op.Param;
import dev.symplan.ir.op.SchemaType;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * The names of ops in the text of a program, and the ops that the text must declare: those without
 * a rule, which a reader may not know.
 *
 * <p>Importers make a schema of their own for each call of an unknown op. Where those of one name
 * differ in the types of their parameters only, these become {@code Any}; where they differ in the
 * parameters, the later ones get overload names of their own.
 */
final class PrintedOps {
  private final Map<OpSchema, String> names = new HashMap<>();
  private final List<OpDef> undeclared = new ArrayList<>();

  PrintedOps(Iterable<OpDef> declarations, Iterable<Graph> graphs) {
    var declared = new HashMap<String, OpSchema>();
    declarations.forEach(def -> declared.put(def.name().toString(), def.schema()));
    var unknown = new LinkedHashMap<Signature, List<OpDef>>();
    var seen = new HashSet<OpSchema>();
    for (var graph : graphs) {
      for (Op op : graph.ops()) {
        var schema = op.def().schema();
        if (op.def().rule().isEmpty()
            && !schema.equals(declared.get(schema.name().toString()))
            && seen.add(schema)) {
          unknown
              .computeIfAbsent(Signature.of(op.def()), signature -> new ArrayList<>())
              .add(op.def());
        }
      }
    }
    var taken = new HashSet<>(declared.keySet());
    unknown.forEach((signature, defs) -> declare(signature, defs, taken));
  }

  /** {@return the ops to declare besides those that the program declares} */
  ImmutableList<OpDef> undeclared() {
    return ImmutableList.copyOf(undeclared);
  }

  String name(Op op) {
    return op.def().rule().isPresent()
        ? op.def().name().toString()
        : names.getOrDefault(op.def().schema(), op.def().name().toString());
  }

  /** The facts that calls of one op must share to be calls of one schema. */
  private record Signature(OpName name, ImmutableList<String> params) {
    static Signature of(OpDef def) {
      var params =
          def.schema().params().stream()
              .map(param -> (param.keywordOnly() ? "*" : "") + param.name() + defaultText(param))
              .collect(ImmutableList.toImmutableList());
      return new Signature(def.name(), params);
    }

    private static String defaultText(Param param) {
      return param.defaultValue().isPresent() ? "=" + param.defaultText() : "";
    }
  }

  private void declare(Signature signature, List<OpDef> defs, Set<String> taken) {
    var name = freeName(signature.name(), taken);
    var first = defs.getFirst();
    boolean asItIs = defs.size() == 1 && name.equals(first.name());
    undeclared.add(asItIs ? first : renamed(first, name, defs));
    defs.forEach(def -> names.put(def.schema(), name.toString()));
  }

  private static OpName freeName(OpName name, Set<String> taken) {
    var namespace = word(name.namespace());
    var base = word(name.name());
    var overload = name.overload().isEmpty() ? "" : word(name.overload());
    var free = new OpName(namespace, base, overload);
    for (int i = 2; !taken.add(free.toString()); i++) {
      free = new OpName(namespace, base, (overload.isEmpty() ? "call" : overload) + "_" + i);
    }
    return free;
  }

  private static String word(String text) {
    if (GraphLanguage.isWord(text)) {
      return text;
    }
    var word =
        text.chars()
            .mapToObj(c -> GraphLanguage.isWord("_" + (char) c) ? Character.toString(c) : "_")
            .collect(Collectors.joining());
    return GraphLanguage.isWord(word) ? word : "_" + word;
  }

  private static OpDef renamed(OpDef first, OpName name, List<OpDef> defs) {
    var params = ImmutableList.<Param>builder();
    for (int i = 0; i < first.schema().params().size(); i++) {
      int at = i;
      var param = first.schema().params().get(i);
      var types =
          defs.stream().map(def -> def.schema().params().get(at).type()).distinct().toList();
      var alias =
          defs.stream()
              .map(def -> def.schema().params().get(at).alias())
              .filter(AliasInfo::isPresent)
              .findFirst()
              .orElse(AliasInfo.NONE);
      params.add(
          new Param(
              param.name(),
              types.size() == 1 ? param.type() : SchemaType.Base.ANY,
              alias,
              param.defaultValue(),
              param.defaultText(),
              param.keywordOnly()));
    }
    var schema =
        new OpSchema(
            name,
            params.build(),
            first.schema().results(),
            first.schema().results().size() != 1
                || !first.schema().results().getFirst().name().isEmpty());
    return new OpDef(
        schema,
        ImmutableSet.copyOf(first.symmMemArgs()),
        ImmutableSet.copyOf(first.symmMemResults()),
        first.collective(),
        Optional.empty(),
        Optional.empty(),
        first.traits());
  }
}
