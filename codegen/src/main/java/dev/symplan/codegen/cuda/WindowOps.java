package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.PositionOps.Rule;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import java.util.ArrayList;
import java.util.List;

/**
 * Pooling and unfolding of images, and the gradients: each thread has one element of the result. It
 * goes through a window's elements, or for a gradient through the windows that an element is in.
 */
final class WindowOps {
  static final ImmutableMap<String, Rule> TABLE =
      ImmutableMap.<String, Rule>builder()
          .put("aten::max_pool2d_with_indices", op -> largest(op, false))
          .put("prims::_low_memory_max_pool_with_offsets", op -> largest(op, true))
          .put("prims::_low_memory_max_pool_offsets_to_indices", WindowOps::offsetsToIndices)
          .put("aten::max_pool2d_with_indices_backward", WindowOps::largestBackward)
          .put("aten::avg_pool2d", op -> average(op, false))
          .put("aten::avg_pool2d_backward", op -> average(op, true))
          .put("aten::_adaptive_avg_pool2d", op -> adaptive(op, false))
          .put("aten::_adaptive_avg_pool2d_backward", op -> adaptive(op, true))
          .put("aten::im2col", WindowOps::unfold)
          .put("aten::col2im", WindowOps::fold)
          .buildOrThrow();

  /**
   * The windows over the last two dimensions of an image.
   *
   * @param image its last two sizes
   * @param count of windows along each
   */
  private record Windows(
      long[] kernel, long[] stride, long[] padding, long[] dilation, long[] image, long[] count) {

    static Windows of(PositionOps op, long[] image, long[] count) {
      var kernel = each(op.arguments.integers("kernel_size"));
      var stride =
          op.arguments.has("stride") ? op.arguments.integers("stride") : ImmutableLongArray.of();
      return new Windows(
          kernel,
          stride.isEmpty() ? kernel : each(stride),
          each(op.arguments.integers("padding")),
          op.arguments.hasParam("dilation")
              ? each(op.arguments.integers("dilation"))
              : new long[] {1, 1},
          image,
          count);
    }

    /** {@return where an element of a window is in the image} */
    String at(int dim, String window, String element) {
      return "%s * %s + %s * %s - %s"
          .formatted(window, stride[dim], element, dilation[dim], padding[dim]);
    }

    private long padded(int dim) {
      return image[dim] + padding[dim];
    }
  }

  private WindowOps() {}

  private static long[] each(ImmutableLongArray list) {
    return list.length() == 1
        ? new long[] {list.get(0), list.get(0)}
        : new long[] {list.get(0), list.get(1)};
  }

  private static long[] image(TensorRef ref) {
    int rank = ref.type().rank();
    return new long[] {ref.type().size(rank - 2), ref.type().size(rank - 1)};
  }

  /** Indices with others in the last two dimensions. */
  private static List<String> with(List<String> indices, String row, String column) {
    var changed = new ArrayList<>(indices);
    changed.set(indices.size() - 2, row);
    changed.set(indices.size() - 1, column);
    return changed;
  }

  private static String last(List<String> indices, int fromEnd) {
    return indices.get(indices.size() - fromEnd);
  }

  /** Begins loops over the elements of a thread's window that are in the image. */
  private static void overWindow(PositionKernel kernel, Windows windows, List<String> indices) {
    for (int dim = 0; dim < 2; dim++) {
      var name = dim == 0 ? "y" : "x";
      kernel.line(
          "for (long long k%1$s = 0; k%1$s < %2$s; k%1$s++) {"
              .formatted(name, windows.kernel()[dim]));
      kernel.line(
          "const long long %1$s = %2$s;"
              .formatted(name, windows.at(dim, last(indices, 2 - dim), "k" + name)));
      kernel.line(
          "if (%1$s < 0 || %1$s >= %2$s) {\n  continue;\n}".formatted(name, windows.image()[dim]));
    }
  }

  /** Begins loops over the windows that a thread's element of the image is in. */
  private static void overElement(PositionKernel kernel, Windows windows, List<String> indices) {
    for (int dim = 0; dim < 2; dim++) {
      var name = dim == 0 ? "y" : "x";
      kernel.line(
          "for (long long k%1$s = 0; k%1$s < %2$s; k%1$s++) {"
              .formatted(name, windows.kernel()[dim]));
      kernel.line(
          "const long long t%1$s = %2$s + %3$s - k%1$s * %4$s, %1$s = t%1$s / %5$s;"
              .formatted(
                  name,
                  last(indices, 2 - dim),
                  windows.padding()[dim],
                  windows.dilation()[dim],
                  windows.stride()[dim]));
      kernel.line(
          "if (t%1$s < 0 || t%1$s %% %2$s != 0 || %1$s >= %3$s) {\n  continue;\n}"
              .formatted(name, windows.stride()[dim], windows.count()[dim]));
    }
  }

