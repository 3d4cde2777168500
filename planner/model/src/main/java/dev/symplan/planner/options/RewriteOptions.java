package dev.symplan.planner.options;

import com.google.common.base.Ascii;
import java.util.Arrays;
import java.util.Optional;

/**
 * The rewrites of collectives that the planner may make.
 *
 * @param bucket whether several collectives of one group may become one
 * @param chunk whether a product and the collective of its result may become several, so that they
 *     overlap
 * @param layouts whether a collective may move slices to where copies around it put them, and its
 *     result to where a later op joins it with others
 * @param hierarchical whether a collective between NVLink domains may become several, within
 *     domains and across them
 * @param sequenceParallel whether ops behind an all_reduce may run on a share of the rows on each
 *     rank, between a reduce_scatter and an all_gather
 */
public record RewriteOptions(
    Mode bucket, Mode chunk, Mode layouts, Mode hierarchical, Mode sequenceParallel) {

  /** When to make a rewrite. */
  public enum Mode {
    /** Never. */
    OFF,
    /** If it is predicted to be faster, and takes hardly more memory. */
    AUTO,
    /** Wherever it can be. */
    ON;

    public String text() {
      return Ascii.toLowerCase(name());
    }

    public static Optional<Mode> ofText(String text) {
      return Arrays.stream(values()).filter(mode -> mode.text().equals(text)).findFirst();
    }
  }

  public RewriteOptions withBucket(Mode mode) {
    return new RewriteOptions(mode, chunk, layouts, hierarchical, sequenceParallel);
  }

  public RewriteOptions withChunk(Mode mode) {
    return new RewriteOptions(bucket, mode, layouts, hierarchical, sequenceParallel);
  }

  public RewriteOptions withLayouts(Mode mode) {
    return new RewriteOptions(bucket, chunk, mode, hierarchical, sequenceParallel);
  }

  public RewriteOptions withHierarchical(Mode mode) {
    return new RewriteOptions(bucket, chunk, layouts, mode, sequenceParallel);
  }

  public RewriteOptions withSequenceParallel(Mode mode) {
    return new RewriteOptions(bucket, chunk, layouts, hierarchical, mode);
  }

  public static final RewriteOptions AUTO =
      new RewriteOptions(Mode.AUTO, Mode.AUTO, Mode.AUTO, Mode.AUTO, Mode.AUTO);
  public static final RewriteOptions OFF =
      new RewriteOptions(Mode.OFF, Mode.OFF, Mode.OFF, Mode.OFF, Mode.OFF);
}
