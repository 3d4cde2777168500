package dev.symplan.ir.hlo;

/** How an importer reads fusions, and everything that has no meaning outside XLA. */
public enum Reading {
  /** The ops inside of fusions: everything has a meaning, and runs. */
  OPENED,

  /** One op for each step of XLA, which can be planned only. */
  STEPS
}
