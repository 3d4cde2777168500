package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.List;
import java.util.Optional;

/** Makes PyTorch's ops of the instructions that these stand for. */
final class Translations {
  private final GraphEmitter emitter;
  private final ImmutableMap<String, HloComputation> computations;
  private final Views views;
  private final Elementwise elementwise;
  private final Products products;
  private final Reductions reductions;
  private final DynamicSlices slices;

  Translations(GraphEmitter emitter, ImmutableMap<String, HloComputation> computations) {
    this.emitter = emitter;
    this.computations = computations;
    this.views = new Views(emitter);
    this.elementwise = new Elementwise(emitter);
    this.products = new Products(emitter);
    this.reductions = new Reductions(emitter);
    this.slices = new DynamicSlices(emitter);
  }

  /** {@return the result of the instruction; absent if no op of PyTorch computes the same} */
  Optional<Bound> read(HloInstruction instruction, List<Bound> operands, HloShape given) {
    if (!(given instanceof Array shape) || !shape.exact() || !Elementwise.areExact(operands)) {
      return Optional.empty();
    }
    var name = instruction.name();
    if (instruction.opcode().equals("dynamic-slice")) {
      var part = Tables.part(operands, shape);
      if (part.isPresent()) {
        return part;
      }
    }
    Optional<Value> value =
        switch (instruction.opcode()) {
          case "broadcast" -> {
            if (only(operands) instanceof Bound.Splat(Arg.Literal number, Array _)) {
              // The operand of this broadcast does not matter any more.
              yield Optional.empty();
            }
            yield views.broadcast(instruction, emitter.value(only(operands), name), shape);
          }
          case "reshape" -> views.reshape(instruction, emitter.value(only(operands), name), shape);
          case "transpose" ->
              views.transpose(instruction, emitter.value(only(operands), name), shape);
          case "slice" -> views.slice(instruction, emitter.value(only(operands), name), shape);
          case "dynamic-slice" -> slices.slice(instruction, operands, shape);
          case "concatenate" ->
              views.concatenate(
                  instruction,
                  operands.stream().map(operand -> emitter.value(operand, name)).toList(),
                  shape);
          case "pad" -> views.pad(instruction, operands, shape);
          case "iota" -> views.iota(instruction, shape);
          case "dot" ->
              operands.size() == 2
                  ? products.read(
                      instruction,
                      emitter.value(operands.getFirst(), name + ".lhs"),
                      emitter.value(operands.getLast(), name + ".rhs"),
                      shape)
                  : Optional.empty();
          case "reduce" -> reduce(instruction, operands, shape);
          default -> elementwise.read(instruction, operands, shape);
        };
    if (value.isEmpty()
        && (instruction.opcode().equals("broadcast") || instruction.opcode().equals("reshape"))
        && operands.getFirst() instanceof Bound.Splat(Arg.Literal number, Array _)) {
      return Optional.of(new Bound.Splat(number, shape));
    }
    return value.map(made -> new Bound.Tensor(emitter.conform(made, shape, name + ".copy")));
  }

  private Optional<Value> reduce(HloInstruction instruction, List<Bound> operands, Array shape) {
    var names = instruction.attributes().names("to_apply");
    var opcode =
        names.size() == 1
            ? Collectives.reduction(computations.get(names.getFirst()))
            : Optional.<String>empty();
    return operands.size() == 2 && opcode.isPresent()
        ? reductions.read(
            instruction,
            opcode.get(),
            emitter.value(operands.getFirst(), instruction.name() + ".operand"),
            operands.getLast(),
            shape)
        : Optional.empty();
  }

  private static Bound only(List<Bound> operands) {
    if (operands.size() != 1) {
      throw new IllegalArgumentException("takes one operand, not %s".formatted(operands.size()));
    }
    return operands.getFirst();
  }
}
