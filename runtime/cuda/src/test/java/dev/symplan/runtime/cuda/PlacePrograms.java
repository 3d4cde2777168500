package dev.symplan.runtime.cuda;

import java.util.List;

/** Programs of one rank over ops whose kernels look for places, or go from one to the next. */
final class PlacePrograms {
  private PlacePrograms() {}

  private static String program(String inputs, String... lines) {
    return LocalPrograms.program(inputs, lines);
  }

  /** Rows of more elements than a block sorts, whole runs of them and parts. */
  static List<String> sorts() {
    return List.of(
        program(
            "x: f32[3, 1500], y: bf16[700, 5], z: f64[513], w: i32[2, 2048], v: i64[1025]",
            "i = aten::round(x)",
            "a, b = aten::sort(i)",
            "c, d = aten::sort.stable(y, stable=True, dim=0, descending=True)",
            "e, f = aten::sort(z, 0, True)",
            "g, h = aten::sort(w, 1)",
            "j, k = aten::sort(v)",
            "l = aten::argsort(y, 0)",
            "m, n = aten::topk(x, 7)",
            "o, p = aten::topk(y, 600, 0, False)",
            "t = aten::permute(x, [1, 0])",
            "q, r = aten::sort(t, 0, True)"),
        program(
            "x: f32[2, 600], y: f32[4, 9], h: f16[520], s: f32[]",
            "l = aten::log(x)",
            "a, b = aten::sort(l)",
            "c, d = aten::sort(l, 1, True)",
            "e, f = aten::median.dim(x, 1)",
            "g, i = aten::median.dim(l, 1, True)",
            "j, k = aten::median.dim(y, 0)",
            "m, n = aten::median.dim(h, 0)",
            "o, p = aten::median.dim(s, 0)",
            "q, r = aten::cummax(l, 1)",
            "t, u = aten::cummin(y, 0)",
            "v = aten::logcumsumexp(y, 1)",
            "z = aten::logcumsumexp(x, 0)",
            "w = aten::lt.Scalar(y, 0)",
            "aa, ab = aten::sort(w, 1)"),
        // Steps of several ops. What is sorted is exact, so that both backends see the same order.
        """
        graph version 1
        graph t(x: f32[3, 700], y: f32[2, 9, 1500]) {
          i = aten::amax(x, [1], True)
          a = aten::sub.Tensor(x, i)
          b, c = aten::sort(a, 1, True)
          d = aten::mul.Tensor(b, x)
          e = aten::sum.dim_IntList(y, [2], True)
          f = aten::sub.Tensor(y, e)
          g = aten::amax(f, [1], True)
          h = aten::sub.Tensor(f, g)
          return c, d, h
        }
        """);
  }

  static List<String> choices() {
    return List.of(
        program(
            "x: f32[5, 1000], y: f64[7], s: i64[3]",
            "a = aten::randperm(3000)",
            "b = aten::randperm.generator(300, generator=s, dtype=torch.int32)",
            "c = aten::randperm(1)",
            "w = aten::exp(x)",
            "d = aten::multinomial(w, 3, True)",
            "e = aten::multinomial(w, 1000)",
            "v = aten::abs(y)",
            "f = aten::multinomial(v, 7, generator=s)",
            "g = aten::multinomial(v, 300, True)",
            "r = aten::relu(x)",
            "h = aten::multinomial(r, 200, generator=\"rng\")"));
  }

  static List<String> windows() {
    return List.of(
        program(
            "x: f32[2, 4, 9, 8], w: f32[6, 2, 3, 2], b: f32[6], g: f32[2, 6, 4, 4], t: f32[4, 3, 3,"
                + " 3]",
            "a = aten::convolution(x, w, b, [2, 2], [1, 1], [2, 2], False, [0, 0], 2)",
            "c = aten::convolution(x, t, None, [2, 3], [1, 0], [1, 1], True, [1, 0], 1)",
            "y = aten::convolution(x, w, None, [2, 2], [0, 0], [1, 1], False, [0, 0], 2)",
            "d, e, f = aten::convolution_backward(y, x, w, [6], [2, 2], [0, 0], [1, 1], False, [0,"
                + " 0], 2, [True, True, True])",
            "h, i, j = aten::convolution_backward(c, x, t, [3], [2, 3], [1, 0], [1, 1], True, [1,"
                + " 0], 1, [True, True, True])",
            "k, l = aten::max_pool2d_with_indices(x, [3, 2], [2, 2], [1, 1])",
            "m = aten::max_pool2d_with_indices_backward(k, x, [3, 2], [2, 2], [1, 1], [1, 1],"
                + " False, l)",
            "n = aten::avg_pool2d(x, [3, 3], [2, 2], [1, 1], True, False)",
            "o = aten::avg_pool2d_backward(n, x, [3, 3], [2, 2], [1, 1], True, False, None)",
            "p = aten::_adaptive_avg_pool2d(x, [3, 5])",
            "q = aten::_adaptive_avg_pool2d_backward(p, x)",
            "r = aten::im2col(x, [2, 3], [1, 1], [1, 0], [2, 1])",
            "s = aten::col2im(r, [9, 8], [2, 3], [1, 1], [1, 0], [2, 1])"),
        program(
            "x: bf16[2, 3, 6, 7], v: f32[2, 3, 10], u: f32[4, 3, 3], z: f64[1, 2, 4, 5, 3], y:"
                + " f64[2, 2, 2, 2, 2]",
            "a = aten::convolution(v, u, None, [1], [1], [1], False, [0], 1)",
            "b = aten::convolution(z, y, None, [1, 1, 1], [1, 0, 1], [1, 1, 1], False, [0, 0, 0],"
                + " 1)",
            "c = aten::upsample_nearest2d(x, [9, 11], None, None)",
            "d = aten::upsample_nearest2d_backward(c, [9, 11], [2, 3, 6, 7], None, None)",
            "e = aten::upsample_bilinear2d(x, [9, 11], False, None, None)",
            "f = aten::upsample_bilinear2d_backward(e, [9, 11], [2, 3, 6, 7], False, None, None)",
            "g = aten::reflection_pad2d(x, [2, 1, 3, 0])",
            "h = aten::reflection_pad2d_backward(g, x, [2, 1, 3, 0])",
            "i = aten::replication_pad2d(x, [2, 1, -1, 3])",
            "j = aten::pad(x, [2, 1, 3, 0], \"circular\")",
            "k, l = aten::max_pool2d_with_indices(x, [2, 2], [], [0, 0], [2, 1], True)"));
  }

