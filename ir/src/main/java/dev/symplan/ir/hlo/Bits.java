package dev.symplan.ir.hlo;

import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.Value;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.List;
import java.util.Optional;

/** Makes PyTorch's ops of shifts, and of counts of bits. */
final class Bits {
  private final GraphEmitter emitter;

  Bits(GraphEmitter emitter) {
    this.emitter = emitter;
  }

  /** {@return the operand shifted; absent if the module does not say by how many bits} */
  Optional<Value> shift(HloInstruction instruction, List<Bound> operands, Array shape) {
    int bits = 8 * shape.dtype().bytes();
    if (operands.size() != 2
        || shape.dtype().kind() != DType.Kind.INTEGER
        || !(operands.getLast() instanceof Bound.Splat(Arg.Int(long by), Array _))
        || by < 0
        || by >= bits) {
      return Optional.empty();
    }
    var name = instruction.name();
    var value = emitter.value(operands.getFirst(), name + ".operand");
    return switch (instruction.opcode()) {
      case "shift-left" -> Optional.of(shifted(name, "aten::bitwise_left_shift", value, by));
      case "shift-right-arithmetic" ->
          isSigned(shape.dtype()) ? Optional.of(right(name, value, by)) : Optional.empty();
      default -> {
        var moved = right(name, value, by);
        yield isSigned(shape.dtype()) && by > 0
            ? Optional.of(masked(name + ".bits", moved, -1L >>> 64 - bits + by))
            : Optional.of(moved);
      }
    };
  }

  /** {@return how many bits of each 32-bit integer are set} Sums of 2, 4, 8, 16 and 32 bits. */
  Optional<Value> count(HloInstruction instruction, Bound operand, Array shape) {
    if (shape.dtype() != DType.I32 && shape.dtype() != DType.U32) {
      return Optional.empty();
    }
    var name = instruction.name();
    var value = emitter.value(operand, name + ".operand");
    var odd = masked(name, right(name, value, 1), 0x5555_5555);
    value = op(name, "aten::sub.Tensor", value, odd);
    value =
        op(
            name,
            "aten::add.Tensor",
            masked(name, value, 0x3333_3333),
            masked(name, right(name, value, 2), 0x3333_3333));
    value = masked(name, op(name, "aten::add.Tensor", value, right(name, value, 4)), 0x0F0F_0F0F);
    value = op(name, "aten::add.Tensor", value, right(name, value, 8));
    value = op(name, "aten::add.Tensor", value, right(name, value, 16));
    return Optional.of(masked(name, value, 0x3F));
  }

  private static boolean isSigned(DType dtype) {
    return switch (dtype) {
      case I8, I16, I32, I64 -> true;
      default -> false;
    };
  }

  private Value right(String name, Value value, long by) {
    return shifted(name, "aten::bitwise_right_shift", value, by);
  }

  private Value shifted(String name, String op, Value value, long by) {
    return emitter.op(name, op + ".Tensor_Scalar", new Arg.Ref(value), new Arg.Int(by));
  }

  private Value masked(String name, Value value, long mask) {
    return emitter.op(name, "aten::bitwise_and.Scalar", new Arg.Ref(value), new Arg.Int(mask));
  }

  private Value op(String name, String op, Value left, Value right) {
    return emitter.op(name, op, new Arg.Ref(left), new Arg.Ref(right));
  }
}
