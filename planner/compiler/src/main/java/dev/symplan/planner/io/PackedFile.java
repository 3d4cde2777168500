package dev.symplan.planner.io;

import com.google.common.base.Stopwatch;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.text.SourceReader;
import dev.symplan.planner.file.AtomicFile;
import dev.symplan.planner.pack.PackOptions;
import dev.symplan.planner.pack.Packer;
import dev.symplan.planner.pack.Packing;
import dev.symplan.planner.pack.PackingCsv;
import java.nio.file.Path;
import java.time.Duration;
import java.util.OptionalLong;

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
   * @throws CompileException where the file cannot be read, or is not such a file
   */
  public static PackedFile pack(Path file, OptionalLong capacity) {
    var csv = PackingCsv.read(SourceReader.read(file));
    var options =
        capacity.isPresent()
            ? PackOptions.THOROUGH.withCapacity(capacity.getAsLong())
            : PackOptions.DEFAULT;
    var watch = Stopwatch.createStarted();
    var packing = Packer.pack(csv.problem(), options);
    return new PackedFile(csv, packing, watch.elapsed());
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
