package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.hlo.Bound.Hosted;
import dev.symplan.ir.hlo.HloShape.Array;
import java.util.List;
import java.util.Optional;

/**
 * The arrays that a module keeps in the host's memory, as it is written before XLA places them
 * ({@code MoveToHost}, {@code MoveToDevice}) and after that ({@code S(5)}).
 *
 * <p>Each tensor that moves there stays what it is. An array into which a loop writes a part in
 * each round becomes as many tensors, and what reads a part brings back that tensor.
 */
final class HostArrays {
  /** The calls that name the memory that a value is to be in, and their older form. */
  private static final String TO_HOST = "MoveToHost";

  private static final String TO_DEVICE = "MoveToDevice";
  private static final String PLACEMENT = "annotate_device_placement";

  /** The instructions that pass arrays on without reading them. */
  private static final ImmutableSet<String> PASSING =
      ImmutableSet.of(
          "tuple",
          "get-tuple-element",
          "while",
          "conditional",
          "call",
          "fusion",
          "async-update",
          "opt-barrier",
          "optimization-barrier",
          "add-dependency");

  /** The instructions of which fusions may consist that only move an array. */
  private static final ImmutableSet<String> MOVING =
      ImmutableSet.of(
          "parameter",
          "constant",
          "tuple",
          "get-tuple-element",
          "bitcast",
          "reshape",
          "copy",
          "dynamic-slice",
          "dynamic-update-slice");

  private final GraphEmitter emitter;
  private final HostedParts parts;

  /** Whether the module is from before XLA places arrays, so that its layouts do not say where. */
  private final boolean unplaced;

  /** Whether any array may be in the host's memory. */
  private final boolean any;

  /** How many loops are open whose rounds the graph does not have. */
  private int openLoops;

  HostArrays(GraphEmitter emitter, HloModule module) {
    this.emitter = emitter;
    this.parts = new HostedParts(emitter);
    this.any = module.usesHost();
    this.unplaced =
        any
            && module.computations().values().stream()
                .flatMap(computation -> computation.notable().stream())
                .anyMatch(HostArrays::isDemand);
  }

  /** {@return whether an instruction moves its operand to the host's memory, or from there} */
  static boolean isDemand(HloInstruction instruction) {
    return instruction.opcode().equals("custom-call") && toHost(instruction).isPresent();
  }

  /** {@return whether an instruction moves its operand to the host, or to the device} */
  private static Optional<Boolean> toHost(HloInstruction instruction) {
    return switch (instruction.attributes().string("custom_call_target")) {
      case TO_HOST -> Optional.of(true);
      case TO_DEVICE -> Optional.of(false);
      case PLACEMENT ->
          Optional.of(
              instruction
                  .attributes()
                  .text("frontend_attributes")
                  .orElse("")
                  .contains("pinned_host"));
      default -> Optional.empty();
    };
  }

  /** Enters a loop of which the graph has two rounds for all: nothing moves to the host there. */
  void enterLoop() {
    openLoops++;
  }

  void leaveLoop() {
    openLoops--;
  }

  /** {@return the result of an instruction that only moves arrays, or sees them otherwise} */
  Optional<Bound> read(HloInstruction instruction, List<Bound> operands) {
    if (operands.isEmpty()) {
      return allocated(instruction);
    }
    if (!any) {
      return Optional.empty();
    }
    var operand = operands.getFirst();
    return switch (instruction.opcode()) {
      case "custom-call" -> moved(instruction, operands);
      case "copy" -> copied(instruction, operand, instruction.shape());
      case "copy-start" ->
          instruction.shape() instanceof HloShape.Tuple(ImmutableList<HloShape> parts)
                  && !parts.isEmpty()
                  && isHost(parts.getFirst())
              ? copied(instruction, operand, parts.getFirst())
              : Optional.empty();
      case "copy-done" ->
          operand instanceof Hosted
              ? copied(instruction, operand, instruction.shape())
              : Optional.empty();
      case "reshape", "bitcast" ->
          operand instanceof Hosted hosted && instruction.shape() instanceof Array shape
              ? parts.seen(instruction, hosted, shape).map(Bound.class::cast)
              : Optional.empty();
      case "dynamic-slice" ->
          operand instanceof Hosted hosted && instruction.shape() instanceof Array shape
              ? parts
                  .sliced(instruction, hosted, operands.subList(1, operands.size()), shape)
                  .map(part -> placed(instruction, part, shape))
              : Optional.empty();
      case "dynamic-update-slice" ->
          instruction.shape() instanceof Array shape
                  && operands.size() > 1
                  && (isHost(shape) || operands.subList(0, 2).stream().anyMatch(this::isHosted))
              ? updated(instruction, operands, shape)
              : Optional.empty();
      default -> Optional.empty();
    };
  }

  private boolean isHosted(Bound bound) {
    return bound instanceof Hosted;
  }

