package dev.symplan.codegen;

import com.google.common.base.Strings;
import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Instruction.AwaitEvent;
import dev.symplan.codegen.Instruction.Border;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.Fused;
import dev.symplan.codegen.Instruction.GroupUse;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Instruction.RecordEvent;
import dev.symplan.codegen.Instruction.SetupEnd;
import dev.symplan.ir.Arg;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.SliceDims;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Executables as people read them: a table of stream, result and instruction. */
final class ExecutableText {

  /** Longer cells do not push the column after them further. */
  private static final int MAX_CELL = 44;

  private record Row(String stream, String result, String text) {}

  private ExecutableText() {}

  static String of(Executable executable) {
    var out = new StringBuilder();
    out.append("executable ").append(executable.name());
    out.append(" · symmetric arena ").append(executable.symmetricBytes());
    out.append(" B · digest ").append(executable.digest()).append('\n');
    var ranksOfText = new LinkedHashMap<String, List<Integer>>();
    for (var program : executable.ranks()) {
      ranksOfText.computeIfAbsent(of(program), text -> new ArrayList<>()).add(program.rank());
    }
    ranksOfText.forEach(
        (text, ranks) -> {
          out.append(ranks.size() == 1 ? "\nrank " : "\nranks ");
          out.append(ranks.stream().map(Object::toString).collect(Collectors.joining(", ")));
          out.append(" · ").append(text);
        });
    return out.toString();
  }

  private static String of(RankProgram program) {
    var rows = new ArrayList<Row>();
    for (int i = 0; i < program.inputs().size(); i++) {
      rows.add(
          new Row(
              "in" + i,
              program.inputNames().get(i),
              program.inputs().get(i).map(TensorRef::toString).orElse("a number")));
    }
    program.instructions().forEach(instruction -> rows.addAll(rows(instruction)));
    for (int i = 0; i < program.outputs().size(); i++) {
      rows.add(
          new Row("out" + i, "", program.outputs().get(i).map(TensorRef::toString).orElse("None")));
    }
    int streams = rows.stream().mapToInt(row -> row.stream().length()).max().orElse(0);
    int results =
        rows.stream()
            .mapToInt(row -> row.result().length())
            .filter(length -> length <= MAX_CELL)
            .max()
            .orElse(0);
    var out = new StringBuilder();
    out.append("local arena ").append(program.localBytes()).append(" B · ");
    out.append(program.events()).append(" events\n");
    for (var row : rows) {
      out.append("  ").append(Strings.padEnd(row.stream(), streams, ' '));
      out.append("  ").append(Strings.padEnd(row.result(), results, ' '));
      out.append("  ").append(row.text()).append('\n');
    }
    return out.toString();
  }

  private static List<Row> rows(Instruction instruction) {
    var stream = instruction.stream().text();
    return switch (instruction) {
      case Fused(var _, var _, var parts, var _) ->
          IntStream.range(0, parts.size())
              .mapToObj(
                  i ->
                      new Row(
                          stream,
                          operands(parts.get(i).results()),
                          "= fused %s/%s %s(%s)"
                              .formatted(
                                  i + 1,
                                  parts.size(),
                                  parts.get(i).def().name(),
                                  operands(parts.get(i).args()))))
              .toList();
      case LocalOp op ->
          row(
              stream,
              op.results().stream()
                  .map(result -> result.map(TensorRef::toString).orElse("_"))
                  .collect(Collectors.joining(", ")),
              "= %s(%s)%s"
                  .formatted(
                      op.def().name(),
                      operands(op.args()),
                      op.group().map(ExecutableText::group).orElse("")));
      case Collective c -> row(stream, join(c.results()), collective(c));
      case Border(var graph, int inputs, int outputs, boolean independent) ->
          row(
              stream,
              "",
              "graph %s begins, from in%s and out%s%s"
                  .formatted(graph, inputs, outputs, independent ? ", independent" : ""));
      case SetupEnd(var weights) ->
          row(
              stream,
              "",
              "a run begins; what is above runs once%s"
                  .formatted(weights.isEmpty() ? "" : ", with " + String.join(", ", weights)));
      case RecordEvent(var _, int event) -> row(stream, "", "record event " + event);
      case AwaitEvent(var _, int event) -> row(stream, "", "await event " + event);
    };
  }

  private static List<Row> row(String stream, String result, String text) {
    return List.of(new Row(stream, result, text));
  }

  private static String collective(Collective c) {
    var out = new StringBuilder("= ");
    out.append(c.kind().text()).append(' ').append(c.variant().text());
    out.append('(').append(join(c.operands())).append(')');
    out.append(c.reduceOp().map(op -> " " + op).orElse(""));
    out.append(c.root() < 0 ? "" : " from " + c.root());
    out.append(c.kind() == Kind.COLLECTIVE_PERMUTE ? " " + c.permutation() : "");
    out.append(rows(" send ", c.sendRows())).append(rows(" receive ", c.receiveRows()));
    out.append(along(c.dims()));
    out.append(group(c.group()));
    out.append(c.startBarrier() ? " start" : "").append(c.endBarrier() ? " end" : "");
    c.workspace()
        .ifPresent(w -> out.append(" workspace symm+0x").append(Long.toHexString(w.offset())));
    out.append(
        switch (c.epilogue()) {
          case NONE -> "";
          case STORED -> " with the next";
          case PASSED -> " with the next, not stored";
        });
    return out.toString();
  }

  private static String rows(String label, ImmutableLongArray rows) {
    return rows.isEmpty() ? "" : label + rows;
  }

  private static String along(SliceDims dims) {
    return (dims.operand() == 0 ? "" : " send along dim " + dims.operand())
        + (dims.result() == 0 ? "" : " receive along dim " + dims.result());
  }

  private static String group(GroupUse group) {
    return " #" + group.index() + " ranks " + group.members();
  }

  private static String join(ImmutableList<TensorRef> refs) {
    return refs.stream().map(TensorRef::toString).collect(Collectors.joining(", "));
  }

  private static String operands(ImmutableList<Operand> operands) {
    return operands.stream().map(ExecutableText::operand).collect(Collectors.joining(", "));
  }

  private static String operand(Operand operand) {
    return switch (operand) {
      case Operand.Tensor(var ref) -> ref.toString();
      case Operand.Passed passed -> passed.toString();
      case Operand.Many(var items) -> "[" + operands(items) + "]";
      case Operand.Constant(var value) -> constant(value);
    };
  }

  private static String constant(Arg value) {
    return switch (value) {
      case Arg.Literal literal -> literal.text();
      case Arg.Seq(var items) ->
          items.stream().map(ExecutableText::constant).collect(Collectors.joining(", ", "[", "]"));
      case Arg.Ref(var number) -> number.name();
    };
  }
}
