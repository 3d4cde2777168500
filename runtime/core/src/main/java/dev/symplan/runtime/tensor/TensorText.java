package dev.symplan.runtime.tensor;

import dev.symplan.ir.DType;
import dev.symplan.ir.DType.Kind;
import java.lang.foreign.MemorySegment;
import java.math.BigDecimal;
import java.math.MathContext;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;

/**
 * Tensors as PyTorch prints them: with four decimals, and with dots in place of most elements where
 * there are more than a thousand.
 */
public final class TensorText {
  private static final int PRECISION = 4;
  private static final int EDGE = 3;
  private static final int WIDTH = 80;
  private static final long ABBREVIATED_ABOVE = 1000;
  private static final String OPEN = "tensor(";
  private static final MathContext SCIENTIFIC =
      new MathContext(PRECISION + 1, RoundingMode.HALF_EVEN);

  private final HostTensor tensor;
  private final boolean abbreviates;
  private final List<Numbers> parts = new ArrayList<>();

  private TensorText(HostTensor tensor) {
    this.tensor = tensor;
    this.abbreviates = tensor.type().numel() > ABBREVIATED_ABOVE;
    boolean isComplex = tensor.dtype().kind() == Kind.COMPLEX;
    for (int i = 0; i < (isComplex ? 2 : 1); i++) {
      parts.add(new Numbers(tensor.memory(), tensor.dtype().real(), i));
    }
    measure(0, 0);
  }

  /** {@return the text of {@code print(tensor)} in PyTorch, without a line end} */
  public static String of(HostTensor tensor) {
    var type = tensor.type();
    if (type.numel() == 0) {
      var size = new ArrayList<String>();
      type.sizes().forEach(n -> size.add(Long.toString(n)));
      return suffixed(
          OPEN + "[]",
          type.rank() == 1 ? "" : "size=(%s)".formatted(String.join(", ", size)),
          type.dtype() == DType.F32 ? "" : dtype(type.dtype()));
    }
    return suffixed(
        OPEN + new TensorText(tensor).text(0, 0, OPEN.length()),
        switch (type.dtype()) {
          case F32, I64, BOOL, C64 -> "";
          case F64, F16, BF16, F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU ->
              dtype(type.dtype());
          case I32, I16, I8, U64, U32, U16, U8, C32, C128 -> dtype(type.dtype());
        });
  }

  private static String dtype(DType dtype) {
    return "dtype=torch." + dtype.torchName();
  }

  private static String suffixed(String text, String... suffixes) {
    var all = new StringBuilder(text);
    // PyTorch counts the first line's end, although it has none.
    int column = text.length() - text.lastIndexOf('\n') + 1;
    for (var suffix : suffixes) {
      if (!suffix.isEmpty()) {
        boolean fits = column + suffix.length() + 2 <= WIDTH;
        all.append(fits ? ", " : ",\n" + " ".repeat(OPEN.length())).append(suffix);
        column = (fits ? column + 2 : OPEN.length()) + suffix.length();
      }
    }
    return all.append(')').toString();
  }

  /** The positions that are shown along a dimension. */
  private long[] shown(int dim) {
    long size = tensor.type().size(dim);
    return isCut(dim)
        ? LongStream.concat(LongStream.range(0, EDGE), LongStream.range(size - EDGE, size))
            .toArray()
        : LongStream.range(0, size).toArray();
  }

  private boolean isCut(int dim) {
    return abbreviates && tensor.type().size(dim) > 2 * EDGE;
  }

  private long next(long element, int dim, long position) {
    return element + position * tensor.type().stride(dim);
  }

  private void measure(int dim, long element) {
    if (dim == tensor.type().rank()) {
      parts.forEach(part -> part.measure(element * parts.size()));
    } else {
      for (long i : shown(dim)) {
        measure(dim + 1, next(element, dim, i));
      }
    }
  }

