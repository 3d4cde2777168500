package dev.symplan.runtime.cuda.library;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.cuda.CudaBackend;
import dev.symplan.runtime.doctor.Diagnosis;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LibrariesTest {
  private static final Path SOURCES =
      Path.of(System.getProperty("basedir", ""), "src/main/java/dev/symplan/runtime/cuda");

  private static final Pattern NCCL_CALL =
      Pattern.compile("\\bnccl\\.(nccl\\w+)\\(|nccl::(nccl\\w+)");

  @TempDir private Path folder;

  private Path folder(String name) throws IOException {
    return Files.createDirectories(folder.resolve(name));
  }

  private static ImmutableList<Path> folders(String explicit, Map<String, String> environment) {
    return LibrarySearch.forLibraries(explicit, environment).before();
  }

  private Libraries libraries() {
    var search = new LibrarySearch(ImmutableList.of(folder), ImmutableList.of());
    return new Libraries(search, search);
  }

  @Test
  void looksInTheMostExplicitFolderFirst() throws IOException {
    var named = folder("named");
    var toolkit = folder("toolkit/lib64");
    var wheel = folder("venv/lib/python3.12/site-packages/nvidia/nccl/lib");
    folder("venv/lib/python3.12/site-packages/nvidia/cudnn");
    assertThat(
            folders(
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
    assertThat(folders("", Map.of("PATH", folder.resolve("env/bin").toString()))).contains(wheel);
  }

  @Test
  void findsWhatPipPutsAtHome() throws IOException {
    var wheel = folder("home/.local/lib/python3.13/site-packages/nvidia/nccl/lib");
    assertThat(folders("", Map.of("HOME", folder.resolve("home").toString()))).contains(wheel);
  }

  @Test
  void namesAFolderOnce() throws IOException {
    var real = folder("cuda-13.0/lib64");
    var link = Files.createSymbolicLink(folder.resolve("cuda"), folder.resolve("cuda-13.0"));
    assertThat(
            folders(
                "", Map.of("CUDA_HOME", link.toString(), "CUDA_PATH", real.getParent().toString())))
        .contains(link.resolve("lib64"))
        .doesNotContain(real);
  }

  @Test
  void leavesOutGuessesThatAreNotThereButReportsWhatWasNamed() {
    var none = folder.resolve("none");
    assertThat(folders("", Map.of("CUDA_HOME", none.toString()))).doesNotContain(none);
    var finding = LibrarySearch.forLibraries(none.toString(), Map.of()).find("libnone.so.7");
    assertThat(finding.library()).isEmpty();
    assertThat(finding.looked())
        .first()
        .hasToString("Attempt[place=" + none + ", outcome=no such folder]");
    assertThat(finding.looked().getLast().outcome()).isEqualTo("none");
  }

  @Test
  void tellsWhatTheLoaderSaysOfADamagedLibrary() throws Exception {
    FakeLibraries.compileCuda(folder);
    FakeLibraries.damaged(folder, "libnccl.so.2");
    assertThat(libraries().problemOfLibraries().orElseThrow())
        .startsWith("libnccl.so.2 cannot be loaded: " + folder + ": ")
        .containsAnyOf("invalid ELF header", "file too short");
  }

  @Test
  void takesTheNextFolderWhereALibraryIsDamaged() throws Exception {
    var good = folder("good");
    FakeLibraries.damaged(folder, "libnccl.so.2");
    FakeLibraries.compile(good, "libnccl.so.2", FakeLibraries.ncclVersion(22809));
    var finding =
        new LibrarySearch(ImmutableList.of(folder, good), ImmutableList.of()).find("libnccl.so.2");
    assertThat(finding.library().orElseThrow().file())
        .isEqualTo(good.resolve("libnccl.so.2").toString());
    assertThat(finding.looked()).hasSize(1);
  }

  @Test
  void findsNothingWrongWithWhatIsComplete() throws Exception {
    FakeLibraries.compileCuda(folder);
    FakeLibraries.compile(
        folder, "libnccl.so.2", FakeLibraries.ncclVersion(22809) + FakeLibraries.NCCL_FUNCTIONS);
    var libraries = libraries();
    assertThat(libraries.problemOfLibraries()).isEmpty();
    assertThat(version(libraries, CudaLibrary.RUNTIME)).isEqualTo("13.1");
    assertThat(version(libraries, CudaLibrary.NVRTC)).isEqualTo("13.1");
    assertThat(version(libraries, CudaLibrary.BLAS_LT)).isEqualTo("13.1.2");
    assertThat(version(libraries, CudaLibrary.BLAS)).isEqualTo("13.1.2");
    assertThat(version(libraries, CudaLibrary.NCCL)).isEqualTo("2.28.9");
  }

  private static String version(Libraries libraries, CudaLibrary library) {
    return library.version(libraries.find(library).library().orElseThrow()).orElseThrow();
  }

  @Test
  void refusesAnOldNccl() throws Exception {
    FakeLibraries.compileCuda(folder);
    FakeLibraries.compile(
        folder, "libnccl.so.2", FakeLibraries.ncclVersion(22605) + FakeLibraries.NCCL_FUNCTIONS);
    assertThat(libraries().problemOfLibraries())
        .contains(
            "libnccl.so.2 2.26.5 is too old: 2.28 or newer is needed (%s)"
                .formatted(folder.resolve("libnccl.so.2")));
  }

  @Test
  void refusesStubs() throws Exception {
    FakeLibraries.compileCuda(folder);
    FakeLibraries.compile(folder, "libnccl.so.2", "int nothing;");
    assertThat(libraries().problemOfLibraries().orElseThrow())
        .startsWith("libnccl.so.2 has no ncclGetVersion: it is a stub or damaged");
  }

  @Test
  void refusesANewNcclWithoutItsFunctions() throws Exception {
    FakeLibraries.compileCuda(folder);
    FakeLibraries.compile(
        folder,
        "libnccl.so.2",
        FakeLibraries.ncclVersion(22809)
            + FakeLibraries.NCCL_FUNCTIONS.replace("ncclCommWindowRegister", "anotherName"));
    assertThat(libraries().problemOfLibraries().orElseThrow())
        .startsWith("libnccl.so.2 has no ncclCommWindowRegister: it is a stub or damaged");
  }

  @Test
  void knowsTheFirstVersionOfEveryFunctionOfNcclThatIsCalled() throws IOException {
    var called = new TreeSet<String>();
    try (var files = Files.walk(SOURCES)) {
      for (var file : files.filter(f -> f.toString().endsWith(".java")).toList()) {
        var matcher = NCCL_CALL.matcher(Files.readString(file));
        while (matcher.find()) {
          called.add(matcher.group(1) == null ? matcher.group(2) : matcher.group(1));
        }
      }
    }
    assertThat(called).contains("ncclAllReduce", "ncclCommAbort");
    assertThat(Libraries.NCCL_FUNCTIONS.keySet())
        .as("a function that NCCL lacks ends the process, so Libraries.NCCL_FUNCTIONS has them all")
        .containsAll(called);
  }

  @Test
  void callsNothingThatTheOldestNcclLacks() {
    assertThat(Libraries.NCCL_FUNCTIONS.values()).allMatch(since -> since <= Diagnosis.OLDEST_NCCL);
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
