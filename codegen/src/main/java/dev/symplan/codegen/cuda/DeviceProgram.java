package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.planner.machine.Workspace;

/**
 * What one rank's GPU does in a run.
 *
 * @param events the number of events
 * @param pads the number of signal pads of the whole executable
 */
public record DeviceProgram(int rank, ImmutableList<DeviceStep> steps, int events, int pads) {

  /** Blocks of a kernel that meets its peers: each block has its own flags. */
  public static final int MAX_BLOCKS = 128;

  /** Counts, 4 bytes each, of one signal pad: of meetings by block, and one of pushes. */
  public static final int COUNTS = MAX_BLOCKS + 16;

  /** What every byte of the symmetric arena is before the first run: workspaces are empty. */
  public static final byte EMPTY = Workspace.EMPTY;

  /** Ranks of a group whose memory generated kernels touch. */
  public static final int MAX_RANKS = 16;

  /** Flags, 4 bytes each, of one signal pad; the last one says that a rank gave up. */
  public static final int FLAGS = MAX_BLOCKS * MAX_RANKS + 16;

  /** A kernel that gives up says this in its failure word, and the position of who did not come. */
  public static final int FIRST_PEER = 2;
}
