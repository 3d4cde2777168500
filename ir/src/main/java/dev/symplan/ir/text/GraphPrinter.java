package dev.symplan.ir.text;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.Iterables;
import com.google.common.collect.Maps;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.NoneType;
import dev.symplan.ir.Notes;
import dev.symplan.ir.ScalarType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Type;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.op.CollectiveSpec;
import dev.symplan.ir.op.CollectiveSpec.Foreign;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpTypeException;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * Writes programs as {@code .graph} text that {@link GraphParser} reads back. Each program has one
 * text; {@code docs/language.md} says which.
 */
public final class GraphPrinter {
  private static final int WIDTH = 100;
  private static final String INDENT = "  ";
  private static final String PARAM_INDENT = "    ";

  private final StringBuilder out = new StringBuilder();
  private final boolean allTypes;
  private final PrintedOps ops;

  private GraphPrinter(boolean allTypes, PrintedOps ops) {
    this.allTypes = allTypes;
    this.ops = ops;
  }

  private static String program(Program program, boolean allTypes) {
    var ops = new PrintedOps(program.declarations(), program.graphs());
    return new GraphPrinter(allTypes, ops).program(program);
  }

  /** {@return the file that holds the program, with its comments} */
  public static String print(Program program) {
    return program(program, false);
  }

  /** {@return the file that holds the program, with the type and strides of every tensor} */
  public static String withTypes(Program program) {
    return program(program, true);
  }

  /** {@return the graph alone, from the comments above it to its closing brace} */
  public static String print(Graph graph) {
    var printer = new GraphPrinter(false, new PrintedOps(List.of(), List.of(graph)));
    printer.graph(graph, false);
    return printer.out.toString().stripLeading();
  }

  private String program(Program program) {
    var notes = program.headNotes().iterator();
    line("graph version " + GraphLanguage.VERSION, next(notes), "", false);
    boolean first = true;
    for (var group : program.groups()) {
      line(RankText.group(group), next(notes), "", first);
      first = false;
    }
    first = true;
    for (var declaration : Iterables.concat(program.declarations(), ops.undeclared())) {
      line("op " + declaration(declaration), next(notes), "", first);
      first = false;
    }
    program.graphs().forEach(graph -> graph(graph, true));
    above(program.endNotes(), "", false);
    return out.toString();
  }

  private static Notes next(Iterator<Notes> notes) {
    return notes.hasNext() ? notes.next() : Notes.NONE;
  }

  /**
   * @param gap whether a blank line must stand above
   */
  private void line(String text, Notes notes, String indent, boolean gap) {
    above(notes, indent, gap);
    out.append(indent).append(text);
    if (!notes.after().isEmpty()) {
      out.append("  ").append(comment(notes.after()));
    }
    out.append('\n');
  }

  private void above(Notes notes, String indent, boolean gap) {
    if (gap && (notes.before().isEmpty() || !notes.before().getFirst().isEmpty())) {
      out.append('\n');
    }
    for (var note : notes.before()) {
      if (!note.isBlank()) {
        out.append(indent).append(comment(note));
      }
      out.append('\n');
    }
  }

  private static String comment(String note) {
    var text = note.replace('\r', ' ').replace('\n', ' ').stripTrailing();
    return text.startsWith("#") ? text : "# " + text;
  }

  static String declaration(OpDef def) {
    var clauses =
        clauses(def).entrySet().stream()
            .map(clause -> clause.getKey() + "(" + String.join(", ", clause.getValue()) + ")")
            .collect(Collectors.joining(" "));
    return def.schema() + (clauses.isEmpty() ? "" : INDENT + clauses);
  }

  /** {@return the names in each clause of an op's declaration} */
  static ImmutableMap<String, ImmutableList<String>> clauses(OpDef def) {
    var foreign = def.collective().filter(spec -> spec.foreign().isPresent());
    var clauses = new LinkedHashMap<String, ImmutableList<String>>();
    clauses.put(DeclarationReader.SYMM_MEM, def.symmMemArgs().asList());
    clauses.put(DeclarationReader.SYMM_MEM_RESULTS, def.symmMemResults().asList());
    clauses.put(DeclarationReader.COLLECTIVE, list(foreign.map(spec -> spec.kind().text())));
    clauses.put(
        DeclarationReader.ALGORITHM,
        list(foreign.flatMap(CollectiveSpec::foreign).flatMap(Foreign::algorithm)));
    clauses.put(DeclarationReader.GROUP, list(def.collective().flatMap(CollectiveSpec::group)));
    return ImmutableMap.copyOf(Maps.filterValues(clauses, names -> !names.isEmpty()));
  }

  private static ImmutableList<String> list(Optional<String> name) {
    return name.stream().collect(toImmutableList());
  }

  private void graph(Graph graph, boolean gap) {
    var names = new ValueNames(graph);
    line(head(graph, names), graph.notes(), "", gap);
    for (var op : graph.ops()) {
      line(statement(op, names), op.notes(), INDENT, false);
    }
    line(returns(graph.outputs(), names), graph.endNotes(), INDENT, false);
    out.append("}\n");
  }

