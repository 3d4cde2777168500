package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Instruction.Epilogue;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.planner.machine.Alignment;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * An all_reduce or reduce_scatter and the ops behind it as one kernel: each block takes rows
 * through the ops as soon as it has reduced them. They are rounded to the element type in between,
 * so that the results are those of two kernels.
 */
final class EpilogueLowering {
  private EpilogueLowering() {}

  /**
   * A launch for a collective and the ops behind it.
   *
   * @param unit the vectors of 16 bytes that a block takes at once
   */
  record Made(DeviceStep.Launch launch, long unit) {}

  /**
   * {@return a launch for a collective and the ops behind it, if one kernel can do both}
   *
   * @param parts none if they cannot be a kernel by rows
   * @param rows the leading dimensions that the ops go by
   * @throws UnsupportedOnGpu when one of the ops cannot be part of it
   */
  static Optional<Made> made(CollectiveAddresses part, ImmutableList<Part> parts, int rows) {
    part.checkSize();
    var reduced = part.result(0);
    if (parts.isEmpty() || part.operand(0).type().dtype() != reduced.type().dtype()) {
      return Optional.empty();
    }
    var shape = Parts.typeOf(parts.getFirst().results().getFirst()).sizes();
    // Ops that go element by element go by rows, too.
    int leading = Math.min(rows, shape.length() - 1);
    if (leading < 1 || !readRows(parts, reduced, shape.subArray(0, leading))) {
      return Optional.empty();
    }
    var kernel = RowLowering.behind(part.rank, leading, parts, reduced, HeldRows.ROW);
    var dtype = part.computedIn();
    if (kernel.rows() * kernel.elements() != reduced.type().numel()
        || kernel.elements() * dtype.bytes() % Alignment.VECTOR != 0) {
      return Optional.empty();
    }
    var memory = new MemoryArguments();
    var held = new HeldRows(kernel, dtype, memory);
    if (!held.fit()) {
      return Optional.empty();
    }
    var spec = part.collective.spec();
    if (spec.slicesBeforeEpilogue() && held.rows() % (part.size * held.together()) != 0) {
      return Optional.empty();
    }
    var launch =
        spec.meetsBeforeEpilogue()
            ? ofSlices(part, held, memory)
            : spec.variant().needsWorkspace()
                ? Optional.of(PushLowering.launch(part, held, memory))
                : between(part, held, memory);
    return launch.map(made -> new Made(made.with(shares(part, parts)), held.unit()));
  }

  /** Whether the ops read what is reduced, and only by these rows, in the order of its elements. */
  private static boolean readRows(List<Part> parts, TensorRef reduced, ImmutableLongArray rows) {
    var read =
        parts.stream()
            .flatMap(part -> part.args().stream())
            .flatMap(Operand::tensors)
            .filter(ref -> !Moves.isApart(ref, reduced))
            .toList();
    return !read.isEmpty()
        && read.stream()
            .allMatch(
                ref ->
                    RowLowering.isSame(ref, reduced)
                        && ref.type().rank() > rows.length()
                        && ref.type().sizes().subArray(0, rows.length()).equals(rows));
  }

  /** Between two meetings, if vectors can be read. */
  private static Optional<DeviceStep.Launch> between(
      CollectiveAddresses part, HeldRows held, MemoryArguments memory) {
    var combination = PeerLowering.combination(part);
    var from = combination.from();
    var to = combination.to().getFirst();
    if (!combination.isVectorized()) {
      return Optional.empty();
    }
    var words = part.meeting();
    long read = combination.rows().source().extent(combination.bytes());
    from.forEach(address -> words.add(new KernelArgument.Memory(address, read)));
    words.add(new KernelArgument.Memory(to, combination.bytes())).addAll(memory.words());
    return Optional.of(
        new DeviceStep.Launch(
            part.collective.stream(),
            EpilogueKernel.of(
                part.size,
                held,
                combination.rows(),
                part.computedIn(),
                part.collective.reduceOp().orElseThrow(),
                combination.edges(),
                part.collective.epilogue() == Epilogue.STORED,
                memory.member()),
            PeerLowering.blocks(part, part.size),
            held.threads(),
            words.build(),
            part.collective.name()));
  }

  /** With the end barrier between what peers store and what the ops read. */
  private static Optional<DeviceStep.Launch> ofSlices(
      CollectiveAddresses part, HeldRows held, MemoryArguments memory) {
    var combination = PeerLowering.combination(part);
    var whole = part.own(part.result(0));
    if (combination.bytes() * part.size != part.result(0).type().bytes()
        || !combination.edges().end()
        || !combination.isVectorized()
        || !whole.isVectorAligned()) {
      return Optional.empty();
    }
    var words = part.meeting();
    combination.addAddresses(words);
    words
        .add(new KernelArgument.Memory(whole, part.result(0).type().storageBytes()))
        .addAll(memory.words());
    return Optional.of(
        new DeviceStep.Launch(
            part.collective.stream(),
            EpilogueKernel.ofSlices(
                part.size,
                held,
                combination.rows(),
                part.computedIn(),
                part.collective.reduceOp().orElseThrow(),
                combination.edges().start(),
                memory.member()),
            PeerLowering.blocks(part, part.size),
            held.threads(),
            words.build(),
            part.collective.name()));
  }

  /** The bytes that come from peers, and those that the ops read and write besides. */
  private static ImmutableList<DeviceStep.Share> shares(
      CollectiveAddresses part, List<Part> parts) {
    var reduced = part.result(0);
    long bytes =
        parts.stream()
            .flatMap(op -> Stream.concat(op.args().stream(), op.results().stream()))
            .flatMap(Operand::tensors)
            .filter(ref -> Moves.isApart(ref, reduced))
            .distinct()
            .mapToLong(ref -> ref.type().bytes())
            .sum();
    return ImmutableList.of(
        new DeviceStep.Share(part.collective.name(), reduced.type().bytes() * (part.size - 1)),
        new DeviceStep.Share(parts.getLast().name(), bytes));
  }
}