  private static final String END = "}\n}";

  /** The last NaN of those that have one. */
  private static void largest(PositionOps op, boolean inWindow) {
    var self = op.arguments.tensor("self");
    op.arguments.checkComputes(self);
    var value = op.arguments.result(0);
    var index = op.arguments.result(1);
    var either = value.or(() -> index);
    if (either.isEmpty()) {
      return;
    }
    var windows = Windows.of(op, image(self), image(either.get()));
    var sizes = either.get().type().sizes();
    var kernel = op.kernel(sizes);
    var indices = kernel.indices();
    kernel.line("%s best = 0;".formatted(CTypes.computed(self.type().dtype())));
    kernel.line("long long found = -1;");
    overWindow(kernel, windows, indices);
    kernel.line("const auto value = %s;".formatted(kernel.value(self, with(indices, "y", "x"))));
    kernel.line("if (found < 0 || value > best || value != value) {");
    kernel.line("  best = value;");
    kernel.line(
        "  found = %s;"
            .formatted(
                inWindow
                    ? "ky * %s + kx".formatted(windows.kernel()[1])
                    : "y * %s + x".formatted(windows.image()[1])));
    kernel.line("}\n" + END);
    value.ifPresent(ref -> kernel.set(ref, indices, "best"));
    index.ifPresent(ref -> kernel.set(ref, indices, "found"));
    op.launch(kernel, sizes);
  }

  private static void offsetsToIndices(PositionOps op) {
    var offsets = op.arguments.tensor("self");
    var result = op.arguments.result();
    var windows = Windows.of(op, each(op.arguments.integers("input_size")), image(offsets));
    var kernel = op.kernel(result.type().sizes());
    var indices = kernel.indices();
    kernel.line("const long long offset = %s;".formatted(kernel.value(offsets, indices)));
    kernel.line("long long found = 0;");
    overWindow(kernel, windows, indices);
    kernel.line(
        "found = offset == ky * %s + kx ? y * %s + x : found;"
            .formatted(windows.kernel()[1], windows.image()[1]));
    kernel.line(END);
    kernel.set(result, indices, "found");
    op.launch(kernel, result.type().sizes());
  }

  private static void largestBackward(PositionOps op) {
    var grad = op.arguments.tensor("grad_output");
    var found = op.arguments.tensor("indices");
    var result = op.arguments.result();
    op.arguments.checkComputes(grad);
    var windows = Windows.of(op, image(result), image(grad));
    long area = windows.image()[0] * windows.image()[1];
    var check = op.kernel(found.type().sizes());
    check.line("const long long at = %s;".formatted(check.value(found, check.indices())));
    check.line("if (at < 0 || at >= %s) {\n  __trap();\n}".formatted(area));
    var outside = op.scratch.take(TensorType.contiguous(DType.I64));
    op.fill(outside, 0);
    markOutside(check, windows, outside);
    op.launch(check, found.type().sizes());
    var kernel = op.kernel(result.type().sizes());
    var indices = kernel.indices();
    kernel.line("double sum = 0;");
    kernel.line("const bool all = %s != 0;".formatted(kernel.value(outside, List.of())));
    for (int dim = 0; dim < 2; dim++) {
      var name = dim == 0 ? "y" : "x";
      long count = windows.count()[dim];
      kernel.line(
          "const long long last%1$s = (%2$s + %3$s) / %4$s, t%1$s = %2$s + %3$s - %5$s;"
              .formatted(
                  name,
                  last(indices, 2 - dim),
                  windows.padding()[dim],
                  windows.stride()[dim],
                  (windows.kernel()[dim] - 1) * windows.dilation()[dim]));
      kernel.line(
          "const long long from%1$s = all || t%1$s < 0 ? 0 : (t%1$s + %2$s) / %3$s;"
              .formatted(name, windows.stride()[dim] - 1, windows.stride()[dim]));
      kernel.line(
          "const long long end%1$s = all || last%1$s >= %2$s ? %2$s : last%1$s + 1;"
              .formatted(name, count));
      kernel.line("for (long long %1$s = from%1$s; %1$s < end%1$s; %1$s++) {".formatted(name));
    }
    var window = with(indices, "y", "x");
    kernel.line(
        "sum += %s == %s * %s + %s ? (double)%s : 0;"
            .formatted(
                kernel.value(found, window),
                last(indices, 2),
                windows.image()[1],
                last(indices, 1),
                kernel.value(grad, window)));
    kernel.line(END);
    kernel.set(result, indices, "(%s)sum".formatted(CTypes.computed(result.type().dtype())));
    op.launch(kernel, result.type().sizes());
  }

