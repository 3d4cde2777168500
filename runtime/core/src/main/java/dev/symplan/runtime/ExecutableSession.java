package dev.symplan.runtime;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction.SetupEnd;
import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.diag.Units;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.Optional;

/**
 * The common part of all backends' sessions: the signature, the memory that may be bound to it, and
 * the order in which graphs run.
 */
public abstract class ExecutableSession implements Session {
  /** All graphs, one after the other. */
  public static final int ALL = -1;

  /** What comes once before all graphs. */
  public static final int SETUP = -2;

  private final Executable executable;
  private final ImmutableList<GraphSignature> graphs;
  private final ImmutableList<Signature> signatures;

  /** By rank, as {@link RankProgram#writtenInputs}. */
  private final ImmutableList<ImmutableSet<Integer>> writtenInputs;

  private boolean closed;

  /** By rank, the inputs that the setup reads. */
  private final ImmutableList<ImmutableSet<String>> weights;

  /** Whether the setup has run since an input that it reads was handed out, or there is none. */
  private boolean isSetUp;

  /** Whether memory of the caller's takes the place of all inputs and outputs. */
  private boolean bound;

  /** The graph after the one that has run; if it is independent, any such graph may run. */
  private int next;

  /** The independent graph after which those up to {@link #next} ran. */
  private int begun;

  protected ExecutableSession(Executable executable) {
    this.executable = executable;
    this.graphs = GraphSignature.allOf(executable);
    this.signatures =
        executable.ranks().stream().map(Signature::of).collect(ImmutableList.toImmutableList());
    this.writtenInputs =
        executable.ranks().stream()
            .map(RankProgram::writtenInputs)
            .collect(ImmutableList.toImmutableList());
    this.weights =
        executable.ranks().stream()
            .map(program -> program.setupEnd().map(SetupEnd::weights).orElse(ImmutableSet.of()))
            .collect(ImmutableList.toImmutableList());
    setUpAgain();
  }

  @Override
  public final void setUpAgain() {
    isSetUp = executable.ranks().stream().allMatch(program -> program.setupEnd().isEmpty());
  }

  /** The caller may change an input from now on. */
  private void handOut(int rank, int input) {
    if (weights.get(rank).contains(inputNames(rank).get(input))) {
      setUpAgain();
    }
  }

  /** {@return whether the caller has to run the {@link #SETUP} now; not a second time} */
  protected final boolean takeSetup() {
    // Between graphs that hand results on, the setup would write over these.
    boolean due = !isSetUp && !isAwaited(next);
    isSetUp |= due;
    return due;
  }

  protected final Executable executable() {
    return executable;
  }

  protected final RankProgram program(int rank) {
    return executable.ranks().get(checked(rank));
  }

  private int checked(int rank) {
    if (rank < 0 || rank >= ranks()) {
      throw new IllegalArgumentException(
          "rank %s does not exist; there are %s".formatted(rank, Units.count(ranks(), "rank")));
    }
    return rank;
  }

  @Override
  public final int ranks() {
    return executable.ranks().size();
  }

  @Override
  public final ImmutableList<String> inputNames(int rank) {
    return program(rank).inputNames();
  }

  @Override
  public final int outputCount(int rank) {
    return program(rank).outputs().size();
  }

  @Override
  public final ImmutableList<GraphSignature> graphs() {
    return graphs;
  }

  @Override
  public final void run() {
    requireOpen();
    next = 0;
    execute(ALL, 1);
  }

  @Override
  public final void run(String graph) {
    run(graph, 1);
  }

  @Override
  public final void run(String graph, int times) {
    requireOpen();
    int index = index(graph);
    requireRepeatable(index, times);
    if (bound && graphs.size() > 1) {
      throw new IllegalStateException(
          "the caller's memory is bound, and only run() of all graphs can use it: graph '%s' cannot run alone"
              .formatted(graph));
    }
    if (isAwaited(next) ? index != next : !graphs.get(index).independent()) {
      throw new IllegalStateException(
          isAwaited(next)
              ? "graph '%s' comes next, not '%s'; restart() discards the results that it would take"
                  .formatted(graphs.get(next).name(), graph)
              : "graph '%s' needs results of graph '%s': run that graph first"
                  .formatted(graph, graphs.get(index - 1).name()));
    }
    execute(index, times);
    begun = isAwaited(next) ? begun : index;
    next = (index + 1) % graphs.size();
  }

  private void requireRepeatable(int graph, int times) {
    if (times < 1) {
      throw new IllegalArgumentException("%s runs".formatted(times));
    }
    var name = graphs.get(graph).name();
    int after = (graph + 1) % graphs.size();
    if (times > 1 && (isAwaited(graph) || isAwaited(after))) {
      throw new IllegalStateException(
          "graph '%s' cannot run %s times at once: it hands results on, or takes those of another"
              .formatted(name, times));
    }
  }

  /** Whether a graph takes what those before it made, so that no other one may run now. */
  private boolean isAwaited(int graph) {
    return !graphs.get(graph).independent();
  }

  @Override
  public final void restart() {
    next = 0;
  }

  private int index(String graph) {
    for (int i = 0; i < graphs.size(); i++) {
      if (graphs.get(i).name().equals(graph)) {
        return i;
      }
    }
    throw new IllegalArgumentException(
        "no graph has the name '%s'; graphs: %s"
            .formatted(graph, graphs.stream().map(GraphSignature::name).toList()));
  }

