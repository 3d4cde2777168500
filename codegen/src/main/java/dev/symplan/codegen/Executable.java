package dev.symplan.codegen;

import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Instruction.AwaitEvent;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Instruction.RecordEvent;
import dev.symplan.ir.Arg;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * A plan as instructions: everything that is fixed before the first run is fixed here.
 *
 * @param symmetricBytes the size of each rank's symmetric arena
 * @param digest that of the plan: what the ranks compare before the first collective
 * @param ranks one program for each rank
 */
public record Executable(
    String name, long symmetricBytes, String digest, ImmutableList<RankProgram> ranks) {

  /** {@return one line for each instruction of each rank, with addresses} */
  public String toText() {
    var out = new StringBuilder();
    out.append("executable ").append(name).append(" · symmetric ").append(symmetricBytes);
    out.append(" B · digest ").append(digest).append('\n');
    for (var rank : ranks) {
      out.append("rank ").append(rank.rank()).append(" · local ").append(rank.localBytes());
      out.append(" B\n");
      for (var instruction : rank.instructions()) {
        out.append("  ").append(instruction.stream().text()).append(": ");
        out.append(text(instruction)).append('\n');
      }
    }
    return out.toString();
  }

  private static String text(Instruction instruction) {
    return switch (instruction) {
      case LocalOp op -> results(op.results()) + op.def().name() + "(" + operands(op.args()) + ")";
      case Collective c ->
          join(c.results())
              + " = "
              + Ascii.toLowerCase(c.kind().name())
              + " "
              + c.variant().text()
              + (c.reduceOp().isEmpty() ? "" : " " + c.reduceOp())
              + (c.root() < 0 ? "" : " root " + c.root())
              + " ranks "
              + c.group().members()
              + " of "
              + join(c.operands())
              + (c.startBarrier() ? " [start" : " [")
              + (c.endBarrier() ? " end]" : "]");
      case RecordEvent(var _, int event) -> "record " + event;
      case AwaitEvent(var _, int event) -> "await " + event;
    };
  }

  private static String results(ImmutableList<Optional<TensorRef>> results) {
    return results.isEmpty()
        ? ""
        : results.stream()
            .map(r -> r.map(TensorRef::toString).orElse("_"))
            .collect(Collectors.joining(", ", "", " = "));
  }

  private static String join(ImmutableList<TensorRef> refs) {
    return refs.stream().map(TensorRef::toString).collect(Collectors.joining(", "));
  }

  private static String operands(ImmutableList<Operand> operands) {
    return operands.stream().map(Executable::text).collect(Collectors.joining(", "));
  }

  private static String text(Operand operand) {
    return switch (operand) {
      case Operand.Tensor(var ref) -> ref.toString();
      case Operand.Many(var items) -> "[" + operands(items) + "]";
      case Operand.Constant(var value) -> constant(value);
    };
  }

  private static String constant(Arg value) {
    return switch (value) {
      case Arg.Int(long number) -> Long.toString(number);
      case Arg.Float(double number) -> Double.toString(number);
      case Arg.Bool(boolean flag) -> flag ? "True" : "False";
      case Arg.Str(String text) -> "\"" + text + "\"";
      case Arg.Dtype(var dtype) -> "torch." + dtype.torchName();
      case Arg.Symbol(String name) -> "torch." + name;
      case Arg.Device(String name) -> "device(\"" + name + "\")";
      case Arg.Seq(var items) ->
          items.stream().map(Executable::constant).collect(Collectors.joining(", ", "[", "]"));
      case Arg.Ref(var number) -> number.name();
      case Arg.None _ -> "None";
    };
  }
}
