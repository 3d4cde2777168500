package dev.symplan.planner.io;

import com.google.common.base.Stopwatch;
import com.google.common.math.LongMath;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.text.SourceReader;
import dev.symplan.planner.file.AtomicFile;
import dev.symplan.planner.pack.PackOptions;
import dev.symplan.planner.pack.Packer;
import dev.symplan.planner.pack.Packing;
import dev.symplan.planner.pack.PackingCsv;
import dev.symplan.planner.pack.PackingProblem;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.BooleanSupplier;

/** The buffers of one of minimalloc's CSV files, packed: {@code docs/packing.md} has the format. */
public final class PackedFile {
  private final PackingCsv csv;
  private final Packing packing;
  private final Duration time;

  private PackedFile(PackingCsv csv, Packing packing, Duration time) {
    this.csv = csv;
    this.packing = packing;
    this.time = time;
  }

  /**
   * Reads a file and packs its buffers.
   *
   * @param capacity bytes that there are: searched for as long as minutes, and no lower packing is
   *     looked for. Where absent, the lowest packing that is found in about a second
   * @param limit how long is searched instead
   * @throws CompileException where the file cannot be read, or is not such a file
   */
  public static PackedFile pack(Path file, OptionalLong capacity, Optional<Duration> limit) {
    var csv = PackingCsv.read(SourceReader.read(file));
    var options =
        capacity.isPresent()
            ? PackOptions.THOROUGH.withCapacity(capacity.getAsLong())
            : PackOptions.DEFAULT;
    var watch = Stopwatch.createStarted();
    var packing =
        limit.isPresent()
            ? search(csv.problem(), options, () -> watch.elapsed().compareTo(limit.get()) >= 0)
            : Packer.pack(csv.problem(), options);
    return new PackedFile(csv, packing, watch.elapsed());
  }

  /** Searches again and again, each time for longer: what a short search finds costs little. */
  private static Packing search(PackingProblem problem, PackOptions options, BooleanSupplier stop) {
    var best = Packer.pack(problem, options.withStop(stop));
    long enough = options.capacity().orElse(0);
    for (long steps = 4 * options.searchSteps();
        best.height() > Math.max(best.lowerBound(), enough)
            && best.lowerBound() <= options.capacity().orElse(Long.MAX_VALUE)
            && !stop.getAsBoolean();
        steps = LongMath.saturatedMultiply(steps, 4)) {
      best = best.orLower(Packer.pack(problem, options.withStop(stop).withSearchSteps(steps)));
    }
    return best;
  }

  /**
   * Writes the buffers with their offsets.
   *
   * @throws CompileException when the file cannot be written
   */
  public void write(Path file) {
    AtomicFile.write(file, csv.write(packing), "the packing");
  }

  /** {@return the number of buffers} */
  public int count() {
    return packing.count();
  }

  /** {@return the bytes that the buffers need where they were put} */
  public long height() {
    return packing.height();
  }

  /** {@return bytes that no packing can go below} */
  public long lowerBound() {
    return packing.lowerBound();
  }

  /** {@return how long packing took, without reading the file} */
  public Duration time() {
    return time;
  }
}
