package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableSet;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.Instruction;
import dev.symplan.codegen.Instruction.AwaitEvent;
import dev.symplan.codegen.Instruction.Border;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.Fused;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Instruction.RecordEvent;
import dev.symplan.codegen.Instruction.SetupEnd;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.op.OpDef;
import dev.symplan.planner.plan.ArenaKind;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** The inputs outside of arenas that no instruction of a rank writes. */
final class ConstantInputs {
  private final ImmutableSet<Integer> written;

  private ConstantInputs(ImmutableSet<Integer> written) {
    this.written = written;
  }

  /** {@return those of a rank, from all of its instructions} */
  static ConstantInputs of(List<Instruction> instructions) {
    return new ConstantInputs(
        instructions.stream()
            .flatMap(ConstantInputs::maybeWritten)
            .filter(ref -> ref.arena() == ArenaKind.EXTERNAL_INPUT)
            .map(TensorRef::index)
            .collect(ImmutableSet.toImmutableSet()));
  }

  /** {@return whether memory is of such an input} */
  boolean contains(Address address) {
    return address.arena() == ArenaKind.EXTERNAL_INPUT && !written.contains(address.index());
  }

  /** All that an instruction may write, and maybe more. */
  private static Stream<TensorRef> maybeWritten(Instruction instruction) {
    return switch (instruction) {
      case LocalOp op ->
          Stream.concat(
              ifMutating(op.def(), op.args()), op.results().stream().flatMap(Optional::stream));
      case Fused fused ->
          fused.parts().stream()
              .flatMap(
                  part ->
                      Stream.concat(
                          ifMutating(part.def(), part.args()),
                          part.results().stream().flatMap(Operand::tensors)));
      case Collective collective -> collective.tensors();
      case Border _, SetupEnd _, RecordEvent _, AwaitEvent _ -> Stream.empty();
    };
  }

  private static Stream<TensorRef> ifMutating(OpDef def, List<Operand> args) {
    return def.schema().mutates() ? args.stream().flatMap(Operand::tensors) : Stream.empty();
  }
}
