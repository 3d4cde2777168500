package dev.symplan.planner.pass.analysis;

/** Evaluates one row of a tensor: its elements along the last dimension. */
interface RowFunction {
  Runs row(long row);
}
