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

  private static final String SYMBOLIC = "Sym(";

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
    if (isSymbolic(text)) {
      return new Annotation(ScalarType.INT, false);
    }
    if (text.equals("None")) {
      return new Annotation(NoneType.NONE, false);
    }
    int open = text.indexOf('[');
    int close = open < 0 ? -1 : text.indexOf(']', open);
    if (close < 0) {
      throw new IllegalArgumentException("no type is written '" + text + "'");
    }
    var name = text.substring(0, open);
    var dtype =
        DType.ofShortName(name)
            .orElseThrow(
                () ->
                    new IllegalArgumentException(
                        "'%s' is not a type: '%s' is not an element type".formatted(text, name)));
    var sizes = sizes(text, open + 1, close);
    if (close + 1 == text.length() || text.charAt(close + 1) != '[') {
      return new Annotation(TensorType.contiguous(dtype, sizes), false);
    }
    int end = text.indexOf(']', close + 1);
    if (end < 0) {
      throw new IllegalArgumentException("the strides of '" + text + "' are not closed");
    }
    var strides = sizes(text, close + 2, end);
    return new Annotation(new TensorType(dtype, sizes, strides, MemorySpace.ANY), true);
  }

  /** {@return whether this is a plain number: {@code Sym(4*s77)}} */
  static boolean isSymbolic(String text) {
    return text.startsWith(SYMBOLIC) && text.endsWith(")");
  }

  /** {@return the expression in {@code Sym(…)}} */
  static String expression(String text) {
    return text.substring(SYMBOLIC.length(), text.length() - 1);
  }

  /** Sizes between two places of a text, with commas between them. */
  private ImmutableLongArray sizes(String text, int from, int to) {
    if (text.substring(from, to).isBlank()) {
      return ImmutableLongArray.of();
    }
    var sizes = ImmutableLongArray.builder();
    int start = from;
    int depth = 0;
    for (int i = from; i <= to; i++) {
      char c = i == to ? ',' : text.charAt(i);
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      if (i == to || (c == ',' && depth == 0)) {
        sizes.add(symbols.evaluate(text.substring(start, i).strip()));
        start = i + 1;
      }
    }
    return sizes.build();
  }
}
