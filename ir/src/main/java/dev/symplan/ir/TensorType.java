package dev.symplan.ir;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * A tensor's element type, shape and layout.
 *
 * @param sizes the shape, outermost dimension first; empty for a scalar tensor
 * @param strides the distance in elements between neighbours along each dimension; never negative,
 *     0 if a dimension is expanded
 * @param space the memory that the graph asks for
 */
public record TensorType(
    DType dtype, ImmutableLongArray sizes, ImmutableLongArray strides, MemorySpace space)
    implements Type {

  /** The largest storage a tensor may have, in bytes: an address space, with room to add. */
  public static final long MAX_BYTES = 1L << 48;

  public TensorType {
    if (sizes.length() != strides.length()) {
      throw new IllegalArgumentException(
          "%s sizes but %s strides".formatted(sizes.length(), strides.length()));
    }
    long limit = MAX_BYTES / dtype.bytes();
    long last = 0;
    long count = 1;
    for (int i = 0; i < sizes.length(); i++) {
      long size = sizes.get(i);
      long stride = strides.get(i);
      if (size < 0) {
        throw new IllegalArgumentException("size " + size + " is negative");
      }
      if (stride < 0) {
        throw new IllegalArgumentException("stride " + stride + " is negative");
      }
      if (size > 1) {
        if (stride > limit / (size - 1)) {
          throw tooLarge();
        }
        last += (size - 1) * stride;
      }
      // An empty dimension makes the tensor empty, but must not hide that the others overflow.
      count = atMost(limit, count, Math.max(1, size));
      if (last >= limit && count > 1) {
        throw tooLarge();
      }
    }
  }

  private static long atMost(long limit, long a, long b) {
    if (a > limit / b) {
      throw tooLarge();
    }
    return a * b;
  }

  private static IllegalArgumentException tooLarge() {
    return new IllegalArgumentException("tensor of more than 2^48 bytes");
  }

  /** A row-major tensor. */
  public static TensorType contiguous(DType dtype, long... sizes) {
    return contiguous(dtype, ImmutableLongArray.copyOf(sizes));
  }

  /** A row-major tensor. */
  public static TensorType contiguous(DType dtype, ImmutableLongArray sizes) {
    return new TensorType(dtype, sizes, contiguousStrides(sizes), MemorySpace.ANY);
  }

  /** {@return the strides of a row-major tensor; like PyTorch's, they count an empty size as 1} */
  public static ImmutableLongArray contiguousStrides(ImmutableLongArray sizes) {
    var strides = new long[sizes.length()];
    long next = 1;
    for (int i = sizes.length() - 1; i >= 0; i--) {
      strides[i] = next;
      next = atMost(MAX_BYTES, next, Math.max(1, sizes.get(i)));
    }
    return ImmutableLongArray.copyOf(strides);
  }

  /** {@return the number of dimensions} */
  public int rank() {
    return sizes.length();
  }

  public long size(int dim) {
    return sizes.get(dim);
  }

  public long stride(int dim) {
    return strides.get(dim);
  }

  /** {@return the number of elements} */
  public long numel() {
    long count = 1;
    for (int i = 0; i < sizes.length(); i++) {
      count *= sizes.get(i);
    }
    return count;
  }

  /** {@return the bytes of the elements alone, as a contiguous copy would take} */
  public long bytes() {
    return numel() * dtype.bytes();
  }

  /** {@return the bytes from the first element to after the last one, gaps included} */
  public long storageBytes() {
    long last = 0;
    for (int i = 0; i < sizes.length(); i++) {
      long size = sizes.get(i);
      if (size == 0) {
        return 0;
      }
      last += (size - 1) * strides.get(i);
    }
    return (last + 1) * dtype.bytes();
  }

  /**
   * {@return whether the elements lie row-major without gaps; strides of size-1 dims do not count}
   */
  public boolean isContiguous() {
    long expected = 1;
    for (int i = sizes.length() - 1; i >= 0; i--) {
      if (sizes.get(i) == 0) {
        return true;
      }
      if (sizes.get(i) != 1) {
        if (strides.get(i) != expected) {
          return false;
        }
        expected *= sizes.get(i);
      }
    }
    return true;
  }

  /**
   * {@return whether element type, sizes and strides are the same; strides of size-1 dims do not
   * count}
   */
  public boolean hasSameLayout(TensorType other) {
    if (!sizes.equals(other.sizes) || dtype != other.dtype) {
      return false;
    }
    for (int dim = 0; dim < rank(); dim++) {
      if (sizes.get(dim) > 1 && strides.get(dim) != other.strides.get(dim)) {
        return numel() == 0;
      }
    }
    return true;
  }

  /** {@return whether the elements fill their storage exactly, in some order of the dimensions} */
  public boolean isDense() {
    if (isContiguous() || numel() < 2) {
      return true;
    }
    long expected = 1;
    for (int dim : innermostFirst()) {
      if (sizes.get(dim) != 1) {
        if (strides.get(dim) != expected) {
          return false;
        }
        expected *= sizes.get(dim);
      }
    }
    return true;
  }

  /**
   * {@return whether each stride goes beyond all that smaller strides reach, so that no two
   * elements have the same offset}
   */
  public boolean liesApart() {
    if (isContiguous() || numel() < 2) {
      return true;
    }
    long reach = 0;
    for (int dim : innermostFirst()) {
      if (sizes.get(dim) != 1) {
        if (strides.get(dim) <= reach) {
          return false;
        }
        reach += (sizes.get(dim) - 1) * strides.get(dim);
      }
    }
    return true;
  }

  private Integer[] innermostFirst() {
    var order = new Integer[rank()];
    Arrays.setAll(order, i -> i);
    Arrays.sort(order, (a, b) -> Long.compare(strides.get(a), strides.get(b)));
    return order;
  }

  /**
   * {@return whether each element of {@code other} has one of this tensor's, as PyTorch pairs them}
   */
  public boolean broadcastsTo(TensorType other) {
    for (int i = 1; i <= rank(); i++) {
      long size = size(rank() - i);
      if (size != 1 && (i > other.rank() || size != other.size(other.rank() - i))) {
        return false;
      }
    }
    return rank() <= other.rank();
  }

  public TensorType withDType(DType other) {
    return new TensorType(other, sizes, strides, space);
  }

  public TensorType withSpace(MemorySpace other) {
    return other == space ? this : new TensorType(dtype, sizes, strides, other);
  }

  public TensorType withStrides(ImmutableLongArray other) {
    return new TensorType(dtype, sizes, other, space);
  }

  /**
   * {@return the parts of complex elements, in a last dimension of their own}
   *
   * @throws IllegalStateException when the elements are not complex
   */
  public TensorType parts() {
    if (dtype.kind() != DType.Kind.COMPLEX) {
      throw new IllegalStateException("%s has no parts".formatted(dtype.shortName()));
    }
    int rank = rank();
    var sizes = Arrays.copyOf(this.sizes.toArray(), rank + 1);
    var strides =
        Arrays.copyOf(this.strides.stream().map(stride -> 2 * stride).toArray(), rank + 1);
    sizes[rank] = 2;
    strides[rank] = 1;
    return new TensorType(
        dtype.real(), ImmutableLongArray.copyOf(sizes), ImmutableLongArray.copyOf(strides), space);
  }

  /** {@return the same elements row-major} */
  public TensorType contiguous() {
    return new TensorType(dtype, sizes, contiguousStrides(sizes), space);
  }

  /**
   * Rows with other memory between them, or in another order than in memory.
   *
   * @param elements of a row, side by side
   * @param loops over the rows, from the innermost on: two could not be one, and none has one round
   */
  public record Rows(long elements, ImmutableList<Loop> loops) {

    /** So many rounds, each of which begins {@code pitch} elements after the one before. */
    public record Loop(long rounds, long pitch) {}

    /** {@return whether all rows are equally far apart} */
    public boolean areEven() {
      return loops.size() == 1;
    }

    /** {@return the layout for people, in units of so many to an element} */
    public String text(int units) {
      return areEven()
          ? "rows of %s, %s apart".formatted(elements * units, loops.getFirst().pitch() * units)
          : loops.stream()
              .map(loop -> "%s times %s apart".formatted(loop.rounds(), loop.pitch() * units))
              .collect(Collectors.joining(", ", "rows of %s, ".formatted(elements * units), ""));
    }
  }

  /**
   * {@return the rows that the elements lie in, in their order, if they are not one run of memory;
   * empty if two elements have the same offset}
   */
  public Optional<Rows> rowsApart() {
    if (numel() == 0 || isContiguous() || !liesApart()) {
      return Optional.empty();
    }
    int dim = rank() - 1;
    long row = 1;
    while (size(dim) == 1 || stride(dim) == row) {
      row *= size(dim--);
    }
    var loops = new ArrayList<Rows.Loop>();
    for (; dim >= 0; dim--) {
      if (size(dim) == 1) {
        continue;
      }
      if (!loops.isEmpty() && stride(dim) == loops.getLast().rounds() * loops.getLast().pitch()) {
        var inner = loops.removeLast();
        loops.add(new Rows.Loop(inner.rounds() * size(dim), inner.pitch()));
      } else {
        loops.add(new Rows.Loop(size(dim), stride(dim)));
      }
    }
    return Optional.of(new Rows(row, ImmutableList.copyOf(loops)));
  }

  /** {@return the type of some of the elements: those with such indices along a dimension} */
  public TensorType part(int dim, long count) {
    var part = sizes.toArray();
    part[dim] = count;
    return new TensorType(dtype, ImmutableLongArray.copyOf(part), strides, space);
  }

  /** {@return whether rows of so many elements follow each other, each with its own indices} */
  public boolean isOfRows(long elements) {
    return isContiguous()
        && IntStream.rangeClosed(0, rank())
            .anyMatch(dim -> numelFrom(dim) == elements && elements > 0);
  }

  private long numelFrom(int dim) {
    long count = 1;
    for (int i = dim; i < rank(); i++) {
      count *= size(i);
    }
    return count;
  }

  /**
   * {@return the same elements in memory where the rows are further apart}
   *
   * @param elements of a row
   * @param pitch elements from the beginning of a row to that of the next one
   * @throws IllegalArgumentException when it is not {@linkplain #isOfRows of such rows}
   */
  public TensorType withRowsApart(long elements, long pitch) {
    if (!isOfRows(elements) || pitch < elements) {
      throw new IllegalArgumentException(
          "%s in rows of %s, %s apart".formatted(this, elements, pitch));
    }
    var apart = ImmutableLongArray.builder();
    for (long stride : contiguousStrides(sizes).toArray()) {
      apart.add(stride >= elements ? stride / elements * pitch : stride);
    }
    return new TensorType(dtype, sizes, apart.build(), space);
  }

  /** {@return as in a graph: {@code f32[8, 64]}, with {@code [strides]} where not row-major} */
  @Override
  public String toString() {
    var text = new StringBuilder(dtype.shortName());
    appendList(text, sizes);
    if (!strides.equals(contiguousStrides(sizes))) {
      appendList(text, strides);
    }
    if (space != MemorySpace.ANY) {
      text.append(" @").append(space.keyword());
    }
    return text.toString();
  }

  private static void appendList(StringBuilder text, ImmutableLongArray values) {
    text.append('[');
    for (int i = 0; i < values.length(); i++) {
      if (i > 0) {
        text.append(", ");
      }
      text.append(values.get(i));
    }
    text.append(']');
  }
}
