package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.ImmutableSortedSet;
import com.google.common.collect.Sets;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.World;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;

/**
 * One GPU's part in NVLink multicast: each of these addresses stands for one offset in the
 * symmetric arenas of a team of ranks.
 *
 * <p>The ranks go through three steps, and wait for each other in between: the first rank of each
 * team makes its object, all GPUs are added to it, and all bind their memory and map the object.
 * The driver waits, for ever, in calls of the third for calls of the second, so that no rank begins
 * with it where another one failed before. No kernel runs before all are through.
 *
 * <p>This is written to the driver's documentation, and has not run on hardware yet.
 */
final class MulticastMember {
  private final int rank;
  private final int device;
  private final MulticastTeams teams;
  private final MappedBlock arena;
  private final MemoryDriver driver;

  /** By the number of the team. */
  private final Map<Integer, MulticastObject> objects = new TreeMap<>();

  private final Map<ImmutableSortedSet<Integer>, Mapping> mappings = new ConcurrentHashMap<>();
  private final List<Runnable> releases = new ArrayList<>();

  /**
   * @param arena of the rank, whose size is a multiple of {@link MulticastTeams#granularities}
   */
  MulticastMember(
      int rank, int device, MulticastTeams teams, MappedBlock arena, MemoryDriver driver) {
    this.rank = rank;
    this.device = device;
    this.teams = teams;
    this.arena = arena;
    this.driver = driver;
  }

  /**
   * Goes through the steps where one process has all ranks.
   *
   * @param onAll does something for all members, each in the thread of its GPU, and waits for them
   */
  static void joinWithin(Consumer<Consumer<MulticastMember>> onAll) {
    var made = new ConcurrentHashMap<Integer, MulticastObject>();
    onAll.accept(
        member -> {
          member.create();
          made.putAll(member.objects);
        });
    onAll.accept(
        member -> {
          member.others().forEach(team -> member.share(team, made));
          member.add();
        });
    onAll.accept(MulticastMember::bind);
  }

  /**
   * Goes through the steps where each rank has a process of its own.
   *
   * @param timeout how long to wait for a handle that was promised
   */
  void join(World world, Duration timeout) {
    AllOrNone.check(world, "multicast objects", this::create);
    AllOrNone.check(
        world,
        "GPUs in multicast objects",
        () -> {
          HandleExchange.exchange(
              world, "multicast handles", this::export, others().size(), this::take, timeout);
          add();
        });
    AllOrNone.check(world, "memory in multicast objects", this::bind);
  }

  private ImmutableSortedSet<Integer> team(int number) {
    return teams.all().asList().get(number);
  }

  /** {@return the numbers of its teams that others lead, or that it leads itself} */
  private ImmutableSet<Integer> numbers(boolean own) {
    var numbers = ImmutableSet.<Integer>builder();
    for (int number = 0; number < teams.all().size(); number++) {
      if (team(number).contains(rank) && (team(number).first() == rank) == own) {
        numbers.add(number);
      }
    }
    return numbers.build();
  }

  private ImmutableSet<Integer> others() {
    return numbers(false);
  }

  private void create() {
    for (int number : numbers(true)) {
      keep(number, MulticastObject.create(team(number).size(), arena.bytes(), driver));
    }
  }

  private void keep(int number, MulticastObject object) {
    objects.put(number, object);
    releases.add(() -> object.release(driver));
  }

  private void share(int number, Map<Integer, MulticastObject> made) {
    var object = Objects.requireNonNull(made.get(number));
    object.share();
    keep(number, object);
  }

  private void export(HandleExchange.Outbox outbox) {
    for (int number : numbers(true)) {
      outbox.add(
          Sets.difference(team(number), ImmutableSet.of(rank)),
          number,
          arena.bytes(),
          Objects.requireNonNull(objects.get(number)).handle(),
          driver);
    }
  }

  private void take(int from, int number, long bytes, Shareable exported) {
    if (!others().contains(number) || team(number).first() != from || bytes != arena.bytes()) {
      throw new RunException(
          "rank %s: rank %s sent a multicast object %s of %s bytes, but the arena here has %s"
              .formatted(rank, from, number, bytes, arena.bytes()));
    }
    keep(number, MulticastObject.of(exported, driver));
  }

  private void add() {
    objects.values().forEach(object -> driver.addDevice(object.handle(), device));
  }

  private void bind() {
    objects.forEach(
        (number, object) -> {
          long handle = object.handle();
          long bytes = arena.bytes();
          driver.bind(handle, arena.handle(), bytes);
          releases.add(() -> driver.unbind(handle, device, bytes));
          long alignment = driver.multicastGranularity(team(number).size(), bytes);
          var mapping = Mapping.of(handle, bytes, alignment, ImmutableList.of(device), driver);
          releases.add(() -> mapping.free(driver));
          mappings.put(team(number), mapping);
        });
  }

  /** {@return the address that stands for the beginnings of the arenas of these ranks} */
  long base(ImmutableIntArray members) {
    return Objects.requireNonNull(mappings.get(MulticastTeams.team(members))).address();
  }

  /**
   * Leaves all teams: takes away its addresses, then its memory, then lets go of the objects. No
   * kernel of any member may still use them. By the thread of the GPU, before its arena is freed.
   */
  void close() {
    var steps = ImmutableList.copyOf(releases).reverse();
    releases.clear();
    Release.all(steps);
  }
}
