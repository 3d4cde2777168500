package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.OpName;
import dev.symplan.ir.op.OpRegistry.Registration;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Function;

/**
 * The CUDA implementations of ops of one's own. Thread-safe.
 *
 * <p>The source is CUDA C++ that defines {@code __device__ void run(const Op& op)}; of an op that
 * communicates, {@code __device__ void run(const Op& op, Group& group)}. {@code docs/custom-ops.md}
 * says what {@code Op} and {@code Group} have.
 */
public final class CudaKernels {

  /**
   * The number of threads that run a kernel.
   *
   * @param blocks at least 1
   * @param threads of a block: a multiple of 32, at most 1,024
   */
  public record LaunchShape(int blocks, int threads) {
    private static final int WARP = 32;
    private static final int MAX_THREADS = 1024;
    private static final int USUAL_THREADS = 256;

    public LaunchShape {
      if (blocks < 1 || threads < WARP || threads > MAX_THREADS || threads % WARP != 0) {
        throw new IllegalArgumentException(
            "a kernel of %s blocks of %s threads".formatted(blocks, threads));
      }
    }

    /** {@return one thread for each element, but no more blocks than an op may have that meets} */
    public static LaunchShape covering(long elements) {
      long blocks = Math.ceilDiv(Math.max(1, elements), (long) USUAL_THREADS);
      return new LaunchShape((int) Math.min(blocks, DeviceProgram.MAX_BLOCKS), USUAL_THREADS);
    }
  }

  /**
   * The tensors of a call, without those in lists.
   *
   * @param types by the names that the tensors have in {@code Op}
   */
  public record Tensors(ImmutableMap<String, TensorType> types) {
    /**
     * {@return the type of one}
     *
     * @throws IllegalArgumentException when the call has no such tensor
     */
    public TensorType get(String name) {
      return Optional.ofNullable(types.get(name))
          .orElseThrow(
              () ->
                  new IllegalArgumentException(
                      "no tensor '%s'; there are %s".formatted(name, types.keySet())));
    }
  }

  /**
   * An implementation.
   *
   * @param source defines {@code run}
   * @param shape the same on all ranks of a group, of at most {@link DeviceProgram#MAX_BLOCKS}
   *     blocks there
   */
  record Implementation(String source, Function<Tensors, LaunchShape> shape) {}

  private static final ConcurrentMap<OpName, Implementation> REGISTERED = new ConcurrentHashMap<>();

  private CudaKernels() {}

  /**
   * Adds the implementation of an op. Sessions that are opened afterwards have it.
   *
   * @param op as {@code my_lib::exchange}
   * @param source compiled when a session opens; errors of the compiler are in its message
   * @param shape how many threads run it, by the types of the op's tensors: each has the name of
   *     its parameter or result; the only result without a name is {@code result}, others are
   *     {@code result0}, {@code result1} and so on
   * @throws IllegalArgumentException when the op has an implementation
   */
  public static Registration register(
      String op, String source, Function<Tensors, LaunchShape> shape) {
    var name = OpName.parse(op);
    var implementation = new Implementation(source, shape);
    if (REGISTERED.putIfAbsent(name, implementation) != null) {
      throw new IllegalArgumentException(name + " has a CUDA implementation already");
    }
    return () -> REGISTERED.remove(name, implementation);
  }

  static Optional<Implementation> find(OpName name) {
    return Optional.ofNullable(REGISTERED.get(name));
  }
}
