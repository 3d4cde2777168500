package dev.symplan.ir.fx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSortedMap;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Program;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Groups and per-rank graphs. */
class FxRanksTest {
  private static final String REDUCE =
      FxTexts.listing(
          "x: \"f32[4][1]cuda:0\"",
          """
          r: "f32[4][1]cuda:0" = torch.ops._c10d_functional.all_reduce.default(x, 'sum', '0')
          return (r,)
          """);

  private final List<Diagnostic> warnings = new ArrayList<>();

  private static String gather(int size, String group, int device) {
    return FxTexts.listing(
            "x: \"f32[4][1]cuda:0\"",
            """
            g: "f32[%s][1]cuda:0" = torch.ops._c10d_functional.all_gather_into_tensor.default(x, %s, '%s')
            w: "f32[%s][1]cuda:0" = torch.ops._c10d_functional.wait_tensor.default(g)
            return (w,)
            """
                .formatted(4 * size, size, group, 4 * size))
        .replace("cuda:0", "cuda:" + device);
  }

  private Program read(String text, int ranks) {
    return FxTexts.read(text, ranks, warnings::add);
  }

  private Program readAll(String... texts) {
    var own = ImmutableSortedMap.<Integer, SourceFile>naturalOrder();
    for (int rank = 1; rank < texts.length; rank++) {
      own.put(rank, new SourceFile("graph.rank" + rank + ".fx.txt", texts[rank]));
    }
    return FxImporter.read(
        new SourceFile("graph.fx.txt", texts[0]),
        own.buildOrThrow(),
        texts.length,
        FxTexts.options(texts.length, ImmutableMap.of()),
        warnings::add);
  }

  private static List<List<Integer>> ranks(Program program) {
    return program.graphs().stream().map(graph -> graph.ranks().asList()).toList();
  }

  @Test
  void worldIsAsLargeAsTheLargestGroup() {
    assertThat(read(gather(8, "0", 0), 0).groups()).containsExactly(ProcessGroup.world("0", 8));
    assertThat(read(REDUCE, 2).groups()).containsExactly(ProcessGroup.world("0", 2));
    assertThat(warnings).isEmpty();
  }

  @Test
  void guessesTheWorldOnlyWithAWarning() {
    assertThat(read(REDUCE, 0).groups()).hasSize(1);
    assertThat(warnings)
        .singleElement()
        .satisfies(w -> assertThat(w.code()).isEqualTo(DiagnosticCode.BAD_GROUP))
        .satisfies(w -> assertThat(w.hint()).contains("--ranks"));
  }

  @Test
  void givenGroupsAreTaken() {
    var pairs =
        new ProcessGroup(
            "tp", ImmutableList.of(ImmutableIntArray.of(0, 2), ImmutableIntArray.of(1, 3)));
    var options =
        new ImportOptions(
            "g",
            ImmutableList.of(pairs),
            0,
            ImmutableMap.of(),
            ImmutableMap.of(),
            BuiltinOps.registry());
    var file = new SourceFile("g.fx.txt", gather(2, "tp", 0) + "\n" + REDUCE);
    assertThat(FxImporter.read(file, options, warnings::add).groups())
        .containsExactly(pairs, ProcessGroup.world("0", 4));
  }

  @Test
  void doesNotGuessWhichRanksASmallerGroupHas() {
    assertThatThrownBy(() -> read(gather(2, "1", 0), 4))
        .hasMessageContaining("g.fx.txt:3:")
        .hasMessageContaining("error[bad-group]: group '1' has 2 ranks here, but 4 ranks use it")
        .hasMessageContaining("groups.json: {\"1\": [0, 1]}");
    assertThatThrownBy(() -> read(gather(8, "0", 0), 4)).hasMessageContaining("give --ranks 8");
  }

  @Test
  void aGroupThatIsNotGivenHasTheRanksThatUseIt() {
    var program =
        readAll(gather(2, "1", 0), gather(2, "1", 1), gather(2, "2", 2), gather(2, "2", 3));
    assertThat(program.groups())
        .containsExactly(
            new ProcessGroup("1", ImmutableList.of(ImmutableIntArray.of(0, 1))),
            new ProcessGroup("2", ImmutableList.of(ImmutableIntArray.of(2, 3))));
    assertThat(ranks(program)).containsExactly(List.of(0, 1), List.of(2, 3));
    assertThat(warnings).isEmpty();
  }

  @Test
  void ranksThatDifferInTheirDevicesShareAGraph() {
    var program = readAll(gather(3, "0", 0), gather(3, "0", 1), gather(3, "0", 2));
    assertThat(ranks(program)).containsExactly(List.of());
  }

  @Test
  void ranksWithoutATextRunTheCommonOne() {
    var other = gather(4, "0", 0).replace("wait_tensor.default(g)", "wait_tensor.default((g))");
    var program =
        FxImporter.read(
            new SourceFile("graph.fx.txt", gather(4, "0", 0)),
            ImmutableSortedMap.of(2, new SourceFile("graph.rank2.fx.txt", other)),
            4,
            FxTexts.options(4, ImmutableMap.of()),
            warnings::add);
    assertThat(ranks(program)).containsExactly(List.of(0, 1, 3), List.of(2));
    assertThat(program.graphs()).extracting(Graph::name).containsExactly("g", "g");
  }

  @Test
  void aLogOfSeveralRanksIsAProgramOfSeveralRanks() {
    var log =
        FxTexts.logged(1, "post_grad_graphs", gather(2, "5", 1))
            + FxTexts.logged(0, "post_grad_graphs", gather(2, "4", 0))
            + FxTexts.logged(3, "post_grad_graphs", gather(2, "5", 3))
            + FxTexts.logged(2, "post_grad_graphs", gather(2, "4", 2));
    var program = read(log, 0);
    assertThat(ranks(program)).containsExactly(List.of(0, 2), List.of(1, 3));
    assertThat(program.groups())
        .extracting(group -> group.name() + group.members())
        .containsExactly("4[[0, 2]]", "5[[1, 3]]");

    assertThatThrownBy(() -> read(log, 2))
        .hasMessageContaining("error[bad-option]: the log has graphs of rank 3")
        .hasMessageContaining("--ranks 4");
  }

  @Test
  void graphsOfALogAreNumbered() {
    var log = FxTexts.logged(0, "post_grad_graphs", gather(4, "0", 0) + "\n" + REDUCE);
    assertThat(read(log, 4).graphs()).extracting(Graph::name).containsExactly("g_0", "g_1");
  }

  @Test
  void errorsNameTheLineAndColumnOfTheLog() {
    var log = "noise\n" + FxTexts.logged(0, "post_grad_graphs", REDUCE.replace("'sum'", "'most'"));
    var line = log.lines().filter(l -> l.contains("all_reduce")).findFirst().orElseThrow();
    assertThatThrownBy(() -> read(log, 4))
        .hasMessageContaining("g.fx.txt:4:" + (line.indexOf("r: \"f32") + 1) + ": error[")
        .hasMessageContaining("unknown reduction 'most'");
  }

  @Test
  void ranksHaveTheSameNumberOfGraphs() {
    assertThatThrownBy(() -> readAll(gather(2, "0", 0), gather(2, "0", 0) + "\n" + REDUCE))
        .hasMessageContaining("graph.rank1.fx.txt:")
        .hasMessageContaining("error[ranks-disagree]: 2 graphs here, but 1 on other ranks")
        .hasMessageContaining("the other rank's are at graph.fx.txt:2");
  }
}