  /**
   * Runs a graph on all ranks to its end, or {@link #ALL}, so many times, after the setup if that
   * {@linkplain #takeSetup is due}. All that came before the graph in the program has run.
   */
  protected abstract void execute(int graph, int times);

  @Override
  public final Optional<HostTensor> input(int rank, int index) {
    requireOpen();
    var ref = program(rank).inputs().get(index);
    if (isAwaited(next)
        && index < graphs.get(next).firstInput()
        && ref.filter(input -> input.type().space() == MemorySpace.DONATED).isPresent()) {
      throw new IllegalStateException(
          "input '%s' was donated, so graph '%s' may use its memory; run the rest, or restart()"
              .formatted(inputNames(rank).get(index), graphs.get(next).name()));
    }
    handOut(rank, index);
    return inputMemory(rank, index);
  }

  /** {@return the memory of an input} */
  protected abstract Optional<HostTensor> inputMemory(int rank, int index);

  @Override
  public final boolean isExternalInput(int rank, int index) {
    return program(rank).inputs().get(index).filter(ref -> ref.arena().isExternal()).isPresent();
  }

  @Override
  public final boolean mayWriteInput(int rank, int index) {
    return writtenInputs.get(checked(rank)).contains(index);
  }

  @Override
  public final Signature signature(int rank) {
    return signatures.get(checked(rank));
  }

  @Override
  public final Binding bind(int rank, CallerMemory memory) {
    requireOpen();
    signature(rank).check(memory, alignment());
    var use = binding(rank, memory);
    Binding binding =
        () -> {
          requireOpen();
          use.run();
          bound = true;
          next = 0;
          if (!weights.get(rank).isEmpty()) {
            setUpAgain();
          }
        };
    binding.use();
    return binding;
  }

  @Override
  public final void bindInput(int rank, int index, HostTensor tensor) {
    requireOpen();
    var name = "input '%s' of rank %s".formatted(inputNames(rank).get(index), rank);
    requireBindable(name, index < graphs.get(next).firstInput());
    var ref = program(rank).inputs().get(index);
    if (ref.isEmpty() || ref.get().arena() != ArenaKind.EXTERNAL_INPUT) {
      throw new IllegalArgumentException(name + " is planned: it has its place in an arena");
    }
    requireFits(ref.get(), tensor, name);
    if (tensor.memory().isReadOnly() && mayWriteInput(rank, index)) {
      throw new IllegalArgumentException(
          name + ": the memory is read-only, and the graph may write into it");
    }
    handOut(rank, index);
    useAsInput(rank, ref.get(), tensor);
  }

  @Override
  public final void bindOutput(int rank, int index, HostTensor tensor) {
    requireOpen();
    var name = "output %s of rank %s".formatted(index, rank);
    // A graph that has run may have written what a later one gives.
    requireBindable(name, true);
    var ref = program(rank).outputs().get(index);
    if (ref.isEmpty() || !ref.get().arena().isExternal()) {
      throw new IllegalArgumentException(name + " is planned: it has its place in an arena");
    }
    if (ref.get().arena() != ArenaKind.EXTERNAL_OUTPUT || ref.get().index() != index) {
      throw new IllegalArgumentException(
          "%s has no separate memory: it shares that of %s".formatted(name, ref.get()));
    }
    if (tensor.memory().isReadOnly()) {
      throw new IllegalArgumentException(name + ": the memory is read-only");
    }
    requireFits(ref.get(), tensor, name);
    useAsOutput(rank, ref.get(), tensor);
  }

  /** Memory that graphs of the program have used already stays bound until the program ends. */
  private void requireBindable(String name, boolean mayBeUsed) {
    if (isAwaited(next) && mayBeUsed) {
      throw new IllegalStateException(
          "%s can only be bound before graph '%s' runs; run the rest, or restart()"
              .formatted(name, graphs.get(begun).name()));
    }
  }

  private static void requireFits(TensorRef ref, HostTensor tensor, String name) {
    var expected = ref.type();
    if (tensor.dtype() != expected.dtype()
        || !tensor.type().sizes().equals(expected.sizes())
        || !tensor.type().strides().equals(expected.strides())) {
      throw new IllegalArgumentException(
          "%s is %s, not %s".formatted(name, expected, tensor.type()));
    }
    if (!tensor.memory().isNative()) {
      throw new IllegalArgumentException(name + ": the memory is on the Java heap; use an Arena");
    }
    if (!tensor.memory().isAccessibleBy(new Thread())) {
      throw new IllegalArgumentException(
          name + ": the memory is confined to a thread; use a shared or automatic Arena");
    }
  }

  /** {@return whether memory of the caller's is bound} */
  protected final boolean isBound() {
    return bound;
  }

  /** {@return what binds all inputs and outputs of a rank to memory that fits them} */
  protected abstract Runnable binding(int rank, CallerMemory memory);

  /** Binds an external input to memory that fits it. */
  protected abstract void useAsInput(int rank, TensorRef input, HostTensor tensor);

  /** Binds an external output to memory that fits it and can be written. */
  protected abstract void useAsOutput(int rank, TensorRef output, HostTensor tensor);

  protected final void requireOpen() {
    if (closed) {
      throw new IllegalStateException("the session is closed");
    }
  }

  @Override
  public final void close() {
    if (!closed) {
      closed = true;
      release();
    }
  }

  /** Frees the memory; called once. */
  protected abstract void release();
}
