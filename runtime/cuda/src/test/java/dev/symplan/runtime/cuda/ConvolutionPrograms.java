package dev.symplan.runtime.cuda;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.IntUnaryOperator;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/** Programs of convolutions and their gradients. */
final class ConvolutionPrograms {
  private static final List<String> DTYPES = List.of("f32", "bf16", "f16", "f64");

  private ConvolutionPrograms() {}

  /**
   * One convolution.
   *
   * @param channels of the input, and of the output, in each group
   * @param sizes of the input
   * @param added {@code output_padding}, for transposed convolutions
   * @param imagesLast whether the channels of images are innermost
   * @param weightLast the same for the weight
   */
  record Case(
      String dtype,
      long batch,
      long groups,
      long[] channels,
      long[] sizes,
      long[] window,
      long[] stride,
      long[] padding,
      long[] dilation,
      boolean transposed,
      long[] added,
      boolean bias,
      boolean imagesLast,
      boolean weightLast) {

    /** {@return a case of two dimensions that are alike} */
    static Case square(
        String dtype, long batch, long groups, long in, long out, long size, long window) {
      return new Case(
          dtype,
          batch,
          groups,
          new long[] {in, out},
          new long[] {size, size},
          new long[] {window, window},
          new long[] {1, 1},
          new long[] {window / 2, window / 2},
          new long[] {1, 1},
          false,
          new long[] {0, 0},
          false,
          false,
          false);
    }

    Case withStride(long value) {
      return new Case(
          dtype,
          batch,
          groups,
          channels,
          sizes,
          window,
          new long[] {value, value},
          padding,
          dilation,
          transposed,
          added,
          bias,
          imagesLast,
          weightLast);
    }

    Case withLayout(boolean images, boolean weight) {
      return new Case(
          dtype,
          batch,
          groups,
          channels,
          sizes,
          window,
          stride,
          padding,
          dilation,
          transposed,
          added,
          bias,
          images,
          weight);
    }

    /** {@return the sizes of the output; some not positive if no window fits} */
    long[] outputs() {
      return LongStream.range(0, sizes.length)
          .map(
              dim -> {
                int i = (int) dim;
                long reach = dilation[i] * (window[i] - 1);
                return transposed
                    ? (sizes[i] - 1) * stride[i] - 2 * padding[i] + reach + added[i] + 1
                    : Math.floorDiv(sizes[i] + 2 * padding[i] - reach - 1, stride[i]) + 1;
              })
          .toArray();
    }

    boolean isSound() {
      return Arrays.stream(outputs()).allMatch(size -> size > 0)
          && IntStream.range(0, sizes.length)
              .allMatch(i -> !transposed || added[i] < Math.max(stride[i], dilation[i]));
    }

    /** {@return whether the step for cuDNN can say what the convolution is} */
    boolean isForLibrary() {
      return batch > 0
          && IntStream.range(0, sizes.length).allMatch(i -> !transposed || added[i] < stride[i]);
    }

    private String input(String name, boolean last, long first, long second, long[] rest) {
      var all = new ArrayList<>(List.of(first));
      if (!last) {
        all.add(second);
      }
      Arrays.stream(rest).forEach(all::add);
      if (last) {
        all.add(second);
      }
      return "%s: %s%s".formatted(name, dtype, all);
    }

    /** How the dimensions lie in memory, as the first ones of a permutation. */
    private String order(boolean last) {
      int rank = sizes.length + 2;
      return IntStream.range(0, rank)
          .mapToObj(i -> !last || i == 0 ? i : i == 1 ? rank - 1 : i - 1)
          .toList()
          .toString();
    }

    /** {@return a program with the convolution alone} */
    String forward() {
      return text(
          List.of("y = aten::convolution(x, w, %s, %s)".formatted(bias ? "b" : "None", windows())),
          List.of("y"));
    }

    /**
     * {@return a program with the gradients}
     *
     * @param mask which of those of input, weight and bias
     */
    String backward(boolean... mask) {
      var names = List.of("p", "q", "r");
      return text(
          List.of(
              "p, q, r = aten::convolution_backward(g, x, w, [%s], %s, [%s])"
                  .formatted(
                      channels[1] * groups,
                      windows(),
                      IntStream.range(0, 3)
                          .mapToObj(i -> mask[i] ? "True" : "False")
                          .collect(Collectors.joining(", ")))),
          IntStream.range(0, 3).filter(i -> mask[i]).mapToObj(names::get).toList());
    }

    private String windows() {
      return "%s, %s, %s, %s, %s, %s"
          .formatted(
              Arrays.toString(stride),
              Arrays.toString(padding),
              Arrays.toString(dilation),
              transposed ? "True" : "False",
              Arrays.toString(added),
              groups);
    }

    private String text(List<String> lines, List<String> results) {
      long first = (transposed ? channels[0] : channels[1]) * groups;
      long second = transposed ? channels[1] : channels[0];
      return """
      graph version 1
      graph t(%s, %s, %s, b: %s[%s]) {
        x = aten::permute(x0, %s)
        w = aten::permute(w0, %s)
        g = aten::permute(g0, %s)
        %s
        return %s
      }
      """
          .formatted(
              input("x0", imagesLast, batch, channels[0] * groups, sizes),
              input("w0", weightLast, first, second, window),
              input("g0", imagesLast, batch, channels[1] * groups, outputs()),
              dtype,
              channels[1] * groups,
              order(imagesLast),
              order(weightLast),
              order(imagesLast),
              String.join("\n  ", lines),
              String.join(", ", results));
    }
  }

