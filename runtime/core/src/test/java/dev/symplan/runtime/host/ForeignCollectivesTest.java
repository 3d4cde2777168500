package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The collectives of {@code symm_mem} and of serving engines give what PyTorch documents, computed
 * here from the inputs of all ranks, as the algorithm that they name.
 */
class ForeignCollectivesTest {
  private static final int RANKS = 2;
  private static final CompileOptions OPTIONS = CompileOptions.DEFAULT.withRanks(RANKS);

  /** A graph of two ranks; its input is f32[4, 8]. */
  private static Plan plan(String body, CompileOptions options) {
    return compile(
        """
        group tp = [0, 1]
        graph g(input: f32[4, 8]) {
          x = aten::mul.Scalar(input, 2.0)
        %s
        }
        """
            .formatted(body.strip().indent(2)),
        options);
  }

  private static Plan compile(String text, CompileOptions options) {
    return Compiler.forTarget(Target.H200_X8)
        .with(options)
        .compile(GraphParser.parse(new SourceFile("test.graph", "graph version 1\n" + text)));
  }

  private static float element(int rank, long row, long column) {
    return rank * 100 + row * 8 + column;
  }

  /** {@return each rank's first output} */
  private static List<HostTensor> run(Plan plan) {
    return run(plan, 1).stream().map(List::getFirst).toList();
  }

  private static List<List<HostTensor>> run(Plan plan, int count) {
    try (var session = Session.open(plan, new HostBackend())) {
      for (int rank = 0; rank < RANKS; rank++) {
        var input = session.input(rank, 0).orElseThrow();
        for (long i = 0; i < 4; i++) {
          for (long j = 0; j < 8; j++) {
            input.set(element(rank, i, j), i, j);
          }
        }
      }
      session.run();
      var outputs = new ArrayList<List<HostTensor>>();
      for (int rank = 0; rank < RANKS; rank++) {
        var own = new ArrayList<HostTensor>();
        for (int i = 0; i < count; i++) {
          own.add(Programs.copy(session.output(rank, i).orElseThrow()));
        }
        outputs.add(own);
      }
      return outputs;
    }
  }

  /** The type of x. */
  private static float x(int rank, long row, long column) {
    return 2 * element(rank, row, column);
  }

  private static float sum(long row, long column) {
    return x(0, row, column) + x(1, row, column);
  }

