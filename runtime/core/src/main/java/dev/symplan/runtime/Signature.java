package dev.symplan.runtime;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.TensorType;
import java.util.Optional;

/**
 * The inputs and outputs of one rank's graph, and what a run does with the {@link CallerMemory} of
 * each.
 */
public record Signature(ImmutableList<Slot> inputs, ImmutableList<Slot> outputs) {

  /** How a run uses the caller's memory. */
  public sealed interface Use {

    /** The value is a number or {@code None}, not a tensor: the caller gives no memory. */
    record Nothing() implements Use {}

    /** Ops read an input, or write an output, where the caller has it. */
    record Direct() implements Use {}

    /**
     * The plan has the tensor in an arena: a run copies an input from the caller's memory before
     * all else, and an output into it after all else.
     *
     * @param place where, for example {@code local+0x400}
     * @param back whether ops may write into an input, so that a run copies it back after all else
     */
    record Copied(String place, boolean back) implements Use {}

    /**
     * The output lies in the memory of an input: the caller gives none.
     *
     * @param offset bytes from the input's first element
     */
    record OfInput(int input, long offset) implements Use {}

    /**
     * The output lies in the memory of an earlier or later one: the caller gives none.
     *
     * @param offset bytes from the other output's first element
     */
    record OfOutput(int output, long offset) implements Use {}
  }

  /**
   * One input or output.
   *
   * @param name its name in messages
   * @param type empty if it is not a tensor
   */
  public record Slot(String name, Optional<TensorType> type, Use use) {

    /** {@return the bytes that the caller gives memory for} */
    public long bytes() {
      return switch (use) {
        case Use.Direct _, Use.Copied _ -> type.map(TensorType::storageBytes).orElse(0L);
        case Use.Nothing _, Use.OfInput _, Use.OfOutput _ -> 0;
      };
    }
  }

  static Signature of(RankProgram program) {
    var written = program.writtenInputs();
    var inputs = ImmutableList.<Slot>builder();
    for (int i = 0; i < program.inputs().size(); i++) {
      boolean back = written.contains(i);
      var ref = program.inputs().get(i);
      inputs.add(
          slot(
              "input '%s' of rank %s".formatted(program.inputNames().get(i), program.rank()),
              ref,
              ref.map(r -> r.arena().isExternal() ? new Use.Direct() : copied(r, back))));
    }
    var outputs = ImmutableList.<Slot>builder();
    for (int i = 0; i < program.outputs().size(); i++) {
      int index = i;
      var ref = program.outputs().get(i);
      outputs.add(
          slot(
              "output %s of rank %s".formatted(i, program.rank()),
              ref,
              ref.map(r -> useOfOutput(r, index))));
    }
    return new Signature(inputs.build(), outputs.build());
  }

  private static Slot slot(String name, Optional<TensorRef> ref, Optional<Use> use) {
    return new Slot(name, ref.map(TensorRef::type), use.orElseGet(Use.Nothing::new));
  }

  private static Use copied(TensorRef ref, boolean back) {
    return new Use.Copied(ref.address(), back);
  }

  private static Use useOfOutput(TensorRef ref, int index) {
    return switch (ref.arena()) {
      case SYMMETRIC, LOCAL, HOST -> copied(ref, false);
      case EXTERNAL_INPUT -> new Use.OfInput(ref.index(), ref.offset());
      case EXTERNAL_OUTPUT ->
          ref.index() == index ? new Use.Direct() : new Use.OfOutput(ref.index(), ref.offset());
    };
  }

  /**
   * Checks that memory has room for all tensors.
   *
   * @param alignment the bytes of which every address must be a multiple
   * @throws IllegalArgumentException when there is too little of it, or it is not aligned
   */
  void check(CallerMemory memory, long alignment) {
    check(inputs, memory.inputs(), "inputs", alignment);
    check(outputs, memory.outputs(), "outputs", alignment);
  }

  private static void check(
      ImmutableList<Slot> slots, CallerMemory.Stretches memory, String what, long alignment) {
    if (memory.count() != slots.size()) {
      throw new IllegalArgumentException(
          "memory for %s %s, but the graph has %s".formatted(memory.count(), what, slots.size()));
    }
    for (int i = 0; i < slots.size(); i++) {
      var slot = slots.get(i);
      long needed = slot.bytes();
      long address = memory.addresses().get(i);
      if (needed == 0) {
        continue;
      }
      if (memory.bytes().get(i) < needed) {
        throw new IllegalArgumentException(
            "%s is %s, which takes %s bytes; the caller has %s"
                .formatted(slot.name(), slot.type().orElseThrow(), needed, memory.bytes().get(i)));
      }
      if (address == 0) {
        throw new IllegalArgumentException(slot.name() + ": the address is 0");
      }
      if (address % alignment != 0) {
        throw new IllegalArgumentException(
            "%s: the address 0x%s is not a multiple of %s bytes"
                .formatted(slot.name(), Long.toHexString(address), alignment));
      }
    }
  }
}
