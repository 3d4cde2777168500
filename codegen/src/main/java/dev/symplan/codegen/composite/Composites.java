package dev.symplan.codegen.composite;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.OpCall;
import java.util.Optional;

/** The ops that are made of steps. */
public final class Composites {
  private static final ImmutableMap<String, Composite> ALL =
      ImmutableMap.<String, Composite>builder()
          .putAll(Norms.TABLE)
          .putAll(Losses.TABLE)
          .putAll(Optimizers.TABLE)
          .buildOrThrow();

  private Composites() {}

  /** {@return the full names of these ops} */
  public static ImmutableSet<String> names() {
    return ALL.keySet();
  }

  /**
   * {@return the steps that compute a call, in order}
   *
   * @param call of one of these ops; tensors are values of any name
   * @param results the types of those that exist
   */
  public static ImmutableList<Step> expand(
      OpCall call, ImmutableList<Optional<TensorType>> results) {
    var composite = Optional.ofNullable(ALL.get(call.schema().name().toString())).orElseThrow();
    return composite.expand(new Expansion(call, results));
  }
}
