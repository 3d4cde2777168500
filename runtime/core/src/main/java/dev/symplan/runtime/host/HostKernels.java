package dev.symplan.runtime.host;

import com.google.common.base.Suppliers;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSortedSet;
import dev.symplan.codegen.composite.ByParts;
import dev.symplan.codegen.composite.Composites;
import dev.symplan.ir.op.OpName;
import dev.symplan.ir.op.OpRegistry.Registration;
import java.util.Comparator;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** The host implementations of all ops. Thread-safe. */
public final class HostKernels {
  /** One table for each family, made when an op is first looked for there. */
  private static final ImmutableList<Supplier<ImmutableMap<String, HostKernel>>> FAMILIES =
      Stream.<Supplier<ImmutableMap<String, HostKernel>>>of(
              CopyKernels::table,
              MatrixKernels::table,
              ExpressionKernels::table,
              CreationKernels::table,
              ArrangementKernels::table,
              IndexKernels::table,
              ScatterKernels::table,
              MaskKernels::table,
              CompositeKernels::table,
              AttentionKernels::table,
              ConvolutionKernels::table,
              PoolKernels::table,
              ResampleKernels::table,
              ScanKernels::table,
              OrderKernels::table,
              RandomKernels::table,
              ForeachKernels::table,
              InPlaceKernels::table,
              GuardKernels::table)
          .<Supplier<ImmutableMap<String, HostKernel>>>map(family -> Suppliers.memoize(family::get))
          .collect(ImmutableList.toImmutableList());

  private static final ConcurrentMap<OpName, HostKernel> REGISTERED = new ConcurrentHashMap<>();

  private HostKernels() {}

  private static @Nullable HostKernel builtin(OpName name) {
    var text = name.toString();
    for (var family : FAMILIES) {
      @Nullable HostKernel kernel = family.get().get(text);
      if (kernel != null) {
        return Composites.complexNames().contains(text)
            ? new ComplexKernel(kernel)
            : ByParts.names().contains(text) ? new PartsKernel(kernel) : kernel;
      }
    }
    return null;
  }

  /** {@return the names of the ops that need no registration} */
  public static ImmutableSortedSet<String> names() {
    return FAMILIES.stream()
        .flatMap(family -> family.get().keySet().stream())
        .collect(ImmutableSortedSet.toImmutableSortedSet(Comparator.naturalOrder()));
  }

  /** {@return the implementation of an op, if there is one} */
  public static Optional<HostKernel> find(OpName name) {
    @Nullable HostKernel registered = REGISTERED.get(name);
    return Optional.ofNullable(registered != null ? registered : builtin(name));
  }

  /**
   * Adds the implementation of an op of one's own.
   *
   * @param op as {@code my_lib::exchange}
   * @throws IllegalArgumentException when the op has one
   */
  public static Registration register(String op, HostKernel kernel) {
    var name = OpName.parse(op);
    if (builtin(name) != null || REGISTERED.putIfAbsent(name, kernel) != null) {
      throw new IllegalArgumentException(name + " has a host implementation already");
    }
    return () -> REGISTERED.remove(name, kernel);
  }
}
