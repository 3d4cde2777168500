package dev.symplan.planner.simulate;

import com.google.common.collect.ImmutableMap;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * A plan on hosts, and what of them is slower than the target says.
 *
 * @param rails by rank, the share of its rate that the rail of its GPU has; all others have 1
 * @param gpus by rank, the share of its rate that its GPU has
 */
public record Scenario(
    Job job, ImmutableMap<Integer, Double> rails, ImmutableMap<Integer, Double> gpus) {
  private static final Pattern SLOW =
      Pattern.compile("([0-9]{1,5}):([0-9]{1,5})\\*([0-9]{0,6}\\.?[0-9]{1,6})");

  /** A GPU of a host, and the share of its rate that it, or its rail, has. */
  public record Slow(int host, int gpu, double factor) {
    /**
     * {@return the GPU and share that a text such as {@code 3:1*0.5} means; empty if it means none}
     */
    public static Optional<Slow> parse(String text) {
      var match = SLOW.matcher(text);
      if (!match.matches() || !(Double.parseDouble(match.group(3)) > 0)) {
        return Optional.empty();
      }
      return Optional.of(
          new Slow(
              Integer.parseInt(match.group(1)),
              Integer.parseInt(match.group(2)),
              Double.parseDouble(match.group(3))));
    }
  }

  public Scenario {
    rails.values().forEach(Scenario::positive);
    gpus.values().forEach(Scenario::positive);
  }

  private static void positive(double factor) {
    if (!(factor > 0)) {
      throw new IllegalArgumentException("a rate is a positive share, not " + factor);
    }
  }

  /** {@return hosts as the target describes them} */
  public static Scenario of(Job job) {
    return new Scenario(job, ImmutableMap.of(), ImmutableMap.of());
  }

  /** {@return the same, with another rate of the rail of a rank's GPU} */
  public Scenario withRail(int rank, double factor) {
    return new Scenario(job, with(rails, rank, factor), gpus);
  }

  /** {@return the same, with another rate of a rank's GPU} */
  public Scenario withGpu(int rank, double factor) {
    return new Scenario(job, rails, with(gpus, rank, factor));
  }

  private static ImmutableMap<Integer, Double> with(
      Map<Integer, Double> map, int rank, double factor) {
    var changed = new HashMap<>(map);
    changed.merge(rank, factor, (a, b) -> a * b);
    return ImmutableMap.copyOf(changed);
  }

  /** {@return the rank on a GPU of a host; empty if the host or the GPU has none} */
  public Optional<Integer> rank(Slow slow) {
    var hosts = job.topology().hosts();
    if (slow.host() >= hosts.length() || slow.gpu() >= hosts.get(slow.host())) {
      return Optional.empty();
    }
    return Optional.of(job.topology().placement().ranksOf(slow.host()).get(slow.gpu()));
  }

  /** {@return the GPU of a rank, as {@code HOST:GPU}} */
  public String gpu(int rank) {
    int host = job.topology().host(rank);
    return host + ":" + job.topology().placement().ranksOf(host).indexOf(rank);
  }

  double rail(int rank) {
    return rails.getOrDefault(rank, 1.0);
  }

  double compute(int rank) {
    return gpus.getOrDefault(rank, 1.0);
  }
}
