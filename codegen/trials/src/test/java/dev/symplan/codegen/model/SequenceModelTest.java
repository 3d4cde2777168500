package dev.symplan.codegen.model;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.model.Sequence.Collective;
import dev.symplan.codegen.model.Sequence.Read;
import dev.symplan.codegen.model.Sequence.Step;
import dev.symplan.codegen.model.Sequence.Write;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.testkit.Golden;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/**
 * Barriers that another one stands in for, and why the rules for that are as they are: each rule is
 * safe, and what is just beyond it is not.
 */
class SequenceModelTest {
  private static Collective reduce(String operand, String result) {
    return collective(Kind.ALL_REDUCE, Variant.ONE_SHOT, operand, result);
  }

  private static Collective scatter(String operand, String result) {
    return collective(Kind.REDUCE_SCATTER, Variant.ONE_SHOT, operand, result);
  }

  private static Collective push(String operand, String result) {
    return collective(Kind.ALL_GATHER, Variant.PUSH, operand, result);
  }

  private static Collective collective(Kind kind, Variant variant, String operand, String result) {
    return new Collective(VariantSpec.of(kind, variant), operand, result);
  }

  /** Without spin, the test ends here: what it compares with goldens comes first. */
  private static void safe(String file, String title, Step... steps) {
    Golden.check(file(file), Promela.of(Sequence.of(title, 2, steps)));
    Spin.assumePresent();
    Spin.assertSafe(Spin.ofRanks(file, ranks -> Promela.of(Sequence.of(title, ranks, steps))));
  }

  private static String file(String name) {
    return "models/sequence-" + name + ".pml";
  }

  private static void unsafe(Step... steps) {
    unsafe(Sequence.of("", 2, steps));
  }

  private static void unsafe(Sequence sequence) {
    Spin.assumePresent();
    Spin.assertUnsafe(Map.of("unsafe", Promela.of(sequence)), "assertion violated.*");
  }

  @Test
  void operandThatNobodyRewritesUntilTheNextStart() {
    safe(
        "next-start",
        "The first collective's end: the second's start stands in for it, as nothing between"
            + " writes a.",
        new Write("a"),
        reduce("a", "b").noEnd(),
        new Read("b"),
        new Write("c"),
        reduce("c", "d"),
        new Read("d"));
    unsafe(
        new Write("a"),
        reduce("a", "b").noEnd(),
        new Read("b"),
        new Write("a"),
        reduce("a", "d"),
        new Read("d"));
  }

  @Test
  void resultThatNobodyTouchesSinceTheEndBefore() {
    safe(
        "previous-end",
        "The second collective's start: the first's end stands in for it, as nothing since"
            + " touches d.",
        new Write("c"),
        new Write("a"),
        reduce("a", "b"),
        new Read("b"),
        push("c", "d").noStart(),
        new Read("d"));
    unsafe(
        new Write("d"),
        new Write("c"),
        new Write("a"),
        reduce("a", "b"),
        new Read("d"),
        push("c", "d").noStart(),
        new Read("d"));
    unsafe(
        new Write("a"),
        reduce("a", "b"),
        new Write("c"),
        reduce("c", "d").noStart(),
        new Read("d"));
  }

  @Test
  void onlyTheOutermostOfSeveralMeet() {
    safe(
        "outermost",
        "Three collectives between one start and one end: all they read is written before.",
        new Write("a"),
        new Write("b"),
        new Write("c"),
        reduce("a", "x").noEnd(),
        push("b", "y").noStart().noEnd(),
        reduce("c", "z").noStart(),
        new Read("x"),
        new Read("y"),
        new Read("z"));
    unsafe(
        new Write("a"),
        new Write("b"),
        new Write("c"),
        reduce("a", "x").noEnd(),
        push("b", "y").noStart().noEnd(),
        new Read("y"),
        reduce("c", "z").noStart(),
        new Read("x"),
        new Read("z"));
  }

  @Test
  void epiloguesRunBeforeTheEnd() {
    safe(
        "epilogue",
        "Ops between what a collective moves and its end: they write what no peer reads.",
        new Write("a"),
        reduce("a", "b").with(new Read("b"), new Write("b"), new Write("c")),
        new Read("c"),
        reduce("c", "d").with(new Read("d"), new Read("b")));
    unsafe(new Write("a"), reduce("a", "b").with(new Read("b"), new Write("a")), new Read("a"));
  }

  @Test
  void epiloguesOfSharesRunBeforeTheEnd() {
    safe(
        "epilogue-share",
        "Ops between what a reduce_scatter gives a rank and its end, and the all_gather of it.",
        new Write("a"),
        scatter("a", "b").with(new Read("b"), new Write("c")),
        push("c", "d"),
        new Read("d"));
    unsafe(new Write("a"), scatter("a", "b").with(new Read("b"), new Write("a")), new Read("a"));
  }

  @Test
  void aLaterEndStandsInOnlyBehindItsEpilogue() {
    safe(
        "epilogue-end",
        "The first collective's end: the second's stands in for it, whose epilogue does not write"
            + " a.",
        new Write("a"),
        new Write("c"),
        reduce("a", "b").noEnd(),
        reduce("c", "d").noStart().with(new Read("d"), new Write("e")),
        new Read("e"));
    unsafe(
        new Write("a"),
        new Write("c"),
        reduce("a", "b").noEnd(),
        reduce("c", "d").noStart().with(new Read("d"), new Write("a")),
        new Read("a"));
  }

  @Test
  void collectivesOnEachOthersMemoryMustMeetBetween() {
    safe(
        "shared-memory",
        "The second collective writes where the first reads: one barrier between is enough.",
        new Write("a"),
        new Write("b"),
        reduce("a", "x").noEnd(),
        push("b", "a"),
        new Read("x"),
        new Read("a"));
    unsafe(
        new Write("a"),
        new Write("b"),
        reduce("a", "x").noEnd(),
        push("b", "a").noStart(),
        new Read("x"),
        new Read("a"));
  }

  /**
   * Each of the two groups has a barrier between the collectives, but not in the right order: a
   * peer of the one may write what a peer of the other still reads.
   */
  @Test
  void barriersOfAnotherGroupDoNotStandIn() {
    var groups = ImmutableMap.of("g", parts(0, 1, 2, 3, 4, 5), "h", parts(0, 2, 1, 4, 3, 5));
    var crossed =
        List.<Step>of(
            new Write("a"),
            new Write("b"),
            new Write("c"),
            new Write("d"),
            reduce("a", "w").in("g").noEnd(),
            reduce("b", "x").in("h"),
            reduce("c", "y").in("g"),
            push("d", "a").in("h").noStart(),
            new Read("a"));
    unsafe(new Sequence("", 6, groups, ImmutableList.copyOf(crossed)));
  }

  private static ImmutableList<ImmutableList<Integer>> parts(int... pairs) {
    return IntStream.range(0, pairs.length / 2)
        .mapToObj(i -> ImmutableList.of(pairs[2 * i], pairs[2 * i + 1]))
        .collect(ImmutableList.toImmutableList());
  }

  @Test
  void ranksThatDisagreeWaitForEver() {
    Spin.assumePresent();
    var text =
        Promela.of(
            Sequence.of("", 2, new Write("a"), reduce("a", "b"), new Read("b"), reduce("a", "b")));
    int last = text.lastIndexOf("    meet(");
    var odd = text.substring(0, last) + text.substring(text.indexOf('\n', last) + 1);
    // Whatever it is that they read.
    Spin.assertUnsafe(
        Map.of("odd", odd.replaceAll("assert\\(.*?\\)\\)", "skip")), "invalid end state");
  }
}
