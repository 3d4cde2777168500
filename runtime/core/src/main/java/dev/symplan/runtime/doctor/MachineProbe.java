package dev.symplan.runtime.doctor;

import java.util.ServiceLoader;

/** Asks a machine what it has; a backend's module provides one, found by {@link ServiceLoader}. */
public interface MachineProbe {

  /** {@return the machine; the reasons for missing facts are in it, never thrown} */
  Machine probe();

  /**
   * {@return the machine as the installed backend finds it; without GPUs if no backend asks for
   * them}
   */
  static Machine ofThisMachine() {
    return ServiceLoader.load(MachineProbe.class)
        .findFirst()
        .map(MachineProbe::probe)
        .orElseGet(() -> Machine.without("this installation has no CUDA backend"));
  }
}
