package dev.symplan.ir.fx;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.NoneType;
import dev.symplan.ir.ScalarType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Type;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The types that torch.fx writes behind names: {@code f32[8, 16][16, 1]cuda:0}, {@code Sym(s77)}.
 */
final class Annotations {

  /**
   * One annotation.
   *
   * @param stridesGiven whether it has strides; row-major ones stand in for them otherwise
   */
  record Annotation(Type type, boolean stridesGiven) {}

  private final Symbols symbols;
  private final Map<String, Annotation> known = new HashMap<>();

  Annotations(Symbols symbols) {
    this.symbols = symbols;
  }

  /**
   * {@return what the annotation says}
   *
   * @throws IllegalArgumentException when it has another form
   * @throws Symbols.Unknown when a symbolic size has no value
   */
  Annotation read(String text) {
    @Nullable Annotation annotation = known.get(text);
    if (annotation == null) {
      annotation = parse(text);
      known.put(text, annotation);
    }
    return annotation;
  }

  private Annotation parse(String text) {
    if (text.startsWith("Sym(")) {
      return new Annotation(ScalarType.INT, false);
    }
    if (text.equals("None")) {
      return new Annotation(NoneType.NONE, false);
    }
    int open = text.indexOf('[');
    var dtype =
        DType.ofShortName(open < 0 ? text : text.substring(0, open))
            .orElseThrow(() -> new IllegalArgumentException("no type is written '" + text + "'"));
    int close = open < 0 ? -1 : text.indexOf(']', open);
    if (close < 0) {
      throw new IllegalArgumentException("no type is written '" + text + "'");
    }
    var sizes = sizes(text.substring(open + 1, close));
    if (close + 1 == text.length() || text.charAt(close + 1) != '[') {
      return new Annotation(TensorType.contiguous(dtype, sizes), false);
    }
    int end = text.indexOf(']', close + 1);
    if (end < 0) {
      throw new IllegalArgumentException("the strides of '" + text + "' are not closed");
    }
    var strides = sizes(text.substring(close + 2, end));
    return new Annotation(new TensorType(dtype, sizes, strides, MemorySpace.ANY), true);
  }

  private ImmutableLongArray sizes(String text) {
    if (text.isBlank()) {
      return ImmutableLongArray.of();
    }
    var sizes = ImmutableLongArray.builder();
    int start = 0;
    int depth = 0;
    for (int i = 0; i <= text.length(); i++) {
      char c = i == text.length() ? ',' : text.charAt(i);
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      if (c == ',' && (depth == 0 || i == text.length())) {
        sizes.add(symbols.evaluate(text.substring(start, i).strip()));
        start = i + 1;
      }
    }
    return sizes.build();
  }
}
