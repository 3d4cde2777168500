package dev.symplan.planner.pass.analysis;

/** Evaluates one row of a tensor: its elements along the last dimension. */
interface RowFunction {
  void row(long row, double[] into);
}
