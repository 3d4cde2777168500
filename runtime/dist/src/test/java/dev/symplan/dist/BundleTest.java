package dev.symplan.dist;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Unpacks the archive and runs what is in it, without any variable of the environment. */
class BundleTest {
  private static final Path ARCHIVE = Path.of(System.getProperty("symplan.bundle"));

  private static final long LIMIT = 60L << 20;

  @TempDir private static Path folder;

  private static Path home;

  private record Outcome(int code, String text) {}

  @BeforeAll
  static void unpack() throws Exception {
    assertThat(run(Map.of(), "tar", "xzf", ARCHIVE.toString(), "-C", folder.toString()).code())
        .isZero();
    home = folder.resolve("symplan");
  }

  private static Outcome run(Map<String, String> environment, String... command) throws Exception {
    var log = Files.createTempFile(folder, "output", ".txt");
    var builder = new ProcessBuilder(command).redirectErrorStream(true).directory(folder.toFile());
    builder.environment().clear();
    builder.environment().putAll(environment);
    var process = builder.redirectOutput(log.toFile()).start();
    assertThat(process.waitFor(120, TimeUnit.SECONDS)).as(List.of(command).toString()).isTrue();
    return new Outcome(process.exitValue(), Files.readString(log));
  }

  private static Outcome symplan(String... arguments) throws Exception {
    var command = new ArrayList<>(List.of(home.resolve("bin/symplan").toString()));
    command.addAll(List.of(arguments));
    return run(Map.of(), command.toArray(String[]::new));
  }

  private static List<String> files(String glob) throws IOException {
    var matcher = home.getFileSystem().getPathMatcher("glob:" + glob);
    try (var all = Files.walk(home)) {
      return all.filter(Files::isRegularFile)
          .map(home::relativize)
          .filter(matcher::matches)
          .map(Path::toString)
          .sorted()
          .toList();
    }
  }

  @Test
  void fitsWhereItIsCarried() throws IOException {
    assertThat(Files.size(ARCHIVE)).isLessThan(LIMIT);
  }

  @Test
  void hasTheLibrariesThatAreCalledAndNoOthers() throws IOException {
    assertThat(files("natives/**").stream().map(file -> file.replaceAll(".*/", "")))
        .containsExactlyInAnyOrder(
            "libgcc_s.so.1",
            "libgfortran.so.5",
            "libjnicublas.so",
            "libjnicudart.so",
            "libjnicudnn.so",
            "libjnijavacpp.so",
            "libjninccl.so",
            "libjninvrtc.so",
            "libjniopenblas_nolapack.so",
            "libopenblas.so.0",
            "libopenblas_nolapack.so.0",
            "libquadmath.so.0");
    assertThat(files("{lib,test}/*linux*")).isEmpty();
  }

  /** With this mode, a JVM that refuses its cache ends. */
  @Test
  void theJvmTakesTheStartUpCache() throws Exception {
    var command = home.resolve("bin/symplan").toString();
    var on = Map.of("SYMPLAN_JAVA_OPTS", "-XX:AOTMode=on");
    assertThat(run(on, command, "version"))
        .matches(outcome -> outcome.code() == 0 && outcome.text().startsWith("symplan "));
    var cache = home.resolve("lib/symplan.aot");
    var moved = Files.move(cache, home.resolve("elsewhere.aot"));
    try {
      assertThat(run(on, command, "version").code()).isNotZero();
      assertThat(symplan("version"))
          .matches(outcome -> outcome.code() == 0 && outcome.text().startsWith("symplan "));
    } finally {
      Files.move(moved, cache);
    }
  }

  @Test
  void hasAPageForEachCommand() throws Exception {
    var pages = files("share/man/man1/*.1");
    assertThat(pages).contains("share/man/man1/symplan.1").hasSizeGreaterThan(15);
    for (var page : pages) {
      var name = page.replaceAll(".*/(symplan-)?|\\.1$", "");
      var help = name.equals("symplan") ? symplan("--help") : symplan(name, "--help");
      assertThat(help.code()).as(page).isZero();
      assertThat(Files.readString(home.resolve(page)).replace("\\-", "-").replace("\\&", ""))
          .startsWith(".TH \"SYMPLAN")
          .contains(help.text().strip());
    }
  }

  @Test
  void itsChecksumIsBesideIt() throws Exception {
    var sum = Path.of(ARCHIVE + ".sha256");
    assertThat(
            run(
                Map.of(),
                "sh",
                "-c",
                "cd '%s' && sha256sum -c '%s'"
                    .formatted(ARCHIVE.toAbsolutePath().getParent(), sum.getFileName())))
        .matches(checked -> checked.code() == 0 && checked.text().contains("OK"));
  }

