package dev.symplan.runtime.host;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.MethodSource;

/** The copies of FSDP2, with the schemas of PyTorch 2.5 to 2.8, give what PyTorch documents. */
class FsdpOpsTest {
  private static final CompileOptions OPTIONS = CompileOptions.DEFAULT.withRanks(2);

  private static final String OPS =
      """
      op fsdp::split_with_sizes_copy(Tensor all_gather_output, SymInt[] all_gather_input_split_sizes, \
      int dim=0, *, Tensor(a!)[] out) -> ()
      op fsdp::chunk_cat(Tensor[] tensors, int dim, int num_chunks, *, Tensor(a!) out) -> ()
      op fsdp::copy_(Tensor(a!) tensor, Tensor data) -> ()
      """;

  private static final String COPY_IN =
      """
      op fsdp::all_gather_copy_in(Tensor[] all_gather_inputs, SymInt[] inp_split_sizes, SymInt \
      all_gather_input_numel, SymInt world_size, SymInt rank, ScalarType dtype, Device device) -> \
      (Tensor(a), Tensor(a))
      """;

  private static final String NEW_COPY_IN =
      """
      op fsdp::all_gather_copy_in(Tensor[] all_gather_inputs, Tensor(a!) all_gather_output, \
      SymInt[] inp_split_sizes, SymInt all_gather_input_numel, SymInt rank) -> (Tensor(a), Tensor(a))
      """;

  private static final String GATHER =
      """
      group g = [0, 1]
      graph f(x: f32[3, 2], y: f32[5]) {
      %s
        w = _c10d_functional::all_gather_into_tensor_out(i, 2, "g", out=o)
        v = _c10d_functional::wait_tensor(w)
        m = aten::view(v, [2, 11])
        a = aten::empty.memory_format([2, 6])
        b = aten::empty.memory_format([2, 5])
        fsdp::split_with_sizes_copy(m, [6, 5], 1, out=[a, b])
        return a, b
      }
      """;

  private static final String CALL =
      "  i: bf16[11], o: bf16[22] = fsdp::all_gather_copy_in([x, y], [6, 5], 11, 2, %s,"
          + " torch.bfloat16, device(\"cuda:0\"))";

  private static final String NEW_CALL =
      "  e = aten::empty.memory_format([22], dtype=torch.bfloat16)\n"
          + "  i: bf16[11], o: bf16[22] = fsdp::all_gather_copy_in([x, y], e, [6, 5], 11, %s)";

  private static float x(int rank, long index) {
    return 100 * rank + index;
  }

  private static List<HostTensor> run(Plan plan, int outputs) {
    try (var session = Session.open(plan, new HostBackend())) {
      for (int rank = 0; rank < 2; rank++) {
        for (int input = 0; input < session.inputNames().size(); input++) {
          var tensor = session.input(rank, input).orElseThrow();
          var flat = tensor.contiguous().type().numel();
          for (long i = 0; i < flat; i++) {
            long columns = tensor.type().rank() == 2 ? tensor.type().size(1) : 1;
            if (tensor.type().rank() == 2) {
              tensor.set(x(rank, i), i / columns, i % columns);
            } else {
              tensor.set(x(rank, i), i);
            }
          }
        }
      }
      session.run();
      var all = new ArrayList<HostTensor>();
      for (int i = 0; i < outputs; i++) {
        all.add(Programs.copy(session.output(1, i).orElseThrow()));
      }
      return all;
    }
  }

  /** Which rank the text was captured on changes nothing in the result of a gather. */
  @ParameterizedTest
  @CsvSource({"false, 0", "false, 1", "true, 0", "true, 1"})
  void gathers(boolean recent, int rank) {
    var call = (recent ? NEW_CALL : CALL).formatted(rank);
    var plan =
        Programs.plan(OPS + (recent ? NEW_COPY_IN : COPY_IN) + GATHER.formatted(call), OPTIONS);

    var outputs = run(plan, 2);

    for (int from = 0; from < 2; from++) {
      for (int i = 0; i < 6; i++) {
        assertThat(outputs.get(0).get(from, i)).isEqualTo(x(from, i));
      }
      for (int i = 0; i < 5; i++) {
        assertThat(outputs.get(1).get(from, i)).isEqualTo(x(from, i));
      }
    }
  }

