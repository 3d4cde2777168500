package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableListMultimap;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Instruction;
import dev.symplan.codegen.Instruction.AwaitEvent;
import dev.symplan.codegen.Instruction.Border;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.Fused;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Instruction.RecordEvent;
import dev.symplan.codegen.Instruction.SetupEnd;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.RankProgram;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.op.OpDef;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.runtime.ExecutableSession;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.profile.Profile;
import java.util.List;
import java.util.Objects;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Executes the instructions of one rank, each stream in a thread of its own. */
final class RankRunner {

  /** An input or output that is the caller's. */
  private record External(ArenaKind arena, int index) {}

  /** The queue of one stream: its tasks, and how many are done. */
  private static final class Lane {
    private final StreamKind stream;
    private final ImmutableList<Instruction> instructions;

    /** For each graph of the program, its first instruction. */
    private final ImmutableIntArray begins;

    /** The action of each instruction; null while its addresses are not resolved. */
    private final @Nullable Runnable[] actions;

    /** The instructions whose addresses are wrong when an external tensor is elsewhere. */
    private final ImmutableListMultimap<External, Integer> touching;

    private volatile int at;

    /** When each instruction began, and the end; empty if the times are not requested. */
    private long[] times = {};

    Lane(StreamKind stream, RankProgram program) {
      this.stream = stream;
      var own = ImmutableList.<Instruction>builder();
      var firsts = ImmutableIntArray.builder();
      if (program.setupEnd().isEmpty()) {
        firsts.add(0);
      }
      int count = 0;
      for (var instruction : program.instructions()) {
        if (instruction instanceof SetupEnd || instruction instanceof Border) {
          firsts.add(count);
        }
        if (instruction.stream() == stream) {
          own.add(instruction);
          count++;
        }
      }
      this.instructions = own.build();
      this.begins = firsts.build();
      this.actions = new @Nullable Runnable[instructions.size()];
      var found = ImmutableListMultimap.<External, Integer>builder();
      for (int i = 0; i < instructions.size(); i++) {
        int index = i;
        instructions
            .get(i)
            .tensors()
            .filter(ref -> ref.arena().isExternal())
            .map(ref -> new External(ref.arena(), ref.index()))
            .distinct()
            .forEach(external -> found.put(external, index));
      }
      this.touching = found.build();
    }

    /** {@return the first instruction of a graph, of all graphs, or of the setup} */
    int first(int graph) {
      return switch (graph) {
        case ExecutableSession.SETUP -> 0;
        case ExecutableSession.ALL -> begins.get(0);
        default -> begins.get(graph);
      };
    }

    /** {@return the instruction after the last one of a graph, of all graphs, or of the setup} */
    int end(int graph) {
      return switch (graph) {
        case ExecutableSession.SETUP -> begins.get(0);
        case ExecutableSession.ALL -> instructions.size();
        default -> graph + 1 == begins.length() ? instructions.size() : begins.get(graph + 1);
      };
    }

    void mark(int index) {
      if (index < times.length) {
        times[index] = System.nanoTime();
      }
    }
  }

  private final RankProgram program;
  private final Collectives collectives;
  private final HostSync rendezvous;
  private final ImmutableList<Lane> lanes;
  private boolean prepared;

  /** The one instruction that is run; empty for all. */
  private String only = "";

  /**
   * The one graph that is run, {@link ExecutableSession#ALL} or {@link ExecutableSession#SETUP}.
   */
  private int graph = ExecutableSession.ALL;

  RankRunner(RankProgram program, Collectives collectives, HostSync rendezvous) {
    this.program = program;
    this.collectives = collectives;
    this.rendezvous = rendezvous;
    this.lanes =
        program.streams().stream()
            .map(stream -> new Lane(stream, program))
            .collect(ImmutableList.toImmutableList());
  }

