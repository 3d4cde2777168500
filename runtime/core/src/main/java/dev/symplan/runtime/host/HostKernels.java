package dev.symplan.runtime.host;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.op.OpName;
import dev.symplan.ir.op.OpRegistry.Registration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import org.jspecify.annotations.Nullable;

/** The host implementations of all ops. Thread-safe. */
public final class HostKernels {
  private static final ImmutableMap<OpName, HostKernel> BUILTIN = builtin();
  private static final ConcurrentMap<OpName, HostKernel> REGISTERED = new ConcurrentHashMap<>();

  private HostKernels() {}

  private static ImmutableMap<OpName, HostKernel> builtin() {
    var all = ImmutableMap.<OpName, HostKernel>builder();
    for (var table :
        List.of(
            ElementwiseKernels.table(),
            ReductionKernels.table(),
            MatrixKernels.table(),
            CopyKernels.table())) {
      table.forEach((name, kernel) -> all.put(OpName.parse(name), kernel));
    }
    return all.buildOrThrow();
  }

  /** {@return the implementation of an op, if there is one} */
  public static Optional<HostKernel> find(OpName name) {
    @Nullable HostKernel registered = REGISTERED.get(name);
    return Optional.ofNullable(registered != null ? registered : BUILTIN.get(name));
  }

  /**
   * Adds the implementation of an op of one's own.
   *
   * @param op as {@code my_lib::exchange}
   * @throws IllegalArgumentException when the op has one
   */
  public static Registration register(String op, HostKernel kernel) {
    var name = OpName.parse(op);
    if (BUILTIN.containsKey(name) || REGISTERED.putIfAbsent(name, kernel) != null) {
      throw new IllegalArgumentException(name + " has a host implementation already");
    }
    return () -> REGISTERED.remove(name, kernel);
  }
}
