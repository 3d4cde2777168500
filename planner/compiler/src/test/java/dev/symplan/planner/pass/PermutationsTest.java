package dev.symplan.planner.pass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which exchanges become permutations, and what permutations are planned as. */
class PermutationsTest {
  private static Plan plan(CompileOptions options, String body) {
    return Compiler.forTarget(Target.H200_X4)
        .with(options)
        .compile(GraphParser.parse(new SourceFile("pairs.graph", "graph version 1\n" + body)));
  }

  /** An exchange of three ranks, with rows and splits for each, those received first. */
  private static String exchange(String... ranks) {
    var text = new StringBuilder("group g = [2, 0, 1]\n");
    for (int rank = 0; rank < ranks.length; rank++) {
      var splits = ranks[rank].split(":");
      text.append(
          """
          graph t(x: f32[%s, 8]) ranks [%s] {
            r = _c10d_functional_autograd::all_to_all_single(x, [%s], [%s], "g")
            w = _c10d_functional_autograd::wait_tensor(r)
            return w
          }
          """
              .formatted(splits[0], rank, splits[1], splits[2]));
    }
    return text.toString();
  }

  /** Ranks 2, 0 and 1 are the positions 0, 1 and 2, each of which sends to the next. */
  private static final String RING = exchange("4:4,0,0:0,0,4", "4:0,4,0:4,0,0", "4:0,0,4:0,4,0");

  private static List<String> collectives(Plan plan) {
    return plan.forRank(0).graph().ops().stream()
        .flatMap(
            op ->
                op.collective().stream()
                    .map(call -> "%s %s".formatted(call.kind().text(), call.permutation())))
        .toList();
  }

  @Test
  void exchangeInWhichEachRankSendsToOneIsAPermutation() {
    assertThat(collectives(plan(CompileOptions.DEFAULT, RING)))
        .containsExactly("collective_permute [[0, 1], [1, 2], [2, 0]]");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        // Rank 2 gets nothing, so that its result has no rows.
        "4:4,0,4:0,0,4 | 4:0,4,0:0,4,0 | 4:0,0,0:0,4,0",
        // Rank 2 keeps a row.
        "4:3,0,0:0,0,4 | 4:0,4,0:4,0,0 | 4:1,0,4:1,3,0",
        // Rank 0 has fewer rows.
        "2:4,0,0:0,0,2 | 4:0,2,0:4,0,0 | 4:0,0,4:0,4,0",
      })
  void otherExchangesStay(String first, String second, String third) {
    assertThat(collectives(plan(CompileOptions.DEFAULT, exchange(first, second, third))))
        .containsExactly("all_to_all []");
  }

  @Test
  void exchangeWhoseVariantIsNamedStays() {
    var named = CompileOptions.DEFAULT.withVariants(ImmutableMap.of("r", Variant.PUSH));
    assertThat(collectives(plan(named, RING))).containsExactly("all_to_all []");
  }

  @Test
  void ringOfEachPartOfAGroup() {
    var text =
        """
        group g = [0, 1], [2, 3]
        graph t(x: f32[4]) ranks [0, 2] {
          r = _c10d_functional::all_to_all_single(x, [0, 4], [0, 4], "g")
          return r
        }
        graph t(x: f32[4]) ranks [1, 3] {
          r = _c10d_functional::all_to_all_single(x, [4, 0], [4, 0], "g")
          return r
        }
        """;
    assertThat(collectives(plan(CompileOptions.DEFAULT, text)))
        .containsExactly("collective_permute [[0, 1], [1, 0]]");
  }

  @Test
  void declaredOpOfAnotherLibrary() {
    var text =
        """
        group g = [0, 1]
        op lib::shift(Tensor x, int[][] source_target_pairs, str name) -> Tensor \
        collective(collective_permute) group(name)
        graph t(x: f32[4]) {
          y: f32[4] = lib::shift(x, [[1, 0]], "g")
          return y
        }
        """;
    assertThat(collectives(plan(CompileOptions.DEFAULT, text)))
        .containsExactly("collective_permute [[1, 0]]");
  }

  @Test
  void pairOfARankThatTheGroupDoesNotHave() {
    var text =
        """
        group g = [0, 1]
        graph t(x: f32[4]) {
          y = symplan::collective_permute(x, [[0, 2]], "g")
          return y
        }
        """;
    assertThatThrownBy(() -> plan(CompileOptions.DEFAULT, text))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("pairs.graph:4")
        .hasMessageContaining("'y' has a pair with group rank 2, but group 'g' has 2 ranks");
  }

  @Test
  void onlyNcclReachesOtherHosts() {
    var text =
        """
        group g = [0, 1, 2, 3]
        graph t(x: f32[1024, 1024]) {
          y = aten::relu(x)
          r = symplan::collective_permute(y, [[0, 1], [1, 2], [2, 3], [3, 0]], "g")
          w = _c10d_functional::wait_tensor(r)
          return w
        }
        """;
    var one = plan(CompileOptions.DEFAULT, text).forRank(0).collectives().getFirst();
    assertThat(one.kind()).isEqualTo(Kind.COLLECTIVE_PERMUTE);
    assertThat(one.variant()).isNotEqualTo(Variant.NCCL);
    var two =
        plan(CompileOptions.DEFAULT.withHosts(Hosts.parse("2x2").orElseThrow()), text)
            .forRank(0)
            .collectives()
            .getFirst();
    assertThat(two.variant()).isEqualTo(Variant.NCCL);
    assertThat(two.verdicts())
        .filteredOn(verdict -> verdict.reason().eligible())
        .extracting(verdict -> verdict.variant())
        .isEqualTo(ImmutableList.of(Variant.NCCL));
  }
}