  /**
   * Checks that everything can be run, before the caller fills inputs in vain.
   *
   * @throws RunException when an op or a reduction has no host implementation
   */
  static void checkOps(RankProgram program) {
    for (var instruction : program.instructions()) {
      switch (instruction) {
        case LocalOp op -> kernel(op.def(), op.name(), op.span());
        case Fused fused -> fused.parts().forEach(RankRunner::kernel);
        case Collective collective -> checkReduction(collective, program.rank());
        case Border _, SetupEnd _, RecordEvent _, AwaitEvent _ -> {}
      }
    }
  }

  private static void checkReduction(Collective collective, int rank) {
    if (collective.reduceOp().isEmpty() || collective.variant() == Variant.LOCAL) {
      return;
    }
    for (int i = 0; i < collective.results().size(); i++) {
      var dtype = collective.operands().get(i).type().dtype();
      var made = collective.results().get(i).type().dtype();
      try {
        var _ = new Reducer(collective.reduceOp().get(), dtype, made);
      } catch (IllegalArgumentException e) {
        throw new RunException(describe(collective, rank) + ": " + reason(e), e);
      }
    }
  }

  /** {@return one task for each stream; each runs the stream once, or what one graph has there} */
  ImmutableList<Runnable> tasks() {
    return lanes.stream()
        .<Runnable>map(lane -> () -> run(lane))
        .collect(ImmutableList.toImmutableList());
  }

  /**
   * Resolves addresses, unless that is done already, so that a run builds nothing.
   *
   * @throws RunException when an op has no host implementation or a tensor no memory
   */
  void prepare() {
    if (prepared) {
      return;
    }
    for (var lane : lanes) {
      for (int i = 0; i < lane.actions.length; i++) {
        if (lane.actions[i] == null) {
          lane.actions[i] = prepare(lane, i);
        }
      }
    }
    prepared = true;
  }

  /**
   * Has the next {@link #prepare} resolve addresses of an external tensor again: the caller bound
   * other memory.
   */
  void forgetAddress(ArenaKind arena, int index) {
    var external = new External(arena, index);
    for (var lane : lanes) {
      for (int instruction : lane.touching.get(external)) {
        lane.actions[instruction] = null;
        prepared = false;
      }
    }
  }

  /** As on GPUs, the ranks of some collectives meet after the epilogue. */
  private Runnable prepare(Lane lane, int index) {
    var own = prepare(lane.instructions.get(index));
    if (index > 0
        && lane.instructions.get(index - 1) instanceof Collective collective
        && collective.epilogue().isFused()) {
      var end = collectives.end(collective);
      return () -> {
        own.run();
        end.run();
      };
    }
    return own;
  }

  private Runnable prepare(Instruction instruction) {
    int rank = program.rank();
    try {
      return switch (instruction) {
        case LocalOp op -> prepare(op);
        case Fused fused -> new FusedKernel(fused, collectives.memory(rank), RankRunner::kernel);
        case Collective collective -> collectives.prepare(collective, rank);
        case Border _, SetupEnd _ -> () -> {};
        case RecordEvent(var _, int event) -> () -> rendezvous.record(rank, event);
        case AwaitEvent(var _, int event) -> () -> rendezvous.await(rank, event);
      };
    } catch (RunException e) {
      throw e;
    } catch (RuntimeException e) {
      throw new RunException(describe(instruction) + ": " + reason(e), e);
    }
  }

  private Runnable prepare(LocalOp op) {
    var kernel = kernel(op.def(), op.name(), op.span());
    var run = kernel.prepare(call(op));
    if (op.group().isEmpty()) {
      return run;
    }
    var meeting = collectives.meeting(op.group().get());
    return () -> {
      meeting.run();
      run.run();
      meeting.run();
    };
  }

  private static HostKernel kernel(Part part) {
    return kernel(part.def(), part.name(), part.span());
  }

  private static HostKernel kernel(OpDef def, String name, Span span) {
    return HostKernels.find(def.name())
        .orElseThrow(
            () ->
                new RunException(
                    "%s has no host implementation: '%s' (%s) can be planned, but not run here"
                        .formatted(def.name(), name, span.shortForm())));
  }