  @ParameterizedTest
  @CsvSource({"'2, 7'", "14"})
  void concatenatesPaddedChunks(String shape) {
    var plan =
        Programs.plan(
            OPS
                + """
                group g = [0, 1]
                graph f(x: f32[3, 2], y: f32[5]) {
                  e = aten::empty.memory_format([%s], dtype=torch.bfloat16)
                  fsdp::chunk_cat([x, y], 0, 2, out=e)
                  c = aten::view(e, [2, 7])
                  d = aten::empty.memory_format([3])
                  s = aten::slice.Tensor(y, 0, 1, 4)
                  fsdp::copy_(d, s)
                  return c, d
                }
                """
                    .formatted(shape),
            OPTIONS);

    var outputs = run(plan, 2);

    var first = new float[] {x(1, 0), x(1, 1), x(1, 2), x(1, 3), x(1, 0), x(1, 1), x(1, 2)};
    var second = new float[] {x(1, 4), x(1, 5), 0, 0, x(1, 3), x(1, 4), 0};
    for (int i = 0; i < 7; i++) {
      assertThat(outputs.get(0).get(0, i)).isEqualTo(first[i]);
      assertThat(outputs.get(0).get(1, i)).isEqualTo(second[i]);
    }
    assertThat(outputs.get(1).get(2)).isEqualTo(x(1, 3));
  }

  private static final String BUCKETS =
      """
      op bucketing::_pre_bucket_all_gather(Tensor[] ag_ins, SymInt group_size, str group_name, \
      ScalarType dtype, SymInt[] out_dtype_ints, SymInt rank) -> Tensor
      op bucketing::_pre_bucket_reduce_scatter(Tensor[] rs_ins, SymInt group_size) -> Tensor
      group g = [0, 1]
      graph f(x: f32[3, 2], y: f32[5]) {
        o: bf16[22] = bucketing::_pre_bucket_all_gather([x, y], 2, "g", torch.bfloat16, %s, %s)
        i = aten::slice.Tensor(o, 0, %s, %s)
        w = _c10d_functional::all_gather_into_tensor_out(i, 2, "g", out=o)
        m = aten::view(w, [2, 11])
        a, b = aten::split_with_sizes(m, [6, 5], 1)
        c = aten::reshape(a, [6, 2])
        d = aten::reshape(b, [10])
        p: bf16[22] = bucketing::_pre_bucket_reduce_scatter([c, d], 2)
        s = _c10d_functional::reduce_scatter_tensor(p, "sum", 2, "g")
        t, u = aten::split_with_sizes(s, [6, 5])
        return c, d, t, u
      }
      """;

  private static final String EAGER_COPIES =
      """
      op aten::split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]
      op aten::split_with_sizes_copy.out(Tensor self, SymInt[] split_sizes, int dim=0, *, \
      Tensor(a!)[] out) -> ()
      op aten::_chunk_cat(Tensor[] tensors, int dim, int num_chunks) -> Tensor
      op aten::_chunk_cat.out(Tensor[] tensors, int dim, int num_chunks, *, Tensor(a!) out) -> Tensor(a!)
      group g = [0, 1]
      graph f(x: bf16[3, 2], y: bf16[5]) {
        k = aten::view(x, [6])
        i = aten::cat([k, y])
        w = _c10d_functional::all_gather_into_tensor(i, 2, "g")
        v = _c10d_functional::wait_tensor(w)
        m = aten::view(v, [2, 11])
        %s
        c = aten::view(a, [6, 2])
        d = aten::view(b, [10])
        %s
        q = aten::view(p, [22])
        s = _c10d_functional::reduce_scatter_tensor(q, "sum", 2, "g")
        t, u = aten::split_with_sizes(s, [6, 5])
        return c, d, t, u
      }
      """;

  private static final String FRESH_COPIES =
      EAGER_COPIES.formatted(
          "a: bf16[2, 6], b: bf16[2, 5] = aten::split_with_sizes_copy(m, [6, 5], 1)",
          "p: bf16[2, 11] = aten::_chunk_cat([c, d], 0, 2)");

  private static final String GIVEN_COPIES =
      EAGER_COPIES.formatted(
          """
          a = aten::empty.memory_format([2, 6], dtype=torch.bfloat16)
            b = aten::empty.memory_format([2, 5], dtype=torch.bfloat16)
            aten::split_with_sizes_copy.out(m, [6, 5], 1, out=[a, b])\
          """,
          """
          e = aten::empty.memory_format([2, 11], dtype=torch.bfloat16)
            p: bf16[2, 11] = aten::_chunk_cat.out([c, d], 0, 2, out=e)\
          """);

