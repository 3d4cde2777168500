package dev.symplan.ir.fx;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSortedMap;
import dev.symplan.ir.Arg;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.ir.text.SourceReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/** Graphs that PyTorch printed, all of them of ops that are known. */
class FxCasesTest {

  private static List<Path> graphsBelow(Path folder) throws IOException {
    try (var files = Files.walk(folder)) {
      return files.filter(file -> file.toString().endsWith(".fx.txt")).sorted().toList();
    }
  }

  private static Path shared() {
    var cases = Path.of(System.getProperty("symplan.shared", "../shared")).resolve("cases");
    Assumptions.assumeTrue(Files.isDirectory(cases), "no reference graphs at " + cases);
    return cases;
  }

  private static String folderOf(Path file) {
    return String.valueOf(file.getName(file.getNameCount() - 2));
  }

  private static void importsWhole(Path file) {
    var warnings = new ArrayList<Diagnostic>();
    int ranks =
        switch (folderOf(file)) {
          case "plan" -> 8;
          case "symm_mem" -> 2;
          default -> 4;
        };
    var program =
        FxImporter.read(
            SourceReader.read(file), FxTexts.options(ranks, ImmutableMap.of()), warnings::add);
    assertThat(warnings).as("%s", file).isEmpty();
    for (var graph : program.graphs()) {
      assertThat(graph.ops())
          .isNotEmpty()
          .noneMatch(op -> op.def().has(OpTrait.OPAQUE) && op.def().collective().isEmpty());
      assertThat(graph.outputs()).isNotEmpty();
    }
  }

  @Test
  void everySampleImportsWithoutAWarning() throws IOException {
    var samples =
        graphsBelow(Path.of(System.getProperty("symplan.root", "..")).resolve("samples/cases"));
    assertThat(samples).hasSizeGreaterThan(8).allSatisfy(FxCasesTest::importsWhole);
  }

  @Test
  void everyReferenceGraphImportsWithoutAWarning() throws IOException {
    assertThat(graphsBelow(shared())).hasSizeGreaterThan(20).allSatisfy(FxCasesTest::importsWhole);
  }

  @Test
  void ranksThatTakeTheirOwnPartsAgree() {
    var own = ImmutableSortedMap.<Integer, SourceFile>naturalOrder();
    for (int rank = 1; rank < 4; rank++) {
      own.put(rank, partOf(rank));
    }
    var program =
        FxImporter.read(
            partOf(0),
            own.buildOrThrow(),
            4,
            FxTexts.options(4, ImmutableMap.of()),
            warning -> {
              throw new CompileException(warning);
            });
    assertThat(program.graphs())
        .extracting(graph -> graph.ranks().asList())
        .containsExactly(List.of(0), List.of(1), List.of(2), List.of(3));
    assertThat(program.graphs())
        .extracting(
            graph ->
                graph.ops().get(1).args().getFirst() instanceof Arg.Ref(var part) ? part.id() : -1)
        .containsExactly(1, 2, 3, 4);
  }

  /** A graph that reduces the rank's part of its input. */
  private static SourceFile partOf(int rank) {
    return new SourceFile(
        "graph.rank" + rank + ".fx.txt",
        FxTexts.listing(
            "x: \"f32[8, 4][4, 1]cpu\"",
            """
            split = torch.ops.aten.split.Tensor(x, 2)
            part: "f32[2, 4][4, 1]cpu" = split[%s]
            r: "f32[2, 4][4, 1]cpu" = torch.ops._c10d_functional.all_reduce.default(part, 'sum', '0')
            o: "f32[2, 4][4, 1]cpu" = torch.ops._c10d_functional.wait_tensor.default(r)
            return (o,)
            """
                .formatted(rank)));
  }

  @Test
  void theRanksOfACaseAgree() {
    var folder = shared().resolve("numeric/llama_tiny_train_bwd");
    var own = ImmutableSortedMap.<Integer, SourceFile>naturalOrder();
    for (int rank = 1; rank < 4; rank++) {
      own.put(rank, SourceReader.read(folder.resolve("graph.rank" + rank + ".fx.txt")));
    }
    var warnings = new ArrayList<Diagnostic>();
    var program =
        FxImporter.read(
            SourceReader.read(folder.resolve("graph.fx.txt")),
            own.buildOrThrow(),
            4,
            FxTexts.options(4, ImmutableMap.of()),
            warnings::add);
    assertThat(warnings).isEmpty();
    // Each takes its own part of a split, and all else is the same.
    assertThat(program.graphs())
        .extracting(graph -> graph.ranks().asList())
        .containsExactly(List.of(0), List.of(1), List.of(2), List.of(3));
  }
}
