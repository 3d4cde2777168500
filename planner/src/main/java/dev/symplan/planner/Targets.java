package dev.symplan.planner;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.Target.Curve;
import java.util.stream.Stream;

/**
 * The built-in targets.
 *
 * <p>The Hopper curves of all_reduce, all_gather and reduce_scatter are fitted by hand to graph
 * replays of 64 KiB to 64 MiB on 4 × H200 (PyTorch 2.11's symmetric kernels, NCCL 2.28.9); the
 * others are carried over from the transfer that moves the same bytes the same way, and say so.
 */
final class Targets {
  private Targets() {}

  static Stream<Target> all() {
    return Stream.of(Target.H200_X4, Target.H200_X8, Target.H100_X8, Target.B200_X8, Target.HOST);
  }

  static Target hopper(String name, int gpus, double memoryRate, boolean multicast) {
    return new Target(name, gpus, 790e6 / 2, memoryRate, 2.0, multicast, true, 22809, nvlink(1.0));
  }

  static Target blackwell(String name, int gpus) {
    return new Target(name, gpus, 1_800e6 / 2, 7_500_000, 2.0, true, true, 22809, nvlink(2.0));
  }

  /** Threads that share one memory: a copy costs the same wherever it goes. */
  static Target host(String name) {
    var curves = ImmutableMap.<Kind, ImmutableMap<Variant, Curve>>builder();
    for (var kind : Kind.values()) {
      var variants = ImmutableMap.<Variant, Curve>builder();
      for (var variant : Variant.values()) {
        if (variant.implementsKind(kind)) {
          // Plain variants bounce through a buffer of the runtime's: one more copy.
          double rate = variant == Variant.NCCL ? 2_000 : 4_000;
          variants.put(variant, Curve.of(20, 5, rate, false));
        }
      }
      curves.put(kind, variants.buildOrThrow());
    }
    return new Target(name, 64, 20_000, 8_000, 1.0, true, true, 22809, curves.buildOrThrow());
  }

  private static ImmutableMap<Kind, ImmutableMap<Variant, Curve>> nvlink(double speed) {
    double s = speed;
    var one = Curve.of(8.0, 0.4, 310e3 * s, s == 1.0);
    var ncclAllReduce = new Curve(10.2, 0.9, 204e3 * s, 22, 333e3 * s, s == 1.0);
    var ncclGather = new Curve(7.2, 0.7, 138e3 * s, 28, 321e3 * s, s == 1.0);
    var ncclScatter = new Curve(8.2, 0.7, 127e3 * s, 19, 300e3 * s, s == 1.0);
    var symmGather = Curve.of(7.2, 0.5, 341e3 * s, s == 1.0);
    var copyEngine = Curve.of(42, 1.5, 360e3 * s, s == 1.0);
    return ImmutableMap.of(
        Kind.ALL_REDUCE,
        ImmutableMap.of(
            Variant.LOCAL, local(),
            Variant.ONE_SHOT, one,
            Variant.TWO_SHOT, Curve.of(8.5, 0.4, 310e3 * s, s == 1.0),
            Variant.MULTIMEM, Curve.of(9.0, 0.1, 380e3 * s, false),
            Variant.NCCL_SYMM, Curve.of(9.0, 0.6, 280e3 * s, s == 1.0),
            Variant.NCCL, ncclAllReduce),
        Kind.ALL_GATHER,
        ImmutableMap.of(
            Variant.LOCAL, local(),
            Variant.ONE_SHOT, Curve.of(8.0, 0.4, 310e3 * s, false),
            Variant.PUSH, Curve.of(7.5, 0.4, 330e3 * s, false),
            Variant.MULTIMEM, Curve.of(9.0, 0.1, 340e3 * s, false),
            Variant.COPY_ENGINE, copyEngine,
            Variant.NCCL_SYMM, symmGather,
            Variant.NCCL, ncclGather),
        Kind.REDUCE_SCATTER,
        ImmutableMap.of(
            Variant.LOCAL, local(),
            Variant.ONE_SHOT, Curve.of(8.0, 0.4, 310e3 * s, false),
            Variant.MULTIMEM, Curve.of(9.0, 0.1, 380e3 * s, false),
            Variant.NCCL_SYMM, Curve.of(11, 0.6, 197e3 * s, s == 1.0),
            Variant.NCCL, ncclScatter),
        Kind.ALL_TO_ALL,
        ImmutableMap.of(
            Variant.LOCAL, local(),
            Variant.ONE_SHOT, Curve.of(8.0, 0.4, 310e3 * s, false),
            Variant.PUSH, Curve.of(7.5, 0.4, 330e3 * s, false),
            Variant.COPY_ENGINE, Curve.of(42, 1.5, 360e3 * s, false),
            Variant.NCCL, new Curve(12, 1.0, 138e3 * s, 28, 321e3 * s, false)),
        Kind.BROADCAST,
        ImmutableMap.of(
            Variant.LOCAL, local(),
            Variant.ONE_SHOT, Curve.of(8.0, 0.4, 310e3 * s, false),
            Variant.MULTIMEM, Curve.of(9.0, 0.1, 340e3 * s, false),
            Variant.COPY_ENGINE, Curve.of(42, 1.5, 360e3 * s, false),
            Variant.NCCL, new Curve(8, 0.7, 138e3 * s, 28, 321e3 * s, false)),
        Kind.CUSTOM,
        ImmutableMap.of(Variant.CUSTOM, Curve.of(10, 0.4, 310e3 * s, false)));
  }

  /** A group of one: a copy in device memory. */
  private static Curve local() {
    return Curve.of(2, 0, 2_000e3, false);
  }
}
