package dev.symplan.ir.fx;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.DType;
import java.util.Optional;

/**
 * Reads the types that torch.fx writes after names: {@code f32[8, 16][16, 1]cuda:0}, {@code
 * Sym(s77)}.
 */
final class TypeReader {
  private static final String SYMBOLIC = "Sym(";
  private static final String DTENSOR = "DTensor(";

  /** Of {@code torch.utils._dtype_abbrs}: elements that are smaller than a byte, and raw bits. */
  private static final ImmutableSet<String> OTHER_DTYPES =
      ImmutableSet.of("f4e2m1fnx2", "b1x8", "b2x4", "b4x2", "b8x1", "b16x1");

  private TypeReader() {}

  /** {@return the type; {@link FxType.Malformed} where none is written} */
  static FxType type(String text) {
    if (text.startsWith(SYMBOLIC) && text.endsWith(")")) {
      return new FxType.Symbolic(size(text.substring(SYMBOLIC.length(), text.length() - 1)));
    }
    if (text.equals("None")) {
      return FxType.None.NONE;
    }
    if (text.startsWith(DTENSOR)) {
      return new FxType.Malformed(
          text,
          "'%s' is a tensor that several ranks hold; a plan needs the graph of one rank"
              .formatted(text),
          FxText.POST_GRAD_HINT);
    }
    int open = text.indexOf('[');
    int close = open < 0 ? -1 : text.indexOf(']', open);
    if (close < 0) {
      return new FxType.Malformed(text, "not a type: '" + text + "'");
    }
    var name = text.substring(0, open);
    var dtype = DType.ofShortName(name);
    if (OTHER_DTYPES.contains(name)) {
      return new FxType.Malformed(
          text,
          "element type %s is not supported".formatted(name),
          "view the tensor as bytes: x.view(torch.uint8)");
    }
    if (dtype.isEmpty()) {
      return new FxType.Malformed(
          text, "'%s' is not a type: '%s' is not an element type".formatted(text, name));
    }
    var sizes = sizes(text, open + 1, close);
    if (close + 1 == text.length() || text.charAt(close + 1) != '[') {
      return new FxType.Tensor(dtype.get(), sizes, Optional.empty());
    }
    int end = text.indexOf(']', close + 1);
    return end < 0
        ? new FxType.Malformed(text, "the strides of '" + text + "' are not closed")
        : new FxType.Tensor(dtype.get(), sizes, Optional.of(sizes(text, close + 2, end)));
  }

  /** Sizes between two places of a text, with commas between them. */
  private static ImmutableList<SizeExpr> sizes(String text, int from, int to) {
    if (text.substring(from, to).isBlank()) {
      return ImmutableList.of();
    }
    var sizes = ImmutableList.<SizeExpr>builder();
    int start = from;
    int depth = 0;
    for (int i = from; i <= to; i++) {
      char c = i == to ? ',' : text.charAt(i);
      depth += c == '(' ? 1 : c == ')' ? -1 : 0;
      if (i == to || (c == ',' && depth == 0)) {
        sizes.add(size(text.substring(start, i).strip()));
        start = i + 1;
      }
    }
    return sizes.build();
  }

  /** {@return the expression; {@link SizeExpr.Malformed} where none is written} */
  static SizeExpr size(String text) {
    try {
      return SizeReader.read(text);
    } catch (IllegalArgumentException e) {
      return new SizeExpr.Malformed(text);
    }
  }
}