  static List<String> scattered() {
    return List.of(
        program(
            "x: f32[9, 6], h: bf16[9, 6], n: i64[9, 6], s: f32[14, 6], t: bf16[14, 6]",
            "i = aten::randint(9, [14])",
            "j = aten::randint(9, [14, 6])",
            "a = aten::index_add(x, 0, i, s)",
            "b = aten::index_add(h, 0, i, t, alpha=0.5)",
            "c = aten::index_copy(x, 0, i, s)",
            "d = aten::index_fill.int_Scalar(h, 0, i, 2.5)",
            "e = aten::scatter_add(x, 0, j, s)",
            "f = aten::scatter_add(h, 0, j, t)",
            "g = aten::scatter_reduce.two(x, 0, j, s, \"prod\", include_self=False)",
            "k = aten::scatter_reduce.two(h, 0, j, t, \"mean\")",
            "l = aten::scatter_reduce.two(x, 0, j, s, \"amax\", include_self=False)",
            "m = aten::scatter_reduce.two(n, 0, j, j, \"mean\", include_self=False)",
            "o = aten::exp(h)",
            "p = aten::scatter_reduce_.two(o, 0, j, t, \"mean\", include_self=False)",
            "q = aten::exp(x)",
            "r = aten::index_add_(q, 0, i, s)",
            "u = aten::exp(x)",
            "v = aten::cumsum_(u, 0)",
            "w = aten::exp(h)",
            "y = aten::index_fill_.int_Scalar(w, 0, i, -1.5)"),
        program(
            "x: f32[7, 5], y: f32[35], h: f16[4, 5], e: f32[6, 4], u: f32[2, 3, 5]",
            "m = aten::gt.Scalar(x, 0)",
            "a = aten::masked_scatter(x, m, y)",
            "b = aten::exp(x)",
            "c = aten::masked_scatter_(b, m, y)",
            "d = aten::masked_scatter_backward(x, m, [7, 5])",
            "i = aten::randint(6, [40])",
            "k = aten::randint(6, [2, 3])",
            "f = aten::embedding_dense_backward(u, k, 6, 2, True)",
            "g = aten::bincount(i, None, 6)",
            "j = aten::histc(x, 7, -1, 1)",
            "l = aten::histc(h, 4)",
            "n = aten::roll(x, [3, -2], [0, 1])",
            "o = aten::roll(h, [7])",
            "p = aten::repeat(h, [2, 1, 3])",
            "q = aten::repeat_interleave.self_int(x, 3, 1)",
            "r = aten::glu(e, 1)",
            "s = aten::diag_embed(y)"));
  }

  static List<String> shapes() {
    return List.of(
        program(
            "x: f32[2, 3, 4, 5], y: f32[3, 5, 6], v: f32[5], w: bf16[7, 5], b: bf16[7], h: bf16[2,"
                + " 4, 5], s: f32[6, 6]",
            "a = aten::matmul(x, y)",
            "c = aten::matmul(x, v)",
            "d = aten::matmul(v, y)",
            "p = aten::permute(x, [1, 0, 2, 3])",
            "e = aten::linear(h, w, b)",
            "f = aten::dot(v, v)",
            "g = aten::outer(v, v)",
            "m = aten::select.int(y, 0, 1)",
            "i = aten::permute(m, [1, 0])",
            "j = aten::mv(i, v)",
            "o = aten::mm(m, i)",
            "l = aten::addmm_(o, m, i, beta=0.5)",
            "t = aten::permute(y, [0, 2, 1])",
            "r = aten::bmm(t, y)",
            "n = aten::addbmm(s, t, y, alpha=2)",
            "z = aten::addmv(j, i, v, beta=0, alpha=3)",
            "q = aten::digamma(x)",
            "u = aten::i0(v)",
            "ab = aten::neg(b)",
            "ac = aten::nextafter(b, ab)",
            "ad = aten::to.dtype(x, torch.float16)",
            "ae = aten::round(ad)",
            "af = aten::nextafter(ae, ad)"));
  }
}