  private String text(int dim, long element, int indent) {
    int rank = tensor.type().rank();
    if (dim == rank) {
      return number(element);
    }
    boolean isRow = dim == rank - 1;
    var items = new ArrayList<String>();
    for (long i : shown(dim)) {
      if (isCut(dim) && items.size() == EDGE) {
        items.add(isRow ? " ..." : "...");
      }
      items.add(text(dim + 1, next(element, dim, i), indent + 1));
    }
    var margin = " ".repeat(indent + 1);
    if (!isRow) {
      return "[%s]".formatted(String.join("," + "\n".repeat(rank - dim - 1) + margin, items));
    }
    int width = 2 + parts.getFirst().width + (parts.size() > 1 ? parts.getLast().width + 1 : 0);
    int each = Math.max(1, (WIDTH - indent) / width);
    var row = new StringBuilder("[");
    for (int i = 0; i < items.size(); i++) {
      row.append(i == 0 ? "" : i % each == 0 ? ",\n" + margin : ", ").append(items.get(i));
    }
    return row.append(']').toString();
  }

  private String number(long element) {
    var first = parts.getFirst().text(element * parts.size());
    if (parts.size() == 1) {
      return first;
    }
    var imaginary = parts.getLast().text(element * parts.size()).strip() + "j";
    return first + (imaginary.startsWith("-") ? "" : "+") + imaginary;
  }

  /** Numbers of one type, the parts of complex ones or elements, and the form that suits all. */
  private static final class Numbers {
    private final MemorySegment memory;
    private final DType dtype;
    private final int part;
    private final boolean isFloat;
    private boolean areWhole = true;
    private double smallest = Double.POSITIVE_INFINITY;
    private double largest;
    private int plain = 1;
    private int whole = 1;
    private int decimal = 1;
    private int scientific = 1;
    private int width = 1;

    Numbers(MemorySegment memory, DType dtype, int part) {
      this.memory = memory;
      this.dtype = dtype;
      this.part = part;
      this.isFloat = dtype.isFloat();
    }

    private double value(long index) {
      return Elements.getDouble(memory, (index + part) * dtype.bytes(), dtype);
    }

    void measure(long index) {
      if (!isFloat) {
        plain = Math.max(plain, integer(index).length());
        width = plain;
        return;
      }
      double value = value(index);
      if (Double.isFinite(value) && value != 0) {
        areWhole &= value == Math.rint(value);
        smallest = Math.min(smallest, Math.abs(value));
        largest = Math.max(largest, Math.abs(value));
        whole = Math.max(whole, fixed(value, 0).length() + 1);
        decimal = Math.max(decimal, fixed(value, PRECISION).length());
        scientific = Math.max(scientific, scientific(value).length());
        width = isScientific() ? scientific : areWhole ? whole : decimal;
      }
    }

    private boolean isScientific() {
      return largest > 0
          && (largest / smallest > 1000 || largest > 1e8 || (!areWhole && smallest < 1e-4));
    }

    String text(long index) {
      var text = isFloat ? real(value(index)) : integer(index);
      return " ".repeat(Math.max(0, width - text.length())) + text;
    }

    private String integer(long index) {
      long value = Elements.getLong(memory, (index + part) * dtype.bytes(), dtype);
      return dtype == DType.BOOL
          ? value != 0 ? "True" : "False"
          : dtype == DType.U64 ? Long.toUnsignedString(value) : Long.toString(value);
    }

    private String real(double value) {
      if (Double.isNaN(value)) {
        return "nan";
      }
      if (Double.isInfinite(value)) {
        return value > 0 ? "inf" : "-inf";
      }
      return isScientific()
          ? scientific(value)
          : areWhole ? fixed(value, 0) + "." : fixed(value, PRECISION);
    }

    private static String sign(double value) {
      return Double.doubleToRawLongBits(value) < 0 ? "-" : "";
    }

    private static String fixed(double value, int decimals) {
      return sign(value)
          + new BigDecimal(Math.abs(value))
              .setScale(decimals, RoundingMode.HALF_EVEN)
              .toPlainString();
    }

    private static String scientific(double value) {
      var rounded = new BigDecimal(Math.abs(value)).round(SCIENTIFIC);
      var digits = rounded.unscaledValue().toString();
      int exponent = value == 0 ? 0 : digits.length() - 1 - rounded.scale();
      var padded = digits + "0".repeat(Math.max(0, PRECISION + 1 - digits.length()));
      int size = Math.abs(exponent);
      return "%s%s.%se%s%s%s"
          .formatted(
              sign(value),
              padded.charAt(0),
              padded.substring(1, PRECISION + 1),
              exponent < 0 ? "-" : "+",
              size < 10 ? "0" : "",
              size);
    }
  }
}
