package dev.symplan.ir.aten;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.text.GraphParser;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class CollectiveOpsTest {
  private static final String NS = "_c10d_functional::";

  /** {@return a graph over x: f32[8, 6] and more, with one op} */
  private static Graph graph(String call) {
    var text =
        """
        graph version 1
        group tp = [0, 1, 2, 3]
        graph g(x: f32[8, 6], t: f32[8, 6][1, 8], gap: f32[8, 6][12, 1], i: i64[8], s: f32[], c: c64[8]) {
          %s
          return
        }
        """;
    return GraphParser.parse(new SourceFile("test", text.formatted(call))).graphs().getFirst();
  }

  private static List<OpResult> infer(String call) {
    return graph(NS + call).ops().getFirst().infer();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "all_reduce(x, 'sum', 'tp')                              | f32[8, 6]",
        "all_reduce(t, 'avg', 'tp')                              | f32[8, 6][1, 8]",
        "all_reduce(gap, 'max', 'tp')                            | f32[8, 6]",
        "all_reduce(c, 'sum', 'tp')                              | c64[8]",
        "all_reduce(i, 'bxor', 'tp')                             | i64[8]",
        "all_reduce(x, 'sum', 'tp', None)                        | f32[8, 6]",
        "all_gather_into_tensor(x, 4, 'tp')                      | f32[32, 6]",
        "all_gather_into_tensor(t, 4, 'tp')                      | f32[32, 6]",
        "all_gather_into_tensor(s, 4, 'tp')                      | f32[4]",
        "all_gather_into_tensor(x, 4, 'tp', config=None)         | f32[32, 6]",
        "reduce_scatter_tensor(x, 'sum', 4, 'tp')                | f32[2, 6]",
        "reduce_scatter_tensor(i, 'product', 4, 'tp')            | i64[2]",
        "all_to_all_single(x, [2, 2, 2, 2], [2, 2, 2, 2], 'tp')  | f32[8, 6]",
        "all_to_all_single(x, [5, 0, 1, 1], [0, 3, 3, 2], 'tp')  | f32[7, 6]",
        "all_to_all_single(x, [], [], 'tp')                      | f32[8, 6]",
        "broadcast(t, 0, 'tp')                                   | f32[8, 6][1, 8]",
      })
  void givesAFreshResult(String call, String type) {
    assertThat(infer(call)).hasSize(1);
    assertThat(infer(call).getFirst().type()).hasToString(type);
    assertThat(infer(call).getFirst().view()).isEmpty();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "all_reduce_coalesced([x, i], 'sum', 'tp')               | f32[8, 6]  | i64[8]",
        "all_gather_into_tensor_coalesced([x, i], 4, 'tp')       | f32[32, 6] | i64[32]",
        "reduce_scatter_tensor_coalesced([x, i], 'sum', 4, 'tp') | f32[2, 6]  | i64[2]",
      })
  void coalescedFormsGiveAResultForEachOperand(String call, String first, String second) {
    assertThat(infer(call))
        .extracting(result -> result.type().toString())
        .containsExactly(first, second);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "all_reduce_(t, 'sum', 'tp')                                 | t",
        "broadcast_(gap, 1, 'tp')                                    | gap",
        "all_reduce_coalesced_([x], 'sum', 'tp')                     | x",
        "reduce_scatter_tensor_out(x, 'sum', 1, 'tp', out=t)         | t",
        "all_gather_into_tensor_out(x, 1, 'tp', out=gap)             | gap",
        "wait_tensor(t)                                              | t",
      })
  void resultsInPlaceAreTheArgumentItself(String call, String argument) {
    var result = infer(call).getFirst();

    assertThat(result.view()).isPresent();
    assertThat(result.view().get().of().name()).isEqualTo(argument);
    assertThat(result.view().get().offset()).isZero();
    assertThat(result.type()).isEqualTo(result.view().get().of().type());
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      value = {
        "all_reduce(x, 'total', 'tp')             | unknown reduction 'total'",
        "all_reduce(x, 'SUM', 'tp')               | unknown reduction 'SUM'",
        "all_reduce(x, 'band', 'tp')              | band works on integers and bool, not on f32",
        "all_reduce(c, 'product', 'tp')           | product works on real numbers, not on c64",
        "all_reduce(c, 'bor', 'tp')               | bor works on integers and bool, not on c64",
        "all_reduce(i, 'avg', 'tp')               | avg works on floats, not on i64",
        "all_gather_into_tensor(x, 0, 'tp')       | group_size is 0, but must be at least 1",
        "reduce_scatter_tensor(x, 'sum', 3, 'tp') | 8 rows cannot be divided evenly among 3 ranks",
        "reduce_scatter_tensor(s, 'sum', 4, 'tp') | has no rows to scatter",
        "all_to_all_single(x, [2, 2], [2, 2, 2, 2], 'tp') | 4 input splits, but 2 output splits",
        "all_to_all_single(x, [8, 0], [4, 3], 'tp') | input_split_sizes add up to 7, but the input"
            + " has 8 rows",
        "all_to_all_single(x, [8, -1], [4, 4], 'tp') | output_split_sizes [8, -1] has a negative"
            + " entry",
        "all_to_all_single(s, [], [], 'tp')       | has no rows to exchange",
        "broadcast(x, -1, 'tp')                   | src is -1, but ranks count from 0",
        "all_gather_into_tensor_out(x, 4, 'tp', out=t) | 't' is f32[8, 6][1, 8], but the result is"
            + " f32[32, 6]",
      })
  void saysWhatIsWrong(String call, String message) {
    assertThatThrownBy(() -> infer(call))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining(message);
  }

  @Test
  void listsTheReductions() {
    assertThatThrownBy(() -> infer("all_reduce(x, 'total', 'tp')"))
        .hasMessageContaining("hint: reductions: sum, avg, product, min, max, band, bor, bxor");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "all_reduce",
        "all_gather_into_tensor",
        "reduce_scatter_tensor",
        "all_to_all_single"
      })
  void autogradFormsDoTheSame(String name) {
    var plain = BuiltinOps.registry().get(NS + name);
    var autograd = BuiltinOps.registry().get("_c10d_functional_autograd::" + name);

    assertThat(autograd.collective()).isEqualTo(plain.collective()).isPresent();
  }

  @ParameterizedTest
  @CsvSource({
    "all_reduce, ALL_REDUCE, input",
    "all_reduce_, ALL_REDUCE, input",
    "all_reduce_coalesced, ALL_REDUCE, inputs",
    "all_gather_into_tensor, ALL_GATHER, input",
    "reduce_scatter_tensor, REDUCE_SCATTER, input",
    "all_to_all_single, ALL_TO_ALL, input",
    "broadcast, BROADCAST, input",
  })
  void rolesHaveParameters(String name, Kind kind, String operand) {
    OpDef def = BuiltinOps.registry().get(NS + name);

    assertThat(def.collective()).isPresent();
    assertThat(def.collective().get().kind()).isEqualTo(kind);
    assertThat(def.collective().get().operand()).isEqualTo(operand);
    assertThat(def.collective().get().group()).contains("group_name");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "[[0, 1], [0, 2]] | source_target_pairs: rank 0 is the source of two pairs",
        "[[0, 1], [2, 1]] | source_target_pairs: rank 1 is the target of two pairs",
        "[[0, -1]] | source_target_pairs: a pair is [0, -1], but ranks count from 0",
        "[[0, 1, 2]] | source_target_pairs must be a list of pairs of ranks",
        "[[0, 4294967296]] | source_target_pairs must be a list of pairs of ranks",
      })
  void pairsNameEachRankOnceAtEachEnd(String pairs, String message) {
    var text =
        """
        graph version 1
        group g = [0, 1, 2]
        graph t(x: f32[4]) {
          y = symplan::collective_permute(x, %s, "g")
          return y
        }
        """
            .formatted(pairs);

    assertThatThrownBy(() -> GraphParser.parse(new SourceFile("pairs.graph", text)))
        .isInstanceOf(CompileException.class)
        .hasMessageStartingWith("pairs.graph:4")
        .hasMessageContaining(message);
  }

  @Test
  void waitIsKnownByItsTrait() {
    var def = BuiltinOps.registry().get(NS + "wait_tensor");

    assertThat(def.has(OpTrait.WAIT)).isTrue();
    assertThat(def.collective()).isEmpty();
  }
}
