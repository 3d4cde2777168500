package dev.symplan.planner.simulate;

import com.google.common.collect.ImmutableList;
import java.util.Comparator;
import java.util.function.IntFunction;
import java.util.function.ToDoubleFunction;

/**
 * How much longer a step takes if one rail, or one GPU, is slower. Each is simulated.
 *
 * @param rails by the rail that is slower, the worst first; none if no collective is on rails
 * @param gpus by the GPU that is slower, the worst first
 */
public record Sensitivity(ImmutableList<Loss> rails, ImmutableList<Loss> gpus) {
  /** The share of its rate that the slower rail or GPU has. */
  public static final double FACTOR = 0.5;

  /** Each takes a simulation. */
  private static final int MAX_SIMULATED = 32;

  /**
   * A rail or GPU that is slower.
   *
   * @param rank whose
   * @param ranks of how many ranks it may be, with the same effect
   * @param micros that the step takes longer
   */
  public record Loss(int rank, int ranks, double micros) {}

  /** {@return the losses, one for each kind of ranks; of many kinds, those that do most} */
  public static Sensitivity of(Scenario scenario, SimulatedStep step) {
    return new Sensitivity(
        losses(step, SimulatedStep.Gpu::rail, rank -> scenario.withRail(rank, FACTOR)),
        losses(step, SimulatedStep.Gpu::compute, rank -> scenario.withGpu(rank, FACTOR)));
  }

  private static ImmutableList<Loss> losses(
      SimulatedStep step, ToDoubleFunction<SimulatedStep.Gpu> use, IntFunction<Scenario> slower) {
    return step.gpus().stream()
        .filter(gpu -> use.applyAsDouble(gpu) > 0)
        .sorted(Comparator.comparingDouble(use).reversed())
        .limit(MAX_SIMULATED)
        .map(
            gpu ->
                new Loss(
                    gpu.rank(),
                    gpu.ranks(),
                    SimulatedStep.of(slower.apply(gpu.rank())).micros() - step.micros()))
        .sorted(Comparator.comparingDouble(Loss::micros).reversed())
        .collect(ImmutableList.toImmutableList());
  }
}
