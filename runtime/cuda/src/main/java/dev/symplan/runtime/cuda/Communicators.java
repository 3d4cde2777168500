package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.codegen.cuda.DeviceStep.Nccl;
import dev.symplan.planner.Stream;
import dev.symplan.runtime.RunException;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.bytedeco.cuda.global.nccl;
import org.bytedeco.cuda.nccl.ncclComm;
import org.bytedeco.cuda.nccl.ncclUniqueId;
import org.bytedeco.cuda.nccl.ncclWindow_vidmem;

/**
 * One rank's communicators: one for each set of ranks and stream, as no communicator may be in two
 * streams at once, and apart with and without windows, as NCCL runs its symmetric kernels whenever
 * it finds both buffers in a window.
 */
final class Communicators {

  /** What a communicator is for. */
  record Key(ImmutableIntArray members, Stream stream, boolean windows, boolean copyEngines) {
    static Key of(Nccl step) {
      return new Key(step.members(), step.stream(), step.windows(), step.copyEngines());
    }
  }

  private final Check check;
  private final Map<Key, ncclComm> communicators = new HashMap<>();
  private final Map<Key, ncclWindow_vidmem> windows = new HashMap<>();

  private Communicators(Check check) {
    this.check = check;
  }

  /** {@return an id for every communicator of a session, in the order in which all make them} */
  static ImmutableMap<Key, ncclUniqueId> ids(List<DeviceProgram> programs) {
    Map<Key, ncclUniqueId> ids = new LinkedHashMap<>();
    for (var program : programs) {
      for (var step : program.steps()) {
        if (step instanceof Nccl call) {
          ids.computeIfAbsent(
              Key.of(call),
              _ -> {
                var id = new ncclUniqueId();
                new Check(program.rank()).nccl(nccl.ncclGetUniqueId(id), "ncclGetUniqueId");
                return id;
              });
        }
      }
    }
    return ImmutableMap.copyOf(ids);
  }

  /** Joins a rank's communicators; all ranks do so at once, each in its own thread. */
  static Communicators join(
      int rank, ImmutableMap<Key, ncclUniqueId> ids, GpuMemory memory, Check check) {
    var joined = new Communicators(check);
    ids.forEach(
        (key, id) -> {
          int self = key.members().indexOf(rank);
          if (self >= 0) {
            joined.join(key, id, self, memory);
          }
        });
    return joined;
  }

  private void join(Key key, ncclUniqueId id, int self, GpuMemory memory) {
    var communicator = new ncclComm();
    check.nccl(
        key.copyEngines()
            ? ZeroCta.join(communicator, key.members().length(), id, self)
            : nccl.ncclCommInitRank(communicator, key.members().length(), id, self),
        "ncclCommInitRank of %d ranks".formatted(key.members().length()));
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
          "ncclCommWindowRegister of %d bytes".formatted(memory.symmetricBytes()));
      if (window.isNull()) {
        throw new RunException(
            "rank %d: NCCL has no symmetric windows here; plan without nccl_symm"
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

  void close() {
    windows.forEach(
        (key, window) ->
            check.nccl(
                nccl.ncclCommWindowDeregister(
                    Objects.requireNonNull(communicators.get(key)), window),
                "ncclCommWindowDeregister"));
    communicators.values().forEach(c -> check.nccl(nccl.ncclCommDestroy(c), "ncclCommDestroy"));
  }

  /** Ends what is still running. */
  void abort() {
    communicators.values().forEach(nccl::ncclCommAbort);
  }
}