  /** Does to a folder what the Dockerfile does to an image; no image is built here. */
  @Test
  void theCommandRunsInTheFolderThatTheDockerfileMakes() throws Exception {
    var image = folder.resolve("image");
    var instructions = new HashMap<String, String>();
    for (var line : Files.readAllLines(home.resolve("Dockerfile"))) {
      var words = List.of(line.split(" "));
      if (words.getFirst().equals("COPY")) {
        var target = image.resolve(words.getLast().substring(1));
        Files.createDirectories(target);
        for (var source : words.subList(1, words.size() - 1)) {
          var copied = home.resolve(source).toString();
          copied = Files.isDirectory(Path.of(copied)) ? copied + "/." : copied;
          assertThat(run(Map.of(), "cp", "-R", copied, target.toString()).text()).isEmpty();
        }
      } else if (!line.startsWith("#")) {
        instructions.put(words.getFirst(), line.substring(words.getFirst().length() + 1));
      }
    }
    assertThat(instructions)
        .containsOnlyKeys("ARG", "FROM", "WORKDIR", "ENTRYPOINT", "CMD")
        .containsEntry("FROM", "${BASE}")
        .containsEntry("WORKDIR", "/opt/symplan")
        .containsEntry("ENTRYPOINT", "[\"/opt/symplan/bin/symplan\"]")
        .containsEntry("CMD", "[\"--help\"]");
    var command = image.resolve("opt/symplan/bin/symplan").toString();
    assertThat(run(Map.of(), command, "--help").text()).startsWith("Usage: symplan");
    var graph = image.resolve("opt/symplan/samples/tp_mlp.graph").toString();
    assertThat(run(Map.of(), command, "run", graph, "--ranks", "4").text())
        .endsWith("ok: all 8 outputs agree\n");
  }

  @Test
  void namesTheLicenceOfAllThatIsInIt() throws IOException {
    var licences = Files.readString(home.resolve("THIRD-PARTY.txt"));
    assertThat(files("{lib,test}/*.jar"))
        .map(file -> file.replaceAll(".*/|-\\d.*", ""))
        .filteredOn(name -> !name.startsWith("symplan-"))
        .allMatch(
            name ->
                licences.contains(name) || licences.contains(name.replaceAll("-[^-]*(-spi)?$", "")),
            "is named in THIRD-PARTY.txt");
  }

  @Test
  void readsPathsOfAnyNameInAnyLocale() throws Exception {
    assumeTrue("UTF-8".equals(System.getProperty("sun.jnu.encoding")), "tests need UTF-8");
    var graph = Files.copy(home.resolve("samples/tp_mlp.graph"), folder.resolve("ü日.graph"));
    var command = home.resolve("bin/symplan").toString();
    var outcome = run(Map.of("LC_ALL", "C"), command, "compile", graph.toString());
    assertThat(outcome.code()).as(outcome.text()).isZero();
  }

  @Test
  void tellsWhatTheMachineHas() throws Exception {
    var outcome = symplan("doctor");
    assertThat(outcome.text()).contains("backend cuda: ").contains("libnccl.so.2");
    assertThat(outcome.code()).isZero();
  }

  private static boolean hasGpus() throws Exception {
    return symplan("doctor", "--require-gpu").code() == 0;
  }

  @Test
  void saysWhyItCannotRunOnGpus() throws Exception {
    assumeFalse(hasGpus(), "there are GPUs");
    var graph = home.resolve("samples/tp_mlp.graph").toString();
    var outcome = symplan("run", graph, "--ranks", "4", "--backend", "cuda");
    assertThat(outcome.code()).isEqualTo(3);
    assertThat(outcome.text()).startsWith("error: backend cuda: ").contains("symplan doctor");
  }

  @Test
  void skipsGpuTestsThatCannotRun() throws Exception {
    assumeFalse(hasGpus(), "there are GPUs, where these tests take minutes");
    var outcome = run(Map.of(), home.resolve("bin/symplan-gpu-tests").toString());
    assertThat(outcome.text())
        .contains("NCCL_NVLS_ENABLE=0")
        .contains("Assumption failed: ")
        .containsPattern(" [1-9]\\d* tests aborted")
        .containsPattern(" 0 tests failed");
    assertThat(outcome.code()).isZero();
  }

  @Test
  void findsNoTestsOfAnUnknownName() throws Exception {
    var outcome = run(Map.of(), home.resolve("bin/symplan-gpu-tests").toString(), "NoSuchTest");
    assertThat(outcome.code()).isEqualTo(2);
  }
}
