package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.codegen.cuda.DeviceStep;
import dev.symplan.codegen.cuda.DeviceStep.Attention;
import dev.symplan.codegen.cuda.DeviceStep.AttentionBackward;
import dev.symplan.codegen.cuda.DeviceStep.Await;
import dev.symplan.codegen.cuda.DeviceStep.Convolution;
import dev.symplan.codegen.cuda.DeviceStep.Copy;
import dev.symplan.codegen.cuda.DeviceStep.CopyRows;
import dev.symplan.codegen.cuda.DeviceStep.HopperLaunch;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.DeviceStep.Mark;
import dev.symplan.codegen.cuda.DeviceStep.Nccl;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.codegen.cuda.Kernel;
import java.util.stream.Stream;
import org.bytedeco.cuda.global.cudart;

/**
 * A generation of GPUs, which decides how kernels are compiled and launched.
 *
 * @param number the compute capability: ten times the major version, and the minor one
 */
record Architecture(int number) {

  /** The first one whose kernels wait for the launches before them. */
  private static final int DEPENDENT_LAUNCHES = 90;

  private static final int HOPPER = 90;

  /**
   * A kernel for one architecture.
   *
   * @param architecture as "sm_90"; "sm_90a" has the instructions of Hopper GPUs alone
   */
  record Target(Kernel kernel, String architecture) {}

  /** {@return that of one of the GPUs that this process sees, which needs no context} */
  static Architecture of(int device, Check check) {
    return new Architecture(
        10 * attribute(cudart.cudaDevAttrComputeCapabilityMajor, device, check)
            + attribute(cudart.cudaDevAttrComputeCapabilityMinor, device, check));
  }

  private static int attribute(int which, int device, Check check) {
    var value = new int[1];
    check.runtime(cudart.cudaDeviceGetAttribute(value, which, device), "cudaDeviceGetAttribute");
    return value[0];
  }

  boolean hasDependentLaunches() {
    return number >= DEPENDENT_LAUNCHES;
  }

  /** {@return whether it has what {@link HopperLaunch} needs} */
  boolean isHopper() {
    return number == HOPPER;
  }

  Target target(Launch launch) {
    return new Target(launch.kernel(), "sm_" + number);
  }

  /** {@return the kernel of a launch on a {@linkplain #isHopper Hopper GPU}} */
  Target target(HopperLaunch both) {
    return new Target(both.launch().kernel(), "sm_%sa".formatted(HOPPER));
  }

  /** {@return the kernels of a program, but for those that only replace what a library refuses} */
  ImmutableSet<Target> targets(DeviceProgram program) {
    return targets(program.steps()).collect(ImmutableSet.toImmutableSet());
  }

  private Stream<Target> targets(ImmutableList<DeviceStep> steps) {
    return steps.stream()
        .flatMap(
            step ->
                switch (step) {
                  case Launch launch -> Stream.of(target(launch));
                  case HopperLaunch both ->
                      isHopper() ? Stream.of(target(both)) : targets(both.otherwise());
                  case Product _,
                      Attention _,
                      AttentionBackward _,
                      Convolution _,
                      Copy _,
                      CopyRows _,
                      Nccl _,
                      Mark _,
                      Await _ ->
                      Stream.<Target>empty();
                });
  }
}
