package dev.symplan.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.DisabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/** The script in the root, with a tree that is built and a JDK that only says how it is called. */
@DisabledOnOs(OS.WINDOWS)
class LauncherTest {
  private static final Path SCRIPT = Path.of(System.getProperty("symplan.root"), "symplan");

  private static final String JAVA =
      """
      #!/bin/sh
      for argument; do
        case $argument in
          -XX:AOTCacheOutput=*)
            [ -z "$NO_CACHE" ] || exit 1
            echo cache >"${argument#*=}" ;;
        esac
      done
      echo "$LC_ALL" "$@"
      """;

  @TempDir private Path root;

  @BeforeEach
  void makeTree() throws IOException {
    for (var folder :
        List.of("ir", "planner", "codegen", "runtime/cli/target/symplan/lib", "jdk/bin")) {
      Files.createDirectories(root.resolve(folder));
    }
    Files.copy(SCRIPT, root.resolve("symplan"));
    Files.writeString(root.resolve("pom.xml"), "");
    Files.writeString(root.resolve("jdk/release"), "JAVA_VERSION=\"25.0.1\"\n");
    for (var name : List.of("java", "javac")) {
      var file = Files.writeString(root.resolve("jdk/bin/" + name), JAVA);
      Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rwxr-xr-x"));
    }
    Files.writeString(home("symplan.ready"), root.resolve("jdk") + "\n");
    Files.writeString(home("lib/symplan-cli-1.jar"), "");
    Files.writeString(home("lib/picocli-1.jar"), "");
  }

  private Path home(String name) {
    return root.resolve("runtime/cli/target/symplan").resolve(name);
  }

  private List<String> run(Map<String, String> environment) throws Exception {
    return run(root.resolve("symplan").toString(), environment);
  }

  private List<String> run(String script, Map<String, String> environment) throws Exception {
    var log = root.resolve("output.txt");
    var builder =
        new ProcessBuilder("bash", "--", script, "version")
            .directory(root.toFile())
            .redirectErrorStream(true)
            .redirectOutput(log.toFile());
    builder.environment().clear();
    builder.environment().put("PATH", System.getenv("PATH"));
    builder.environment().put("SYMPLAN_JAVA_HOME", root.resolve("jdk").toString());
    builder.environment().putAll(environment);
    var process = builder.start();
    assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(process.exitValue()).isZero();
    return Files.readAllLines(log);
  }

  private List<String> run() throws Exception {
    return run(Map.of());
  }

  @Test
  void makesItsCacheWhereThatIsMissingOrStale() throws Exception {
    var ready = Files.getLastModifiedTime(home("symplan.ready"));
    var making = "symplan: making the start-up cache";
    assertThat(run()).hasSize(2).startsWith(making).last().asString().contains("-XX:AOTCache=");
    assertThat(Files.getLastModifiedTime(home("symplan.ready"))).isEqualTo(ready);
    assertThat(run()).singleElement().asString().contains("-XX:AOTCache=");
    Files.setLastModifiedTime(
        home("lib/picocli-1.jar"), FileTime.from(Instant.now().plusSeconds(1)));
    assertThat(run()).startsWith(making);
    Files.setLastModifiedTime(home("lib/picocli-1.jar"), ready);
    Files.writeString(home("symplan.ready"), "/another/jdk\n");
    assertThat(run()).as("by another JDK").startsWith(making);
    assertThat(run()).hasSize(1);
  }

  @Test
  void runsWithoutACacheThatCannotBeMade() throws Exception {
    var environment = Map.of("NO_CACHE", "1");
    var lines = new ArrayList<>(run(environment));
    assertThat(lines).hasSize(3);
    assertThat(lines.get(1)).contains("no cache could be made").contains("symplan-build.log");
    assertThat(lines.get(2)).contains("version").doesNotContain("AOTCache");
    assertThat(run(environment)).as("tried once").hasSize(1);
  }

  @Test
  void findsItsTreeByAnyRelativePath() throws Exception {
    run();
    var usual = run();
    assertThat(run("ir/../symplan", Map.of("CDPATH", root.toString()))).isEqualTo(usual);
    Files.createSymbolicLink(root.resolve("-link"), Path.of("ir/../symplan"));
    assertThat(run("-link", Map.of())).isEqualTo(usual);
  }

  @Test
  void hasJavaReadPathsAsUtf8() throws Exception {
    run();
    assertThat(run(Map.of("LC_ALL", "C")).getFirst()).startsWith("C.UTF-8 ");
    assertThat(run(Map.of("LANG", "de_DE.utf8")).getFirst()).startsWith("C.UTF-8 ");
    assertThat(run().getFirst()).startsWith("C.UTF-8 ");
    assertThat(run(Map.of("LC_CTYPE", "de_DE.ISO-8859-1")).getFirst()).startsWith(" ");
  }
}
