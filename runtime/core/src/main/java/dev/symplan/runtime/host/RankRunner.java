package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Instruction;
import dev.symplan.codegen.Instruction.AwaitEvent;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.GroupUse;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Instruction.RecordEvent;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.diag.Span;
import dev.symplan.planner.Stream;
import dev.symplan.runtime.RunException;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.List;

/** Executes the instructions of one rank, each stream in a thread of its own. */
final class RankRunner {
  private final RankProgram program;
  private final List<HostMemory> ranks;
  private final Collectives collectives;
  private final Rendezvous rendezvous;

  /**
   * @throws RunException when an op has no host implementation
   */
  RankRunner(
      RankProgram program, List<HostMemory> ranks, Collectives collectives, Rendezvous rendezvous) {
    this.program = program;
    this.ranks = ranks;
    this.collectives = collectives;
    this.rendezvous = rendezvous;
    for (var instruction : program.instructions()) {
      if (instruction instanceof LocalOp op) {
        kernel(op);
      }
    }
  }

  RankProgram program() {
    return program;
  }

  private static HostKernel kernel(LocalOp op) {
    return HostKernels.find(op.def().name())
        .orElseThrow(
            () ->
                new RunException(
                    "%s has no host implementation: '%s' (%s) can be planned, but not run here"
                        .formatted(op.def().name(), op.name(), op.span().shortForm())));
  }

  /** Runs one stream; the first failure ends all ranks. */
  void run(Stream stream) {
    Instruction current = program.instructions().getFirst();
    try {
      for (var instruction : program.instructions()) {
        if (instruction.stream() == stream) {
          current = instruction;
          execute(instruction);
        }
      }
    } catch (Rendezvous.Aborted _) {
      // Whoever failed first has reported it.
    } catch (RuntimeException | OutOfMemoryError | StackOverflowError e) {
      rendezvous.abort(new RunException(describe(current) + ": " + reason(e), e));
    }
  }

  private static String reason(Throwable e) {
    return e.getMessage() == null ? e.toString() : e.getMessage();
  }

  private String describe(Instruction instruction) {
    return switch (instruction) {
      case LocalOp op -> describe(op.def().name().toString(), op.name(), op.span());
      case Collective c -> describe(c.variant().text(), c.name(), c.span());
      case RecordEvent _, AwaitEvent _ -> "rank " + program.rank();
    };
  }

  private String describe(String what, String name, Span span) {
    return "rank %d, %s '%s' (%s)".formatted(program.rank(), what, name, span.shortForm());
  }

  private void execute(Instruction instruction) {
    switch (instruction) {
      case LocalOp op -> kernel(op).run(call(op));
      case Collective collective -> collectives.run(collective, program.rank());
      case RecordEvent(var _, int event) -> rendezvous.record(program.rank(), event);
      case AwaitEvent(var _, int event) ->
          rendezvous.await(program.rank(), event, "rank " + program.rank());
    }
  }

  private HostCall call(LocalOp op) {
    var memory = ranks.get(program.rank());
    return new HostCall(
        op.def().schema(),
        op.args().stream().map(arg -> value(arg, memory)).collect(ImmutableList.toImmutableList()),
        op.results().stream()
            .map(ref -> ref.map(memory::tensor))
            .collect(ImmutableList.toImmutableList()),
        op.group().map(group -> new CustomGroup(op, group)));
  }

  private static HostCall.Value value(Operand operand, HostMemory memory) {
    return switch (operand) {
      case Operand.Tensor(var ref) -> new HostCall.Value.Tensor(memory.tensor(ref));
      case Operand.Many(var items) ->
          new HostCall.Value.Many(
              items.stream()
                  .map(item -> value(item, memory))
                  .collect(ImmutableList.toImmutableList()));
      case Operand.Constant(var arg) -> new HostCall.Value.Constant(arg);
    };
  }

  /** What a custom op sees of its peers: its symmetric arguments, at the same offsets. */
  private final class CustomGroup implements HostCall.Group {
    private final LocalOp op;
    private final GroupUse use;

    CustomGroup(LocalOp op, GroupUse use) {
      this.op = op;
      this.use = use;
    }

    @Override
    public int size() {
      return use.members().length();
    }

    @Override
    public int self() {
      return use.self();
    }

    @Override
    public List<HostTensor> peers(String param) {
      if (!op.def().symmMemArgs().contains(param)
          || !(op.args().get(op.def().schema().indexOf(param))
              instanceof Operand.Tensor(var ref))) {
        throw new IllegalArgumentException(
            "'%s' is not registered as symmetric: peers cannot reach it".formatted(param));
      }
      TensorRef symmetric = ref;
      return use.members().stream().mapToObj(rank -> ranks.get(rank).tensor(symmetric)).toList();
    }

    @Override
    public void barrier() {
      collectives.meet(use, "rank " + program.rank() + ", " + op.name());
    }
  }
}
