package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction.AwaitEvent;
import dev.symplan.codegen.Instruction.Border;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.Fused;
import dev.symplan.codegen.Instruction.GroupUse;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Instruction.RecordEvent;
import dev.symplan.codegen.Instruction.SetupEnd;
import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.Transfers;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.World;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;

/**
 * Each rank is a process. Those of a host map each other's {@link SharedMemory}, and meet there.
 * Groups that span hosts have no memory in common: what their ranks stage goes through the store of
 * their world, and each rank has a copy of the others' buffers.
 */
final class PeerProcesses implements Peers {

  /** The most that goes through the store at once. */
  private static final int PIECE = 8 << 20;

  private record Meeting(int index, ImmutableIntArray members) {
    static Meeting of(GroupUse group) {
      return new Meeting(group.index(), group.members());
    }
  }

  /**
   * What a rank stages for the collectives that this rank runs on a stream. The stream is this
   * rank's: the other may run on one stream what this rank runs on two at the same time.
   */
  private record Buffer(int rank, StreamKind stream) {}

  private final World world;
  private final HostSync sync;
  private final Transfers transfers;
  private final Arena owner;
  private final String session;
  private final ImmutableMap<Meeting, Integer> barriers;
  private final Map<Integer, SharedMemory> shared = new TreeMap<>();
  private final Map<Integer, HostMemory> memories = new TreeMap<>();

  /**
   * The staged operands of ranks on other hosts, and the part of this rank in exchanges with them.
   * Threads of several streams add to it.
   */
  private final Map<Buffer, MemorySegment> copies = new ConcurrentHashMap<>();

  /** The number of meetings of each group across hosts in which this rank took part. */
  private final Map<Meeting, long[]> rounds = new HashMap<>();

  /**
   * Maps the memory of the ranks of this host; all processes do so at once.
   *
   * @param owner the source of all memory
   * @throws RunException when that fails in any process
   */
  PeerProcesses(
      Executable executable, Transfers transfers, World world, HostSync sync, Arena owner) {
    this.world = world;
    this.sync = sync;
    this.transfers = transfers;
    this.owner = owner;
    this.barriers = barriers(executable);
    this.session =
        new String(
            world.gather("the session", bytes(UUID.randomUUID().toString())).getFirst(),
            StandardCharsets.UTF_8);
    int rank = world.rank();
    var layout = layout(executable, rank);
    var file = SharedMemory.newFile(layout);
    try {
      var mapped = SharedMemory.map(file, layout, owner);
      mapped.poison();
      shared.put(rank, mapped);
      var files = world.gather("shared memory", bytes(file.toString()));
      for (int peer : world.ranksHere()) {
        if (peer != rank) {
          var path = Path.of(new String(files.get(peer), StandardCharsets.UTF_8));
          shared.put(peer, SharedMemory.map(path, layout(executable, peer), owner));
        }
      }
      world.barrier("shared memory, mapped");
    } finally {
      SharedMemory.remove(file);
    }
    shared.forEach(
        (peer, memory) ->
            memories.put(
                peer, new HostMemory(executable.ranks().get(peer), memory.symmetric(), owner)));
  }

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private SharedMemory.Layout layout(Executable executable, int rank) {
    return SharedMemory.Layout.of(executable, transfers, rank, barriers.size());
  }

  /** All processes number the meetings of the same plan alike. */
  private static ImmutableMap<Meeting, Integer> barriers(Executable executable) {
    var numbers = new LinkedHashMap<Meeting, Integer>();
    executable.ranks().stream()
        .flatMap(PeerProcesses::groups)
        .map(Meeting::of)
        .forEach(meeting -> numbers.putIfAbsent(meeting, numbers.size()));
    return ImmutableMap.copyOf(numbers);
  }

  private static Stream<GroupUse> groups(RankProgram program) {
    return program.instructions().stream()
        .flatMap(
            instruction ->
                switch (instruction) {
                  case Collective collective -> Stream.of(collective.group());
                  case LocalOp op -> op.group().stream();
                  case Fused _, Border _, SetupEnd _, RecordEvent _, AwaitEvent _ -> Stream.of();
                });
  }

