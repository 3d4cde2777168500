package dev.symplan.runtime.host;

import com.google.common.base.Ascii;
import dev.symplan.codegen.Instruction;
import dev.symplan.codegen.Instruction.AwaitEvent;
import dev.symplan.codegen.Instruction.Border;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.Fused;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Instruction.RecordEvent;
import dev.symplan.codegen.Instruction.SetupEnd;
import java.util.Optional;
import java.util.stream.Collectors;

/** The names of instructions in messages and profiles. */
final class InstructionText {
  private InstructionText() {}

  /** {@return the name of an instruction; empty for one that only orders streams} */
  static Optional<String> label(Instruction instruction) {
    return switch (instruction) {
      case LocalOp op -> Optional.of(op.name());
      case Fused fused -> Optional.of(fused.parts().getLast().name());
      case Collective collective -> Optional.of(collective.name());
      case Border _, SetupEnd _, RecordEvent _, AwaitEvent _ -> Optional.empty();
    };
  }

  /** {@return the name of the kernel that runs it on the host} */
  static String kernel(Instruction instruction) {
    return switch (instruction) {
      case LocalOp op -> "host " + op.def().name().name();
      case Fused fused ->
          fused.parts().stream()
              .map(part -> part.def().name().name())
              .collect(Collectors.joining("+", "host ", ""));
      case Collective collective ->
          "host %s as %s"
              .formatted(Ascii.toLowerCase(collective.kind().name()), collective.variant().text());
      case Border _, SetupEnd _, RecordEvent _, AwaitEvent _ -> "";
    };
  }

  /** {@return its description and its location in the program} */
  static String name(Instruction instruction) {
    return switch (instruction) {
      case LocalOp op ->
          "%s '%s' (%s)".formatted(op.def().name(), op.name(), op.span().shortForm());
      case Fused(var _, var _, var parts, var _) ->
          "%s fused ops up to %s '%s' (%s)"
              .formatted(
                  parts.size(),
                  parts.getLast().def().name(),
                  parts.getLast().name(),
                  parts.getLast().span().shortForm());
      case Collective c ->
          "%s %s '%s' (%s)"
              .formatted(
                  Ascii.toLowerCase(c.kind().name()),
                  c.variant().text(),
                  c.name(),
                  c.span().shortForm());
      case SetupEnd _ -> "the end of the setup";
      case Border(var graph, var _, var _, var _) ->
          "the border before graph '%s'".formatted(graph);
      case RecordEvent(var stream, int event) -> "event " + event + " of " + stream.text();
      case AwaitEvent(var stream, int event) -> stream.text() + " at event " + event;
    };
  }
}
