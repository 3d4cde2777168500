package dev.symplan.runtime;

/** How a backend picks the algorithm of each matrix product if a library has several. */
public enum ProductAlgorithms {
  /** The fastest, measured when a session opens, unless it was measured before. */
  TIMED,
  /** The one that the library takes for the fastest. */
  HEURISTIC
}
