package dev.symplan.planner.comparison;

import static dev.symplan.planner.comparison.Planned.forced;
import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.MemorySpace;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The ranks of a program agree on these by construction. */
class RanksTest {
  private static final String DIFFERENT =
      """
      graph version 1

      group tp = [0, 1]

      graph g(x: f32[64, 64]) ranks [0] {
        a = aten::mm(x, x)
        r = _c10d_functional::all_reduce(a, "sum", "tp")
        o = _c10d_functional::wait_tensor(r)
        c = aten::mm(o, o)
        q = _c10d_functional::all_reduce(c, "sum", "tp")
        p = _c10d_functional::wait_tensor(q)
        return p
      }

      graph g(x: f32[64, 64]) ranks [1] {
        n = aten::mm(x, x)
        m = aten::mm(n, x)
        a = aten::mm(m, n)
        r = _c10d_functional::all_reduce(a, "sum", "tp")
        o = _c10d_functional::wait_tensor(r)
        k = aten::mm(o, n)
        c = aten::mm(k, o)
        q = _c10d_functional::all_reduce(c, "sum", "tp")
        p = _c10d_functional::wait_tensor(q)
        return p
      }
      """;

  @Test
  void ranksOfDifferentCodeHaveTheSameSymmetricOffsets() {
    var plan = Planned.of(DIFFERENT, forced("all_reduce", Variant.TWO_SHOT)).plan();
    assertThat(plan.rankPlans()).hasSize(2);
    var places = new ArrayList<List<Long>>();
    for (var rank : plan.rankPlans()) {
      var own = new ArrayList<Long>();
      for (var collective : rank.collectives()) {
        for (int id : collective.operands()) {
          var placement = rank.placements().get(id);
          own.add(rank.buffers().get(placement.buffer()).offset() + placement.offset());
        }
      }
      places.add(own);
    }
    assertThat(places.get(0)).hasSize(2).isEqualTo(places.get(1));
  }

  /** Only the first rank has a shard that it can write where the second result has it. */
  @Test
  void shardsInPlaceOnOneRankLeaveResultsInTheirOrder() {
    var text =
        """
        graph version 1
        group g = [0, 1]
        graph t(x: f32[8, 4], y: f32[4, 4]) ranks [0] {
          a = aten::t(x)
          b = aten::relu(a)
          r, s = _c10d_functional::all_gather_into_tensor_coalesced([y, b], 2, "g")
          w = _c10d_functional::wait_tensor(s)
          return w
        }
        graph t(x: f32[8, 4], y: f32[4, 4]) ranks [1] {
          a = aten::t(x)
          r, s = _c10d_functional::all_gather_into_tensor_coalesced([y, a], 2, "g")
          w = _c10d_functional::wait_tensor(s)
          b = aten::relu(w)
          return b
        }
        """;
    for (var space : List.of(MemorySpace.LOCAL, MemorySpace.ANY, MemorySpace.DONATED)) {
      var options = forced("all_gather", Variant.PUSH).withInputs(space);
      var offsets =
          Planned.of(text, options).plan().rankPlans().stream()
              .map(rank -> rank.collectives().getFirst().results().stream().map(id -> at(rank, id)))
              .map(Stream::toList)
              .toList();
      assertThat(offsets.getFirst()).as("%s", space).isEqualTo(offsets.getLast());
    }
  }

  /** Only the second rank sends one value twice. */
  @Test
  void copiesLieAlikeWhereOnlyOneRankSendsAValueTwice() {
    var text =
        """
        graph version 1
        group g = [0, 1]
        graph t(x: f32[8, 4], y: f32[8, 4]) ranks [0] {
          r, s = _c10d_functional::all_reduce_coalesced([x, y], "sum", "g")
          w = _c10d_functional::wait_tensor(s)
          v = _c10d_functional::wait_tensor(r)
          return w, v
        }
        graph t(x: f32[8, 4], y: f32[8, 4]) ranks [1] {
          r, s = _c10d_functional::all_reduce_coalesced([x, x], "sum", "g")
          w = _c10d_functional::wait_tensor(s)
          v = _c10d_functional::wait_tensor(r)
          return w, v
        }
        """;
    for (var space : List.of(MemorySpace.LOCAL, MemorySpace.ANY, MemorySpace.EXTERNAL)) {
      var options = forced("all_reduce", Variant.TWO_SHOT).withInputs(space);
      var offsets =
          Planned.of(text, options).plan().rankPlans().stream()
              .map(
                  rank -> rank.collectives().getFirst().operands().stream().map(id -> at(rank, id)))
              .map(Stream::toList)
              .toList();
      assertThat(offsets.getFirst()).as("%s", space).doesNotHaveDuplicates();
      assertThat(offsets.getLast()).as("%s", space).isEqualTo(offsets.getFirst());
    }
  }

  private static long at(RankPlan rank, int value) {
    var placement = rank.placements().get(value);
    return rank.buffers().get(placement.buffer()).offset() + placement.offset();
  }

  @Test
  void collectivesStartInOneOrderOnEveryRank() {
    var plan = Planned.of(DIFFERENT, CompileOptions.DEFAULT).plan();
    for (var rank : plan.rankPlans()) {
      assertThat(rank.steps().stream().filter(step -> step instanceof Step.Start).toList())
          .containsExactly(new Step.Start(0), new Step.Start(1));
    }
  }

  @Test
  void samePlanEveryTime() {
    var first = Planned.of(DIFFERENT).plan();
    var again = Planned.of(DIFFERENT).plan();
    assertThat(PlanFile.toJson(again)).isEqualTo(PlanFile.toJson(first));
    assertThat(Planned.of(DIFFERENT.replace("64, 64", "128, 128")).plan().digest())
        .isNotEqualTo(first.digest());
  }
}
