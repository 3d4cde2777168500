package dev.symplan.runtime.host;

import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.GroupUse;
import dev.symplan.planner.machine.Variant;
import java.lang.foreign.MemorySegment;

/** How ranks reach each other's memory, and wait for each other. */
interface Peers {

  /**
   * {@return the memory of a rank}
   *
   * @throws IllegalStateException when this process does not reach it
   */
  HostMemory memory(int rank);

  /**
   * {@return the memory in which this process sees a rank's buffer of a {@link Variant#NCCL}
   * collective}
   *
   * @param collective as that rank has it
   */
  MemorySegment staging(int rank, Collective collective);

  /** {@return the action that waits until all ranks of a group are at this collective} */
  Runnable meeting(GroupUse group);

  /**
   * {@return the same for a tensor of a collective} Behind it, all ranks see what was staged before
   * it.
   */
  Runnable meeting(Collective collective, int tensor);
}
