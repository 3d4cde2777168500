package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.planner.machine.Workspace;

/**
 * The program of one rank's GPU.
 *
 * @param steps of the setup, which a session does once, and of a run
 * @param begins for each graph of the program, its first step; a run begins with the first of these
 * @param events the number of events
 * @param pads the number of signal pads of the whole executable
 */
public record DeviceProgram(
    int rank, ImmutableList<DeviceStep> steps, ImmutableIntArray begins, int events, int pads) {

  /** Blocks of a kernel that meets its peers: each block has its own flags. */
  public static final int MAX_BLOCKS = 128;

  /** Counts, 4 bytes each, of one signal pad: of meetings by block, and one of pushes. */
  public static final int COUNTS = MAX_BLOCKS + 16;

  /** The value of every byte of the symmetric arena before the first run: workspaces are empty. */
  public static final byte EMPTY = Workspace.EMPTY;

  /** Ranks of a group whose memory generated kernels touch. */
  public static final int MAX_RANKS = 16;

  /** Flags, 4 bytes each, of one signal pad; the last one says that a rank gave up. */
  public static final int FLAGS = MAX_BLOCKS * MAX_RANKS + 16;

  /** A kernel that gives up says this in its failure word, and the position of who did not come. */
  public static final int FIRST_PEER = 2;

  /** {@return the program with other steps, as many} */
  DeviceProgram with(ImmutableList<DeviceStep> newSteps) {
    return new DeviceProgram(rank, newSteps, begins, events, pads);
  }

  /** {@return the steps that a session does once, before the first run} */
  public ImmutableList<DeviceStep> setup() {
    return steps.subList(0, begins.get(0));
  }

  /** {@return the steps of all graphs of the program} */
  public ImmutableList<DeviceStep> run() {
    return steps.subList(begins.get(0), steps.size());
  }

  /** {@return the steps of one graph of the program} */
  public ImmutableList<DeviceStep> steps(int graph) {
    return steps.subList(begins.get(graph), end(graph));
  }

  /** {@return the step after the last one of a graph of the program} */
  public int end(int graph) {
    return graph + 1 < begins.length() ? begins.get(graph + 1) : steps.size();
  }
}
