package dev.symplan.runtime.torch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.symplan.ir.testkit.ChildProcess;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * The backend of torch.compile in processes of Python, without PyTorch: a module of a few classes
 * stands in for it, with tensors of numpy's. Skipped where Python has no numpy.
 */
@Timeout(180)
class PythonRanksTest {
  private static final Path ROOT = Path.of(System.getProperty("symplan.root"));
  private static final Path STUB = ROOT.resolve("runtime/torch/src/test/resources/stub");

  @TempDir private Path folder;
  private final List<ChildProcess> children = new ArrayList<>();

  @AfterEach
  void end() {
    children.forEach(child -> child.process().destroyForcibly());
  }

  private void run(String what, int ranks) throws Exception {
    assumeTrue(PythonProcess.succeeds("-c", "import numpy"), "Python has no numpy");
    for (int rank = 0; rank < ranks; rank++) {
      children.add(start(what, rank, ranks));
    }
    for (var child : children) {
      var output = child.rest();
      assertThat(output).endsWith("done\n").doesNotContain("WRONG");
      assertThat(child.process().waitFor()).as(output).isZero();
    }
  }

  private ChildProcess start(String what, int rank, int ranks) throws IOException {
    return PythonProcess.start(
        folder.resolve("home"),
        Map.of(
            "PYTHONPATH", STUB + ":" + ROOT.resolve("samples/pytorch"),
            "SYMPLAN_TEST_STORE", Files.createDirectories(folder.resolve("store")).toString(),
            "RANK", Integer.toString(rank),
            "WORLD_SIZE", Integer.toString(ranks),
            "LOCAL_WORLD_SIZE", Integer.toString(ranks)),
        STUB.resolve("ranks.py").toString(),
        what);
  }

  @Test
  void oneRank() throws Exception {
    run("alone", 1);
  }

  @Test
  void ranksRunGraphsTogether() throws Exception {
    run("together", 2);
  }

  @Test
  void aFailureOfOneRankIsThatOfAll() throws Exception {
    run("fails", 2);
  }
}
