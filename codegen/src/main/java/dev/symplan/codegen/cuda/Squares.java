package dev.symplan.codegen.cuda;

import static com.google.common.collect.ImmutableList.toImmutableList;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.TensorType;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;

/**
 * Squares of elements, of which each thread takes one at once: where some tensors have neighbours
 * along one dimension side by side in memory, and others along another one. A thread reads and
 * writes vectors along the dimension that suits each tensor, and the threads of a warp take squares
 * beside each other along both, so that all bytes of what memory delivers are used.
 *
 * <p>In the loops over a square, {@code e} counts its elements along one dimension, and {@code f}
 * along the other.
 */
final class Squares {
  static final int THREADS = 256;

  private static final int WARP = 32;

  /** Of a warp's squares and of a block's, along one dimension, if there are as many. */
  private static final int WARP_SIDE = 8;

  private static final int BLOCK_SIDE = 16;

  private static final int WIDEST = 4;

  /** Of all tensors' squares: what a thread can have in its registers. */
  private static final int MOST_BYTES = 384;

  private final ImmutableLongArray sizes;

  /** The dimension along which most tensors' neighbours are side by side. */
  private final int along;

  /** The one along which others' are. */
  private final int across;

  /** The dimensions along which a block's squares are, each dimension in one of both. */
  private final ImmutableList<Integer> allAlong;

  private final ImmutableList<Integer> allAcross;
  private final int width;

  private Squares(ImmutableLongArray sizes, int along, ImmutableList<Integer> nearest, int width) {
    this.sizes = sizes;
    this.along = along;
    this.across = nearest.getFirst();
    this.width = width;
    // A short side goes on along what is next in memory.
    var dims = new ArrayList<>(List.of(along));
    long count = sizes.get(along) / width;
    for (int dim = along - 1; dim >= 0 && dim != across && count < WARP_SIDE; dim--) {
      dims.add(dim);
      count *= sizes.get(dim);
    }
    this.allAlong = ImmutableList.copyOf(dims);
    this.allAcross = nearest.stream().filter(dim -> !dims.contains(dim)).collect(toImmutableList());
  }

  /**
   * {@return squares for elements of a shape; empty if all tensors may as well be taken in the
   * order of its dimensions}
   *
   * @param refs all that are read and written, which are broadcast to the shape
   */
  static Optional<Squares> of(ImmutableLongArray sizes, List<TensorRef> refs) {
    int along = sizes.length() - 1;
    while (along >= 0 && sizes.get(along) == 1) {
      along--;
    }
    if (along < 0) {
      return Optional.empty();
    }
    int last = along;
    long elements = sizes.stream().reduce(1, Math::multiplyExact);
    var whole =
        refs.stream()
            .filter(ref -> ref.type().numel() == elements && !isExpanded(ref.type()))
            .toList();
    return whole.stream()
        .map(ref -> Indices.broadcast(ref.type(), sizes.length()))
        .filter(strides -> strides.get(last) > 1)
        .map(strides -> nearest(sizes, last, strides))
        .filter(nearest -> !nearest.isEmpty())
        .findFirst()
        .map(
            nearest -> {
              int width = WIDEST;
              while (width > 1 && !new Squares(sizes, last, nearest, width).fit(refs, whole)) {
                width /= 2;
              }
              return new Squares(sizes, last, nearest, width);
            });
  }

  private static boolean isExpanded(TensorType type) {
    return IntStream.range(0, type.rank())
        .anyMatch(dim -> type.stride(dim) == 0 && type.size(dim) > 1);
  }

  /** The other dimensions of a tensor, nearest neighbours first; none if these are not near. */
  private static ImmutableList<Integer> nearest(
      ImmutableLongArray sizes, int along, ImmutableLongArray strides) {
    var order =
        IntStream.range(0, sizes.length())
            .boxed()
            .filter(dim -> dim != along)
            .sorted(
                Comparator.comparing(
                    dim -> sizes.get(dim) == 1 ? Long.MAX_VALUE : strides.get(dim)))
            .collect(toImmutableList());
    return !order.isEmpty() && sizes.get(order.getFirst()) > 1 && strides.get(order.getFirst()) == 1
        ? order
        : ImmutableList.of();
  }

