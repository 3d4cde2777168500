package dev.symplan.planner.report.pass;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.planner.file.AtomicFile;
import dev.symplan.planner.pass.Pass;
import dev.symplan.planner.pass.PassContext;
import dev.symplan.planner.pass.PassObserver;
import dev.symplan.planner.pass.PlanState;
import dev.symplan.planner.report.Table;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.function.Supplier;

/**
 * Writes what each pass gave into a folder ({@link PassText}): {@code 02-normalize.graph} and so
 * on, numbered in the order of the passes. Graphs can be compiled, and the plan run, again. How
 * long the passes took is in a file of its own, so that all others are the same every time.
 */
public final class PassFolder implements PassObserver {
  private final Path folder;
  private final Map<String, Long> nanos = new LinkedHashMap<>();
  private final Map<String, Integer> calls = new LinkedHashMap<>();
  private int number;

  private PassFolder(Path folder) {
    this.folder = folder;
  }

  /**
   * {@return the folder, made if it is not there}
   *
   * @throws CompileException when it cannot be made
   */
  public static PassFolder at(Path folder) {
    AtomicFile.folder(folder);
    return new PassFolder(folder);
  }

  @Override
  public <T> T time(Pass pass, Supplier<T> work) {
    long begin = System.nanoTime();
    try {
      return work.get();
    } finally {
      nanos.merge(pass.name(), System.nanoTime() - begin, Long::sum);
      calls.merge(pass.name(), 1, Integer::sum);
    }
  }

  @Override
  public void after(Pass pass, PlanState state, PassContext context) {
    number++;
    PassText.of(pass, state, context)
        .forEach(
            (extension, text) -> {
              var name = String.format(Locale.ROOT, "%02d-%s.%s", number, pass.name(), extension);
              AtomicFile.write(folder.resolve(name), text, "the text of " + pass.name());
            });
  }

  /** Writes how long the passes took: {@code timings.txt}. A search includes what it runs. */
  public void finish() {
    var table = new Table("pass", "ms", "times");
    nanos.forEach(
        (pass, time) ->
            table.row(
                pass,
                String.format(Locale.ROOT, "%.2f", time / 1e6),
                Integer.toString(calls.getOrDefault(pass, 0))));
    AtomicFile.write(folder.resolve("timings.txt"), table.render(), "the timings");
  }
}
