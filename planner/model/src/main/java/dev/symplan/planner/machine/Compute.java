package dev.symplan.planner.machine;

/**
 * The compute rates of one GPU.
 *
 * @param matrixRate TFLOP/s of a large 16-bit matrix product, a multiply-add being two
 * @param matrixF32Rate the same of f32 and f64
 * @param multiprocessors among which a product's tiles are divided
 * @param kernelMicros the cost of a kernel besides its arithmetic and its memory traffic: its
 *     launch, and the time in which the GPU is not full yet or no longer
 */
public record Compute(
    double matrixRate, double matrixF32Rate, int multiprocessors, double kernelMicros) {
  public Compute {
    if (!(matrixRate > 0 && matrixF32Rate > 0 && multiprocessors > 0 && kernelMicros >= 0)
        || Double.isInfinite(matrixRate + matrixF32Rate + kernelMicros)) {
      throw new IllegalArgumentException(
          "rates and multiprocessors must be above 0, and times not below, but are %s, %s, %s, %s"
              .formatted(matrixRate, matrixF32Rate, multiprocessors, kernelMicros));
    }
  }
}