  private boolean isHere(GroupUse group) {
    return group.members().stream().allMatch(world.ranksHere()::contains);
  }

  @Override
  public HostMemory memory(int rank) {
    var memory = memories.get(rank);
    if (memory == null) {
      throw new IllegalStateException(
          "rank %s cannot reach the memory of rank %s on %s"
              .formatted(world.rank(), rank, world.hosts().get(rank).name()));
    }
    return memory;
  }

  @Override
  public MemorySegment staging(int rank, Collective collective) {
    if (isHere(collective.group())) {
      return Objects.requireNonNull(shared.get(rank)).staging(collective.stream());
    }
    int self = collective.group().members().indexOf(world.rank());
    return copies.computeIfAbsent(
        new Buffer(rank, transfers.at(self, collective).stream()),
        buffer ->
            HostMemory.allocate(
                owner, Staging.bytes(transfers, world.rank(), buffer.stream(), buffer.rank())));
  }

  @Override
  public Runnable meeting(GroupUse group) {
    if (!isHere(group)) {
      throw new IllegalStateException("ranks of several hosts meet in collectives only");
    }
    int barrier = number(group);
    var mine = Objects.requireNonNull(shared.get(world.rank()));
    var members = group.members();
    return () -> {
      long count = mine.arrivals(barrier) + 1;
      mine.arrive(barrier, count);
      for (int i = 0; i < members.length(); i++) {
        int member = members.get(i);
        var peer = Objects.requireNonNull(shared.get(member));
        sync.poll(() -> peer.arrivals(barrier) >= count, () -> "rank " + member);
      }
    };
  }

  private int number(GroupUse group) {
    return Objects.requireNonNull(barriers.get(Meeting.of(group)));
  }

  @Override
  public Runnable meeting(Collective collective, int tensor) {
    var group = collective.group();
    if (isHere(group)) {
      return meeting(group);
    }
    var count = rounds.computeIfAbsent(Meeting.of(group), _ -> new long[1]);
    var place = "%s/%s".formatted(session, number(group));
    return () -> exchange(collective, tensor, "%s/%s".formatted(place, count[0]++));
  }

  /** Gives the others what this rank has staged, and takes what they have. */
  private void exchange(Collective collective, int tensor, String round) {
    var members = collective.group().members();
    try {
      pieces(collective, world.rank(), tensor, round)
          .forEach(
              piece ->
                  world.set(
                      piece.key(),
                      piece.memory().toArray(ValueLayout.JAVA_BYTE),
                      members.length() - 1));
      for (int member = 0; member < members.length(); member++) {
        int peer = members.get(member);
        if (peer != world.rank()) {
          pieces(transfers.at(member, collective), peer, tensor, round)
              .forEach(piece -> piece.take(world.get(piece.key(), whom(peer, collective))));
        }
      }
    } catch (RunException e) {
      if (world.failure().isPresent()) {
        sync.abort(new RunException(world.failure().get().text(), e));
        throw new HostSync.Aborted();
      }
      throw e;
    }
  }

  private static String whom(int rank, Collective collective) {
    return "rank %s at %s '%s'".formatted(rank, collective.kind().text(), collective.name());
  }

  /** Some of what a rank has staged, and its name in the store. */
  private record Piece(String key, MemorySegment memory) {
    void take(byte[] bytes) {
      if (bytes.length != memory.byteSize()) {
        throw new RunException("%s bytes came, not %s".formatted(bytes.length, memory.byteSize()));
      }
      MemorySegment.copy(bytes, 0, memory, ValueLayout.JAVA_BYTE, 0, bytes.length);
    }
  }

  /** At least one, so that ranks without bytes meet, too. */
  private Stream<Piece> pieces(Collective collective, int rank, int tensor, String round) {
    long bytes = Staging.bytes(collective, tensor);
    var memory = staging(rank, collective).asSlice(Staging.begin(collective, tensor), bytes);
    return Stream.iterate(0L, at -> at == 0 || at < bytes, at -> at + PIECE)
        .map(
            at ->
                new Piece(
                    "%s/%s/%s".formatted(round, rank, at),
                    memory.asSlice(at, Math.min(PIECE, bytes - at))));
  }
}