  /** Notes that an index is not of its window: all windows are looked through then. */
  private static void markOutside(PositionKernel check, Windows windows, TensorRef outside) {
    var indices = check.indices();
    for (int dim = 0; dim < 2; dim++) {
      check.line(
          "const long long d%1$s = at %2$s %3$s - (%4$s * %5$s - %6$s);"
              .formatted(
                  dim,
                  dim == 0 ? "/" : "%",
                  windows.image()[1],
                  last(indices, 2 - dim),
                  windows.stride()[dim],
                  windows.padding()[dim]));
    }
    check.line(
        "if (d0 < 0 || d0 > %s || d1 < 0 || d1 > %s) {"
            .formatted(
                (windows.kernel()[0] - 1) * windows.dilation()[0],
                (windows.kernel()[1] - 1) * windows.dilation()[1]));
    check.set(outside, List.of(), "1");
    check.line("}");
  }

  /**
   * The divisor of a window's sum. A window may reach over the padding, which counts or not, but
   * what is beyond the padding never does.
   */
  private static String divisor(PositionOps op, Windows windows, String row, String column) {
    if (op.arguments.has("divisor_override")) {
      return "(double)" + op.arguments.integer("divisor_override");
    }
    return "(double)(%s * %s)"
        .formatted(extent(op, windows, 0, row), extent(op, windows, 1, column));
  }

  private static String extent(PositionOps op, Windows windows, int dim, String window) {
    return "extent(%s * %s - %s, %s, %s, %s)"
        .formatted(
            window,
            windows.stride()[dim],
            windows.padding()[dim],
            windows.kernel()[dim],
            windows.image()[dim],
            op.arguments.flag("count_include_pad") ? windows.padded(dim) : -windows.padded(dim));
  }

  /** The last argument is negative where the padding does not count. */
  private static final String EXTENT =
      """
      __device__ __forceinline__ long long extent(
          long long start, long long kernel, long long size, long long padded) {
        const long long most = padded < 0 ? -padded : padded;
        const long long end = start + kernel < most ? start + kernel : most;
        return padded < 0 ? (end < size ? end : size) - (start > 0 ? start : 0) : end - start;
      }
      """;

  /** Means of windows. Backward, an element gets a part of each window that it is in. */
  private static void average(PositionOps op, boolean backward) {
    var from = op.arguments.tensor(backward ? "grad_output" : "self");
    var result = op.arguments.result();
    op.arguments.checkComputes(from);
    var windows = Windows.of(op, image(backward ? result : from), image(backward ? from : result));
    var kernel = op.kernel(result.type().sizes());
    kernel.function(EXTENT);
    var indices = kernel.indices();
    kernel.line("double sum = 0;");
    if (backward) {
      overElement(kernel, windows, indices);
    } else {
      overWindow(kernel, windows, indices);
    }
    var value = kernel.value(from, with(indices, "y", "x"));
    kernel.line(
        backward
            ? "sum += (double)%s / %s;".formatted(value, divisor(op, windows, "y", "x"))
            : "sum += (double)%s;".formatted(value));
    kernel.line(END);
    kernel.set(
        result,
        indices,
        "(%s)%s"
            .formatted(
                CTypes.computed(result.type().dtype()),
                backward
                    ? "sum"
                    : "(sum / %s)"
                        .formatted(divisor(op, windows, last(indices, 2), last(indices, 1)))));
    op.launch(kernel, result.type().sizes());
  }

