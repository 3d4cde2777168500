package dev.symplan.ir.hlo;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Reads the text of a shape: {@code (bf16[2048,4096]{0,1:S(1)}, s32[])}. The grammar has seen its
 * brackets already.
 */
final class ShapeReader {

  /** A shape that does not exist. */
  static final class WrongShape extends RuntimeException {
    private static final long serialVersionUID = 1L;
    private final String hint;

    WrongShape(String message, String hint) {
      super(message, null, false, false);
      this.hint = hint;
    }

    String hint() {
      return hint;
    }

    String text() {
      return String.valueOf(getMessage());
    }
  }

  private static final ImmutableMap<String, DType> TYPES =
      ImmutableMap.<String, DType>builder()
          .put("pred", DType.BOOL)
          .put("s8", DType.I8)
          .put("s16", DType.I16)
          .put("s32", DType.I32)
          .put("s64", DType.I64)
          .put("u8", DType.U8)
          .put("u16", DType.U16)
          .put("u32", DType.U32)
          .put("u64", DType.U64)
          .put("f16", DType.F16)
          .put("bf16", DType.BF16)
          .put("f32", DType.F32)
          .put("f64", DType.F64)
          .put("c64", DType.C64)
          .put("c128", DType.C128)
          .put("f8e4m3fn", DType.F8E4M3FN)
          .put("f8e5m2", DType.F8E5M2)
          .put("f8e4m3fnuz", DType.F8E4M3FNUZ)
          .put("f8e5m2fnuz", DType.F8E5M2FNUZ)
          .put("f8e8m0fnu", DType.F8E8M0FNU)
          .buildOrThrow();

  /** The types of which PyTorch has none like them, by their bits. */
  private static final ImmutableMap<String, Integer> OTHER_BITS =
      ImmutableMap.<String, Integer>builder()
          .put("s1", 1)
          .put("u1", 1)
          .put("s2", 2)
          .put("u2", 2)
          .put("s4", 4)
          .put("u4", 4)
          .put("f4e2m1fn", 4)
          .put("f8e3m4", 8)
          .put("f8e4m3", 8)
          .put("f8e4m3b11fnuz", 8)
          .buildOrThrow();

  private static final Pattern SPACE = Pattern.compile("S\\(([0-9]{1,6})\\)");
  private static final Pattern TILE = Pattern.compile("T((?:\\([0-9,*]*\\))+)");
  private static final Pattern ELEMENT_BITS = Pattern.compile("E\\(([0-9]{1,6})\\)");
  private static final int MAX_RANK = 64;

  private final String text;
  private int at;

  private ShapeReader(String text) {
    this.text = text;
  }

  /**
   * {@return the shape}
   *
   * @throws WrongShape when none exists like it
   */
  static HloShape read(String text) {
    try {
      return new ShapeReader(text).shape();
    } catch (IllegalArgumentException | ArithmeticException e) {
      throw new WrongShape("%s: %s".formatted(text, e.getMessage()), "");
    }
  }

  private HloShape shape() {
    skipBlanks();
    return peek() == '(' ? tuple() : array();
  }

  private HloShape tuple() {
    var parts = ImmutableList.<HloShape>builder();
    at++;
    skipBlanks();
    while (peek() != ')' && peek() != 0) {
      parts.add(shape());
      skipBlanks();
      if (peek() == ',') {
        at++;
        skipBlanks();
      }
    }
    at++;
    return new HloShape.Tuple(parts.build());
  }

  private HloShape array() {
    int start = at;
    while (Character.isLetterOrDigit(peek()) || peek() == '_') {
      at++;
    }
    var element = text.substring(start, at);
    skipBlanks();
    var sizes = ImmutableLongArray.of();
    if (peek() == '[') {
      sizes = numbers(bracketed('[', ']'));
    }
    var layout = "";
    skipBlanks();
    if (peek() == '{') {
      layout = bracketed('{', '}');
    }
    if (at == start) {
      throw new WrongShape(
          "'%s' is not a shape".formatted(text), "shapes look like bf16[8,64]{1,0}");
    }
    return array(element, sizes, layout);
  }