  /** Runs one stream; the first failure ends all ranks. */
  private void run(Lane lane) {
    Thread.currentThread().setName("symplan-rank-" + program.rank() + "-" + lane.stream.text());
    var actions = lane.actions;
    int end = lane.end(graph);
    lane.at = lane.first(graph);
    try {
      for (int i = lane.at; i < end; i++) {
        lane.at = i;
        rendezvous.advance();
        lane.mark(i);
        if (only.isEmpty()
            || graph == ExecutableSession.SETUP
            || InstructionText.label(lane.instructions.get(i)).filter(only::equals).isPresent()) {
          Objects.requireNonNull(actions[i]).run();
        }
      }
      lane.at = end;
      lane.mark(end);
    } catch (HostSync.Aborted _) {
      // The first rank that failed has reported it.
    } catch (Throwable e) {
      rendezvous.abort(
          new RunException(describe(lane.instructions.get(lane.at)) + ": " + reason(e), e));
    }
  }

  /**
   * Has the next runs execute one graph, {@link ExecutableSession#ALL} or {@link
   * ExecutableSession#SETUP}.
   */
  void runGraph(int wanted) {
    graph = wanted;
  }

  /** Has the next runs leave out all instructions but those called so; none, for an empty name. */
  void runOnly(String label) {
    only = label;
  }

  /** Has the next runs take the time of each instruction, or not. */
  void takeTimes(boolean wanted) {
    for (var lane : lanes) {
      lane.times = new long[wanted ? lane.instructions.size() + 1 : 0];
    }
  }

  /**
   * {@return when each instruction of the last run ran; those that only order streams are left out}
   *
   * @param zero the value of {@link System#nanoTime} at 0
   */
  ImmutableList<Profile.Activity> activities(long zero) {
    var found = ImmutableList.<Profile.Activity>builder();
    for (var lane : lanes) {
      for (int i = lane.first(ExecutableSession.ALL); i < lane.instructions.size(); i++) {
        var instruction = lane.instructions.get(i);
        double begin = (lane.times[i] - zero) / 1e3;
        double end = (lane.times[i + 1] - zero) / 1e3;
        InstructionText.label(instruction)
            .ifPresent(
                label ->
                    found.add(
                        new Profile.Activity(
                            program.rank(),
                            lane.stream,
                            label,
                            InstructionText.kernel(instruction),
                            begin,
                            end)));
      }
    }
    return found.build();
  }

  private static String reason(Throwable e) {
    return e.getMessage() == null ? e.toString() : e.getMessage();
  }

  private String describe(Instruction instruction) {
    return describe(instruction, program.rank());
  }

  private static String describe(Instruction instruction, int rank) {
    return "rank " + rank + ", " + InstructionText.name(instruction);
  }

  /** {@return the rank's activity, as the end of "rank N, which …"} */
  String activity() {
    return lanes.stream().map(this::activity).collect(Collectors.joining(" and "));
  }

  private String activity(Lane lane) {
    int at = lane.at;
    return at < lane.end(graph)
        ? "is at " + InstructionText.name(lane.instructions.get(at))
        : "has finished " + lane.stream.text();
  }

  /** {@return the local ops that the rank is in, each with the rank's number} */
  List<String> computing() {
    return lanes.stream()
        .filter(lane -> lane.at < lane.end(graph) && isLocal(lane.instructions.get(lane.at)))
        .map(lane -> describe(lane.instructions.get(lane.at)))
        .toList();
  }

  private static boolean isLocal(Instruction instruction) {
    return switch (instruction) {
      case LocalOp _, Fused _ -> true;
      case Collective _, Border _, SetupEnd _, RecordEvent _, AwaitEvent _ -> false;
    };
  }

  private HostCall call(LocalOp op) {
    var memory = collectives.memory(program.rank());
    return new HostCall(
        op.def().schema(),
        op.name(),
        op.args().stream().map(arg -> value(arg, memory)).collect(ImmutableList.toImmutableList()),
        op.results().stream()
            .map(ref -> ref.map(memory::tensor))
            .collect(ImmutableList.toImmutableList()),
        op.group().map(group -> new CustomGroup(op, group, collectives)));
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
      case Operand.Passed passed ->
          throw new IllegalStateException(passed + " is of a fused instruction");
    };
  }
}