  /** Means of the regions that an image is cut into; neighbours may overlap. */
  private static void adaptive(PositionOps op, boolean backward) {
    var from = op.arguments.tensor(backward ? "grad_output" : "self");
    var result = op.arguments.result();
    op.arguments.checkComputes(from);
    var image = image(backward ? result : from);
    var count = image(backward ? from : result);
    var kernel = op.kernel(result.type().sizes());
    var indices = kernel.indices();
    kernel.line("double sum = 0;");
    kernel.line("long long elements = 1;");
    for (int dim = 0; dim < 2; dim++) {
      var name = dim == 0 ? "y" : "x";
      var own = last(indices, 2 - dim);
      if (backward) {
        kernel.line("for (long long %1$s = 0; %1$s < %2$s; %1$s++) {".formatted(name, count[dim]));
      }
      kernel.line(
          "const long long begin%1$s = %2$s * %3$s / %4$s, end%1$s = ((%2$s + 1) * %3$s + %5$s) / %4$s;"
              .formatted(
                  name,
                  backward ? name : "(long long)" + own,
                  image[dim],
                  Math.max(1, count[dim]),
                  Math.max(1, count[dim]) - 1));
      kernel.line(
          backward
              ? "if (%1$s < begin%2$s || %1$s >= end%2$s) {\n  continue;\n}".formatted(own, name)
              : "elements *= end%s - begin%1$s;".formatted(name));
    }
    if (!backward) {
      kernel.line("for (long long y = beginy; y < endy; y++) {");
      kernel.line("for (long long x = beginx; x < endx; x++) {");
    }
    var value = kernel.value(from, with(indices, "y", "x"));
    kernel.line(
        backward
            ? "sum += (double)%s / ((endy - beginy) * (endx - beginx));".formatted(value)
            : "sum += (double)%s;".formatted(value));
    kernel.line(END);
    kernel.set(
        result, indices, "(%s)(sum / elements)".formatted(CTypes.computed(result.type().dtype())));
    op.launch(kernel, result.type().sizes());
  }

  private static long windowCount(PositionOps op, long[] image, int dim) {
    var windows = Windows.of(op, image, image);
    long room =
        image[dim]
            + 2 * windows.padding()[dim]
            - windows.dilation()[dim] * (windows.kernel()[dim] - 1)
            - 1;
    return Math.floorDiv(room, windows.stride()[dim]) + 1;
  }

  private static Windows windows(PositionOps op, TensorRef image) {
    var sizes = image(image);
    return Windows.of(op, sizes, new long[] {windowCount(op, sizes, 0), windowCount(op, sizes, 1)});
  }

  /** A column for each window, and a row for each of its elements in each channel. */
  private static void unfold(PositionOps op) {
    var self = op.arguments.tensor("self");
    var result = op.arguments.result();
    var windows = windows(op, self);
    var kernel = op.kernel(result.type().sizes());
    var indices = kernel.indices();
    long area = windows.kernel()[0] * windows.kernel()[1];
    kernel.line(
        "const long long row = %s, column = %s;".formatted(last(indices, 2), last(indices, 1)));
    kernel.line(
        "const long long ky = row %% %s / %s, kx = row %% %s;"
            .formatted(area, windows.kernel()[1], windows.kernel()[1]));
    kernel.line(
        "const long long y = %s, x = %s;"
            .formatted(
                windows.at(0, "(column / %s)".formatted(windows.count()[1]), "ky"),
                windows.at(1, "(column %% %s)".formatted(windows.count()[1]), "kx")));
    var at = new ArrayList<>(indices.subList(0, indices.size() - 2));
    at.add("row / " + area);
    at.add("y");
    at.add("x");
    op.moveOrSet(
        kernel,
        "y >= 0 && y < %s && x >= 0 && x < %s".formatted(windows.image()[0], windows.image()[1]),
        self,
        at,
        0);
  }

  private static void fold(PositionOps op) {
    var self = op.arguments.tensor("self");
    var result = op.arguments.result();
    op.arguments.checkComputes(self);
    var windows = windows(op, result);
    var kernel = op.kernel(result.type().sizes());
    var indices = kernel.indices();
    kernel.line("double sum = 0;");
    overElement(kernel, windows, indices);
    var at = new ArrayList<>(indices.subList(0, indices.size() - 3));
    at.add(
        "(%s * %s + ky) * %s + kx"
            .formatted(last(indices, 3), windows.kernel()[0], windows.kernel()[1]));
    at.add("y * %s + x".formatted(windows.count()[1]));
    kernel.line("sum += (double)%s;".formatted(kernel.value(self, at)));
    kernel.line(END);
    kernel.set(result, indices, "(%s)sum".formatted(CTypes.computed(result.type().dtype())));
    op.launch(kernel, result.type().sizes());
  }
}
