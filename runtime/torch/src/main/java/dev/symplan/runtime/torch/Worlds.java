package dev.symplan.runtime.torch;

import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.World;
import java.util.Optional;
import java.util.function.Function;

/**
 * The processes that run graphs of several ranks together. They meet once, for all graphs: where
 * one fails, none of these graphs can run any more.
 */
final class Worlds implements AutoCloseable {
  private Optional<World> world = Optional.empty();
  private boolean left;

  /**
   * Does something with the other processes, which do the same. One thread does so at a time.
   *
   * @throws RunException when not all come, or this process has left
   */
  synchronized <T> T with(Request.Peers peers, Function<World, T> task) {
    if (left) {
      throw new RunException("this process has left the others");
    }
    var joined = world.orElseGet(() -> World.join(peers.environment(), peers.timeout()));
    world = Optional.of(joined);
    return task.apply(joined);
  }

  /** Signs off, so that the others do not fail when this process ends. */
  @Override
  public synchronized void close() {
    left = true;
    world.ifPresent(World::close);
    world = Optional.empty();
  }
}