  private boolean fit(List<TensorRef> refs, List<TensorRef> whole) {
    return sizes.get(along) % width == 0
        && sizes.get(across) % width == 0
        && whole.stream().allMatch(ref -> isAlong(ref) || isAcross(ref))
        && refs.stream().distinct().mapToInt(ref -> ref.type().dtype().bytes()).sum()
                * width
                * width
            <= MOST_BYTES;
  }

  private boolean isAlong(TensorRef ref) {
    return hasVectors(ref, along);
  }

  private boolean isAcross(TensorRef ref) {
    return hasVectors(ref, across);
  }

  private boolean hasVectors(TensorRef ref, int dim) {
    return Vectors.fit(
        width,
        ref.offset(),
        ref.type().dtype().bytes(),
        atEnd(sizes, dim),
        atEnd(strides(ref.type()), dim));
  }

  private static ImmutableLongArray atEnd(ImmutableLongArray values, int dim) {
    var moved = new ArrayList<>(values.asList());
    moved.add(moved.remove(dim));
    return ImmutableLongArray.copyOf(moved);
  }

  private ImmutableLongArray strides(TensorType type) {
    return Indices.broadcast(type, sizes.length());
  }

  /** {@return the vectors along a side} */
  Vectors vectors() {
    return new Vectors(width);
  }

  /** The indices of an element of a square, or of its first where these are 0. */
  private ImmutableList<String> indices(String e, String f) {
    return IntStream.range(0, sizes.length())
        .mapToObj(dim -> dim == along ? plus(dim, e) : dim == across ? plus(dim, f) : "i" + dim)
        .collect(toImmutableList());
  }

  private static String plus(int dim, String by) {
    return by.equals("0") ? "i" + dim : "(i%s + %s)".formatted(dim, by);
  }

  /** Where a tensor's elements of a square are, once they are read or before they are written. */
  private enum Form {
    /** One for all. */
    ONE("0", "0", "", "%s"),
    ALONG("0", "f", "f", "%s[f].e[e]"),
    ALONG_ONCE("0", "0", "", "%s.e[e]"),
    ACROSS("e", "0", "e", "%s[e].e[f]"),
    ACROSS_ONCE("0", "0", "", "%s.e[f]"),
    ONE_ALONG("e", "0", "e", "%s[e]"),
    ONE_ACROSS("0", "f", "f", "%s[f]"),
    EACH("e", "f", "", "");

    /** The indices of what is read at once. */
    private final String e;

    private final String f;

    /** What counts the times that something is read; empty for once. */
    private final String counter;

    private final String element;

    Form(String e, String f, String counter, String element) {
      this.e = e;
      this.f = f;
      this.counter = counter;
      this.element = element;
    }

    private boolean isVector() {
      return switch (this) {
        case ALONG, ALONG_ONCE, ACROSS, ACROSS_ONCE -> true;
        case ONE, ONE_ALONG, ONE_ACROSS, EACH -> false;
      };
    }
  }

  private Form form(TensorRef ref) {
    var strides = strides(ref.type());
    boolean stays = strides.get(along) == 0;
    boolean staysAcross = strides.get(across) == 0;
    if (width == 1) {
      return Form.EACH;
    }
    if (stays && staysAcross) {
      return Form.ONE;
    }
    if (isAlong(ref)) {
      return staysAcross ? Form.ALONG_ONCE : Form.ALONG;
    }
    if (isAcross(ref)) {
      return stays ? Form.ACROSS_ONCE : Form.ACROSS;
    }
    return stays ? Form.ONE_ACROSS : staysAcross ? Form.ONE_ALONG : Form.EACH;
  }

  /**
   * The access to a tensor.
   *
   * @param before statements before the loops over a square
   * @param element an element in the loops
   * @param after statements behind them
   */
  record Access(String before, String element, String after) {}

  /**
   * {@return the access to a tensor that is read}
   *
   * @param type of its elements in memory
   * @param name of a variable
   * @param at an element in memory by its indices
   */
  Access read(TensorRef ref, String type, String name, InMemory at) {
    var form = form(ref);
    var first = first(form, at);
    if (form == Form.EACH) {
      return new Access("", first, "");
    }
    var declared = form.isVector() ? "Vector<%s>".formatted(type) : type;
    var value = form.isVector() ? Vectors.read(type, first) : first;
    var before =
        form.counter.isEmpty()
            ? "    const %s %s = %s;\n".formatted(declared, name, value)
            : "    %s %s[%s];\n".formatted(declared, name, width)
                + each(form.counter, "%s[%s] = %s;".formatted(name, form.counter, value));
    return new Access(before, form.element.formatted(name), "");
  }

