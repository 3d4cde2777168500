package dev.symplan.ir.testkit;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** A process for each rank, as torchrun starts them. None outlives its test. */
public final class RankProcesses implements AfterEachCallback {
  private List<ChildProcess> ranks = List.of();
  private IntFunction<List<String>> prefix = _ -> List.of();

  /**
   * Lets ranks start otherwise.
   *
   * @param newPrefix by rank, what begins its command
   */
  public RankProcesses behind(IntFunction<List<String>> newPrefix) {
    prefix = newPrefix;
    return this;
  }

  /** {@return a process for each rank} */
  public List<ChildProcess> launch(Class<?> main, int size, String... args) {
    return launch(_ -> List.of(), main, size, args);
  }

  /**
   * The same.
   *
   * @param options of each rank's Java
   */
  public List<ChildProcess> launch(
      IntFunction<List<String>> options, Class<?> main, int size, String... args) {
    return launch(options, _ -> Map.of(), main, size, args);
  }

  /**
   * The same.
   *
   * @param options of each rank's Java
   * @param more variables of each rank's environment
   */
  public List<ChildProcess> launch(
      IntFunction<List<String>> options,
      IntFunction<Map<String, String>> more,
      Class<?> main,
      int size,
      String... args) {
    var port = Integer.toString(ChildProcess.freePort() - 1);
    var children = new ArrayList<ChildProcess>();
    for (int rank = 0; rank < size; rank++) {
      var environment =
          new HashMap<>(
              Map.of(
                  "RANK", Integer.toString(rank),
                  "LOCAL_RANK", Integer.toString(rank),
                  "WORLD_SIZE", Integer.toString(size),
                  "MASTER_ADDR", "localhost",
                  "MASTER_PORT", port));
      environment.putAll(more.apply(rank));
      children.add(
          ChildProcess.start(prefix.apply(rank), options.apply(rank), main, environment, args));
    }
    ranks = List.copyOf(children);
    return ranks;
  }

  /**
   * Kills a rank and waits for the others, which must fail.
   *
   * @return the last output of each of the others
   */
  public List<String> outputsAfterKilling(int victim) throws Exception {
    ranks.get(victim).process().destroyForcibly();
    var outputs = outputs(rank -> rank != victim);
    for (int rank = 0; rank < ranks.size(); rank++) {
      assertThat(ranks.get(rank).process().waitFor()).isEqualTo(rank == victim ? 137 : 4);
    }
    return outputs;
  }

  /** {@return the last output of each of these before it ends, which takes 30 s at most} */
  public List<String> outputs(IntPredicate which) throws Exception {
    var others =
        IntStream.range(0, ranks.size())
            .filter(which)
            .mapToObj(ranks::get)
            .map(child -> CompletableFuture.supplyAsync(child::rest))
            .toList();
    var outputs = new ArrayList<String>();
    for (var other : others) {
      outputs.add(other.get(30, TimeUnit.SECONDS));
    }
    return outputs;
  }

  @Override
  public void afterEach(ExtensionContext context) {
    ranks.forEach(child -> child.process().destroyForcibly());
  }
}
