package dev.symplan.codegen.cuda;

/** The functions of kernels that compute softmax while they read scores. */
final class SoftmaxText {
  private SoftmaxText() {}

  /** {@code $INFINITY} is to be replaced. */
  static final String FUNCTIONS =
      """

      /** 2 to the power; 0 where that is less than any normal number. */
      __device__ __forceinline__ float power_of_two(float exponent) {
        float power;
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(exponent));
        return power;
      }

      /** exp(value - base) */
      __device__ __forceinline__ float weight_of(float value, float base) {
        return power_of_two((value - base) * 1.44269504f);
      }

      /** What is subtracted from scores of which this is the largest. */
      __device__ __forceinline__ float base_of(float most) {
        return most == -$INFINITY ? 0 : most;
      }
      """;
}
