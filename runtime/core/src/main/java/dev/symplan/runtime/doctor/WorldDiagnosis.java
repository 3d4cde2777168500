package dev.symplan.runtime.doctor;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.Host;
import dev.symplan.runtime.launch.World;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * The facts that the processes of a run find on their hosts, for a comparison.
 *
 * @param hosts of the ranks
 * @param facts the facts of each rank, by their subject; all have the same keys or fewer
 * @param clocks how far the clock of each rank is ahead of that of rank 0, in milliseconds
 * @param clockError how wrong these may be, in milliseconds
 * @param meeting how long it takes all ranks to meet in the store, in milliseconds
 */
public record WorldDiagnosis(
    ImmutableList<Host> hosts,
    ImmutableList<ImmutableMap<String, String>> facts,
    ImmutableList<Double> clocks,
    double clockError,
    double meeting) {

  /** The ends of the names of settings that each process has for itself. */
  private static final ImmutableList<String> OWN =
      ImmutableList.of("RANK", "PROCID", "LOCALID", "_HOSTID", "_VISIBLE_DEVICES");

  private static final int ROUNDS = 9;
  private static final double MILLIS = 1e6;

  public WorldDiagnosis {
    if (facts.size() != hosts.size() || clocks.size() != hosts.size()) {
      throw new IllegalArgumentException(
          "%s hosts, %s facts, %s clocks".formatted(hosts.size(), facts.size(), clocks.size()));
    }
  }

  /** One look at a clock. */
  private record Look(double clock, double meeting) {}

  /**
   * Compares what this process found with what the others did; all call this at once.
   *
   * @param version of Symplan
   * @throws RunException when a process fails
   */
  public static WorldDiagnosis of(World world, Machine machine, String version) {
    var facts =
        world.gather("what processes find", toBytes(facts(machine, version))).stream()
            .map(WorldDiagnosis::ofBytes)
            .collect(ImmutableList.toImmutableList());
    // The first one has costs of its own.
    var rounds = IntStream.rangeClosed(0, ROUNDS).mapToObj(_ -> look(world)).skip(1).toList();
    var clocks =
        IntStream.range(0, world.size())
            .mapToObj(
                rank ->
                    median(
                        rounds.stream()
                            .mapToDouble(
                                looks -> looks.get(rank).clock() - looks.getFirst().clock())
                            .toArray()))
            .collect(ImmutableList.toImmutableList());
    var meetings =
        rounds.stream()
            .mapToDouble(looks -> looks.stream().mapToDouble(Look::meeting).max().orElseThrow())
            .toArray();
    // Each looked when it heard that all had come: some hear of it later than others.
    return new WorldDiagnosis(
        world.hosts(),
        facts,
        clocks,
        Arrays.stream(meetings).max().orElseThrow(),
        median(meetings));
  }

  private static ImmutableList<Look> look(World world) {
    world.barrier("clocks");
    long begin = System.nanoTime();
    world.barrier("clocks, next");
    long end = System.nanoTime();
    double clock = System.currentTimeMillis();
    var own = ByteBuffer.allocate(2 * Double.BYTES).putDouble(clock);
    return world.gather("clock", own.putDouble((end - begin) / MILLIS).array()).stream()
        .map(ByteBuffer::wrap)
        .map(bytes -> new Look(bytes.getDouble(), bytes.getDouble()))
        .collect(ImmutableList.toImmutableList());
  }

  private static double median(double[] values) {
    var sorted = values.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length / 2];
  }

  private static ImmutableMap<String, String> facts(Machine machine, String version) {
    var facts = new LinkedHashMap<String, String>();
    facts.put("system", machine.system());
    facts.put("Java", Runtime.version().toString());
    facts.put("Symplan", version);
    facts.put("driver", machine.driver().flatMap(Machine.Driver::version).orElse("none"));
    facts.put(
        "CUDA of the driver", machine.driver().map(Machine.Driver::cudaVersion).orElse("none"));
    facts.put(
        "GPUs",
        machine.gpus().isEmpty()
            ? "none"
            : machine.gpus().stream()
                .collect(
                    Collectors.groupingBy(
                        Machine.Gpu::name, LinkedHashMap::new, Collectors.counting()))
                .entrySet()
                .stream()
                .map(kind -> "%s x %s".formatted(kind.getValue(), kind.getKey()))
                .collect(Collectors.joining(", ")));
    for (var library : machine.libraries()) {
      facts.put(
          library.name(),
          library.version().orElse(library.file().isEmpty() ? "none" : "of unknown version"));
    }
    for (var setting : machine.settings()) {
      if (OWN.stream().noneMatch(setting.name()::endsWith)) {
        facts.put(setting.name(), setting.value().isEmpty() ? "empty" : setting.value());
      }
    }
    return ImmutableMap.copyOf(facts);
  }

  private static byte[] toBytes(Map<String, String> facts) {
    var bytes = new ByteArrayOutputStream();
    try (var out = new DataOutputStream(bytes)) {
      for (var fact : facts.entrySet()) {
        out.writeUTF(fact.getKey());
        out.writeUTF(fact.getValue());
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return bytes.toByteArray();
  }

  private static ImmutableMap<String, String> ofBytes(byte[] bytes) {
    var facts = new LinkedHashMap<String, String>();
    try (var in = new DataInputStream(new ByteArrayInputStream(bytes))) {
      while (in.available() > 0) {
        facts.put(in.readUTF(), in.readUTF());
      }
    } catch (IOException e) {
      throw new RunException("what a rank found cannot be read: " + e.getMessage(), e);
    }
    return ImmutableMap.copyOf(facts);
  }
}
