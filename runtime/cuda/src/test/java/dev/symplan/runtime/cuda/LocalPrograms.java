package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.DType;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.MadeUpPairs;
import dev.symplan.ir.testkit.MadeUpPieces;
import dev.symplan.ir.testkit.MadeUpRows;
import dev.symplan.ir.testkit.MadeUpTurned;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.check.OutputCheck;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.SeededInputs;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/** Programs of one rank over ops that have CUDA implementations. */
final class LocalPrograms {
  /** A few roundings of terms in f32 that may cancel: none is larger than about 1. */
  private static final double CANCELLED = 8 * Math.ulp(1f);

  private LocalPrograms() {}

  static Plan plan(String text) {
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withRanks(1))
        .compile(GraphParser.parse(new SourceFile("test.graph", text)));
  }

  static void fill(Session session, int seed) {
    for (int i = 0; i < session.inputNames().size(); i++) {
      SeededInputs.fill(session.input(0, i).orElseThrow(), seed, 0, session.inputNames().get(i));
    }
  }

  /** Fails where results differ by more than rounding explains. */
  static void compare(Plan plan, Session actual, Session expected, String text) {
    for (var check : OutputCheck.of(plan, actual, 0, outputs(expected, 0))) {
      assertThat(
              check.agrees()
                  || (check.type().dtype() == DType.F32
                      && check.difference().maxAbs() <= CANCELLED))
          .as("output %s%n%s", check, text)
          .isTrue();
    }
  }

  /** {@return the results of a session, to compare another with} */
  static List<Optional<HostTensor>> outputs(Session session, int rank) {
    return IntStream.range(0, session.outputCount(rank))
        .mapToObj(i -> session.output(rank, i))
        .toList();
  }

  static List<String> madeUpRows(long seed, int count) {
    return LongStream.range(seed, seed + count)
        .mapToObj(next -> MadeUpRows.text(next, false))
        .toList();
  }

  static List<String> madeUpPieces(long seed, int count) {
    return LongStream.range(seed, seed + count).mapToObj(MadeUpPieces::text).toList();
  }

  static List<String> madeUpPairs(long seed, int count) {
    return LongStream.range(seed, seed + count).mapToObj(MadeUpPairs::text).toList();
  }

  static List<String> madeUpTurned(long seed, int count) {
    return LongStream.range(seed, seed + count).mapToObj(MadeUpTurned::text).toList();
  }

  static String program(String inputs, String... lines) {
    var names = new ArrayList<String>();
    var body = new StringBuilder();
    for (var line : lines) {
      var made = line.substring(0, line.indexOf(" = "));
      names.addAll(List.of(made.split(", ")));
      body.append("  ").append(line).append('\n');
    }
    return """
    graph version 1
    graph t(%s) {
    %s  return %s
    }
    """
        .formatted(inputs, body, String.join(", ", names));
  }

  static List<String> reductions() {
    return List.of(
        program(
            "x: bf16[2, 4, 3, 70, 128], y: f32[5, 33000], z: f64[2, 3, 41], o: bf16[6, 64, 8, 96]",
            "a = aten::sum.dim_IntList(x, [2], True)",
            "b = aten::sum.dim_IntList(x, [0, 2])",
            "c = aten::sum.dim_IntList(y, [0])",
            "d = aten::sum.dim_IntList(z, [1, 0], True)",
            "p = aten::permute(o, [1, 0, 2, 3])",
            "e = aten::sum.dim_IntList(p, [1])",
            "s = aten::slice.Tensor(x, 4, 1, 120)",
            "f = aten::sum.dim_IntList(s, [2])",
            "g = aten::sum.dim_IntList(x, [0], dtype=torch.float32)"),
        program(
            "x: f32[3, 5, 70]",
            "a = aten::sum.dim_IntList(x, [-1])",
            "b = aten::sum.dim_IntList(x, [0, 1], True)",
            "c = aten::mean.dim(x, [1])",
            "d = aten::amax(x, [0, 2])",
            "e = aten::amin(x, [1], True)",
            "f = aten::prod.dim_int(x, 2)",
            "g = aten::sum(x)",
            "h = aten::mean(x)",
            "i, j = aten::var_mean.correction(x, [2], correction=0)",
            "k = aten::linalg_vector_norm(x, 2, [1])",
            "l = aten::logsumexp(x, [2])",
            "m = aten::argmax(x, 1)",
            "n = aten::argmin(x)",
            "o, p = aten::max.dim(x, 2, True)",
            "q = aten::cumsum(x, 1)",
            "r = aten::_softmax(x, 1, False)",
            "s = aten::_log_softmax(x, 2, False)"),
        program(
            "x: bf16[2, 3000]",
            "a = aten::sum.dim_IntList(x, [1])",
            "b = aten::_softmax(x, 1, False)",
            "c = aten::mean.dim(x, [0])",
            "d = aten::amax(x)"),
        program(
            "x: i64[6, 40]",
            "a = aten::sum.dim_IntList(x, [1])",
            "b = aten::amax(x, [0])",
            "c = aten::any.dim(x, 1)",
            "d = aten::all(x)",
            "e = aten::cumsum(x, 0)",
            "f = aten::argmin(x, 1)",
            "g = aten::count_nonzero(x)",
            "h = aten::prod(x)"),
        // Rounded first: a sum in f16 of what f32 has in between.
        program(
            "x: f32[2, 900], y: i64[3, 40]",
            "w = aten::add.Scalar(x, 2049)",
            "a = aten::mean.dim(w, [1], dtype=torch.float16)",
            "b = aten::softmax.int(w, 1, dtype=torch.bfloat16)",
            "z = aten::add.Scalar(y, 16777217)",
            "c = aten::mean.dim(z, [1], dtype=torch.float32)"),
        // Two rows in a block, each of two or three warps.
        program(
            "x: f32[64, 512], y: f32[33, 300], z: f32[33, 701]",
            "a = aten::mean.dim(x, [-1])",
            "b = aten::_softmax(y, -1, False)",
            "c = aten::_softmax(z, -1, False)",
            "d = aten::argmax(z, 1)"),
        // Rows of vectors: in one piece and in pieces, aligned and not, some of one element for
        // all.
        program(
            "x: bf16[1025, 520], y: bf16[1025, 520], w: bf16[520]",
            "a = aten::add.Tensor(x, y)",
            "f = prims::convert_element_type(a, torch.float32)",
            "s = aten::pow.Tensor_Scalar(f, 2)",
            "m = aten::mean.dim(s, [-1], True)",
            "e = aten::add.Scalar(m, 1e-05)",
            "r = aten::rsqrt(e)",
            "n = aten::mul.Tensor(f, r)",
            "b = prims::convert_element_type(n, torch.bfloat16)",
            "c = aten::mul.Tensor(b, w)"),
        program(
            "x: f32[6, 5, 3, 16], v: f32[3, 1], y: bf16[9, 20000], z: f64[70, 12]",
            "s = aten::slice.Tensor(x, 3, 8, 16)",
            "a = aten::sum.dim_IntList(s, [2, 3])",
            "u = aten::slice.Tensor(x, 3, 1, 9)",
            "b = aten::amax(u, [2, 3])",
            "c = aten::mul.Tensor(s, v)",
            "d = aten::mean.dim(c, [2, 3], True)",
            "e = aten::sub.Tensor(c, d)",
            "f = aten::_softmax(y, 1, False)",
            "t = aten::slice.Tensor(y, 1, 8, 136)",
            "g = aten::argmax(t, 1)",
            "h = aten::_log_softmax(z, 1, False)"),
        program(
            "x: f32[300, 41], y: bf16[7, 33, 64], z: i64[70, 45]",
            "a = aten::sum.dim_IntList(x, [0])",
            "b = aten::mean.dim(y, [0, 1])",
            "c = aten::var.dim(y, [1])",
            "d = aten::argmax(z, 0)",
            "e = aten::cumsum(x, 0)",
            "f = aten::_softmax(y, 0, False)",
            "g, h = aten::max.dim(x, 0)"),
        program(
            "x: f32[2, 40000]",
            "a = aten::_softmax(x, 1, False)",
            "b = aten::sum(x)",
            "c = aten::argmax(x, 1)"),
        program(
            "x: bf16[4, 6, 96], w: bf16[96], b: bf16[96]",
            "y, m, r = aten::native_layer_norm(x, [96], w, b, 1e-05)",
            "z, q = aten::_fused_rms_norm(x, [96], w, 1e-06)",
            "l = aten::layer_norm(x, [6, 96])"));
  }

  /** Ops over a part of what fused ones call rows, and such that sort. */
  static List<String> partsOfRows() {
    return List.of(
        """
        graph version 1
        graph t(x: f32[20, 6, 30], r: bf16[40, 8], w: f32[30]) {
          a = aten::mul.Tensor(x, w)
          m = aten::mean.dim(a, [1], True)
          d = aten::sub.Tensor(a, m)
          e = aten::exp(d)
          s = aten::sum.dim_IntList(e, [2])
          q = aten::_softmax(d, 1, False)
          u = aten::cumsum(q, 1)
          f = prims::convert_element_type(r, torch.float32)
          p = aten::_softmax(f, -1, False)
          v, i = aten::topk(p, 2)
          t = aten::sum.dim_IntList(v, [-1], True)
          n = aten::div.Tensor(v, t)
          return s, u, n, i
        }
        """,
        program(
            "x: f32[5, 17, 9], y: i64[30], z: bf16[4, 70]",
            "a, b = aten::sort(x, 1, True)",
            "c, d = aten::topk(x, 4, 2, False)",
            "e = aten::argsort(y)",
            "f, g = aten::sort(y)",
            "h, i = aten::topk(z, 7)"));
  }

  /** So many elements that several are taken at once, where they lie for that. */
  static List<String> longTensors() {
    return List.of(
        program(
            "x: bf16[64, 520], y: f32[64, 520], b: f32[520], c: bf16[64, 1]",
            "a = aten::add.Tensor(x, y)",
            "d = aten::mul.Tensor(a, b)",
            "e = aten::mul.Tensor(x, c)",
            "f = aten::silu(x)",
            "g = aten::lt.Tensor(y, b)",
            "h = prims::convert_element_type(d, torch.bfloat16)"),
        program(
            "x: f16[37, 1001], y: f32[260, 2, 129], z: i64[40000], w: bf16[65, 520]",
            "a = aten::neg(x)",
            "b = aten::relu(y)",
            "c = aten::add.Scalar(z, 3)",
            "d = aten::permute(w, [1, 0])",
            "e = aten::exp(d)",
            "f = aten::slice.Tensor(w, 1, 8, 520)",
            "g = aten::sigmoid(f)",
            "h = aten::slice.Tensor(w, 1, 1, 513)",
            "k = aten::sigmoid(h)"),
        program(
            "x: f32[200, 200], y: bf16[1, 200, 200], z: f16[2, 3, 4]",
            "a = aten::type_as(x, y)",
            "b = aten::to.other(x, z)",
            "c = aten::permute(x, [1, 0])",
            "d = aten::type_as(c, z)"));
  }

  /** Ops of one element, where they have bounds, branches or functions of their own. */
  static List<String> elements() {
    var lines =
        """
        celu(x, 0.7)
        elu(x, 1.1, 1.05, 0.9)
        selu(x)
        gelu(x)
        gelu(x, approximate='tanh')
        mish(x)
        softplus(x, 2, 0.5)
        log_sigmoid(x)
        hardswish(x)
        hardtanh(x, -0.5, 0.25)
        threshold(x, 0.1, 7)
        leaky_relu(x, 0.2)
        logit(p)
        logit(x, 0.1)
        sinc(x)
        round.decimals(x, decimals=1)
        deg2rad(x)
        nan_to_num(n, 0.5, 9.5)
        isposinf(n)
        isneginf(n)
        signbit(x)
        heaviside(x, y)
        clamp(x, -0.25, 0.5)
        clamp(x, None, 0.5)
        clamp.Tensor(x, y)
        copysign.Tensor(y, x)
        hypot(x, y)
        atan2(x, y)
        logaddexp(x, y)
        logaddexp2(x, y)
        xlogy.Tensor(x, p)
        fmin(n, y)
        fmax(n, y)
        maximum(n, y)
        minimum(n, y)
        fmod.Tensor(x, y)
        remainder.Tensor(x, y)
        floor_divide(x, y)
        div.Tensor_mode(x, y, rounding_mode='floor')
        div.Tensor_mode(x, y, rounding_mode='trunc')
        lerp.Scalar(x, y, 0.3)
        lerp.Tensor(x, y, p)
        addcmul(x, y, p, value=2)
        addcdiv(x, y, p, value=-3)
        gelu_backward(y, x)
        gelu_backward(y, x, approximate='tanh')
        mish_backward(y, x)
        elu_backward(y, 1.1, 1.05, 0.9, False, x)
        elu_backward(y, 1.1, 1.05, 0.9, True, x)
        hardsigmoid_backward(y, x)
        hardswish_backward(y, x)
        hardtanh_backward(y, x, -0.5, 0.25)
        leaky_relu_backward(y, x, 0.2, False)
        log_sigmoid_backward(y, x, p)
        logit_backward(y, p)
        logit_backward(y, x, 0.1)
        softplus_backward(y, x, 2, 0.5)
        threshold_backward(y, x, 0.1)
        mse_loss_backward(y, x, p, 1)
        float_power.Tensor_Scalar(p, 1.5)
        pow.Tensor_Scalar(x, 3)
        pow.Tensor_Scalar(x, -2)
        pow.Tensor_Scalar(p, -0.5)
        pow.Tensor_Scalar(i, 2)
        pow.Tensor_Scalar(j, 3)
        bitwise_left_shift.Tensor_Scalar(i, 3)
        bitwise_left_shift.Tensor(i, j)
        bitwise_right_shift.Tensor(i, j)
        bitwise_xor.Scalar_Tensor(5, i)
        fmod.Scalar(i, 3)
        fmod.Scalar(j, -2)
        fmod.Scalar(i, -1)
        fmod.Tensor(i, odd)
        div.Tensor_mode(i, odd, rounding_mode='trunc')
        div.Tensor_mode(i, odd, rounding_mode='floor')
        div.Scalar_mode(j, -2, rounding_mode='floor')
        div.Scalar_mode(i, -1, rounding_mode='trunc')
        floor_divide(i, odd)
        remainder.Scalar(j, -3)
        remainder.Tensor(i, odd)
        clamp(i, -2, 3)
        fmin(i, j)
        maximum(i, j)
        heaviside(i, j)
        signbit(i)
        round.decimals(i, decimals=-1)
        nan_to_num(i)
        """
            .lines()
            .toList();
    return List.of(
        program(
                "x: f32[40], y: f32[40], i: i64[40], j: i32[40]",
                IntStream.range(0, lines.size())
                    .mapToObj(i -> "v%s = aten::%s".formatted(i, lines.get(i)))
                    .toArray(String[]::new))
            .replace(
                ") {\n",
                """
                ) {
                  p = aten::sigmoid(x)
                  n = aten::log(x)
                  odd = aten::bitwise_or.Scalar(j, 1)
                """));
  }

  /** Functions that only CUDA has. */
  static List<String> functionsOfCuda() {
    return List.of(
        program(
            "x: f32[40], y: f64[40]",
            "a = aten::erfinv(x)",
            "b = aten::special_erfcx(x)",
            "p = aten::sigmoid(x)",
            "c = aten::special_ndtri(p)",
            "d = aten::erfinv(y)",
            "f = aten::special_log_ndtr(x)",
            "e = aten::special_erfcx(y)"));
  }

  static List<String> places() {
    return List.of(
        program(
                "x: f32[4, 6], i: i64[3, 5], w: bf16[8, 10], m: i64[4, 2]",
                "a = aten::full([3, 2], -0.5)",
                "b = prims::iota(7, start=2, step=3, dtype=torch.int64, device='cuda',"
                    + " requires_grad=False)",
                "c = aten::arange.start_step(1, 9, 0.75)",
                "d = aten::eye.m(3, 4)",
                "e = aten::triu(x, 1)",
                "f = aten::tril(x)",
                "g = aten::constant_pad_nd(x, [1, 2, -1, 3], 2.5)",
                "h = aten::flip(x, [1])",
                "j = aten::embedding(w, i)",
                "k = aten::slice_scatter(x, o, 1, 1, 5, 2)",
                "l = aten::scalar_tensor(3.5, dtype=torch.float16)")
            .replace("m: i64[4, 2]", "o: f32[4, 2]"),
        program(
            "x: bf16[3, 8, 32], y: bf16[3, 8, 16], z: bf16[3, 8, 32], o: f32[3, 8, 32], u: bf16[8,"
                + " 32]",
            "a = aten::slice_scatter(x, y, 2, 0, 16)",
            "b = aten::slice_scatter(x, y, 2, 16, 9223372036854775807)",
            "c = aten::slice_scatter(x, y, 2, 5, 21)",
            "d = aten::slice_scatter(x, z, 1)",
            "e = aten::slice_scatter(x, o, 2, -32, 32)",
            "k = aten::mul.Scalar(x, 2.0)",
            "f = aten::slice_scatter(k, y, 2, 8, 24)",
            "h = aten::slice.Tensor(y, 2, 16, 16)",
            "g = aten::slice_scatter(x, h, 2, 30, 4)",
            "l = aten::select_scatter(x, u, 0, 1)",
            "m = aten::select_scatter(x, u, 0, -1)"),
        program(
            "x: f32[8, 9, 10], i: i64[5], j: i64[2, 1], r: f32[8, 10], g: i64[8, 4, 10]",
            "a = aten::index_select(x, 1, i)",
            "b = aten::index.Tensor(x, [i])",
            "c = aten::index.Tensor(x, [None, i, j])",
            "d = aten::index.Tensor(x, [j, None, i])",
            "e = aten::gather(x, 1, g)",
            "f = aten::select_scatter(x, r, 1, -2)",
            "h = aten::scatter.value(x, 1, g, 7.5)",
            "k = aten::one_hot(i, 8)"),
        program(
            "x: f32[50, 2500], i: i64[9], v: f32[9, 2500], y: bf16[8, 9, 10], j: i64[2, 1],"
                + " u: bf16[8, 2, 9], w: f32[5, 8, 6], q: i64[5, 8], o: f32[1], p: i64[0],"
                + " e: f32[0, 2500]",
            "a = aten::index_put(x, [i], v, True)",
            "b = aten::index_put(x, [i], v)",
            "c = aten::index_put(y, [None, i, j], u, True)",
            "d = aten::embedding_dense_backward(w, q, 100, 3, False)",
            "f = aten::index_put(x, [i], o, True)",
            "g = aten::index_put(x, [p], e, True)",
            "k = aten::mul.Scalar(x, 2.0)",
            "h = aten::index_put(k, [i], v, True)",
            "l = aten::mul.Scalar(x, 3.0)",
            "m = aten::index_put_(l, [i], v)",
            "n = aten::add.Tensor(y, y)",
            "s = aten::index_put_(n, [None, i, j], u, True)"),
        program(
                "x: f32[8, 300], i: i64[40], v: f32[40, 300], y: bf16[8, 3, 9], u: bf16[9, 40, 3],"
                    + " w: f32[5, 8, 6], q: i64[5, 8]",
                "a = aten::index_put(x, [i], v, True)",
                "b = aten::index_put(y, [i], z, True)",
                "c = aten::embedding_dense_backward(w, q, 20, 3, False)",
                "d = aten::index_put(x, [i], v)",
                "e = aten::neg(x)",
                "f = aten::index_put_(e, [i], v, True)")
            .replace("  b = ", "  z = aten::permute(u, [1, 2, 0])\n  b = "));
  }

  /** Tensors in pieces and from pieces, of vectors where they lie for that. */
  static List<String> moves() {
    var pieces =
        IntStream.range(0, 18)
            .mapToObj(i -> "q%1$s = aten::slice.Tensor(r, 1, %1$s, %2$s)".formatted(i, 33 - i))
            .toArray(String[]::new);
    return List.of(
        program(
            "x: bf16[1, 40, 8, 16], y: f32[3, 24], z: f32[2, 24], j: i64[7]",
            "p = aten::permute(x, [0, 2, 1, 3])",
            "s = aten::slice.Tensor(p, 3, 8, 16)",
            "t = aten::slice.Tensor(p, 3, 0, 8)",
            "u = aten::slice.Tensor(p, 3, 1, 9)",
            "n = aten::neg(s)",
            "a = aten::cat([n, t], -1)",
            "b = aten::cat([u, n, t], -1)",
            "c = aten::stack([t, s, n], 1)",
            "d = aten::cat([y, z, y], 0)",
            "e = aten::cat([y, y], 1)",
            "v = aten::expand(y, [5, 3, 24])",
            "f = aten::clone(v)",
            "g = aten::full([5, 3, 24], 0, dtype=torch.bfloat16)",
            "h = aten::copy_(g, v)",
            "k = aten::index_select(p, 1, j)",
            "l = aten::index_select(p, 3, j)",
            "m = aten::index.Tensor(p, [None, None, j])",
            "o = aten::index.Tensor(p, [None, None, None, j])",
            "w = aten::index_select(s, 2, j)"),
        program("r: f16[4, 33]", pieces)
            .replace(
                "  return ",
                "  c = aten::cat([%s], 1)\n  return c, "
                    .formatted(
                        IntStream.range(0, 18)
                            .mapToObj(i -> "q" + i)
                            .collect(Collectors.joining(", ")))),
        program("w: bf16[20, 32], i: i64[3, 5]", "e = aten::embedding(w, i)"));
  }

  /** Of numbers that are not the same in all types. */
  /** Of 64 bits, with a sign and without one; a double does not hold them. */
  private static String wideIntegers() {
    return program(
        "x: i64[300], y: i64[300], n: i64[300]",
        "a = aten::mul.Scalar(x, 4611686018427387905)",
        "b = aten::mul.Scalar(y, 4611686018427387907)",
        "u = prims::convert_element_type(a, torch.uint64)",
        "v = prims::convert_element_type(b, torch.uint64)",
        "i = aten::remainder.Scalar(n, 64)",
        "by = prims::convert_element_type(i, torch.uint64)",
        "lt = aten::lt.Tensor(u, v)",
        "ge = aten::ge.Tensor(u, v)",
        "most = aten::maximum(u, v)",
        "least = aten::minimum(u, v)",
        "w = aten::bitwise_or.Scalar(v, 1)",
        "quotient = aten::div.Tensor_mode(u, w, rounding_mode=\"floor\")",
        "rest = aten::remainder.Tensor(u, w)",
        "shifted = aten::bitwise_right_shift.Tensor(u, by)",
        "power = aten::pow.Tensor_Tensor(u, v)",
        "absolute = aten::abs(u)",
        "all_most = aten::amax(u, [0])",
        "all_least = aten::amin(u, [0])",
        "where_most = aten::argmax(u)",
        "c, d = aten::sort.stable(u, stable=True)",
        "found = aten::searchsorted.Tensor(c, v)",
        "so_far, where = aten::cummax(u, 0)",
        "e, f = aten::sort.stable(a, stable=True)",
        "g = aten::searchsorted.Tensor(e, b)",
        "h, j = aten::cummin(a, 0)");
  }

  static List<String> comparisons() {
    var texts = new ArrayList<String>();
    texts.add(wideIntegers());
    for (var dtype : List.of("f16", "bf16", "f32", "f64")) {
      var lines = new ArrayList<String>();
      for (var op : List.of("eq", "ne", "lt", "le", "gt", "ge")) {
        for (var other : List.of("0.1", "q", "d")) {
          var overload = other.equals("0.1") ? "Scalar" : "Tensor";
          lines.add(
              "%1$s_%2$s = aten::%1$s.%3$s(x, %4$s)".formatted(op, lines.size(), overload, other));
        }
        lines.add("%1$s_w = aten::%1$s.Tensor(y, w)".formatted(op));
        lines.add("%1$s_i = aten::%1$s.Scalar(y, 16777217)".formatted(op));
        lines.add("%1$s_n = aten::%1$s.Tensor(z, x)".formatted(op));
      }
      texts.add(
          program("t: %s[4]".formatted(dtype), lines.toArray(String[]::new))
              .replace(
                  ") {\n",
                  """
                  ) {
                    x = aten::full_like(t, 0.1)
                    y = aten::full_like(t, 16777216)
                    q = aten::full([], 0.1)
                    d = aten::full([], 0.1, dtype=torch.float64)
                    w = aten::full([], 16777217, dtype=torch.int64)
                    z = aten::full([4], 0.1, dtype=torch.float64)
                  """));
    }
    return texts;
  }

  /** NaNs, integers beside floats, and numbers that a type does not hold. */
  static List<String> edges() {
    var texts = new ArrayList<String>();
    texts.add(
        program(
            "t: f32[4]",
            "n = aten::full_like(t, nan)",
            "a = aten::hardsigmoid(n)",
            "b = aten::clamp_min.Tensor(t, n)",
            "c = aten::clamp_max.Tensor(t, n)",
            "d = aten::clamp_min.Tensor(n, t)",
            "e = aten::clamp_max(t, nan)",
            "f = aten::sign(n)",
            "g = aten::sgn(n)",
            "h = aten::hardsigmoid(t)"));
    texts.add(
        program(
            "t: f32[4]",
            "x = aten::full([4], 16777217, dtype=torch.int64)",
            "y = aten::full([4], False, dtype=torch.bool)",
            "z = aten::full([4], 0.5, dtype=torch.bool)",
            "v = aten::full([], 2.5)",
            "a = aten::masked_fill.Scalar(x, y, 2.5)",
            "b = aten::masked_fill.Scalar(x, z, -2.5)",
            "c = aten::masked_fill.Tensor(x, y, v)",
            "d = aten::masked_fill.Tensor(x, z, v)",
            "e = aten::masked_fill.Scalar(y, z, 0.5)"));
    for (var dtype : List.of("uint8", "int8", "int16", "int32", "bool", "float16")) {
      texts.add(
          program(
              "t: f32[3]",
              "x = aten::full([3], -1.5)",
              "y = aten::full([3], 300.0, dtype=torch.float64)",
              "a = aten::full([3], 0, dtype=torch.%s)".formatted(dtype),
              "b = aten::copy_(a, x)",
              "c = aten::full([3], 0, dtype=torch.%s)".formatted(dtype),
              "d = aten::copy_(c, y)"));
    }
    return texts;
  }

  /** Products of a large matrix and a few tokens: of one tile and several, full and not. */
  static List<String> fewTokens() {
    return List.of(
        few("bf16", 5, 1030, 1152),
        few("f16", 16, 1024, 1024),
        few("bf16", 9, 6150, 256),
        few("f16", 1, 8200, 128),
        program(
            "w: bf16[1030, 1152], x: bf16[1152], y: bf16[1152, 1], b: bf16[1030]",
            "m = aten::mv(w, x)",
            "n = aten::mm(w, y)",
            "o = aten::addmv(b, w, x, alpha=0.5)"));
  }

  private static String few(String dtype, int tokens, int rows, int columns) {
    return """
    graph version 1
    graph t(x: %1$s[%2$s, %4$s], w: %1$s[%3$s, %4$s], b: %1$s[%3$s], c: %1$s[%2$s, %3$s]) {
      t = aten::permute(w, [1, 0])
      m = aten::mm(x, t)
      n = aten::addmm(b, x, t)
      o = aten::addmm(c, x, t)
      p = aten::addmm(c, x, t, beta=-0.5, alpha=2)
      e = aten::neg(c)
      q = aten::addmm(e, x, t)
      return m, n, o, p, q
    }
    """
        .formatted(dtype, tokens, rows, columns);
  }

  /** Products of one input that become one launch, and what computes with two of them. */
  static List<String> joinedProducts() {
    return List.of(
        gated(
            "bf16", 9, 6150, 256, "b, x, j", "prims::convert_element_type(e, torch.bfloat16)", "n"),
        gated(
            "f16", 16, 6144, 256, "b, x, j", "prims::convert_element_type(e, torch.float16)", "n"),
        gated("bf16", 2, 6150, 256, "r, x, j, beta=0.5", "aten::mul.Tensor(e, m)", "n"),
        gated("bf16", 1, 6150, 256, "r, x, j, alpha=3", "aten::mul.Tensor(e, m)", "n"),
        // The result is computed in f32, from a product that is also returned.
        gated("bf16", 3, 6160, 256, "b, x, j", "aten::add.Tensor(e, m)", "m"),
        """
        graph version 1
        graph t(x: bf16[7, 1152], w: bf16[2048, 1152], u: bf16[1030, 1152], v: bf16[1024, 1200], b: bf16[1030]) {
          s = aten::slice.Tensor(v, 1, 0, 1152)
          i = aten::permute(w, [1, 0])
          j = aten::permute(u, [1, 0])
          k = aten::permute(s, [1, 0])
          q = aten::mm(x, i)
          r = aten::addmm(b, x, j)
          t = aten::mm(x, k)
          y = aten::view(r, [7, 5, 206])
          z = aten::neg(t)
          return q, y, z
        }
        """,
        // The second multiplies what the first makes.
        """
        graph version 1
        graph t(x: bf16[4, 1024], w: bf16[1024, 1024]) {
          i = aten::permute(w, [1, 0])
          q = aten::mm(x, i)
          r = aten::mm(q, i)
          s = aten::mm(x, i)
          return q, r, s
        }
        """);
  }

  /** Products of one input, and what computes with both, for Hopper's tensor cores. */
  static List<String> pairedProducts() {
    // One team and two, one block and a cluster; rows, columns and tokens that fill no box.
    return List.of(
        gated(
            "bf16",
            17,
            2130,
            584,
            "b, x, j",
            "prims::convert_element_type(e, torch.bfloat16)",
            "n"),
        gated("bf16", 18, 2200, 128, "b, x, j, alpha=-2", "aten::add.Tensor(e, m)", "m"),
        gated("f16", 70, 2648, 104, "b, x, j", "aten::mul.Tensor(e, n)", "n"),
        gated(
            "f16", 65, 5290, 56, "b, x, j", "prims::convert_element_type(e, torch.float16)", "n"));
  }

  /** Products of a large matrix and some tokens, for Hopper's tensor cores. */
  static List<String> tokenProducts() {
    // A cluster with results of a thread side by side, or one by one; a block alone; a few tokens.
    return List.of(
        program(
            "x: bf16[33, 4104], w: bf16[2056, 4104], b: bf16[2056]",
            "i = aten::permute(w, [1, 0])",
            "m = aten::addmm(b, x, i, alpha=0.5)"),
        program(
            "x: f16[17, 4104], w: f16[2049, 4104], c: f16[17, 2049]",
            "i = aten::permute(w, [1, 0])",
            "m = aten::addmm(c, x, i, beta=2)"),
        program(
            "x: bf16[64, 664], w: bf16[12680, 664]",
            "i = aten::permute(w, [1, 0])",
            "m = aten::mm(x, i)"),
        program(
            "x: bf16[9, 3200], w: bf16[2648, 3200], c: bf16[9, 2648]",
            "i = aten::permute(w, [1, 0])",
            "m = aten::addmm(c, x, i)"));
  }

  private static String gated(
      String dtype, int tokens, int rows, int columns, String added, String last, String factor) {
    return """
    graph version 1
    graph t(x: %1$s[%2$s, %4$s], w: %1$s[%3$s, %4$s], v: %1$s[%3$s, %4$s], b: %1$s[%3$s], r: %1$s[%2$s, %3$s]) {
      i = aten::permute(w, [1, 0])
      j = aten::permute(v, [1, 0])
      m = aten::mm(x, i)
      n = aten::addmm(%5$s)
      c = prims::convert_element_type(m, torch.float32)
      d = aten::sigmoid(c)
      e = aten::mul.Tensor(c, d)
      f = %6$s
      g = aten::mul.Tensor(f, n)
      return g, %7$s
    }
    """
        .formatted(dtype, tokens, rows, columns, added, last, factor);
  }

  static List<String> products() {
    return List.of(
        program(
            "x: f32[5, 7], y: f32[7, 9], b: f32[9], c: f32[5, 9], d: f32[5, 1], e: f64[9]",
            "m = aten::mm(x, y)",
            "n = aten::addmm(b, x, y)",
            "o = aten::addmm(c, x, y, beta=0.5, alpha=2)",
            "p = aten::addmm(d, x, y)",
            "q = aten::addmm(b, x, y, beta=3)",
            // Nothing times infinite factors adds nothing, and neither do no columns.
            "i = aten::mul.Scalar(x, 1e38)",
            "j = aten::mul.Scalar(i, 1e38)",
            "r = aten::addmm(b, j, y, alpha=0)",
            "s = aten::addmm(c, j, y, beta=0.5, alpha=0.0)",
            "t = aten::addmm(c, j, y, beta=0, alpha=0)",
            "u = aten::slice.Tensor(x, 1, 0, 0)",
            "v = aten::slice.Tensor(y, 0, 0, 0)",
            "w = aten::addmm(c, u, v, beta=2)",
            "k = aten::unsqueeze(j, 0)",
            "l = aten::unsqueeze(y, 0)",
            "z = aten::addbmm(c, k, l, alpha=0)",
            "a = aten::select.int(y, 1, 0)",
            "f = aten::select.int(c, 1, 0)",
            "g = aten::addmv(f, j, a, beta=0.5, alpha=0.0)"),
        """
        graph version 1
        graph t(x: bf16[3, 4, 6], y: bf16[5, 6], z: bf16[3, 6, 5], b: bf16[4, 5], c: bf16[12]) {
          t = aten::permute(y, [1, 0])
          e = aten::expand(t, [3, 6, 5])
          m = aten::bmm(x, e)
          n = aten::baddbmm(b, x, z)
          o = aten::bmm(x, z)
          p = aten::permute(o, [0, 2, 1])
          q = aten::bmm(p, x)
          u = aten::unsqueeze(c, 1)
          v = aten::expand(u, [12, 4])
          w = aten::view(x, [12, 6])
          s = aten::slice.Tensor(w, 1, 0, 6, 2)
          r = aten::permute(s, [1, 0])
          k = aten::mm(r, v)
          f = aten::bmm.dtype(x, z, torch.float32)
          g = aten::mm.dtype(w, t, torch.float32)
          return m, n, o, q, k, f, g
        }
        """,
        program(
            "x: i64[5, 7], y: i64[7, 9], z: f64[3, 4], w: f64[4, 2], b: f64[2]",
            "m = aten::mm(x, y)",
            "n = aten::mm(z, w)",
            "o = aten::addmm(b, z, w)"));
  }

  /** Every number, every number half way between two, and products. */
  static List<String> shortFloats() {
    var texts = new ArrayList<String>();
    for (var type : List.of("float8_e4m3fn, 500, 0.125", "float8_e5m2, 65600, 16")) {
      var parts = type.split(", ");
      texts.add(
          program(
              "x: f32[40]",
              "a = aten::arange.start_step(0, 256, 1, dtype=torch.uint8)",
              "b = aten::view.dtype(a, torch.%s)".formatted(parts[0]),
              "c = aten::_to_copy(b, dtype=torch.float32)",
              "d = aten::arange.start_step(0, %s, %s)".formatted(parts[1], parts[2]),
              "e = aten::_to_copy(d, dtype=torch.%s)".formatted(parts[0]),
              "f = aten::_to_copy(e, dtype=torch.float32)",
              "g = aten::mul.Scalar(d, -1e-05)",
              "h = aten::_to_copy(g, dtype=torch.%s)".formatted(parts[0]),
              "i = aten::_to_copy(h, dtype=torch.bfloat16)",
              "j = aten::full_like(x, nan, dtype=torch.%s)".formatted(parts[0]),
              "k = aten::_to_copy(j, dtype=torch.float32)",
              "l = aten::full_like(x, -inf, dtype=torch.%s)".formatted(parts[0]),
              "m = aten::_to_copy(l, dtype=torch.float32)"));
    }
    texts.add(
        program(
            "x: f32[24, 32], y: bf16[16, 32], s: f32[24, 1], t: f32[1, 16], u: f32[], c: bf16[16]",
            "a = aten::_to_copy(x, dtype=torch.float8_e4m3fn)",
            "b = aten::_to_copy(y, dtype=torch.float8_e5m2)",
            "d = aten::t(b)",
            "e = aten::_scaled_mm(a, d, u, u, None, None, torch.float32)",
            "f = aten::_scaled_mm(a, d, s, t, c, None, torch.bfloat16)",
            "g = aten::_scaled_mm(a, d, u, u, c, None, torch.bfloat16, True)"));
    // One row, and lines that are further apart than they are long.
    texts.add(
        program(
            "x: f32[1, 64], y: f32[48, 80], z: f32[5, 80], s: f32[1, 1], t: f32[1, 48], u: f32[1]",
            "a = aten::_to_copy(x, dtype=torch.float8_e4m3fn)",
            "b = aten::_to_copy(y, dtype=torch.float8_e4m3fn)",
            "c = aten::slice.Tensor(b, 1, 16, 80)",
            "d = aten::t(c)",
            "e = aten::_scaled_mm(a, d, s, t, None, None, torch.float16)",
            "f = aten::_to_copy(z, dtype=torch.float8_e5m2)",
            "g = aten::slice.Tensor(f, 1, 0, 64)",
            "h = aten::_scaled_mm(g, d, u, s, None, None, torch.bfloat16)"));
    return texts;
  }

  /** Groups of one dimension, stored in all ways: empty ones, and rest behind the last. */
  static List<String> groupedProducts() {
    return List.of(
        program(
            "x: bf16[48, 40], y: bf16[40, 48], v: bf16[4, 40, 72], w: bf16[4, 72, 40],"
                + " z: bf16[72, 48], u: bf16[48, 72]",
            // 0, 13, 26 and 39.
            "o = aten::arange.start_step(0, 40, 13, dtype=torch.int32)",
            "p = aten::permute(w, [0, 2, 1])",
            "q = aten::permute(y, [1, 0])",
            "a = aten::_grouped_mm(x, v, o)",
            "b = aten::_grouped_mm(x, p, o, None, torch.float32)",
            "c = aten::_grouped_mm(q, v, o)",
            "d = aten::_grouped_mm(v, z, o)",
            "t = aten::permute(u, [1, 0])",
            "e = aten::_grouped_mm(p, z, o)",
            "f = aten::_grouped_mm(v, t, o)",
            "r = aten::permute(x, [1, 0])",
            "g = aten::_grouped_mm(r, u, o)",
            // Inner elements side by side, where groups begin anywhere.
            "h = aten::_grouped_mm(y, u, o)"),
        // Tiles of many rows, and more inner elements than are on their way at once.
        program(
            "x: f16[150, 200], w: f16[2, 200, 136]",
            "o = aten::arange.start_step(70, 150, 70, dtype=torch.int32)",
            "a = aten::_grouped_mm(x, w, o)"),
        // Many rows in each group, in all forms; rows after the last group are undefined.
        program(
            "s: bf16[282, 264], u: bf16[282, 136], w: bf16[2, 264, 136]",
            "o = aten::arange.start_step(141, 283, 141, dtype=torch.int32)",
            "x = aten::constant_pad_nd(s, [0, 0, 0, 14], nan)",
            "y = aten::constant_pad_nd(u, [0, 0, 0, 14], nan)",
            "a = aten::_grouped_mm(x, w, o)",
            "p = aten::permute(x, [1, 0])",
            "b = aten::_grouped_mm(p, y, o)",
            "v = aten::permute(w, [0, 2, 1])",
            "c = aten::_grouped_mm(v, p, o)",
            "d = aten::_grouped_mm(v, p, o, None, torch.float32)",
            "q = aten::clone(p, memory_format=torch.contiguous_format)",
            "e = aten::_grouped_mm(v, q, o)",
            "r = aten::permute(q, [1, 0])",
            "f = aten::_grouped_mm(r, w, o)"),
        // More tiles than a GPU has multiprocessors.
        program(
            "x: f16[320, 16], w: f16[160, 16, 24]",
            "o = aten::arange.start_step(2, 321, 2, dtype=torch.int32)",
            "a = aten::_grouped_mm(x, w, o)",
            "p = aten::permute(x, [1, 0])",
            "b = aten::_grouped_mm(p, x, o)"),
        program(
            "x: f32[7, 5], v: f32[3, 5, 4], z: f32[4, 9], i: bf16[2, 3, 5], j: bf16[2, 5, 6]",
            "o = aten::arange.start_step(2, 7, 2, dtype=torch.int32)",
            "a = aten::_grouped_mm(x, v, o)",
            "b = aten::_grouped_mm(v, z, o)",
            "p = aten::permute(x, [1, 0])",
            "c = aten::_grouped_mm(p, x, o)",
            "d = aten::_grouped_mm(i, j)"));
  }

  static List<String> attention() {
    var texts = new ArrayList<String>();
    for (var dtype : List.of("f32", "bf16", "f64")) {
      texts.add(
          program(
              "q: %1$s[2, 4, 7, 20], k: %1$s[2, 2, 150, 20], v: %1$s[2, 2, 150, 24],"
                      .formatted(dtype)
                  + " m: b8[7, 150], b: %s[2, 1, 7, 150]".formatted(dtype),
              "a = aten::scaled_dot_product_attention(q, k, v, enable_gqa=True)",
              "c = aten::scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3,"
                  + " enable_gqa=True)",
              "d = aten::scaled_dot_product_attention(q, k, v, m, enable_gqa=True)",
              "e = aten::scaled_dot_product_attention(q, k, v, b, enable_gqa=True)"));
    }
    texts.add(
        program(
            "q: f32[1, 3, 140, 8], k: f32[1, 3, 9, 8], v: f32[1, 3, 9, 130],"
                + " b: f32[1, 3, 140, 9], g: f32[1, 3, 140, 130]",
            "o, l, s, t = aten::_scaled_dot_product_efficient_attention(q, k, v, b, True)",
            "dq, dk, dv, db = aten::_scaled_dot_product_efficient_attention_backward(g, q, k, v, b,"
                + " o, l, s, t, 0.0, [True, True, True, True])",
            "o2, l2, s2, t2 = aten::_scaled_dot_product_efficient_attention(q, k, v, b, True, 0.0,"
                + " True)",
            "eq, ek, ev = aten::_scaled_dot_product_efficient_attention_backward(g, q, k, v, b,"
                + " o2, l2, s2, t2, 0.0, [True, True, True, False], True)"));
    texts.add(
        program(
            "q: bf16[1, 2, 32, 16], k: bf16[1, 2, 40, 16], v: bf16[1, 2, 40, 16],"
                + " b: bf16[1, 1, 32, 40], g: bf16[1, 2, 32, 16]",
            "p = aten::scaled_dot_product_attention(q, k, v, b)",
            "o, l, s, t = aten::_scaled_dot_product_efficient_attention(q, k, v, None, True)",
            "dq, dk, dv = aten::_scaled_dot_product_efficient_attention_backward(g, q, k, v, None,"
                + " o, l, s, t, 0.0, [True, True, True, False])"));
    // Gradients of heads that several of queries share, which are added up before they are rounded.
    for (var dtype : List.of("f32", "bf16", "f64")) {
      texts.add(
          program(
              "q: %1$s[2, 6, 11, 20], k: %1$s[2, 2, 30, 20], v: %1$s[2, 2, 30, 24],"
                      .formatted(dtype)
                  + " b: %1$s[1, 6, 11, 30], g: %1$s[2, 6, 11, 24]".formatted(dtype),
              "o, l, s, t = aten::_scaled_dot_product_efficient_attention(q, k, v, b, True)",
              "dq, dk, dv, db = aten::_scaled_dot_product_efficient_attention_backward(g, q, k, v,"
                  + " b, o, l, s, t, 0.0, [True, True, True, True])",
              "o2, l2, s2, t2 = aten::_scaled_dot_product_efficient_attention(q, k, v, None, True,"
                  + " 0.0, True)",
              "eq, ek, ev = aten::_scaled_dot_product_efficient_attention_backward(g, q, k, v,"
                  + " None, o2, l2, s2, t2, 0.0, [True, True, True, False], True)"));
    }
    // Several tiles of rows and of keys, with lines that are vectors and that are not.
    texts.add(
        program(
            "q: f32[1, 2, 70, 20], k: f32[1, 1, 150, 20], v: f32[1, 1, 150, 72],"
                + " m: b8[70, 150], b: f32[2, 1, 150]",
            "a = aten::scaled_dot_product_attention(q, k, v, enable_gqa=True)",
            "d = aten::scaled_dot_product_attention(q, k, v, m, enable_gqa=True)",
            "e = aten::scaled_dot_product_attention(q, k, v, b, 0.0, True, scale=-0.3,"
                + " enable_gqa=True)"));
    texts.add(
        program(
            "q0: f32[1, 70, 2, 100], k0: f32[1, 90, 2, 100], x: f16[70, 69], y: f16[90, 69],"
                + " w: f32[1, 1, 33, 256]",
            "q = aten::permute(q0, [0, 2, 1, 3])",
            "k = aten::permute(k0, [0, 2, 1, 3])",
            "o, l, s, t = aten::_scaled_dot_product_efficient_attention(q, k, k, None, True, 0.0,"
                + " True)",
            "a = aten::scaled_dot_product_attention(x, y, y)",
            "b = aten::scaled_dot_product_attention(w, w, w)"));
    // Few rows, whose keys are shared by blocks: by vectors, and one by one.
    texts.add(
        program(
            "q: f32[1, 2, 1, 128], k: f32[1, 2, 300, 128], m: b8[1, 300], x: f16[31, 33],"
                + " y: f16[290, 33], w: bf16[1, 4, 3, 256], z: bf16[1, 1, 260, 256]",
            "o, l, s, t = aten::_scaled_dot_product_efficient_attention(q, k, k, None, True)",
            "a = aten::scaled_dot_product_attention(q, k, k, m)",
            "b = aten::scaled_dot_product_attention(x, y, y, scale=-0.3)",
            "c = aten::scaled_dot_product_attention(w, z, z, enable_gqa=True)"));
    return texts;
  }

  /** Random numbers of generators that have no name, a name or a state, and of Inductor's seeds. */
  static List<String> randomNumbers() {
    return List.of(
        program(
            "x: f32[4, 6, 5], h: bf16[33, 9], t: f64[7, 3]",
            "s = aten::randint(256, [16], dtype=torch.uint8)",
            "a = aten::rand([70, 9])",
            "b = aten::rand.generator([300], generator=\"rng_state_0\", dtype=torch.bfloat16)",
            "c = aten::rand_like(h)",
            "d = aten::rand_like.generator(t, generator=s)",
            "e = aten::randn([70, 9], dtype=torch.float64)",
            "f = aten::randn.generator([], generator=s, dtype=torch.float16)",
            "g = aten::randn_like.generator(x, generator=\"rng_state_1\")",
            "i = aten::randint.low(-9000000000000000000, 9000000000000000000, [50])",
            "j = aten::randint_like.low_generator_dtype(h, -3, 9, generator=s)",
            "u = aten::sigmoid(x)",
            "k = aten::bernoulli(u, generator=s)",
            "l = aten::bernoulli.p(h, 0.3)",
            "m = aten::normal_functional(x, 2.0, 0.5)",
            "n = aten::uniform(t, -2.0, 5.0, generator=s)",
            "o = aten::exponential(x, 3.0)"),
        program(
            "x: f32[4, 6, 5], h: bf16[33, 9]",
            "a, b = aten::native_dropout(x, 0.4, True)",
            "c, d = aten::native_dropout(h, 0.4, False)",
            "e = aten::dropout(h, 0.25, True)",
            "f, g = aten::native_dropout(x, 1.0, None)",
            "p = aten::permute(x, [2, 0, 1])",
            "i, j = aten::native_dropout(p, 0.4, True)",
            "k = aten::rand_like(p)",
            "y = aten::exp(x)",
            "l = aten::uniform_(y, 1.0, 2.0)",
            "z = aten::exp(h)",
            "m = aten::normal_(z, 1.0, 2.0)",
            "w = aten::exp(x)",
            "n = aten::bernoulli_.float(w, 0.7)",
            "v = aten::exp(x)",
            "o = aten::exponential_(v)"),
        program(
            "x: f32[4]",
            "a = prims::inductor_seed(device(\"cuda:0\"))",
            "b = prims::inductor_seeds(9, device(\"cuda:0\"))",
            "c = prims::inductor_lookup_seed(b, 0)",
            "d = prims::inductor_lookup_seed(b, 8)",
            "e = prims::inductor_random([7, 300], c, 'rand')",
            "f = prims::inductor_random([7, 300], d, 'randn')",
            "g = prims::inductor_randint(-5, 1000, [77], a)"));
  }

  /** Norms and their gradients, losses, optimizers, and ops on lists. */
  static List<String> composites() {
    return List.of(
        program(
            "x: f32[4, 6, 5, 7], g: f32[4, 6, 5, 7], w: f32[6], b: f32[6], u: f32[6], v: f32[6]",
            "p = aten::exp(v)",
            "y, m, r = aten::native_group_norm(x, w, b, 4, 6, 35, 3, 1e-05)",
            "a = aten::group_norm(x, 2, None, b)",
            "dx, dw, db = aten::native_group_norm_backward(g, x, m, r, w, 4, 6, 35, 3,"
                + " [True, True, True])",
            "c, d, e, f, h = aten::_native_batch_norm_legit_functional(x, w, b, u, p, True, 0.1,"
                + " 1e-05)",
            "i, j, k, l, n = aten::_native_batch_norm_legit_functional(x, w, b, u, p, False, 0.1,"
                + " 1e-05)",
            "o, q, s = aten::_native_batch_norm_legit_no_training(x, None, b, u, p, 0.1, 1e-05)",
            "t, ta, tb = aten::_native_batch_norm_legit.no_stats(x, w, None, True, 0.1, 1e-05)",
            "ex, ew, eb = aten::native_batch_norm_backward(g, x, w, None, None, d, e, True, 1e-05,"
                + " [True, True, True])",
            "fx, fw, fb = aten::native_batch_norm_backward(g, x, w, u, p, None, None, False,"
                + " 1e-05, [True, True, True])"),
        program(
            "x: bf16[33, 9, 64], g: bf16[33, 9, 64], w: bf16[64], b: bf16[64], z: f32[300, 41],"
                + " h: f32[300, 41]",
            "y, m, r = aten::native_layer_norm(x, [64], w, b, 1e-05)",
            "dx, dw, db = aten::native_layer_norm_backward(g, x, [64], m, r, w, b,"
                + " [True, True, True])",
            "n, q = aten::_fused_rms_norm(x, [64], w, 1e-06)",
            "ex, ew = aten::_fused_rms_norm_backward(g, x, [64], q, w, [True, True])",
            "c, d, e = aten::native_layer_norm(z, [41], None, None, 1e-05)",
            "fx, fw, fb = aten::native_layer_norm_backward(h, z, [41], d, e, None, None,"
                + " [True, True, True])"),
        // Tensors whose channels are neighbours in memory, and a part of one.
        program(
            "x: f32[4, 5, 7, 6], g: f32[4, 5, 7, 6], w: f32[6], k: f32[12, 40]",
            "c = aten::permute(x, [0, 3, 1, 2])",
            "d = aten::permute(g, [0, 3, 1, 2])",
            "y, m, r = aten::_native_batch_norm_legit.no_stats(c, w, None, True, 0.1, 1e-05)",
            "ex, ew, eb = aten::native_batch_norm_backward(d, c, w, None, None, m, r, True, 1e-05,"
                + " [True, True, True])",
            "a, n, s = aten::native_group_norm(c, w, None, 4, 6, 35, 3, 1e-05)",
            "fx, fw, fb = aten::native_group_norm_backward(d, c, n, s, w, 4, 6, 35, 3,"
                + " [True, True, True])",
            "e = aten::slice.Tensor(k, 1, 3, 36)",
            "l = aten::mse_loss(e, e, 0)"),
        losses("f32", "f32"),
        losses("bf16", "f32"),
        losses("f64", "f64"),
        optimizers("f32"),
        optimizers("bf16"),
        """
        graph version 1
        graph t(x: f32[40, 3], y: bf16[70], a: f32[40, 3], b: bf16[70], s: f32[]) {
          c, d = aten::_foreach_add.List([x, y], [a, b], alpha=2)
          e, f = aten::_foreach_mul.Scalar([c, d], 0.5)
          g, h = aten::_foreach_mul.Tensor([x, y], s)
          i, j = aten::_foreach_addcdiv.ScalarList([x, y], [a, b], [e, f], [1.5, -2.0])
          k, l = aten::_foreach_norm.Scalar([x, y], 2)
          m, n = aten::_foreach_max([x, y])
          o, p = aten::_foreach_clamp_min.Scalar([x, y], -0.25)
          q, r = aten::_foreach_copy([x, y], [a, b])
          t, u = aten::_foreach_lerp.Scalar([x, y], [a, b], 0.3)
          return e, f, g, h, i, j, k, l, m, n, o, p, q, r, t, u
        }
        """);
  }

  /** Ops in place whose results have other types than what they write over. */
  static List<String> rounded() {
    return List.of(
        program(
            "x: f16[64], y: f32[64]",
            "a = aten::full([64], 0, dtype=torch.int64)",
            "b = aten::lt_.Tensor(a, y)",
            "c = prims::convert_element_type(x, torch.float32)",
            "d = aten::add.Scalar(c, 1e-06)",
            "e = aten::clone(x)",
            "f = aten::eq_.Tensor(e, d)",
            "g = aten::full([64], 2560, dtype=torch.float16)",
            "h = aten::full([64], 1.0004, dtype=torch.float32)",
            "i = aten::mul_.Tensor(g, h)",
            "j = aten::sub.Scalar(g, 2560)"));
  }

  /** Ops in place whose operands lie in the gaps of what they write. */
  static List<String> halves() {
    return List.of(
        program(
            "x: f32[64, 256], y: bf16[3, 40], z: f32[3, 8]",
            "a = aten::exp(x)",
            "b = aten::slice.Tensor(a, 1, 0, 128)",
            "c = aten::slice.Tensor(a, 1, 128, 256)",
            "d = aten::add_.Tensor(b, c)",
            "e = aten::mul_.Tensor(c, d)",
            "f = aten::exp(y)",
            "g = aten::slice.Tensor(f, 1, 0, 40, 2)",
            "h = aten::slice.Tensor(f, 1, 1, 40, 2)",
            "i = aten::sub_.Tensor(g, h)",
            "j = aten::copy_(h, g)",
            "k = aten::exp(z)",
            "l = aten::select.int(k, 1, 2)",
            "m = aten::select.int(k, 1, 5)",
            "n = aten::addcmul_(l, m, m)"));
  }

  /** Arithmetic of complex numbers, over operands of any strides, in place and over nothing. */
  static List<String> complexNumbers() {
    return List.of(
        program(
            "x: f32[300, 8, 64, 2], r: f32[300, 64], y: f32[300, 1, 64, 2], s: c64[]",
            "a = aten::view_as_complex(x)",
            "b = aten::view_as_complex(y)",
            "o = aten::exp(r)",
            "t = aten::polar(o, r)",
            "u = aten::unsqueeze(t, 1)",
            "c = aten::mul.Tensor(a, u)",
            "d = aten::div.Tensor(c, b)",
            "e = aten::sub.Tensor(d, s, alpha=2)",
            "f = aten::abs(e)",
            "g = aten::permute(e, [2, 0, 1])",
            "h = aten::add.Tensor(g, 1.5)",
            "i = aten::sum.dim_IntList(h, [0, 2])",
            "j = aten::view_as_real(i)",
            "k = aten::angle(h)",
            "l = aten::sum.dim_IntList(s, [0])",
            "m = aten::view_as_real(l)"),
        program(
            "x: f64[6, 5, 2], y: f64[5, 7, 2], m: u8[6, 1], e: c64[4, 0], h: f16[30, 2]",
            "a = aten::view_as_complex(x)",
            "b = aten::view_as_complex(y)",
            "c = aten::mm(a, b)",
            "d = aten::conj_physical(c)",
            "f = aten::view_as_real(d)",
            "g = aten::where.self(m, a, 0)",
            "i = aten::clone(g)",
            "j = aten::mul_.Tensor(i, a)",
            "k = aten::view_as_real(j)",
            "l = aten::permute(e, [1, 0])",
            "n = aten::mm(e, l)",
            "o = aten::mean.dim(n, [0, 1])",
            "p = aten::view_as_real(o)",
            "q = aten::view_as_complex(h)",
            "r = aten::reciprocal(q)",
            "s = aten::view_as_real(r)",
            "t = aten::ne.Scalar(q, 1.5)",
            "u = prims::convert_element_type(c, torch.float32)"),
        program(
            "x: f32[9, 33, 2], y: f32[33, 5, 2], i: i64[4], v: f32[4, 33, 2], b: f32[5]",
            "a = aten::view_as_complex(x)",
            "c = aten::view_as_complex(y)",
            "w = aten::view_as_complex(v)",
            "d = aten::_conj(a)",
            "e = aten::resolve_conj(d)",
            "f = aten::prod.dim_int(e, 1)",
            "g = aten::cumprod(a, 0)",
            "h = aten::cumprod(e, -1)",
            "j = aten::cumsum(a, 1)",
            "k = aten::t(c)",
            "l = aten::_conj(k)",
            "m = aten::matmul(d, c)",
            "n = prims::convert_element_type(b, torch.complex64)",
            "o = aten::addmm(n, a, c, beta=2, alpha=0.5)",
            "p = aten::linear(a, l, n)",
            "q = aten::index_select(a, 0, i)",
            "r0 = aten::select.int(a, 0, 0)",
            "r = aten::vdot(r0, r0)",
            "s = aten::index_put(a, [i], w, True)",
            "t = aten::tanh(s)",
            "u = aten::sqrt(t)",
            "z = aten::sigmoid(u)",
            "a1 = aten::pow.Tensor_Scalar(z, 3)",
            "a2 = aten::linalg_vector_norm(a1, 2, [1])",
            "a3 = aten::var.correction(a1, [0], correction=1)",
            "a4 = aten::ones_like(a)",
            "j0 = aten::select.int(x, 2, 0)",
            "t1 = aten::gt.Scalar(j0, 0)",
            "a5 = aten::masked_fill.Scalar(a4, t1, 2.5)",
            "a6 = aten::mul.Tensor(a5, a1)",
            "a7 = aten::isfinite(a6)",
            "a8 = prims::convert_element_type(a6, torch.bool)",
            "a9 = aten::_neg_view(b)",
            "b1 = aten::view_as_real(h)",
            "b2 = aten::sin(a1)",
            "b3 = aten::cat([a, w], 0)",
            "b4 = aten::clone(a)",
            "b5 = aten::zero_(b4)",
            "b6 = aten::clone(a)",
            "b7 = aten::index_put_(b6, [i], w, True)",
            "b8 = aten::clone(m)",
            "b9 = aten::addmm_(b8, a, c)",
            "c1 = aten::clone(a)",
            "c2 = aten::copy_(c1, j0)",
            "c3 = aten::nan_to_num(c1)",
            "c4 = aten::cumsum(a, 0, dtype=torch.float64)",
            "c5 = aten::prod.dim_int(a, 0, dtype=torch.float32)",
            "c6 = aten::clone(t1)",
            "c7 = aten::copy_(c6, a)"));
  }

  /** Classes that there are, of 8; 3 is ignored in some of the calls. */
  private static String losses(String dtype, String weights) {
    return program(
            "x: %1$s[70, 9], y: %1$s[70, 9], w: %2$s[9], t: i64[70], g: %1$s[70], q: %1$s[5, 9, 6]"
                    .formatted(dtype, weights)
                + ", c: i64[5, 6], k: %s[]".formatted(dtype),
            "a = aten::mse_loss(x, y, 0)",
            "b = aten::mse_loss(x, y)",
            "d = aten::mse_loss(x, y, 2)",
            "l, m = aten::nll_loss_forward(x, t, w, 1, -100)",
            "n, o = aten::nll_loss_forward(x, t, None, 2, 3)",
            "r, s = aten::nll_loss_forward(x, t, w, 0, 3)",
            "e = aten::nll_loss_backward(k, x, t, w, 1, 3, p)",
            "f = aten::nll_loss_backward(g, x, t, None, 0, 3, p)",
            "h = aten::cross_entropy_loss(x, t, w, 0, 3, 0.1)",
            "i = aten::cross_entropy_loss(q, c, None, 0)",
            "j = aten::cross_entropy_loss(x, z, w, 0, -100, 0.2)")
        .replace(
            ") {\n",
            """
            ) {
              p = aten::full([], 7.5, dtype=torch.%s)
              z = aten::_softmax(y, 1, False)
            """
                .formatted(name(dtype)));
  }

  private static String name(String dtype) {
    return switch (dtype) {
      case "f32" -> "float32";
      case "f64" -> "float64";
      default -> "bfloat16";
    };
  }

  private static String optimizers(String dtype) {
    var lists = "[x, y], [g, h], [a, b], [s, t]";
    return program(
            "x: %1$s[40, 70], y: %1$s[9], g: %1$s[40, 70], h: %1$s[9], a: %1$s[40, 70], b: %1$s[9]"
                .formatted(dtype),
            "a0, a1, a2, a3, a4, a5, a6, a7 = aten::_fused_adam("
                + lists
                + ", [], [n, n], lr=0.01, beta1=0.9, beta2=0.999, weight_decay=0.1, eps=1e-08,"
                + " amsgrad=False, maximize=False)",
            "b0, b1, b2, b3, b4, b5, b6, b7, b8, b9 = aten::_fused_adamw.tensor_lr("
                + lists
                + ", [s, t], [n, n], lr=l, beta1=0.9, beta2=0.999, weight_decay=0.1, eps=1e-08,"
                + " amsgrad=True, maximize=True, grad_scale=c, found_inf=z)",
            "c0, c1, c2, c3, c4, c5, c6, c7 = aten::_fused_adamw("
                + lists
                + ", [], [n, n], lr=0.01, beta1=0.9, beta2=0.999, weight_decay=0.1, eps=1e-08,"
                + " amsgrad=False, maximize=False, grad_scale=c, found_inf=c)",
            "d0, d1, d2, d3, d4, d5 = aten::_fused_sgd([x, y], [g, h], [a, b], weight_decay=0.1,"
                + " momentum=0.9, lr=0.01, dampening=0.0, nesterov=True, maximize=False,"
                + " is_first_step=False)",
            "e0, e1, e2, e3 = aten::_fused_sgd.tensor_lr([x, y], [g, h], [], weight_decay=0.0,"
                + " momentum=0.0, lr=l, dampening=0.0, nesterov=False, maximize=False,"
                + " is_first_step=False)")
        .replace(
            ") {\n",
            """
            ) {
              s = aten::exp(a)
              t = aten::exp(b)
              n = aten::full([], 3.0)
              l = aten::full([], 0.02)
              c = aten::full([], 4.0)
              z = aten::full([], 0.0)
            """);
  }
}