  static List<String> buckets() {
    return List.of(
        BUCKETS.formatted("[4, 4]", 0, 0, 11),
        BUCKETS.formatted("[4, 4]", 1, 11, 22),
        FRESH_COPIES,
        GIVEN_COPIES);
  }

  /** Buckets, gathered as bf16 and scattered again: of Inductor, and as FSDP2 writes them. */
  @ParameterizedTest
  @MethodSource("buckets")
  void gathersAndScattersBuckets(String text) {
    var options = OPTIONS.withRewrites(RewriteOptions.OFF.withLayouts(Mode.ON));
    var plan = Programs.plan(text, options);

    assertThat(plan.forRank(0).graph().ops().stream().map(op -> op.def().name().toString()))
        .contains(
            "_c10d_functional::all_gather_into_tensor_coalesced",
            "_c10d_functional::reduce_scatter_tensor_coalesced")
        .doesNotContain("aten::empty.memory_format", "aten::copy_", "aten::cat", "aten::clone");
    var outputs = run(plan, 4);
    for (int from = 0; from < 2; from++) {
      for (int i = 0; i < 6; i++) {
        assertThat(outputs.get(0).get(from * 3 + i / 2, i % 2)).isEqualTo(x(from, i));
      }
      for (int i = 0; i < 5; i++) {
        assertThat(outputs.get(1).get(from * 5 + i)).isEqualTo(x(from, i));
      }
    }
    for (int i = 0; i < 6; i++) {
      assertThat(outputs.get(2).get(i)).isEqualTo(2 * x(1, i));
    }
    for (int i = 0; i < 5; i++) {
      assertThat(outputs.get(3).get(i)).isEqualTo(2 * x(1, i));
    }
  }

  /** Which types the numbers mean depends on the version of PyTorch. */
  @Test
  void bucketsOfSeveralTypesStayUnknown() {
    var plan = Programs.plan(BUCKETS.formatted("[4, 9]", 0, 0, 11), OPTIONS);
    assertThat(plan.forRank(0).graph().ops())
        .anyMatch(op -> op.def().name().name().equals("_pre_bucket_all_gather"));
  }

  /** A declaration whose parameters have other names may be of another op. */
  @Test
  void otherSchemasStayUnknown() {
    var plan =
        Programs.plan(
            """
            op fsdp::copy_(Tensor(a!) to, Tensor from) -> ()
            graph f(x: f32[4], y: f32[4]) {
              z = aten::neg(x)
              fsdp::copy_(z, y)
              return z
            }
            """,
            CompileOptions.DEFAULT);

    assertThat(plan.forRank(0).graph().ops())
        .anyMatch(op -> op.def().name().toString().equals("fsdp::copy_"));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "[], 0, 2|needs at least one tensor",
        "[x], 9, 2|dim is 9, but must lie in [-2, 1]",
        "[x], 0, 0|cannot be divided into 0 chunks",
        "[x, y], 1, 2|cannot be divided into 2 chunks along dimension 1",
      })
  void refusesChunks(String args, String message) {
    var text =
        OPS
            + """
            graph f(x: f32[3, 2], y: f32[5]) {
              c = aten::empty.memory_format([2, 7])
              fsdp::chunk_cat(%s, out=c)
              return c
            }
            """
                .formatted(args);

    assertThatThrownBy(() -> Programs.plan(text, OPTIONS))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining(message);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "[6, 5], 11, 2, 0, torch.bfloat16|[6, 4], 11, 2, 0, torch.bfloat16|cannot be divided into"
            + " parts of [6, 4] for 2 tensors",
        "11, 2, 0, torch.bfloat16|11, 2, 2, torch.bfloat16|not bf16[11]",
        "11, 2, 0, torch.bfloat16|11, 2, 0, torch.float16|not bf16[11]",
      })
  void refusesWhatDoesNotFit(String right, String wrong, String message) {
    var text = OPS + COPY_IN + GATHER.formatted(CALL.formatted(0)).replace(right, wrong);

    assertThatThrownBy(() -> Programs.plan(text, OPTIONS))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining(message);
  }
}
