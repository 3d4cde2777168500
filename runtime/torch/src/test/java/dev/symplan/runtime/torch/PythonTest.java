package dev.symplan.runtime.torch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Runs the tests in Python of the backend of torch.compile, on these classes. Skipped where neither
 * {@code SYMPLAN_PYTHON} nor {@code python3} has PyTorch 2.11 or later.
 */
@Timeout(900)
class PythonTest {
  private static final Path TESTS =
      Path.of(System.getProperty("symplan.root"), "samples/pytorch/test_symplan_torch.py");

  private static final String NEW_ENOUGH =
      "import torch; assert tuple(map(int, torch.__version__.split('.')[:2])) >= (2, 11)";

  @Test
  void theBackendOfTorchCompile(@TempDir Path folder) throws Exception {
    assumeTrue(
        PythonProcess.succeeds("-c", NEW_ENOUGH),
        PythonProcess.NAME + " has no PyTorch 2.11 or later; SYMPLAN_PYTHON can name another one");
    var process = PythonProcess.start(folder, Map.of(), TESTS.toString());
    var output = process.rest();
    assertThat(process.process().waitFor()).as(output).isZero();
    assertThat(output).contains("\nOK");
  }
}
