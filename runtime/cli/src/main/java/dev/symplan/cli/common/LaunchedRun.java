package dev.symplan.cli.common;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.failure.Failure;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.LaunchEnvironment;
import dev.symplan.runtime.launch.World;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import java.util.function.IntSupplier;
import java.util.function.ToIntBiFunction;

/**
 * A command in one of several processes: rank 0 speaks for all, all exit with the same code, and
 * where one fails, all others stop and say why.
 */
public final class LaunchedRun {
  private static final Duration TIMEOUT = Duration.ofSeconds(30);

  /** How long the news of a failure may take to come back. */
  private static final Duration NEWS = Duration.ofSeconds(2);

  private final World world;
  private final Console console;

  private LaunchedRun(World world, Console console) {
    this.world = world;
    this.console = console;
  }

  /**
   * {@return the exit code of all processes}
   *
   * @param work the work of this process, with the others and a console that is silent except on
   *     rank 0
   */
  public static int call(
      LaunchEnvironment environment,
      SessionOptions options,
      Console console,
      ToIntBiFunction<SessionOptions, Console> work) {
    var own = environment.rank() == 0 ? console : Console.silent();
    try (var world = World.join(environment, options.timeout().orElse(TIMEOUT))) {
      return new LaunchedRun(world, console)
          .call(() -> work.applyAsInt(options.withWorld(world), own));
    }
  }

  private int call(IntSupplier work) {
    try {
      return agreed(work.getAsInt());
    } catch (CompileException e) {
      var first = e.diagnostics().getFirst();
      var failure =
          failed(ExitCode.FAILED, "%s: %s".formatted(first.span().shortForm(), first.message()));
      // Where all processes have the same input, one has said what is wrong with it.
      if (failure.filter(known -> known.rank() != world.rank()).isEmpty()) {
        e.diagnostics().forEach(diagnostic -> console.progress(diagnostic.render()));
      }
      return failure.map(Failure::code).orElse(ExitCode.FAILED);
    } catch (RunException e) {
      var message = Objects.requireNonNull(e.getMessage());
      console.progress("error: " + message);
      return failed(ExitCode.RUNTIME, message).map(Failure::code).orElse(ExitCode.RUNTIME);
    }
  }

  private int agreed(int code) {
    return world
        .gather("exit codes", ByteBuffer.allocate(Integer.BYTES).putInt(code).array())
        .stream()
        .mapToInt(bytes -> ByteBuffer.wrap(bytes).getInt())
        .max()
        .orElseThrow();
  }

  /** {@return the first failure of all processes, which may be this one} */
  private Optional<Failure> failed(int code, String message) {
    var named =
        message.startsWith("rank ") ? message : "rank %s: %s".formatted(world.rank(), message);
    world.fail(code, named);
    return world.awaitFailure(NEWS);
  }
}
