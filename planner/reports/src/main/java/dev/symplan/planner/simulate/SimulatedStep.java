package dev.symplan.planner.simulate;

import com.google.common.collect.ImmutableList;

/**
 * The predicted time of one run of a plan on its hosts, all in µs.
 *
 * @param micros until the last rank has ended
 * @param lastRank that rank
 * @param computeMicros of its local work
 * @param collectives of each rank plan, those that no earlier one has, in its order
 * @param gpus one for each kind of ranks, which do everything at the same time
 */
public record SimulatedStep(
    double micros,
    int lastRank,
    double computeMicros,
    ImmutableList<Collective> collectives,
    ImmutableList<Gpu> gpus) {

  /**
   * A collective, among the ranks of whichever part takes longest.
   *
   * @param rankPlan the first one that has it
   * @param index in that plan
   * @param alone its time by itself
   * @param micros from the arrival of its last rank to its end
   * @param waited how long its first rank waits for the last one
   * @param shared for how long it shares a rail
   */
  public record Collective(
      int rankPlan, int index, double alone, double micros, double waited, double shared) {}

  /**
   * The GPU of a rank, and its rail.
   *
   * @param rank the first one of the kind
   * @param ranks how many are of the kind
   * @param compute its local work
   * @param rail how long its rail is in use
   * @param shared for how long of that by several collectives
   */
  public record Gpu(int rank, int ranks, double compute, double rail, double shared) {}

  /** {@return the time of a run} */
  public static SimulatedStep of(Scenario scenario) {
    return Simulation.run(scenario);
  }

  /** {@return the time of the last rank outside local work: exposed communication} */
  public double exposedMicros() {
    return micros - computeMicros;
  }
}
