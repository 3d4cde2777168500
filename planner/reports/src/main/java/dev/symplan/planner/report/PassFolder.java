package dev.symplan.planner.report;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.text.GraphPrinter;
import dev.symplan.planner.file.AtomicFile;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.pass.PassObserver;
import dev.symplan.planner.plan.Plan;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.Locale;
import java.util.function.Supplier;

/**
 * Writes the text after every pass into a folder: {@code 02-normalize.graph} and so on, numbered in
 * the order of the passes. Graphs and the plan can be compiled, or run, again; how long the passes
 * took is in a file of its own, so that all others are the same every time.
 */
public final class PassFolder implements PassObserver {
  private final Path folder;
  private final EnumMap<Pass, Long> nanos = new EnumMap<>(Pass.class);
  private final EnumMap<Pass, Integer> calls = new EnumMap<>(Pass.class);

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
      nanos.merge(pass, System.nanoTime() - begin, Long::sum);
      calls.merge(pass, 1, Integer::sum);
    }
  }

  @Override
  public void graphs(Pass pass, Program program) {
    write(pass, "graph", GraphPrinter.print(program));
  }

  @Override
  public void plan(Pass pass, Plan plan) {
    switch (pass) {
      case SELECT -> views(pass, plan, View.COLLECTIVES);
      case SCHEDULE, ELIDE_BARRIERS -> views(pass, plan, View.SCHEDULE);
      case ALLOCATE -> views(pass, plan, View.VALUES, View.MEMORY);
      case VERIFY -> write(pass, "json", PlanFile.toJson(plan));
      case SOURCE, NORMALIZE, BUCKET, CHUNK, REORDER, REALIZE ->
          throw new IllegalArgumentException(pass + " gives graphs");
    }
  }

  private void views(Pass pass, Plan plan, View... views) {
    write(pass, "txt", TextRenderer.render(PlanReport.of(plan, ImmutableList.copyOf(views))));
  }

  private void write(Pass pass, String extension, String text) {
    var name = String.format(Locale.ROOT, "%02d-%s.%s", pass.ordinal() + 1, pass.text(), extension);
    AtomicFile.write(folder.resolve(name), text, "the text of " + pass.text());
  }

  /** Writes how long the passes took: {@code timings.txt}. */
  public void finish() {
    var table = new Table("pass", "ms", "times");
    nanos.forEach(
        (pass, time) ->
            table.row(
                pass.text(),
                String.format(Locale.ROOT, "%.2f", time / 1e6),
                Integer.toString(calls.getOrDefault(pass, 0))));
    AtomicFile.write(folder.resolve("timings.txt"), table.render(), "the timings");
  }
}
