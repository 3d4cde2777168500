package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.runtime.Backend;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LibrariesTest {
  @TempDir private Path folder;

  private Path folder(String name) throws IOException {
    return Files.createDirectories(folder.resolve(name));
  }

  @Test
  void looksInTheMostExplicitFolderFirst() throws IOException {
    var named = folder("named");
    var toolkit = folder("toolkit/lib64");
    var wheel = folder("venv/lib/python3.12/site-packages/nvidia/nccl/lib");
    folder("venv/lib/python3.12/site-packages/nvidia/cudnn");
    assertThat(
            Libraries.folders(
                named.toString(),
                Map.of(
                    "CUDA_HOME", folder.resolve("toolkit").toString(),
                    "VIRTUAL_ENV", folder.resolve("venv").toString())))
        .startsWith(named, toolkit, wheel);
  }

  @Test
  void findsTheEnvironmentOfThePythonOnThePath() throws IOException {
    var wheel = folder("env/lib/python3.11/site-packages/nvidia/cu13/lib");
    Files.createFile(folder("env/bin").resolve("python3"));
    assertThat(Libraries.folders("", Map.of("PATH", folder.resolve("env/bin").toString())))
        .contains(wheel);
  }

  @Test
  void leavesOutFoldersThatAreNotThere() {
    assertThat(Libraries.folders(folder.resolve("none").toString(), Map.of()))
        .doesNotContain(folder.resolve("none"));
  }

  @Test
  void isFoundByName() {
    assertThat(Backend.ofName("cuda")).get().isInstanceOf(CudaBackend.class);
  }

  @Test
  void saysWhyItCannotBeUsed() {
    var reason = new CudaBackend().unavailable();
    reason.ifPresent(text -> assertThat(text).isNotBlank().doesNotContain("Exception"));
    assertThat(new CudaBackend().unavailable()).isEqualTo(reason);
  }
}