  private boolean isHost(HloShape shape) {
    return openLoops == 0 && shape instanceof Array array && array.space() == Array.HOST;
  }

  /** Memory that nothing has written yet. */
  private Optional<Bound> allocated(HloInstruction instruction) {
    return instruction.opcode().equals("custom-call")
            && instruction.attributes().string("custom_call_target").equals("AllocateBuffer")
            && instruction.shape() instanceof Array shape
            && shape.exact()
        ? Optional.of(new Bound.Splat(Literals.zero(shape), shape))
        : Optional.empty();
  }

  private Optional<Bound> moved(HloInstruction instruction, List<Bound> operands) {
    var toHost = toHost(instruction);
    if (toHost.isEmpty() || operands.size() != 1 || !(instruction.shape() instanceof Array shape)) {
      return Optional.empty();
    }
    var operand = operands.getFirst();
    if (toHost.get()) {
      return Optional.of(
          openLoops > 0 ? inDevice(instruction, operand) : offloaded(instruction, operand, shape));
    }
    return Optional.of(brought(operand, instruction.name(), shape));
  }

  private Bound inDevice(HloInstruction instruction, Bound operand) {
    emitter.warnOfHost(
        instruction,
        "'%s' is to be in the host's memory, in a loop whose rounds are not known or too many; it"
            + " is planned in the device's");
    return operand;
  }

  private Optional<Bound> copied(HloInstruction instruction, Bound operand, HloShape to) {
    if (!(to instanceof Array shape)) {
      return Optional.empty();
    }
    if (operand instanceof Hosted hosted) {
      checkSame(hosted.shape().tensor(), shape);
      return Optional.of(
          isHost(shape) || unplaced ? hosted : brought(hosted, instruction.name(), shape));
    }
    return isHost(shape) ? Optional.of(offloaded(instruction, operand, shape)) : Optional.empty();
  }

  /** {@return an array as one that is in the host's memory} */
  private Bound offloaded(HloInstruction instruction, Bound operand, Array shape) {
    if (operand instanceof Hosted(Array own, _, _)) {
      checkSame(own.tensor(), shape);
      return operand;
    }
    if (operand instanceof Bound.Splat splat) {
      checkSame(splat.shape().tensor(), shape);
      return new Hosted(shape, splat, ImmutableList.of());
    }
    var name = instruction.name();
    var value = emitter.value(operand, name + ".operand");
    checkSame(value.tensor(), shape);
    var dense =
        value.tensor().isDense()
            ? value
            : emitter.op(name + ".packed", "aten::clone", new Arg.Ref(value));
    return Hosted.of(shape, emitter.op(name, "symplan::offload", new Arg.Ref(dense)));
  }

  private static void checkSame(TensorType given, Array shape) {
    if (given.dtype() != shape.dtype() || !given.sizes().equals(shape.tensor().sizes())) {
      throw new IllegalArgumentException(
          "it moves %s, which is not %s".formatted(given, shape.tensor()));
    }
  }

  /** {@return an array in the device's memory, as it is laid out there} */
  private Bound brought(Bound operand, String name, Array shape) {
    if (!(operand instanceof Hosted hosted)) {
      return operand;
    }
    checkSame(hosted.shape().tensor(), shape);
    var value = parts.brought(hosted, name);
    return new Bound.Tensor(shape.exact() ? emitter.conform(value, shape, name + ".copy") : value);
  }

  private Bound placed(HloInstruction instruction, Bound part, Array shape) {
    return part instanceof Hosted hosted && !unplaced && !isHost(shape)
        ? brought(hosted, instruction.name(), shape)
        : part;
  }

  /** {@return an array with a part overwritten at a place that the module says} */
  private Optional<Bound> updated(HloInstruction instruction, List<Bound> operands, Array shape) {
    if (openLoops > 0 || !shape.exact()) {
      return Optional.empty();
    }
    var part = operands.get(1);
    var sizes = sizes(part);
    var start =
        sizes.flatMap(of -> HostedParts.starts(shape, operands.subList(2, operands.size()), of));
    if (start.isEmpty()) {
      return Optional.empty();
    }
    var array = offloaded(instruction, operands.getFirst(), shape);
    var moved = offloaded(instruction, part, partShape(shape, sizes.get()));
    return array instanceof Hosted whole && moved instanceof Hosted piece
        ? piece.whole().map(tensor -> HostedParts.updated(whole.as(shape), tensor, start.get()))
        : Optional.empty();
  }

  private static Array partShape(Array whole, ImmutableLongArray sizes) {
    return new Array(
        whole.element(),
        TensorType.contiguous(whole.dtype(), sizes),
        true,
        whole.minorToMajor(),
        Array.HOST);
  }