  /** {@return the access to a tensor that is written} */
  Access write(TensorRef ref, String type, String name, InMemory at) {
    var form = form(ref);
    var first = first(form, at);
    return switch (form) {
      case EACH -> new Access("", first, "");
      case ALONG, ACROSS ->
          new Access(
              "    Vector<%s> %s[%s];\n".formatted(type, name, width),
              form.element.formatted(name),
              each(
                  form.counter,
                  Vectors.write(type, "%s[%s]".formatted(name, form.counter), first)));
      case ONE, ALONG_ONCE, ACROSS_ONCE, ONE_ALONG, ONE_ACROSS ->
          throw new IllegalStateException("elements that are written several times: " + ref);
    };
  }

  private String first(Form form, InMemory at) {
    return at.element(width == 1 ? indices("0", "0") : indices(form.e, form.f));
  }

  /** An element of a tensor in memory by its indices. */
  interface InMemory {
    String element(ImmutableList<String> indices);
  }

  private String each(String counter, String statement) {
    return "    #pragma unroll\n    for (int %1$s = 0; %1$s < %2$s; %1$s++) {\n      %3$s\n    }\n"
        .formatted(counter, width, statement);
  }

  private static int powerOf2(long atLeast, int most) {
    int power = 1;
    while (power < atLeast && power < most) {
      power *= 2;
    }
    return power;
  }

  private long countAlong() {
    return count(allAlong);
  }

  private long countAcross() {
    return count(allAcross);
  }

  private long count(ImmutableList<Integer> dims) {
    return dims.stream().mapToLong(sizes::get).reduce(1, Math::multiplyExact) / width;
  }

  /** A block's squares along one dimension: fewer if there are few along one of both. */
  private int side() {
    int few = powerOf2(countAcross(), BLOCK_SIDE);
    return few < BLOCK_SIDE ? THREADS / few : powerOf2(countAlong(), BLOCK_SIDE);
  }

  /** {@return the blocks that have one block of squares each} */
  long blocks() {
    return Math.ceilDiv(countAlong(), side()) * Math.ceilDiv(countAcross(), THREADS / side());
  }

  /** Declares indices of the first element of a square. */
  private String indices(ImmutableList<Integer> dims, String number) {
    var text = new StringBuilder();
    for (int dim : dims) {
      int wide = dim == along || dim == across ? width : 1;
      text.append(
          "    [[maybe_unused]] const long long i%1$s = (long long)(%2$s %% %3$s)%4$s;\n    %2$s /= %3$s;\n"
              .formatted(dim, number, sizes.get(dim) / wide, wide == 1 ? "" : " * " + wide));
    }
    return text.toString();
  }

  /** {@return the loop of a block's threads over squares} */
  String loop(String before, String body, String after) {
    int side = side();
    int warpSide = Math.min(side, Math.max(WARP_SIDE, WARP * side / THREADS));
    int warps = side / warpSide;
    long blocksAlong = Math.ceilDiv(countAlong(), side);
    var number =
        sizes.stream().reduce(1, Math::multiplyExact) < 1L << 30
            ? "unsigned"
            : "unsigned long long";
    var text = new StringBuilder();
    text.append(
        """
          for (%1$s i = blockIdx.x; i < %2$s; i += gridDim.x) {
            %1$s s = i %% %3$s * %4$s + threadIdx.x %% %5$s + threadIdx.x / 32 %% %6$s * %5$s;
            %1$s t = i / %3$s * %7$s + threadIdx.x %% 32 / %5$s + threadIdx.x / 32 / %6$s * %8$s;
            if (s >= %9$s || t >= %10$s) {
              continue;
            }
        """
            .formatted(
                number,
                blocks(),
                blocksAlong,
                side,
                warpSide,
                warps,
                THREADS / side,
                WARP / warpSide,
                countAlong(),
                countAcross()));
    text.append(indices(allAlong, "s"));
    text.append(indices(allAcross, "t"));
    return text
        + before
        + (width == 1
            ? body
            : """
                #pragma unroll
                for (int f = 0; f < %1$s; f++) {
                  #pragma unroll
                  for (int e = 0; e < %1$s; e++) {
            %2$s      }
                }
            """
                .formatted(width, body.indent(4)))
        + after
        + "  }\n";
  }
}