  private static Variant variant(Plan plan) {
    return plan.forRank(0).collectives().getFirst().variant();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "y = symm_mem::one_shot_all_reduce(x, 'sum', 'tp')|ONE_SHOT",
        "o = aten::empty_like(x); y = symm_mem::one_shot_all_reduce_out(x, 'sum', 'tp',"
            + " o)|ONE_SHOT",
        "s = aten::empty_like(x); y = symm_mem::one_shot_all_reduce_copy(s, x, 'sum', 'tp')"
            + "|ONE_SHOT",
        "s = aten::empty_like(x); o = aten::empty_like(x); y ="
            + " symm_mem::one_shot_all_reduce_copy_out(s, x, 'sum', 'tp', o)|ONE_SHOT",
        "y = symm_mem::two_shot_all_reduce_(x, 'sum', 'tp')|TWO_SHOT",
        "w = symm_mem::two_shot_all_reduce_(x, 'sum', 'tp'); y = aten::clone(x)|TWO_SHOT",
        "o = aten::empty_like(x); y = symm_mem::two_shot_all_reduce_out(x, 'sum', 'tp',"
            + " o)|TWO_SHOT",
        "o = aten::empty_like(x); w = symm_mem::two_shot_all_reduce_out(x, 'sum', 'tp', o); y ="
            + " aten::clone(o)|TWO_SHOT",
        "y = symm_mem::multimem_all_reduce_(x, 'sum', 'tp')|MULTIMEM",
        "y = symm_mem::multimem_one_shot_all_reduce(x, 'sum', 'tp')|MULTIMEM_ONE_SHOT",
        "o = aten::empty_like(x); y = symm_mem::multimem_one_shot_all_reduce_out(x, 'sum', 'tp',"
            + " o)|MULTIMEM_ONE_SHOT",
        "y = vllm::all_reduce(x, 'tp')|",
        "y = sglang::outplace_all_reduce(x, 'tp', 'ca')|",
        "sglang::inplace_all_reduce(x, 'tp'); y = aten::clone(x)|",
        "y = _c10d_functional::all_reduce(x, 'sum', 'tp', config='nccl')|NCCL",
      })
  void addsUp(String ops, Variant named) {
    var plan = plan(body(ops), withMulticast());

    if (named != null) {
      assertThat(variant(plan)).isEqualTo(named);
    }
    for (var output : run(plan)) {
      check(output, 4, 8, (i, j) -> sum(i, j));
    }
  }

  private static CompileOptions withMulticast() {
    return OPTIONS.withMulticast(true);
  }

  private static String body(String ops) {
    return ops.replace("; ", "\n").replace('\'', '"') + "\nreturn y";
  }

  private interface Expected {
    float at(long row, long column);
  }

  private static void check(HostTensor tensor, long rows, long columns, Expected expected) {
    assertThat(tensor.type().sizes().asList()).containsExactly(rows, columns);
    for (long i = 0; i < rows; i++) {
      for (long j = 0; j < columns; j++) {
        assertThat(tensor.get(i, j)).as("[%s, %s]", i, j).isEqualTo(expected.at(i, j));
      }
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "y: f32[8, 8] = symm_mem::_low_contention_all_gather(x, 'tp')|0|COPY_ENGINE",
        "o = aten::new_empty(x, [8, 8]); y = symm_mem::multimem_all_gather_out(x, 'tp', o)"
            + "|0|MULTIMEM",
        "y = vllm::all_gather(x, 0, 2, 'tp')|0|",
        "y = vllm::all_gather(x, 1, 2, 'tp')|1|",
        "y = vllm::all_gather(x, -1, 2, 'tp')|1|",
        "o = aten::new_empty(x, [8, 8]); sglang::reg_all_gather_into_tensor(o, x, 'tp'); y ="
            + " aten::clone(o)|0|",
      })
  void gathers(String ops, int dim, Variant named) {
    var plan = plan(body(ops), withMulticast());

    if (named != null) {
      assertThat(variant(plan)).isEqualTo(named);
    }
    for (var output : run(plan)) {
      if (dim == 0) {
        check(output, 8, 8, (i, j) -> x((int) (i / 4), i % 4, j));
      } else {
        check(output, 4, 16, (i, j) -> x((int) (j / 8), i, j % 8));
      }
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "y: f32[2, 8] = symm_mem::_low_contention_reduce_scatter(x, 'sum', 'tp')|0|",
        "o = aten::new_empty(x, [2, 8]); y = symm_mem::reduce_scatter_out(x, 'tp', False, o)"
            + "|0|ONE_SHOT",
        "o = aten::new_empty(x, [4, 4]); y = symm_mem::reduce_scatter_out(x, 'tp', True, o)"
            + "|1|ONE_SHOT",
        "y = vllm::reduce_scatter(x, 0, 2, 'tp')|0|",
        "y = vllm::reduce_scatter(x, 1, 2, 'tp')|1|",
        "o = aten::new_empty(x, [2, 8]); sglang::reg_reduce_scatter_tensor(o, x, 'tp'); y ="
            + " aten::clone(o)|0|",
      })
  void scatters(String ops, int dim, Variant named) {
    var plan = plan(body(ops), withMulticast());

    if (named != null) {
      assertThat(variant(plan)).isEqualTo(named);
    }
    var outputs = run(plan);
    for (int rank = 0; rank < RANKS; rank++) {
      int self = rank;
      if (dim == 0) {
        check(outputs.get(rank), 2, 8, (i, j) -> sum(2 * self + i, j));
      } else {
        check(outputs.get(rank), 4, 4, (i, j) -> sum(i, 4 * self + j));
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"0", "1"})
  void takesGathersAndProductsApart(int dim) {
    var ops =
        dim == 0
            ? "v = aten::slice.Tensor(x, 1, 0, 4); w = aten::cat([v, v]); a: f32[8, 8], y: f32[8,"
                + " 4] = symm_mem::fused_all_gather_matmul(x, [w], 0, 'tp')"
            : "w = aten::cat([x, x, x, x]); a: f32[4, 16], y: f32[4, 8] ="
                + " symm_mem::fused_all_gather_matmul(x, [w], 1, 'tp')";

    var outputs = run(plan(body(ops), OPTIONS));

    for (int rank = 0; rank < RANKS; rank++) {
      int self = rank;
      check(
          outputs.get(rank),
          dim == 0 ? 8 : 4,
          dim == 0 ? 4 : 8,
          (i, j) -> {
            float sum = 0;
            for (int k = 0; k < (dim == 0 ? 8 : 16); k++) {
              float left = dim == 0 ? x((int) (i / 4), i % 4, k) : x(k / 8, i, k % 8);
              sum += left * x(self, k % 4, j);
            }
            return sum;
          });
    }
  }

  @ParameterizedTest
  @CsvSource({"0", "1"})
  void takesProductsAndScattersApart(int dim) {
    var ops =
        "w = aten::cat([x, x]); y: f32[%s, %s] = symm_mem::fused_matmul_reduce_scatter(x, w, 'sum',"
                .formatted(dim == 0 ? 2 : 4, dim == 0 ? 8 : 4)
            + " %s, 'tp')".formatted(dim);

    var outputs = run(plan(body(ops), OPTIONS));

    for (int rank = 0; rank < RANKS; rank++) {
      int row = dim == 0 ? 2 * rank : 0;
      int column = dim == 0 ? 0 : 4 * rank;
      check(
          outputs.get(rank),
          dim == 0 ? 2 : 4,
          dim == 0 ? 8 : 4,
          (i, j) -> {
            float sum = 0;
            for (int source = 0; source < RANKS; source++) {
              for (int k = 0; k < 8; k++) {
                sum += x(source, row + i, k) * x(source, k % 4, column + j);
              }
            }
            return sum;
          });
    }
  }

  @Test
  void averages() {
    var plan =
        plan(
            body("y: f32[2, 8] = symm_mem::_low_contention_reduce_scatter(x, 'avg', 'tp')"),
            OPTIONS);

    var outputs = run(plan);

    check(outputs.get(1), 2, 8, (i, j) -> sum(2 + i, j) / 2);
  }

  /** An input is the caller's memory, so the result must be copied into it. */
  @Test
  void writesInputs() {
    var plan =
        Programs.plan(
            """
                group tp = [0, 1]
            graph g(input: f32[4, 8]) {
              y = symm_mem::two_shot_all_reduce_(input, "sum", "tp")
              z = aten::neg(input)
              return z
            }
            """,
            OPTIONS);

    for (var output : run(plan)) {
      check(output, 4, 8, (i, j) -> -(element(0, i, j) + element(1, i, j)));
    }
  }

  private static final String QUANTIZED =
      """
      group tp = [0, 1]
      graph g(input: f32[4, 8]) {
        m = aten::remainder.Scalar(input, 3.0)
        q = aten::_to_copy(m, dtype=torch.float8_e4m3fn)
        w = aten::t(q)
        first = aten::slice.Tensor(input, 1, 0, 1)
        rows = aten::add.Scalar(first, 1.0)
        all = _c10d_functional::all_gather_into_tensor(rows, 2, "tp")
        half = aten::full([], 0.5)
      %s
      }
      """;

  /** An element of q, of which all values have an exact form in 8 bits. */
  private static float q(int rank, long row, long column) {
    return element(rank, row, column) % 3;
  }

  /** An element of the product of one rank's q with another's w, both scaled. */
  private static float scaled(int left, long row, int right, long column, float scale) {
    float sum = 0;
    for (int k = 0; k < 8; k++) {
      sum += q(left, row, k) * q(right, column, k);
    }
    return sum * scale * 0.5f;
  }

  private static float rowScale(int rank, long row) {
    return 1 + element(rank, row, 0);
  }

  /** The scale is of the whole tensor, of the shard's rows, or of all rows. */
  @ParameterizedTest
  @CsvSource({"half", "rows", "all"})
  void takesScaledGathersApart(String scale) {
    var ops =
        "a: f8e4m3fn[8, 8], y: f32[8, 4] = symm_mem::fused_all_gather_scaled_matmul(q, [w], %s,"
                .formatted(scale)
            + " [half], 0, 'tp', [None], [None], [torch.float32], [False])";

    var outputs = run(compile(QUANTIZED.formatted(body(ops)), OPTIONS));

    for (int rank = 0; rank < RANKS; rank++) {
      int self = rank;
      check(
          outputs.get(rank),
          8,
          4,
          (i, j) -> {
            int from = (int) (i / 4);
            return scaled(
                from, i % 4, self, j, scale.equals("half") ? 0.5f : rowScale(from, i % 4));
          });
    }
  }

  @Test
  void takesScaledGathersOfMoreDimensionsApart() {
    var ops =
        "b = aten::view(q, [2, 2, 8]); s = aten::view(rows, [2, 2, 1]); a: f8e4m3fn[2, 4, 8], p:"
            + " f32[2, 4, 4] = symm_mem::fused_all_gather_scaled_matmul(b, [w], s, [half], 1,"
            + " 'tp', [None], [None], [torch.float32], [False]); y = aten::view(p, [8, 4])";

    var outputs = run(compile(QUANTIZED.formatted(body(ops)), OPTIONS));

    check(
        outputs.get(1),
        8,
        4,
        (i, j) -> {
          int from = (int) (i % 4 / 2);
          long row = i / 4 * 2 + i % 2;
          return scaled(from, row, 1, j, rowScale(from, row));
        });
  }

  @ParameterizedTest
  @CsvSource({"half, None", "rows, '[4, 4]'"})
  void takesScaledProductsAndScattersApart(String scale, String shape) {
    var ops =
        "y: f32[2, 4] = symm_mem::fused_scaled_matmul_reduce_scatter(q, w, %s, half, 'sum', 0, 0,"
                .formatted(scale)
            + " 'tp', %s, None, None, torch.float32)".formatted(shape);

    var outputs = run(compile(QUANTIZED.formatted(body(ops)), OPTIONS));

    for (int rank = 0; rank < RANKS; rank++) {
      int self = rank;
      check(
          outputs.get(rank),
          2,
          4,
          (i, j) -> {
            float sum = 0;
            for (int from = 0; from < RANKS; from++) {
              long row = 2 * self + i;
              sum += scaled(from, row, from, j, scale.equals("half") ? 0.5f : rowScale(from, row));
            }
            return sum;
          });
    }
  }

  /** The results of other ranks are unspecified. */
  @Test
  void reducesToTheRoot() {
    var plan =
        plan(
            body(
                "o = aten::empty_like(x); y = symm_mem::multimem_one_shot_reduce_out(x, 'sum', 1,"
                    + " 'tp', o)"),
            withMulticast());

    check(run(plan).get(1), 4, 8, (i, j) -> sum(i, j));
  }

  /** One line declares a collective; without a parameter for it, its group has all ranks. */
  @Test
  void runsDeclaredCollectives() {
    var plan =
        compile(
            """
            op my::sum_(Tensor(a!) t) -> ()  collective(all_reduce) algorithm(two_shot)
            op my::gather(Tensor t, int dim, str group) -> Tensor  collective(all_gather)
            op my::scatter(Tensor t, str op, str group) -> Tensor  collective(reduce_scatter) group(group)
            op my::swap(Tensor t, str group) -> Tensor  collective(all_to_all)
            op my::send(Tensor t, int src, str group) -> Tensor  collective(broadcast)
            group tp = [0, 1]
            graph g(input: f32[4, 8]) {
              x = aten::mul.Scalar(input, 2.0)
              a: f32[4, 16] = my::gather(x, 1, "tp")
              s: f32[2, 8] = my::scatter(x, "sum", "tp")
              w: f32[4, 8] = my::swap(x, "tp")
              b: f32[4, 8] = my::send(x, 1, "tp")
              my::sum_(x)
              return x, a, s, w, b
            }
            """,
            OPTIONS);

    assertThat(plan.forRank(0).collectives())
        .anyMatch(collective -> collective.variant() == Variant.TWO_SHOT);
    var outputs = run(plan, 5);
    for (int rank = 0; rank < RANKS; rank++) {
      int self = rank;
      var own = outputs.get(rank);
      check(own.get(0), 4, 8, (i, j) -> sum(i, j));
      check(own.get(1), 4, 16, (i, j) -> x((int) (j / 8), i, j % 8));
      check(own.get(2), 2, 8, (i, j) -> sum(2 * self + i, j));
      check(own.get(3), 4, 8, (i, j) -> x((int) (i / 2), 2 * self + i % 2, j));
      check(own.get(4), 4, 8, (i, j) -> x(1, i, j));
    }
  }

  @Test
  void choosesFreelyIfAsked() {
    var ops = body("y = symm_mem::multimem_one_shot_all_reduce(x, 'sum', 'tp')");

    var plan = plan(ops, OPTIONS.withFreeVariants(true));

    assertThat(variant(plan)).isNotEqualTo(Variant.MULTIMEM);
  }

  @Test
  void optionsAreStrongerThanTheGraph() {
    var plan =
        Programs.plan(
            """
                group tp = [0, 1]
            graph g(x: f32[4, 8]) {
              y = symm_mem::one_shot_all_reduce(x, "sum", "tp")
              return y
            }
            """,
            OPTIONS.withVariants(ImmutableMap.of("y", Variant.NCCL)));

    assertThat(variant(plan)).isEqualTo(Variant.NCCL);
  }

  /** Ops without a rule, so that nothing has checked their arguments before. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "a: f32[8, 8], y: f32[8, 4] = symm_mem::fused_all_gather_matmul(x, [x], 7, 'tp')"
            + "|gather_dim is 7, but must lie in [-2, 1]",
        "a: f32[8, 8], y: f32[8, 4] = symm_mem::fused_all_gather_matmul(x, [], 0, 'tp')"
            + "|gives a product for each of Bs",
        "y: f32[4, 8] = my::sum(x, 'median', 'tp')|unknown reduction 'median'",
        "y: f32[4, 8] = my::all([x, x], 'tp')|only collectives of one are supported",
        "y: f32[4, 8], z: f32[4, 8] = my::all([x, x], 'tp')|only collectives of one are supported",
        "y: f32[4, 8] = my::maybe(None, 'tp')|",
        "y: f32[4, 8] = my::gather(x, 5, 'tp')|dim is 5, but must lie in [-2, 1]",
      })
  void refusesDeclaredCalls(String ops, String message) {
    var text =
        """
        op my::sum(Tensor x, str reduce_op, str group) -> Tensor  collective(all_reduce) group(group)
        op my::all(Tensor[] xs, str group) -> Tensor[]  collective(all_reduce)
        op my::maybe(Tensor? x, str group) -> Tensor  collective(all_reduce)
        op my::gather(Tensor x, int dim, str group) -> Tensor  collective(all_gather)
        group tp = [0, 1]
        graph g(x: f32[4, 8]) {
        %s
        }
        """
            .formatted(body(ops));
    assertThatThrownBy(() -> compile(text, OPTIONS))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining(message == null ? "" : message);
  }

  /** Other ranks take part whether or not this one reads what it gets. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "_ = symm_mem::one_shot_all_reduce(x, 'sum', 'tp')",
        "_ = vllm::all_gather(x, 1, 2, 'tp')",
        "w = aten::cat([x, x]); _ = symm_mem::fused_all_gather_matmul(x, [w], 0, 'tp')",
        "w = aten::cat([x, x]); _ = symm_mem::fused_matmul_reduce_scatter(x, w, 'sum', 0, 'tp')",
      })
  void keepsCollectivesThatNothingReads(String ops) {
    var plan = plan(body(ops + "; y = aten::clone(x)"), OPTIONS);

    assertThat(plan.forRank(0).collectives()).hasSize(1);
    check(run(plan).get(1), 4, 8, (i, j) -> x(1, i, j));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "y = symm_mem::multimem_all_reduce_(x, 'sum', 'tp')|the graph names multimem for 'y', but"
            + " it cannot run so",
        "y = _c10d_functional::all_reduce(x, 'sum', 'tp', config='bogus')|the graph names bogus for"
            + " 'y', but all_reduce has no such variant",
        "y = symm_mem::one_shot_all_reduce(x, 'max', 'tp')|only adds up, and cannot reduce with"
            + " max",
        "o = aten::empty_like(x); w = symm_mem::two_shot_all_reduce_out(x, 'sum', 'tp', o); y ="
            + " aten::add.Tensor(w, x)|overwrites 'x', which is read later",
        "o = aten::clone(x); y = symm_mem::multimem_one_shot_reduce_out(x, 'sum', 0, 'tp', o)|'o'"
            + " keeps its elements on all ranks but the root, which is not supported",
        "o = aten::empty_like(x); y = symm_mem::multimem_one_shot_reduce_out(x, 'sum', 2, 'tp',"
            + " o)|the root of 'y' is group rank 2, but group 'tp' has 2 ranks",
        "q = aten::_to_copy(x, dtype=torch.float8_e4m3fn); w = aten::t(q); s = aten::full([3, 1],"
            + " 1.0); a: f8e4m3fn[8, 8], y: f32[8, 4] ="
            + " symm_mem::fused_all_gather_scaled_matmul(q, [w], s, [s], 0, 'tp', [None], [None],"
            + " [torch.float32], [False])|'s' is f32[3, 1]; a scale has one element, or one for"
            + " each row of the operand",
        "q = aten::_to_copy(x, dtype=torch.float8_e4m3fn); w = aten::t(q); s = aten::full([], 1.0);"
            + " a: f8e4m3fn[8, 8], y: f32[8, 4] = symm_mem::fused_all_gather_scaled_matmul(q, [w],"
            + " s, [s, s], 0, 'tp', [None], [None], [torch.float32], [False])|B_scales must have 1"
            + " item, one for each of Bs",
        "q = aten::_to_copy(x, dtype=torch.float8_e4m3fn); w = aten::t(q); s = aten::full([], 1.0);"
            + " y: f32[2, 4] = symm_mem::fused_scaled_matmul_reduce_scatter(q, w, s, s, 'sum', 0,"
            + " 0, 'tp', [5, 4], None, None, torch.float32, False)|output_shape [5, 4] is not that"
            + " of a product of f8e4m3fn[4, 8] and f8e4m3fn[8, 4]",
        "q = aten::_to_copy(x, dtype=torch.float8_e4m3fn); w = aten::t(q); s = aten::full([], 1.0);"
            + " y: f32[2, 4] = symm_mem::fused_scaled_matmul_reduce_scatter(q, w, s, s, 'sum', 0,"
            + " 0, 'tp', [4, 7], None, None, torch.float32, False)|output_shape [4, 7] is not that",
        "y = vllm::all_gather(x, 0, 3, 'tp')|is for a group of 3",
        "y = vllm::reduce_scatter(x, 0, 3, 'tp')|has no dimension 0 that world_size 3 fits",
        "s = aten::empty_like(x); w = symm_mem::one_shot_all_reduce_copy(s, x, 'sum', 'tp'); y ="
            + " aten::add.Tensor(w, s)|overwrites 's', which is read later",
        "y: f32[12, 8] = symm_mem::_low_contention_all_gather(x, 'tp')|gives f32[8, 8], not f32[12,"
            + " 8]",
        "y: f32[8, 7] = symm_mem::_low_contention_all_gather(x, 'tp')|gives f32[8, 8], not f32[8,"
            + " 7]",
        "y: f32[1, 8] = symm_mem::_low_contention_reduce_scatter(x, 'sum', 'tp')|gives f32[2, 8],"
            + " not f32[1, 8]",
        "v = aten::slice.Tensor(x, 0, 0, 3); y: f32[1, 8] ="
            + " symm_mem::_low_contention_reduce_scatter(v, 'sum', 'tp')|cannot be divided evenly"
            + " among 2 ranks along dimension 0",
        "o = aten::new_empty(x, [12, 8]); y = symm_mem::multimem_all_gather_out(x, 'tp', o)|gives"
            + " f32[8, 8], not f32[12, 8]",
        "o = aten::new_empty(x, [1, 8]); y = symm_mem::reduce_scatter_out(x, 'tp', False, o)|gives"
            + " f32[2, 8], not f32[1, 8]",
        "w = aten::cat([x, x]); a: f32[12, 8], y: f32[12, 8] ="
            + " symm_mem::fused_all_gather_matmul(x, [w], 0, 'tp')|gives f32[8, 8], not f32[12, 8]",
        "w = aten::cat([x, x]); a: f32[8, 8], y: f32[8, 4] ="
            + " symm_mem::fused_all_gather_matmul(x, [w], 0, 'tp')|gives f32[8, 8], not f32[8, 4]",
        "w = aten::cat([x, x]); y: f32[1, 8] = symm_mem::fused_matmul_reduce_scatter(x, w, 'sum',"
            + " 0, 'tp')|gives f32[2, 8], not f32[1, 8]",
        "o = aten::new_empty(x, [8, 9]); y = symm_mem::multimem_all_gather_out(x, 'tp', o)|does not"
            + " fit f32[8, 9]",
        "s = aten::new_empty(x, [4]); y = symm_mem::one_shot_all_reduce_copy(s, x, 'sum', 'tp')|has"
            + " no room for local_input",
      })
  void refuses(String ops, String message) {
    assertThatThrownBy(() -> plan(body(ops), OPTIONS))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining(message);
  }
}
