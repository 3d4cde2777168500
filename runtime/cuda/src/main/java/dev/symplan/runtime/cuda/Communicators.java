package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.codegen.cuda.DeviceStep.Nccl;
import dev.symplan.ir.diag.Units;
import dev.symplan.runtime.failure.RunException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.bytedeco.cuda.global.nccl;
import org.bytedeco.cuda.nccl.ncclComm;
import org.bytedeco.cuda.nccl.ncclUniqueId;
import org.bytedeco.cuda.nccl.ncclWindow_vidmem;
import org.bytedeco.javacpp.BytePointer;

/**
 * One rank's communicators: one for each signal pad, as no communicator may be in two streams at
 * once, and apart with and without windows, as NCCL runs its symmetric kernels whenever it finds
 * both buffers in a window.
 */
final class Communicators {

  /** The purpose of a communicator. */
  record Key(ImmutableIntArray members, int pad, boolean windows, boolean copyEngines) {
    static Key of(Nccl step) {
      return new Key(step.members(), step.pad(), step.windows(), step.copyEngines());
    }
  }

  /** The time that NCCL gets to end aborted work. */
  private static final Duration ABORTING = Duration.ofSeconds(5);

  private final Check check;

  /** In the order in which all ranks join them, and leave them: each waits for the others. */
  private final Map<Key, ncclComm> communicators = new LinkedHashMap<>();

  private final Map<Key, ncclWindow_vidmem> windows = new LinkedHashMap<>();
  private final List<Thread> aborting = new ArrayList<>();

  Communicators(Check check) {
    this.check = check;
  }

  private static final int ID_BYTES = 128;

  /** {@return ids in the order of their communicators, for another process} */
  static byte[] toBytes(ImmutableMap<Key, ncclUniqueId> ids) {
    var bytes = new byte[ids.size() * ID_BYTES];
    int at = 0;
    for (var id : ids.values()) {
      new BytePointer(id).get(bytes, at, ID_BYTES);
      at += ID_BYTES;
    }
    return bytes;
  }

  /**
   * {@return the ids that another process made for the communicators of the same programs}
   *
   * @throws RunException when there are not as many
   */
  static ImmutableMap<Key, ncclUniqueId> ofBytes(List<DeviceProgram> programs, byte[] bytes) {
    var keys = keys(programs);
    if (bytes.length != keys.size() * ID_BYTES) {
      throw new RunException(
          "rank 0 has %s communicators, not %s".formatted(bytes.length / ID_BYTES, keys.size()));
    }
    var ids = ImmutableMap.<Key, ncclUniqueId>builder();
    int at = 0;
    for (var key : keys) {
      var id = new ncclUniqueId();
      new BytePointer(id).put(bytes, at, ID_BYTES);
      ids.put(key, id);
      at += ID_BYTES;
    }
    return ids.buildOrThrow();
  }

  /** The communicators that all ranks need, in the order in which all ranks join them. */
  private static ImmutableSet<Key> keys(List<DeviceProgram> programs) {
    return programs.stream()
        .flatMap(program -> program.steps().stream())
        .flatMap(step -> step instanceof Nccl call ? Stream.of(Key.of(call)) : Stream.of())
        .collect(ImmutableSet.toImmutableSet());
  }

  /** {@return an id for every communicator of a session, in the order in which all make them} */
  static ImmutableMap<Key, ncclUniqueId> ids(List<DeviceProgram> programs) {
    var ids = ImmutableMap.<Key, ncclUniqueId>builder();
    for (var key : keys(programs)) {
      var id = new ncclUniqueId();
      new Check(0).nccl(nccl.ncclGetUniqueId(id), "ncclGetUniqueId");
      ids.put(key, id);
    }
    return ids.buildOrThrow();
  }

  /**
   * Joins a rank's communicators; all ranks do so at once, each in its own thread.
   *
   * @param ending ends when one cannot be joined in time: NCCL itself may wait for ever
   * @param timeout for each
   */
  void join(
      int rank,
      ImmutableMap<Key, ncclUniqueId> ids,
      GpuMemory memory,
      SessionFailure ending,
      Duration timeout) {
    ids.forEach(
        (key, id) -> {
          int self = key.members().indexOf(rank);
          if (self >= 0) {
            var late =
                "rank %s: NCCL does not connect the ranks %s within %s; NCCL_DEBUG=INFO shows what it does"
                    .formatted(rank, key.members(), Units.duration(timeout));
            ending.limited(timeout, late, () -> join(key, id, self, memory));
          }
        });
  }

  private void join(Key key, ncclUniqueId id, int self, GpuMemory memory) {
    var communicator = new ncclComm();
    check.nccl(
        key.copyEngines()
            ? ZeroCta.join(communicator, key.members().length(), id, self)
            : nccl.ncclCommInitRank(communicator, key.members().length(), id, self),
        "ncclCommInitRank of %s ranks".formatted(key.members().length()));
    communicators.put(key, communicator);
    if (key.windows()) {
      var window = new ncclWindow_vidmem();
      check.nccl(
          nccl.ncclCommWindowRegister(
              communicator,
              memory.region(Peers.Region.ARENA),
              memory.symmetricBytes(),
              window,
              nccl.NCCL_WIN_COLL_SYMMETRIC),
          "ncclCommWindowRegister of %s bytes".formatted(memory.symmetricBytes()));
      if (window.isNull()) {
        throw new RunException(
            "rank %s: NCCL does not support symmetric windows here; plan without nccl_symm"
                .formatted(check.rank()));
      }
      windows.put(key, window);
      if (key.copyEngines()) {
        ZeroCta.warmUp(communicator, key.members().length(), memory, check);
      }
    }
  }

  ncclComm of(Nccl step) {
    return Objects.requireNonNull(communicators.get(Key.of(step)));
  }

  /**
   * Leaves the communicators, with all other ranks; those that were aborted have a moment to end.
   */
  void close() {
    if (aborting.isEmpty()) {
      windows.forEach(
          (key, window) ->
              check.nccl(
                  nccl.ncclCommWindowDeregister(
                      Objects.requireNonNull(communicators.get(key)), window),
                  "ncclCommWindowDeregister"));
      communicators.values().forEach(c -> check.nccl(nccl.ncclCommDestroy(c), "ncclCommDestroy"));
    }
    for (var thread : aborting) {
      try {
        if (!thread.join(ABORTING)) {
          throw new RunException("rank %s: ncclCommAbort does not return".formatted(check.rank()));
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new RunException("interrupted while leaving NCCL", e);
      }
    }
  }

  /**
   * Ends what is still running. NCCL returns only when the graphs that hold its kernels are gone,
   * for which the GPU must have stopped: so this does not wait.
   *
   * <p>The rank's thread and the one that hears of failures elsewhere may both come here.
   */
  synchronized void abort() {
    if (aborting.isEmpty()) {
      for (var communicator : communicators.values()) {
        aborting.add(
            Thread.ofPlatform()
                .daemon()
                .name("symplan-abort-" + check.rank())
                .start(() -> nccl.ncclCommAbort(communicator)));
      }
    }
  }
}
