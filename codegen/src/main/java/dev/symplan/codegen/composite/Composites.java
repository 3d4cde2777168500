package dev.symplan.codegen.composite;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.OpCall;
import dev.symplan.ir.op.OpDef;
import java.util.Optional;
import java.util.stream.Stream;

/** The ops that are made of steps: always, or for complex numbers. */
public final class Composites {
  private static final ImmutableMap<String, Composite> ALL =
      ImmutableMap.<String, Composite>builder()
          .putAll(Norms.TABLE)
          .putAll(Losses.TABLE)
          .putAll(Optimizers.TABLE)
          .putAll(ComplexNumbers.TABLE)
          .buildOrThrow();

  private Composites() {}

  /** {@return the full names of ops that are always made of steps} */
  public static ImmutableSet<String> names() {
    return ALL.keySet();
  }

  /** {@return the full names of ops that are made of steps for complex numbers} */
  public static ImmutableSet<String> complexNames() {
    return ComplexNumbers.NAMES;
  }

  /**
   * {@return whether a call is made of steps because of its complex numbers}
   *
   * @param tensors the types of operands and results
   */
  public static boolean isComplex(OpDef op, Stream<TensorType> tensors) {
    return ComplexNumbers.computes(op, tensors);
  }

  /**
   * {@return the steps that compute a call, in order}
   *
   * @param call of one of these ops, or of complex numbers; tensors are values of any name
   * @param results the types of those that exist
   */
  public static ImmutableList<Step> expand(
      OpCall call, ImmutableList<Optional<TensorType>> results) {
    var composite =
        Optional.ofNullable(ALL.get(call.schema().name().toString()))
            .orElse(ComplexNumbers::expand);
    return composite.expand(new Expansion(call, results));
  }
}