  private HloShape array(String element, ImmutableLongArray sizes, String layout) {
    if (element.equals("token") || element.equals("opaque")) {
      return new HloShape.Token(element);
    }
    if (sizes.length() > MAX_RANK) {
      throw new WrongShape(
          "a shape of %s dimensions; %s are allowed".formatted(sizes.length(), MAX_RANK), "");
    }
    int colon = layout.indexOf(':');
    var order = order(colon < 0 ? layout : layout.substring(0, colon), sizes.length());
    var rest = colon < 0 ? "" : layout.substring(colon + 1);
    var space = SPACE.matcher(rest);
    int memory = space.find() ? Integer.parseInt(space.group(1)) : 0;
    @Nullable DType dtype = TYPES.get(element);
    @Nullable Integer bits =
        dtype == null ? OTHER_BITS.get(element) : Integer.valueOf(dtype.bytes() * 8);
    if (bits == null) {
      throw new WrongShape(
          "unknown element type '%s'".formatted(element),
          "types: %s, %s"
              .formatted(
                  String.join(", ", TYPES.keySet()), String.join(", ", OTHER_BITS.keySet())));
    }
    var tile = TILE.matcher(rest);
    if (dtype != null && !tile.find()) {
      var tensor = new TensorType(dtype, sizes, HloShape.strides(sizes, order), MemorySpace.ANY);
      return new HloShape.Array(element, tensor, true, order, memory);
    }
    var packed = ELEMENT_BITS.matcher(rest);
    int stored = packed.find() ? Integer.parseInt(packed.group(1)) : Math.max(8, bits);
    tile.reset();
    long elements = tile.find() ? tiled(sizes, order, firstTile(tile.group(1))) : product(sizes);
    long bytes = Math.ceilDiv(Math.multiplyExact(elements, Math.max(stored, bits)), 8);
    return new HloShape.Array(element, HloShape.bytes(bytes), false, order, memory);
  }

  /** Tiles lie side by side, so that each of the innermost dimensions is rounded up to one. */
  private static long tiled(
      ImmutableLongArray sizes, ImmutableIntArray order, ImmutableLongArray tile) {
    long count = 1;
    for (int i = 0; i < order.length(); i++) {
      long size = sizes.get(order.get(i));
      int of = tile.length() - 1 - i;
      long unit = of >= 0 ? Math.max(1, tile.get(of)) : 1;
      count = Math.multiplyExact(count, Math.multiplyExact(Math.ceilDiv(size, unit), unit));
    }
    return count;
  }

  private static ImmutableLongArray firstTile(String tiles) {
    return HloAttributes.integersIn(tiles.substring(0, tiles.indexOf(')')));
  }

  private static long product(ImmutableLongArray sizes) {
    long count = 1;
    for (long size : sizes.toArray()) {
      count = Math.multiplyExact(count, size);
    }
    return count;
  }

  /** Without a layout, arrays lie row by row. */
  private ImmutableIntArray order(String layout, int rank) {
    var given = HloAttributes.integersIn(layout);
    var order = ImmutableIntArray.builder(rank);
    if (given.isEmpty()) {
      for (int i = rank - 1; i >= 0; i--) {
        order.add(i);
      }
      return order.build();
    }
    boolean[] seen = new boolean[rank];
    for (long dim : given.toArray()) {
      if (dim < 0 || dim >= rank || seen[(int) dim]) {
        throw wrongLayout(layout, rank);
      }
      seen[(int) dim] = true;
      order.add((int) dim);
    }
    if (given.length() != rank) {
      throw wrongLayout(layout, rank);
    }
    return order.build();
  }

  private static WrongShape wrongLayout(String layout, int rank) {
    return new WrongShape(
        "the layout {%s} does not order %s dimensions".formatted(layout, rank),
        "a layout names each dimension once, the innermost first");
  }

  /** The sizes; a bound such as {@code <=8} counts as the size. */
  private ImmutableLongArray numbers(String list) {
    var found = HloAttributes.integersIn(list);
    if (list.indexOf('?') >= 0) {
      throw new WrongShape(
          "[%s] has a size without a bound".formatted(list), "compile for fixed sizes");
    }
    return found;
  }

  private String bracketed(char open, char close) {
    int start = ++at;
    int depth = 1;
    while (at < text.length()) {
      char c = text.charAt(at++);
      depth += c == open ? 1 : c == close ? -1 : 0;
      if (depth == 0) {
        return text.substring(start, at - 1);
      }
    }
    return text.substring(start);
  }

  private char peek() {
    return at < text.length() ? text.charAt(at) : 0;
  }

  private void skipBlanks() {
    while (at < text.length()) {
      if (text.startsWith("/*", at)) {
        int end = text.indexOf("*/", at);
        at = end < 0 ? text.length() : end + 2;
      } else if (Character.isWhitespace(text.charAt(at))) {
        at++;
      } else {
        return;
      }
    }
  }
}