  /** {@return convolutions of one to three dimensions with everything that they can have} */
  static List<Case> madeUp(long seed, int count) {
    var random = new SplittableRandom(seed);
    var cases = new ArrayList<Case>();
    while (cases.size() < count) {
      int dims = 1 + random.nextInt(3);
      IntUnaryOperator upTo = most -> 1 + random.nextInt(most);
      boolean deep = random.nextInt(3) == 0;
      boolean depthwise = random.nextInt(5) == 0;
      boolean last = dims > 1 && random.nextInt(3) == 0;
      var made =
          new Case(
              DTYPES.get(random.nextInt(DTYPES.size())),
              random.nextInt(15) == 0 ? 0 : upTo.applyAsInt(3),
              depthwise ? upTo.applyAsInt(8) : upTo.applyAsInt(3),
              depthwise
                  ? new long[] {1, upTo.applyAsInt(2)}
                  : new long[] {
                    deep ? 8L * upTo.applyAsInt(3) : upTo.applyAsInt(5),
                    deep ? 8L * upTo.applyAsInt(3) : upTo.applyAsInt(5)
                  },
              numbers(dims, () -> upTo.applyAsInt(9)),
              numbers(dims, () -> upTo.applyAsInt(3)),
              numbers(dims, () -> upTo.applyAsInt(3)),
              numbers(dims, () -> random.nextInt(3)),
              numbers(dims, () -> upTo.applyAsInt(2)),
              random.nextInt(3) == 0,
              numbers(dims, () -> random.nextInt(2)),
              random.nextBoolean(),
              last,
              last != (random.nextInt(4) == 0 && dims > 1));
      if (made.isSound()) {
        cases.add(made);
      }
    }
    return cases;
  }

  private static long[] numbers(int count, LongSupplier next) {
    return LongStream.generate(next).limit(count).toArray();
  }

  /** {@return convolutions of parts of tensors, with gaps and from odd addresses} */
  static List<String> parts() {
    return List.of(
        LocalPrograms.program(
            "x: bf16[2, 6, 7, 9], w: bf16[8, 4, 3, 4], b: bf16[4], h: bf16[4, 1, 1]",
            "u = aten::slice.Tensor(x, 1, 1, 5)",
            "v = aten::slice.Tensor(w, 3, 1, 4)",
            "a = aten::convolution(u, v, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)",
            "c = aten::slice.Tensor(v, 0, 4, 8)",
            "d = aten::convolution(u, c, b, [2, 1], [0, 1], [1, 1], False, [0, 0], 1)",
            "e = aten::expand(h, [2, 4, 3, 9])",
            "f, g, i = aten::convolution_backward(e, u, c, [4], [2, 1], [0, 1], [1, 1], False, [0,"
                + " 0], 1, [True, True, True])"),
        LocalPrograms.program(
            "x: f32[2, 6, 11], w: f32[3, 6, 4], z: f32[2, 3, 5, 7, 6]",
            "p = aten::permute(x, [0, 2, 1])",
            "q = aten::slice.Tensor(p, 1, 3, 9)",
            "a = aten::convolution(q, w, None, [1], [1], [1], False, [0], 1)",
            "r = aten::permute(z, [0, 4, 1, 3, 2])",
            "s = aten::slice.Tensor(r, 1, 1, 3)",
            "t = aten::slice.Tensor(r, 3, 0, 2)",
            "u = aten::permute(t, [1, 0, 2, 3, 4])",
            "b = aten::convolution(s, u, None, [1, 1, 1], [1, 0, 2], [1, 2, 1], False, [0, 0, 0],"
                + " 1)"));
  }

  /** {@return convolutions that skip elements between windows of one} */
  static List<String> apart() {
    return List.of(
        LocalPrograms.program(
            "x: f32[2, 6, 9, 8], w: f32[4, 3, 1, 1], g: f32[2, 4, 5, 3], b: f32[6]",
            "p, q, r = aten::convolution_backward(g, x, w, [4], [2, 3], [0, 0], [1, 1], False,"
                + " [0, 0], 2, [True, True, True])",
            "y = aten::convolution(g, w, b, [2, 3], [0, 0], [1, 1], True, [1, 2], 2)"),
        LocalPrograms.program(
            "x: f64[2, 6, 9], w: f64[4, 6, 1], g: f64[2, 4, 3], k: f64[2, 5, 4]",
            "p, q, r = aten::convolution_backward(g, x, w, [4], [4], [0], [1], False, [0], 1,"
                + " [True, True, True])",
            "h = aten::permute(k, [0, 2, 1])",
            "y = aten::convolution(h, w, None, [2], [0], [1], True, [0], 1)"),
        LocalPrograms.program(
            "x0: f32[2, 7, 8, 6], w: f32[4, 6, 1, 1], g0: f32[2, 4, 3, 4]",
            "x = aten::permute(x0, [0, 3, 1, 2])",
            "g = aten::permute(g0, [0, 3, 1, 2])",
            "p, q, r = aten::convolution_backward(g, x, w, [4], [2, 3], [0, 0], [1, 1], False,"
                + " [0, 0], 1, [True, True, True])",
            "y = aten::convolution(g, w, None, [2, 3], [0, 0], [1, 1], True, [1, 1], 1)"));
  }

  /** {@return programs of such convolutions, each with gradients of its own choice} */
  static List<String> programs(long seed, int count) {
    var texts = new ArrayList<String>();
    int mask = 0;
    for (var made : madeUp(seed, count)) {
      texts.add(made.forward());
      mask = mask % 7 + 1;
      texts.add(made.backward((mask & 1) != 0, (mask & 2) != 0, (mask & 4) != 0));
    }
    return texts;
  }
}
