package dev.symplan.runtime;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSortedSet;
import dev.symplan.codegen.Lowering;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.profile.Profile;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * A plan that is ready to run, with its memory.
 *
 * <p>Fill the inputs of every rank, {@link #run}, and read the outputs, as often as you like.
 * Inputs keep their contents, except for donated ones, which must be filled again before each run.
 * Outputs are valid until the next run. Not thread-safe.
 */
public interface Session extends AutoCloseable {

  /**
   * Allocates what the plan needs.
   *
   * @throws RunException when the backend is not available, or lacks what the plan needs
   */
  static Session open(Plan plan, Backend backend) {
    return open(plan, backend, SessionOptions.DEFAULT);
  }

  /**
   * Allocates what the plan needs.
   *
   * @throws RunException when the backend is not available, lacks what the plan needs, or other
   *     processes do not join in time
   */
  static Session open(Plan plan, Backend backend, SessionOptions options) {
    backend
        .unavailable()
        .or(() -> PlanAdvice.lacking(plan, backend.variants(options.multicast())))
        .or(() -> backend.lacks(plan, options))
        .ifPresent(
            reason -> {
              throw new RunException("backend " + backend.name() + ": " + reason);
            });
    return backend.open(Lowering.lower(plan), options);
  }

  /** {@return how many ranks the plan is for, in all processes together} */
  int ranks();

  /**
   * {@return the ranks that run in this process: all, unless a launcher started a process for each.
   * Methods that take a rank accept only these}
   */
  default ImmutableSortedSet<Integer> localRanks() {
    return ImmutableSortedSet.copyOf(IntStream.range(0, ranks()).iterator());
  }

  /** {@return the names of the inputs of a rank's graph} */
  ImmutableList<String> inputNames(int rank);

  /** {@return the names of the inputs of rank 0; only stages of a pipeline have others} */
  default ImmutableList<String> inputNames() {
    return inputNames(0);
  }

  /** {@return the number of the outputs of a rank's graph} */
  int outputCount(int rank);

  /** {@return the number of the outputs of rank 0; only stages of a pipeline have others} */
  default int outputCount() {
    return outputCount(0);
  }

  /**
   * {@return the memory of an input, to be filled: in the arena where the input is planned,
   * otherwise the memory that was bound or, if none was, the session's own; empty for plain
   * numbers}
   */
  Optional<HostTensor> input(int rank, int index);

  /**
   * {@return the memory of a tensor input, by its name in the graph}
   *
   * @throws IllegalArgumentException when no tensor input has this name
   */
  default HostTensor input(int rank, String name) {
    int index = inputNames(rank).indexOf(name);
    if (index < 0) {
      throw new IllegalArgumentException(
          "no input of rank %s has the name '%s'; inputs: %s"
              .formatted(rank, name, inputNames(rank)));
    }
    return input(rank, index)
        .orElseThrow(() -> new IllegalArgumentException("'" + name + "' is not a tensor"));
  }

  /** {@return whether the input is the caller's memory, which {@link #bindInput} may replace} */
  boolean isExternalInput(int rank, int index);

  /**
   * {@return whether runs may write into memory that the caller {@linkplain #bindInput binds} as
   * the input} If not, the memory may be read-only, and bound for several ranks. Nothing of a
   * donated input is written into the caller's memory.
   */
  boolean mayWriteInput(int rank, int index);

  /**
   * Uses the caller's memory for an external input, without a copy, from the next run on.
   *
   * @throws IllegalArgumentException when the input is planned, or of another type
   */
  void bindInput(int rank, int index, HostTensor tensor);

  /**
   * Has an external output written into the caller's memory, from the next run on.
   *
   * @throws IllegalArgumentException when the output is planned, or of another type
   */
  void bindOutput(int rank, int index, HostTensor tensor);

  /**
   * {@return the inputs and outputs of a rank's graph, and the use that runs make of memory that is
   * bound}
   */
  Signature signature(int rank);

  /** {@return the bytes of which every address of {@link CallerMemory} must be a multiple} */
  long alignment();

  /**
   * Uses the caller's memory for all inputs and outputs of a rank, from the next run on: directly
   * where the plan leaves the tensor to the caller, otherwise by a copy in each run, as the {@link
   * Signature} says. The memory must stay valid until the last run with it is over, and outputs
   * must not overlap anything else.
   *
   * @return a binding, which binds the memory again at less cost after other memory was bound
   * @throws IllegalArgumentException when the memory does not fit the signature
   */
  Binding bind(int rank, CallerMemory memory);

  /** Memory of the caller that was bound. */
  @FunctionalInterface
  interface Binding {
    /**
     * Uses the memory, from the next run on.
     *
     * @throws IllegalStateException when the session is closed
     */
    void use();
  }

  /**
   * Runs all graphs on all ranks to completion, from the first one on.
   *
   * @throws RunException when a rank fails or waits too long; the session cannot be used after that
   */
  void run();

  /**
   * {@return the graphs that a run executes, in this order} There are several if graphs were
   * compiled {@code --together}, each with its own inputs and outputs.
   */
  ImmutableList<GraphSignature> graphs();

  /**
   * {@return the version of a graph for the smallest value of a size that is at least as large as
   * asked for} A version runs at its own size. The caller must fill the part beyond the requested
   * size, and the graph must leave that part out of its results.
   *
   * @param graph the name that the graph had before it was compiled in {@code --buckets}
   * @param size the name of the size
   * @throws IllegalArgumentException when there is no such version
   */
  default GraphSignature bucket(String graph, String size, long atLeast) {
    return GraphSignature.bucket(graphs(), graph, size, atLeast);
  }

  /**
   * Runs one graph on all ranks to completion. A graph that takes results of other graphs runs
   * directly after them, in the order in which they were given; these results stay in the arenas.
   * Any {@link GraphSignature#independent} graph may run at other times, again and again: such
   * graphs share only inputs, and use the same memory for everything else.
   *
   * <p>Inputs of a graph may be filled at any time before it runs; donated ones, after the last
   * other graph that does not hand anything to it. With {@code --memory-limit}, a graph may compute
   * again what an earlier one made: leave the inputs of that one as they are until the last graph
   * that depends on it has run. Outputs are valid until an independent graph runs. Memory is bound
   * before an independent graph runs, or as an input of a graph that has not run.
   *
   * @throws IllegalArgumentException when no graph has this name
   * @throws IllegalStateException when another graph must run before it, or {@link CallerMemory} is
   *     bound for all of several graphs
   * @throws RunException when a rank fails or waits too long; the session cannot be used after that
   */
  void run(String graph);

  /**
   * Runs an independent graph several times in a row, as {@link #run(String)} does. Devices do not
   * wait for the host between the runs: a decoding loop that keeps its position, caches and tokens
   * in inputs needs the host only at its end. Outputs are those of the last run. All processes of a
   * session must make the same call.
   *
   * @throws IllegalArgumentException when no graph has this name, or {@code times} is less than 1
   * @throws IllegalStateException as {@link #run(String)}, or when the graph needs results of
   *     another one, or another one needs its results
   * @throws RunException as {@link #run(String)}
   */
  void run(String graph, int times);

  /**
   * Has the next run compute again what the plan computes once per session, before its first run.
   * This happens by itself when an input that was compiled with {@code --fold-weights} is asked for
   * or bound; call it if you change such an input later. A graph that takes results of an earlier
   * one still uses what was computed before.
   */
  void setUpAgain();

  /**
   * Abandons the graphs that have not run: the next one must be independent. All processes of a
   * session must make the same call.
   */
  void restart();

  /**
   * Runs in the order of a stream: after the caller's earlier work in it, and before later work.
   * All ranks use memory that was {@linkplain #bind bound}. The run may still be going on when this
   * method returns; a backend without streams runs at once.
   *
   * @param stream the device's handle of the stream; 0 for its default one
   * @throws RunException as {@link #run()}; also for a failure of an earlier run after its return
   */
  void runIn(long stream);

  /**
   * Measures how long a run takes in the steady state: on devices with their own clock and as
   * little of the host's time as possible, otherwise with the host's clock. All processes of a
   * session must make the same call, and get the times of the slowest one.
   *
   * @param runs one after the other in each measurement
   * @param measurements at least one; another one before them is not counted
   * @throws RunException as {@link #run}
   */
  default Timing time(int runs, int measurements) {
    return Timing.ofHost(runs, measurements, this::run);
  }

  /**
   * Measures one collective by itself, as {@link #time(int, int)} does a whole run.
   *
   * @param label the name of the collective. It must not need another collective's barrier, and
   *     must run alone on the compute stream, and its operands must be filled
   * @throws RunException as {@link #run}
   * @throws UnsupportedOperationException when the backend runs nothing but whole programs
   */
  default Timing time(String label, int runs, int measurements) {
    throw new UnsupportedOperationException(label + " cannot be run by itself");
  }

  /**
   * Runs once, as {@link #run} does, and records when each instruction ran on the ranks of this
   * process; the profile is empty if the backend takes no times. This takes longer than {@link
   * #run}. All processes of a session must make the same call.
   *
   * @throws RunException as {@link #run}
   */
  default Profile profile() {
    return profile(0);
  }

  /**
   * Runs several times and then once more, as {@link #profile()} does. Between these, devices do
   * not wait for the host, so that ranks that meet in collectives begin the last one together.
   *
   * @param before how many runs come first
   * @throws RunException as {@link #run}
   */
  default Profile profile(int before) {
    for (int i = 0; i <= before; i++) {
      run();
    }
    return new Profile(ImmutableList.of(), "one run, without times for its steps");
  }

  /** {@return the memory of an output; empty for {@code None} and plain numbers} */
  Optional<HostTensor> output(int rank, int index);

  /** Frees the memory; tensors of the session must not be used any more. */
  @Override
  void close();
}