  private String head(Graph graph, ValueNames names) {
    var start = "graph " + GraphLanguage.nameText(graph.name()) + "(";
    var params =
        graph.inputs().stream()
            .map(value -> names.of(value) + ": " + type(value.type(), allTypes))
            .toList();
    var end = (graph.ranks().isEmpty() ? ")" : ") ranks " + RankText.list(graph.ranks())) + " {";
    var line = start + String.join(", ", params) + end;
    if (line.length() <= WIDTH || params.isEmpty()) {
      return line;
    }
    return params.stream()
        .map(param -> PARAM_INDENT + param + ",\n")
        .collect(Collectors.joining("", start + "\n", end));
  }

  private String statement(Op op, ValueNames names) {
    var text = new StringBuilder();
    var inferred = inferred(op);
    var results = op.results();
    for (int i = 0; i < results.size(); i++) {
      var value = results.get(i);
      text.append(i > 0 ? ", " : "").append(names.of(value));
      int at = i;
      annotation(value, inferred.map(types -> types.get(at)))
          .ifPresent(type -> text.append(": ").append(type));
    }
    text.append(results.isEmpty() ? "" : " = ").append(ops.name(op)).append('(');
    appendArgs(text, op, names);
    return text.append(')').toString();
  }

  /** {@return the types by the op's rule; empty if it has none, or none that fits the results} */
  private static Optional<ImmutableList<Type>> inferred(Op op) {
    try {
      return op.def()
          .infer(op.args())
          .map(types -> types.stream().map(OpResult::type).collect(ImmutableList.toImmutableList()))
          .filter(types -> types.size() == op.results().size());
    } catch (OpTypeException | IllegalArgumentException | ArithmeticException e) {
      return Optional.empty();
    }
  }

  /** {@return the type to write: where the source had one, or where the rule does not give it} */
  private Optional<String> annotation(Value value, Optional<Type> inferred) {
    var type = value.type();
    if (inferred.isEmpty()) {
      boolean none = type == NoneType.NONE && !value.annotated();
      return none ? Optional.empty() : Optional.of(type(type, allTypes));
    }
    boolean same = inferred.get().equals(type);
    if (type == NoneType.NONE || (same && !value.annotated() && !allTypes)) {
      return Optional.empty();
    }
    boolean sameStrides =
        !(type instanceof TensorType given)
            || !(inferred.get() instanceof TensorType wanted)
            || given.strides().equals(wanted.strides());
    return Optional.of(type(type, allTypes || !sameStrides));
  }

  private static String type(Type type, boolean strides) {
    return switch (type) {
      case TensorType tensor when strides ->
          tensor.dtype().shortName()
              + list(tensor.sizes())
              + list(tensor.strides())
              + (tensor.space() == MemorySpace.ANY ? "" : " @" + tensor.space().keyword());
      case TensorType _, ScalarType _, NoneType _ -> type.toString();
    };
  }

  private static String list(ImmutableLongArray values) {
    return values.stream().mapToObj(Long::toString).collect(Collectors.joining(", ", "[", "]"));
  }

  /** Parameters that are not keyword-only go by position; defaults at the end are left out. */
  private static void appendArgs(StringBuilder text, Op op, ValueNames names) {
    var params = op.def().schema().params();
    var args = op.args();
    int positional = 0;
    for (int i = 0; i < params.size(); i++) {
      if (!params.get(i).keywordOnly() && !isDefault(op, i)) {
        positional = i + 1;
      }
    }
    var separator = "";
    for (int i = 0; i < params.size(); i++) {
      boolean keyword = params.get(i).keywordOnly();
      if (keyword ? !isDefault(op, i) : i < positional) {
        text.append(separator).append(keyword ? params.get(i).name() + "=" : "");
        append(text, args.get(i), names);
        separator = ", ";
      }
    }
  }

  private static boolean isDefault(Op op, int i) {
    return op.def()
        .schema()
        .params()
        .get(i)
        .defaultValue()
        .filter(value -> value.equals(op.args().get(i)))
        .isPresent();
  }

  private static void append(StringBuilder text, Arg arg, ValueNames names) {
    switch (arg) {
      case Arg.Ref(Value value) -> text.append(names.of(value));
      case Arg.Literal literal -> text.append(literal.text());
      case Arg.Seq(ImmutableList<Arg> items) -> {
        text.append('[');
        for (int i = 0; i < items.size(); i++) {
          text.append(i > 0 ? ", " : "");
          append(text, items.get(i), names);
        }
        text.append(']');
      }
    }
  }

  private static String returns(ImmutableList<Arg> outputs, ValueNames names) {
    var text = new StringBuilder("return");
    for (int i = 0; i < outputs.size(); i++) {
      text.append(i > 0 ? ", " : " ");
      append(text, outputs.get(i), names);
    }
    return text.toString();
  }
}