  private static Optional<ImmutableLongArray> sizes(Bound bound) {
    return switch (bound) {
      case Hosted(Array shape, _, _) -> Optional.of(shape.tensor().sizes());
      case Bound.Tensor(Value value) -> Optional.of(value.tensor().sizes());
      case Bound.Splat(_, Array shape) -> Optional.of(shape.tensor().sizes());
      case Bound.ByRank(_, Array shape) -> Optional.of(shape.tensor().sizes());
      case Bound.Table(_, Array shape) -> Optional.of(shape.tensor().sizes());
      case Bound.Tuple _, Bound.Pending _, Bound.Nothing _ -> Optional.empty();
    };
  }

  /** {@return the operands with all arrays in the device's memory that an instruction reads} */
  List<Bound> readable(HloInstruction instruction, List<Bound> operands) {
    return !any || passes(instruction.opcode())
        ? operands
        : operands.stream().map(operand -> readable(instruction, operand)).toList();
  }

  /** The start of an op reads the operands itself. Those of collectives are not read again. */
  private static boolean passes(String opcode) {
    return PASSING.contains(opcode)
        || !Fusions.withoutPhase(opcode).equals(opcode) && !Fusions.isCollective(opcode);
  }

  /** {@return a value in the device's memory, as it is in an instruction that computes} */
  Bound readable(HloInstruction instruction, Bound operand) {
    return switch (operand) {
      case Hosted hosted -> {
        emitter.warnOfHost(
            instruction,
            "'%s' uses an array in the host's memory; it is copied to the device first");
        yield new Bound.Tensor(parts.brought(hosted, instruction.name() + ".operand"));
      }
      case Bound.Tuple(ImmutableList<Bound> parts) ->
          new Bound.Tuple(
              parts.stream()
                  .map(part -> readable(instruction, part))
                  .collect(ImmutableList.toImmutableList()));
      case Bound.Tensor _,
          Bound.Splat _,
          Bound.ByRank _,
          Bound.Table _,
          Bound.Pending _,
          Bound.Nothing _ ->
          operand;
    };
  }

  /** {@return a result in the memory that its shape names} */
  Bound result(HloInstruction instruction, Bound given) {
    boolean moves =
        any
            && openLoops == 0
            && !instruction.opcode().endsWith("-start")
            && instruction.shape().arrays().anyMatch(array -> array.space() == Array.HOST);
    return moves ? result(instruction, given, instruction.shape()) : given;
  }

  Bound result(HloInstruction instruction, Bound given, HloShape shape) {
    return switch (given) {
      case Bound.Tuple(ImmutableList<Bound> parts)
          when shape instanceof HloShape.Tuple(ImmutableList<HloShape> shapes)
              && shapes.size() == parts.size() -> {
        var placed = ImmutableList.<Bound>builder();
        for (int i = 0; i < parts.size(); i++) {
          placed.add(result(instruction, parts.get(i), shapes.get(i)));
        }
        yield new Bound.Tuple(placed.build());
      }
      case Bound.Tensor _, Bound.Splat _, Bound.ByRank _, Bound.Table _ when isHost(shape) ->
          offloaded(instruction, given, (Array) shape);
      case Bound.Tensor _,
          Bound.Splat _,
          Bound.ByRank _,
          Bound.Table _,
          Bound.Tuple _,
          Hosted _,
          Bound.Pending _,
          Bound.Nothing _ ->
          given;
    };
  }

  /** {@return whether a fusion only moves arrays, some of them to the host's memory or from it} */
  static boolean onlyMoves(HloInstruction fusion, HloComputation callee, List<Bound> operands) {
    boolean hosted =
        operands.stream().anyMatch(Hosted.class::isInstance)
            || fusion.shape().arrays().anyMatch(array -> array.space() == Array.HOST);
    return hosted
        && callee.instructions().stream()
            .allMatch(
                instruction ->
                    MOVING.contains(instruction.opcode())
                        || instruction.shape().arrays().allMatch(one -> one.tensor().rank() == 0)
                        || instruction.opcode().equals("broadcast"));
  }

  /**
   * {@return an output of the program, in the memory that the module says}
   *
   * @param root the instruction that gives the outputs
   */
  Value output(Bound given, Array shape, HloInstruction root, String name) {
    boolean inHost = isHost(shape) || given instanceof Hosted && unplaced;
    if (given instanceof Hosted hosted && inHost) {
      var whole =
          hosted
              .whole()
              .filter(own -> !shape.exact() || own.tensor().hasSameLayout(shape.tensor()));
      if (whole.isPresent()) {
        return whole.get();
      }
      emitter.warnOfHost(
          root,
          "'%s' gives an array in the host's memory that has several parts; it is put together on"
              + " the device");
    }
    var value =
        given instanceof Hosted hosted ? parts.brought(hosted, name) : emitter.value(given, name);
    var laidOut = shape.exact() ? emitter.laidOut(value, shape, name + ".copy") : value;
    return inHost ? emitter.op(name + ".host", "symplan::offload", new Arg.Ref(laidOut)) : laidOut;
  }
}
