package dev.symplan.codegen;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Agreement.Term;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import java.util.List;
import org.junit.jupiter.api.Test;

class AgreementTest {

  private static Term term(String text, int... members) {
    return new Term(
        text,
        ImmutableIntArray.copyOf(members),
        ImmutableLongArray.of(),
        ImmutableLongArray.of(),
        "'r' (a.graph:3)");
  }

  private static Term exchange(List<Long> sent, List<Long> received) {
    return new Term(
        "all_to_all",
        ImmutableIntArray.of(0, 1),
        ImmutableLongArray.copyOf(sent),
        ImmutableLongArray.copyOf(received),
        "'e' (a.graph:4)");
  }

  @Test
  void ranksOfOnePlanAgree() {
    var program =
        GraphParser.parse(
            new SourceFile(
                "a.graph",
                """
                graph version 1
                group g = [0, 1], [3, 2]
                graph a(x: f32[8]) {
                  r = _c10d_functional::all_reduce(x, "sum", "g")
                  o = _c10d_functional::wait_tensor(r)
                  return o
                }
                """));
    var executable = Lowering.lower(Compiler.forTarget(Target.H200_X4).compile(program));
    var terms = Agreement.of(executable);
    assertThat(terms).hasSize(4);
    assertThat(terms.getFirst())
        .extracting(Term::text)
        .hasSize(3)
        .anyMatch(text -> text.startsWith("all_reduce") && text.contains("sum of 2 ranks"));
    assertThat(Agreement.firstDifference(terms)).isEmpty();
  }

  @Test
  void namesTheFirstDifference() {
    assertThat(
            Agreement.firstDifference(
                List.of(
                    List.of(term("all_reduce", 0, 1), term("all_gather", 0, 1)),
                    List.of(term("all_reduce", 0, 1), term("broadcast", 0, 1)))))
        .contains(
            "ranks 0 and 1 do not have the same plan: rank 0 has all_gather for 'r' (a.graph:3),"
                + " rank 1 has broadcast for 'r' (a.graph:3)");
  }

  @Test
  void namesWhatOneRankLacks() {
    assertThat(
            Agreement.firstDifference(List.of(List.of(term("all_reduce", 0, 1)), List.<Term>of())))
        .hasValueSatisfying(text -> assertThat(text).endsWith("rank 1 has nothing more"));
  }

  @Test
  void comparesWhoTakesPart() {
    assertThat(
            Agreement.firstDifference(
                List.of(List.of(term("all_reduce", 0, 1)), List.of(term("all_reduce", 1, 0)))))
        .contains(
            "ranks 0 and 1 disagree on the participants of 'r' (a.graph:3): [0, 1] and [1, 0]");
    assertThat(Agreement.firstDifference(List.of(List.of(term("all_reduce", 0, 1)))))
        .contains("rank 0, 'r' (a.graph:3) is with rank 1, but there are 1 ranks");
  }

  @Test
  void comparesSplitSizes() {
    assertThat(
            Agreement.firstDifference(
                List.of(
                    List.of(exchange(List.of(4L, 8L), List.of(4L, 12L))),
                    List.of(exchange(List.of(12L, 4L), List.of(8L, 4L))))))
        .isEmpty();
    assertThat(
            Agreement.firstDifference(
                List.of(
                    List.of(exchange(List.of(4L, 8L), List.of(4L, 12L))),
                    List.of(exchange(List.of(8L, 4L), List.of(8L, 4L))))))
        .contains(
            "rank 1 sends 8 bytes to rank 0 in 'e' (a.graph:4), which expects 12:"
                + " split sizes do not match");
  }
}
