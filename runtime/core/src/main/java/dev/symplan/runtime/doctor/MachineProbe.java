package dev.symplan.runtime.doctor;

import java.util.ServiceLoader;

/** Asks a machine what it has; a backend's module provides one, found by {@link ServiceLoader}. */
public interface MachineProbe {

  /** {@return what there is; what cannot be asked is told in it, never thrown} */
  Machine probe();

  /** {@return what the installed backend finds, or nothing where no backend knows of GPUs} */
  static Machine ofThisMachine() {
    return ServiceLoader.load(MachineProbe.class)
        .findFirst()
        .map(MachineProbe::probe)
        .orElseGet(() -> Machine.without("this installation has no CUDA backend"));
  }
}
