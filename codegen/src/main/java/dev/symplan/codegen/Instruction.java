package dev.symplan.codegen;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.Permutation;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.ir.op.SliceDims;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.machine.Workspace;
import dev.symplan.planner.plan.StreamKind;
import java.util.Optional;
import java.util.stream.Stream;

/** One thing a rank does, in one of its streams. */
public sealed interface Instruction {

  /** The queue that it is in. */
  StreamKind stream();

  /** {@return the tensors of its own rank that it reads or writes} */
  default Stream<TensorRef> tensors() {
    return switch (this) {
      case LocalOp op ->
          Stream.concat(
              op.args().stream().flatMap(Operand::tensors),
              op.results().stream().flatMap(Optional::stream));
      case Fused fused ->
          fused.parts().stream()
              .flatMap(part -> Stream.concat(part.args().stream(), part.results().stream()))
              .flatMap(Operand::tensors);
      case Collective collective ->
          Stream.concat(collective.operands().stream(), collective.results().stream());
      case Border _, SetupEnd _, RecordEvent _, AwaitEvent _ -> Stream.empty();
    };
  }

  /**
   * A local op.
   *
   * @param args one for each parameter of the schema
   * @param results empty if a result does not exist
   * @param group the ranks that a custom op communicates with; empty for all other ops
   * @param name its name in messages: its first result
   */
  record LocalOp(
      StreamKind stream,
      OpDef def,
      ImmutableList<Operand> args,
      ImmutableList<Optional<TensorRef>> results,
      Optional<GroupUse> group,
      String name,
      Span span)
      implements Instruction {}

  /**
   * Ops as one kernel: a row passes all parts, in order, before its memory is used for anything
   * else.
   *
   * @param rows the leading dimensions that make a row: all results have them, and each part goes
   *     by them
   * @param lastReads tensors whose memory nothing reads after this instruction
   */
  record Fused(
      StreamKind stream, int rows, ImmutableList<Part> parts, ImmutableSet<TensorRef> lastReads)
      implements Instruction {
    public Fused {
      if (parts.size() < 2) {
        throw new IllegalArgumentException(parts.size() + " ops are not fused");
      }
    }

    /** Ops whose operands may all be read again. */
    public Fused(StreamKind stream, int rows, ImmutableList<Part> parts) {
      this(stream, rows, parts, ImmutableSet.of());
    }
  }

  /**
   * One op of a fused instruction.
   *
   * @param args one for each parameter of the schema
   * @param results tensors in memory, or what is passed on
   * @param name its name in messages: its first result
   */
  record Part(
      OpDef def,
      ImmutableList<Operand> args,
      ImmutableList<Operand> results,
      String name,
      Span span) {}

  /**
   * The ranks that a collective is between.
   *
   * @param index the collective's number: the same on all ranks that meet in it, ascending on each
   * @param members the ranks of this rank's part of the group, in order
   * @param self this rank's position in {@code members}
   */
  record GroupUse(int index, ImmutableIntArray members, int self) {}

  /** Whether the instruction after a collective runs in its kernel. */
  enum Epilogue {
    /** It does not. */
    NONE,
    /** It does, and others read the collective's result, too. */
    STORED,
    /** It does, and nothing else reads the result, which need not be stored. */
    PASSED;

    /** {@return whether the instruction runs in the kernel} */
    public boolean isFused() {
      return this != NONE;
    }
  }

  /** A stretch of the symmetric arena, the same on every rank; both in bytes. */
  record Region(long offset, long bytes) {}

  /**
   * A collective, with the barriers that it begins and ends with.
   *
   * @param reduceOp empty if nothing is reduced
   * @param root the group rank that a broadcast comes from; -1 if none exists
   * @param permutation who sends to whom in a collective_permute, by positions in the group
   * @param sendRows rows of each peer in the operand of an all_to_all; empty means equal parts
   * @param receiveRows rows of each peer in its result
   * @param dims along which dimensions the ranks' slices lie
   * @param operands one or, when coalesced, several tensors
   * @param results one for each operand
   * @param workspace the memory through which the ranks push, if they do
   * @param epilogue whether the next instruction runs in its kernel: before its end barrier, unless
   *     {@link VariantSpec#meetsBeforeEpilogue}
   */
  record Collective(
      StreamKind stream,
      Kind kind,
      Variant variant,
      GroupUse group,
      Optional<ReduceOp> reduceOp,
      int root,
      Permutation permutation,
      ImmutableLongArray sendRows,
      ImmutableLongArray receiveRows,
      SliceDims dims,
      ImmutableList<TensorRef> operands,
      ImmutableList<TensorRef> results,
      boolean startBarrier,
      boolean endBarrier,
      Optional<Region> workspace,
      Epilogue epilogue,
      String name,
      Span span)
      implements Instruction {

    /** {@return the row of the variant} */
    public VariantSpec spec() {
      return VariantSpec.of(kind, variant);
    }

    /**
     * {@return how a tensor passes through the workspace}
     *
     * @throws java.util.NoSuchElementException when the variant needs none
     */
    public Workspace layout(int tensor) {
      var type = operands.get(tensor).type();
      return Workspace.of(spec(), reduceOp, type.dtype(), type.bytes(), group.members().length())
          .orElseThrow();
    }
  }

  /**
   * The begin of another graph of the program: everything before it has ended, and a session may
   * stop here.
   *
   * @param graph the name of the graph after it
   * @param inputs the number of inputs of the graphs before it
   * @param outputs the number of outputs of the graphs before it
   * @param independent whether nothing after it needs what is made, or was donated, before it
   */
  record Border(String graph, int inputs, int outputs, boolean independent) implements Instruction {
    @Override
    public StreamKind stream() {
      return StreamKind.COMPUTE;
    }
  }

  /**
   * The end of what a session does once, before its first run: each run begins here.
   *
   * @param weights the inputs that the instructions before it read, by name
   */
  record SetupEnd(ImmutableSet<String> weights) implements Instruction {
    @Override
    public StreamKind stream() {
      return StreamKind.COMPUTE;
    }
  }

  /** Marks a point of a stream. */
  record RecordEvent(StreamKind stream, int event) implements Instruction {}

  /** Goes on only when another stream has passed the point. */
  record AwaitEvent(StreamKind stream, int event) implements Instruction {}
}
