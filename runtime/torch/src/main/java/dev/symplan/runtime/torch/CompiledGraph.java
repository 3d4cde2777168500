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
import java.util.ArrayList;
import java.util.List;

/**
 * A graph of PyTorch's that is ready to run on the rank of this process; any thread may run it, one
 * at a time.
 */
final class CompiledGraph implements AutoCloseable {
  /**
   * The number of sets of addresses that are found again: an allocator whose caller keeps results
   * for a while gives a few in turn.
   */
  private static final int MAX_BOUND = 8;

  /** All memory, so that a run makes no object for the part that has its addresses. */
  static final MemorySegment MEMORY = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

  private final Plan plan;
  private final Backend backend;
  private final SessionOptions options;
  private final int rank;
  private final ImmutableLongArray inputBytes;
  private final ImmutableLongArray outputBytes;
  private Session session;
  private boolean failed;

  /** Those that were bound last, the one that is bound first. */
  private final ArrayList<Bound> bound = new ArrayList<>();

  /**
   * Memory that was bound.
   *
   * @param addresses of inputs and then of outputs
   */
  private record Bound(MemorySegment addresses, Session.Binding binding) {
    boolean isAt(long others, long bytes) {
      return MemorySegment.mismatch(MEMORY, others, others + bytes, addresses, 0, bytes) < 0;
    }
  }

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
    backend.begin();
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
   * @param addresses where the addresses of the inputs and then of the outputs are. Each has as
   *     much memory as the signature says
   * @param count how many there are
   * @throws IllegalArgumentException when an address cannot be right
   * @throws RunException when the run fails; the next one starts anew if there are no other ranks
   */
  synchronized void run(long addresses, long count, long stream) {
    int tensors = inputBytes.length() + outputBytes.length();
    if (count != tensors) {
      throw new IllegalArgumentException(
          "addresses of %s of %s inputs and outputs".formatted(count, tensors));
    }
    if (count > 0 && addresses <= 0) {
      throw new IllegalArgumentException(
          "%s addresses at 0x%s".formatted(count, Long.toHexString(addresses)));
    }
    if (failed && options.world().isEmpty()) {
      session.close();
      session = Session.open(plan, backend, options);
      bound.clear();
      failed = false;
    }
    long bytes = count * Long.BYTES;
    if (bound.isEmpty() || !bound.getFirst().isAt(addresses, bytes)) {
      bind(addresses, bytes);
    }
    try {
      session.runIn(stream);
    } catch (RunException e) {
      failed = true;
      throw e;
    }
  }

  private void bind(long at, long bytes) {
    for (int i = 1; i < bound.size(); i++) {
      if (bound.get(i).isAt(at, bytes)) {
        var again = bound.remove(i);
        again.binding().use();
        bound.addFirst(again);
        return;
      }
    }
    var addresses = MEMORY.asSlice(at, bytes).toArray(JAVA_LONG);
    int inputs = inputBytes.length();
    var all = ImmutableLongArray.copyOf(addresses);
    var memory =
        new CallerMemory(
            new Stretches(all.subArray(0, inputs), inputBytes),
            new Stretches(all.subArray(inputs, addresses.length), outputBytes));
    bound.addFirst(new Bound(MemorySegment.ofArray(addresses), session.bind(rank, memory)));
    if (bound.size() > MAX_BOUND) {
      bound.removeLast();
    }
  }

  @Override
  public synchronized void close() {
    session.close();
  }
}
