package dev.symplan.ir.fx;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.NoneType;
import dev.symplan.ir.ScalarType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Type;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;

/** The types of an FX graph for given values of its symbols. */
final class Annotations {

  /**
   * One annotation.
   *
   * @param stridesGiven whether it has strides; row-major ones stand in for them otherwise
   */
  record Annotation(Type type, boolean stridesGiven) {}

  private final Symbols symbols;

  /** By the type itself: readers use one for all annotations of the same text. */
  private final Map<FxType, Annotation> known = new IdentityHashMap<>();

  Annotations(Symbols symbols) {
    this.symbols = symbols;
  }

  /**
   * {@return the annotation}
   *
   * @throws IllegalArgumentException when it is malformed
   * @throws Symbols.Unknown when a symbolic size has no value
   */
  Annotation read(FxType type) {
    return known.computeIfAbsent(type, this::annotation);
  }

  private Annotation annotation(FxType type) {
    return switch (type) {
      case FxType.Symbolic _ -> new Annotation(ScalarType.INT, false);
      case FxType.None _ -> new Annotation(NoneType.NONE, false);
      case FxType.Malformed(_, String message, _) -> throw new IllegalArgumentException(message);
      case FxType.Tensor(var dtype, var sizes, var strides) ->
          new Annotation(
              strides
                  .map(given -> new TensorType(dtype, of(sizes), of(given), MemorySpace.ANY))
                  .orElseGet(() -> TensorType.contiguous(dtype, of(sizes))),
              strides.isPresent());
    };
  }

  private ImmutableLongArray of(List<SizeExpr> sizes) {
    var values = ImmutableLongArray.builder(sizes.size());
    sizes.forEach(size -> values.add(symbols.size(size)));
    return values.build();
  }
}
