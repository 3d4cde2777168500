package dev.symplan.runtime.torch;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.CallerMemory;
import dev.symplan.runtime.CallerMemory.Stretches;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.Signature;
import dev.symplan.runtime.Signature.Slot;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.Launch;
import dev.symplan.runtime.launch.World;
import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * A graph of PyTorch's that is ready to run on the rank of this process; any thread may run it, one
 * at a time.
 */
final class CompiledGraph implements AutoCloseable {
  private static final long[] NOTHING = {};

  private final Plan plan;
  private final Backend backend;
  private final SessionOptions options;
  private final int rank;
  private final ImmutableLongArray inputBytes;
  private final ImmutableLongArray outputBytes;
  private Session session;
  private boolean failed;

  /** The addresses that the session has, of inputs and then of outputs; none at first. */
  private long[] bound = NOTHING;

  private CompiledGraph(Plan plan, Backend backend, SessionOptions options) {
    this.plan = plan;
    this.backend = backend;
    this.options = options;
    this.rank = options.world().map(World::rank).orElse(0);
    this.session = Session.open(plan, backend, options);
    this.inputBytes = bytes(signature().inputs());
    this.outputBytes = bytes(signature().outputs());
  }

  /**
   * {@return the graph of a request, planned and with its memory}
   *
   * @param worlds the processes of the other ranks; all of them come with the same request
   * @throws dev.symplan.ir.diag.CompileException when the graph is wrong
   * @throws RunException when it cannot run here
   */
  static CompiledGraph of(Request request, Worlds worlds) {
    var backend =
        Backend.ofName(request.graph().backend())
            .orElseThrow(
                () ->
                    new RunException(
                        "unknown backend '%s'; choose from %s"
                            .formatted(
                                request.graph().backend(),
                                Backend.all().map(Backend::name).toList())));
    var options = SessionOptions.DEFAULT.withCallerMemory(true).withDevice(request.device());
    if (request.peers().isEmpty()) {
      // Alone, whatever a launcher has started.
      return new CompiledGraph(
          Planning.alone(request, backend), backend, options.withLaunch(Launch.SINGLE));
    }
    var peers = request.peers().get();
    return worlds.with(
        peers,
        world ->
            new CompiledGraph(
                Planning.together(request, backend, world),
                backend,
                options.withWorld(world).withTimeout(peers.timeout())));
  }

  private Signature signature() {
    return session.signature(rank);
  }

  private static ImmutableLongArray bytes(List<Slot> slots) {
    return ImmutableLongArray.copyOf(slots.stream().mapToLong(Slot::bytes));
  }

  /**
   * {@return the inputs and outputs of the graph, and the use that runs make of their memory, as
   * JSON}
   */
  synchronized String describe() {
    return SignatureJson.print(signature(), session.alignment());
  }

  /**
   * Runs once.
   *
   * @param addresses of the inputs and then of the outputs, where as much memory is as the
   *     signature says
   * @throws IllegalArgumentException when an address cannot be right
   * @throws RunException when the run fails; the next one starts anew if there are no other ranks
   */
  synchronized void run(MemorySegment addresses, long stream) {
    if (failed && options.world().isEmpty()) {
      session.close();
      session = Session.open(plan, backend, options);
      bound = NOTHING;
      failed = false;
    }
    if (!isBound(addresses)) {
      bind(addresses.toArray(JAVA_LONG));
    }
    try {
      session.runIn(stream);
    } catch (RunException e) {
      failed = true;
      throw e;
    }
  }

  private boolean isBound(MemorySegment addresses) {
    if (addresses.byteSize() != (long) bound.length * Long.BYTES || bound.length == 0) {
      return false;
    }
    for (int i = 0; i < bound.length; i++) {
      if (addresses.getAtIndex(JAVA_LONG, i) != bound[i]) {
        return false;
      }
    }
    return true;
  }

  private void bind(long[] addresses) {
    int inputs = inputBytes.length();
    int tensors = inputs + outputBytes.length();
    if (addresses.length != tensors) {
      throw new IllegalArgumentException(
          "addresses of %s of %s inputs and outputs".formatted(addresses.length, tensors));
    }
    bound = NOTHING;
    var all = ImmutableLongArray.copyOf(addresses);
    session.bind(
        rank,
        new CallerMemory(
            new Stretches(all.subArray(0, inputs), inputBytes),
            new Stretches(all.subArray(inputs, tensors), outputBytes)));
    bound = addresses;
  }

  @Override
  public synchronized void close() {
    session.close();
  }
}
