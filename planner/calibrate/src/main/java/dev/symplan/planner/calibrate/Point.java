package dev.symplan.planner.calibrate;

import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.machine.Topology.Reach;
import dev.symplan.planner.machine.Variant;

/**
 * A measured time, in microseconds: the median of several measurements, or the only one.
 *
 * @param least the shortest of them; as {@code micros} where the file does not say
 * @param most the longest of them; as {@code micros} where the file does not say
 * @param dtype of the elements; empty if the file does not say
 * @param gpu the GPU that it was measured on; empty if the file does not say
 * @param date when; empty if the file does not say
 * @param file the file's name, without folders
 */
public record Point(
    Subject subject,
    double micros,
    double least,
    double most,
    String dtype,
    String gpu,
    String date,
    String file) {

  /** The subject of a measurement. */
  public sealed interface Subject {

    /** A collective by itself, from the start of its kernel to the end, launches amortised. */
    sealed interface Transfer extends Subject {
      Kind kind();

      /** {@return its name in the file: a variant, or for example {@code torch_nccl}} */
      String implementation();

      /** {@return of one rank's operands} */
      long bytes();

      int ranks();
    }

    /** One of the planner's variants. */
    record Collective(Kind kind, Variant variant, long bytes, int ranks) implements Transfer {
      @Override
      public String implementation() {
        return variant.text();
      }
    }

    /**
     * One of NCCL, between hosts.
     *
     * @param reach in NVLink domains, of which each has as many ranks
     */
    record BetweenHosts(Kind kind, long bytes, Reach reach) implements Subject {}

    /** Another library's, to compare with. */
    record Foreign(Kind kind, String implementation, long bytes, int ranks) implements Transfer {}

    /** A copy of so many bytes within one GPU's memory. */
    record Copy(long bytes) implements Subject {}

    /** A 16-bit matrix product of so many floating-point operations. */
    record Gemm(double flops) implements Subject {}

    /** One barrier of a group. */
    record Barrier(int ranks) implements Subject {}

    /** The time that one more kernel adds to a captured graph. */
    record Launch() implements Subject {}

    /** The time from the start of copies by the copy engines to their first byte. */
    record CopyEngineStart() implements Subject {}

    /**
     * Compute and a transfer side by side, with the times of each alone.
     *
     * @param name of the transfer, as the file has it
     */
    record Together(String name, double computeMicros, double transferMicros) implements Subject {
      /** {@return whether the transfer is by our use of the copy engines} */
      boolean byCopyEngines() {
        return name.equals(Variant.COPY_ENGINE.text());
      }

      /** {@return whether the transfer takes SMs; libraries may also use the copy engines} */
      boolean onSms() {
        return Variant.ofText(name).filter(Variant::usesCopyEngines).isEmpty();
      }
    }
  }
}
