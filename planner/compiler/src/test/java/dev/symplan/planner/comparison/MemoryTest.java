package dev.symplan.planner.comparison;

import static dev.symplan.planner.comparison.Planned.forced;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.Step;
import org.junit.jupiter.api.Test;

/** The cost of symmetric memory. */
class MemoryTest {

  /** Three reductions of smaller and smaller tensors, one after the other. */
  private static final String DESCENDING =
      """
      graph g(x: f32[64, 64]) {
        a = aten::mm(x, x)
        ra = _c10d_functional::all_reduce(a, "sum", "tp")
        oa = _c10d_functional::wait_tensor(ra)
        b = aten::sum.dim_IntList(oa, [0])
        rb = _c10d_functional::all_reduce(b, "sum", "tp")
        ob = _c10d_functional::wait_tensor(rb)
        c = aten::sum(ob)
        rc = _c10d_functional::all_reduce(c, "sum", "tp")
        oc = _c10d_functional::wait_tensor(rc)
        return oc
      }
      """;

  /**
   * {@return the plan of a product {@code a: f32[64, 64]}, reduced to {@code r}, and what is done
   * with both}
   *
   * @param rest lines of the graph
   */
  private static Planned reduced(Variant variant, String rest) {
    return Planned.graph(
        """
        graph g(x: f32[64, 64] @external) {
          a = aten::mm(x, x)
          r = _c10d_functional::all_reduce(a, "sum", "tp")
        %s}
        """
            .formatted(rest.indent(2)),
        forced("all_reduce", variant));
  }

  @Test
  void tensorsOfOtherSizesShareSymmetricMemory() {
    var planned = Planned.graph(DESCENDING, forced("all_reduce", Variant.TWO_SHOT));
    // The largest and the next are in use together; the third takes memory of the first.
    assertThat(planned.plan().symmetric().bytes()).isEqualTo(64 * 64 * 4 + 64 * 4);
    assertThat(planned.plan().symmetric().bytes()).isEqualTo(planned.plan().symmetric().bound());
  }

  @Test
  void tensorsOfOtherTypesShareSymmetricMemory() {
    var planned =
        reduced(
            Variant.TWO_SHOT,
            """
            oa = _c10d_functional::wait_tensor(r)
            s = aten::sum(oa)
            h = aten::_to_copy(x, dtype=torch.bfloat16)
            b = aten::mm(h, h)
            rb = _c10d_functional::all_reduce(b, "sum", "tp")
            ob = _c10d_functional::wait_tensor(rb)
            return s, ob
            """);
    var a = planned.buffer("a");
    var b = planned.buffer("b");
    assertThat(b.offset()).isBetween(a.offset(), a.end() - b.bytes());
    assertThat(planned.plan().symmetric().bytes()).isLessThan(64 * 64 * 6);
  }

  @Test
  void localTensorsLieInIdleSymmetricMemory() {
    var planned =
        reduced(
            Variant.TWO_SHOT,
            """
            oa = _c10d_functional::wait_tensor(r)
            s = aten::sum(oa)
            b = aten::mul.Tensor(x, s)
            c = aten::mm(b, x)
            return c
            """);
    assertThat(planned.buffer("b").symmetric()).isFalse();
    assertThat(planned.buffer("c").symmetric()).isFalse();
    assertThat(planned.rank().buffers())
        .anySatisfy(
            buffer -> {
              assertThat(buffer.symmetric()).isFalse();
              assertThat(buffer.arena()).isEqualTo(ArenaKind.SYMMETRIC);
            });
    assertThat(planned.bytes()).isEqualTo(planned.plan().total().bound());
  }

  @Test
  void collectivesNeedNoScratchMemory() {
    // A one-shot kernel that stages has two copies of its operand besides.
    var planned =
        reduced(
            Variant.ONE_SHOT,
            """
            o = _c10d_functional::wait_tensor(r)
            return o
            """);
    assertThat(planned.bytes()).isEqualTo(2 * 64 * 64 * 4);
  }

  @Test
  void smallReductionsOfAGroupShareOneWorkspace() {
    var planned =
        reduced(
            Variant.ONE_SHOT_PUSH,
            """
            b = aten::mm(r, x)
            c = aten::slice.Tensor(b, 0, 0, 16)
            s = _c10d_functional::all_reduce(c, "max", "tp")
            return s
            """);
    var buffers = planned.plan().rankPlans().getFirst().buffers();
    // Two halves of what three peers push; those of the smaller one lie in the same.
    assertThat(buffers.stream().filter(buffer -> buffer.name().startsWith("workspace")))
        .singleElement()
        .satisfies(buffer -> assertThat(buffer.bytes()).isEqualTo(2 * 3 * 64 * 64 * 4));
    assertThat(planned.plan().symmetric().bytes()).isEqualTo(2 * 3 * 64 * 64 * 4);
  }

  @Test
  void groupsShareOneArena() {
    var planned =
        reduced(
            Variant.TWO_SHOT,
            """
            oa = _c10d_functional::wait_tensor(r)
            b = aten::mm(oa, x)
            rb = _c10d_functional::all_reduce(b, "sum", "row")
            ob = _c10d_functional::wait_tensor(rb)
            c = aten::mm(ob, x)
            rc = _c10d_functional::all_reduce(c, "sum", "col")
            oc = _c10d_functional::wait_tensor(rc)
            return oc
            """);
    assertThat(planned.buffer("a").symmetric()).isTrue();
    assertThat(planned.samePlace("a", "c")).isTrue();
    assertThat(planned.plan().symmetric().bytes()).isEqualTo(2 * 64 * 64 * 4);
  }

  @Test
  void memoryOfAnUnfinishedCollectiveIsKeptUntilItsJoin() {
    var planned =
        Planned.graph(
            """
            graph g(x: bf16[4096, 4096] @external) {
              a = aten::mm(x, x)
              ra = _c10d_functional::all_gather_into_tensor(a, 4, "tp")
              b = aten::mm(x, x)
              c = aten::mm(b, x)
              oa = _c10d_functional::wait_tensor(ra)
              s = aten::sum(oa)
              return c, s
            }
            """,
            CompileOptions.DEFAULT.withVariants(ImmutableMap.of("ra", Variant.COPY_ENGINE)));
    assertThat(planned.collective(0).isAsync()).isTrue();
    int join = planned.rank().steps().indexOf(new Step.Join(0));
    assertThat(join).isGreaterThan(planned.buffer("a").first() + 1);
    // It may be a share of what is gathered, which lives on.
    assertThat(planned.buffer("a").last()).isGreaterThanOrEqualTo(join);
    for (var name : new String[] {"b", "c"}) {
      assertThat(planned.samePlace(name, "a")).isFalse();
    }
  }
}
