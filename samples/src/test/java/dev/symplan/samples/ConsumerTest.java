package dev.symplan.samples;

import static java.util.Objects.requireNonNull;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.jar.JarFile;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Checks Symplan's jars as another project would use them. The tests need packaged modules, which
 * {@code mvn verify} makes before it comes here.
 */
class ConsumerTest {
  private static final Path ROOT = Path.of(System.getProperty("symplan.root", ".."));
  private static final Pattern OF_TESTS =
      Pattern.compile("junit|assertj|archunit|opentest4j|apiguardian|byte-buddy|slf4j|open-test");
  private static final Pattern ARTIFACT = Pattern.compile("<artifactId>(symplan-[a-z-]+)<");
  private static final Pattern VERSION = Pattern.compile("<version>([^<]+)</version>");
  private static final Pattern TIMESTAMP = Pattern.compile("<project.build.outputTimestamp>(.*?)<");

  @TempDir private Path folder;

  private static List<Path> jars() {
    return Stream.of(System.getProperty("java.class.path").split(Pattern.quote(File.pathSeparator)))
        .filter(entry -> entry.endsWith(".jar") && !entry.endsWith("-tests.jar"))
        .map(Path::of)
        .toList();
  }

  private static List<Path> ownJars() {
    var own =
        jars().stream().filter(jar -> jar.getFileName().toString().startsWith("symplan-")).toList();
    assumeFalse(own.isEmpty(), "the modules are not packaged; mvn verify does so");
    return own;
  }

  /**
   * Runs a program of ten lines that uses Java's modules: no two jars share a package or a name.
   * Modules without a descriptor do not say what they need, so all modules are added.
   */
  @Test
  void aProgramOfAModuleCompilesAndRuns() throws Exception {
    assertThat(ownJars()).hasSizeGreaterThan(9);
    var graph = ROOT.resolve("samples/uneven.graph").toAbsolutePath();
    var module = write("module-info.java", "module consumer { requires dev.symplan.runtime; }\n");
    var program =
        write(
            "consumer/Main.java",
            """
            package consumer;
            import dev.symplan.planner.Compiler;
            import dev.symplan.runtime.Session;
            import dev.symplan.runtime.host.HostBackend;
            public final class Main {
              public static void main(String[] args) {
                var plan = Compiler.forDefaultTarget().compile(java.nio.file.Path.of(args[0]));
                try (var session = Session.open(plan, new HostBackend())) {
                  session.run();
                  System.out.println(session.output(0, 0).orElseThrow().type());
                }
              }
            }
            """);
    var path =
        jars().stream()
            .filter(jar -> !OF_TESTS.matcher(jar.getFileName().toString()).lookingAt())
            .map(Path::toString)
            .collect(Collectors.joining(File.pathSeparator));
    int code =
        requireNonNull(ToolProvider.getSystemJavaCompiler(), "a JDK is needed")
            .run(
                null, null, null, "-d", folder + "/out", "-p", path, "-proc:none", module, program);
    assertThat(code).isZero();

    var java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    var process =
        new ProcessBuilder(
                java,
                "--enable-native-access=dev.symplan.runtime,org.bytedeco.javacpp",
                "--add-modules=ALL-MODULE-PATH",
                "-p",
                folder + "/out" + File.pathSeparator + path,
                "-m",
                "consumer/consumer.Main",
                graph.toString())
            .redirectErrorStream(true)
            .start();
    var said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(said).isZero();
    assertThat(said).contains("f32[8, 64]");
  }

  private String write(String name, String text) throws IOException {
    var file = folder.resolve(name);
    Files.createDirectories(requireNonNull(file.getParent()));
    return Files.writeString(file, text).toString();
  }

  @Test
  void eachJarNamesItsModule() throws IOException {
    var names = new ArrayList<String>();
    for (var jar : ownJars()) {
      try (var file = new JarFile(jar.toFile())) {
        var main = file.getManifest().getMainAttributes();
        assertThat(main.getValue("Implementation-Version")).as(jar.toString()).isNotBlank();
        names.add(main.getValue("Automatic-Module-Name"));
      }
    }
    assertThat(names).doesNotHaveDuplicates().allMatch(name -> name.startsWith("dev.symplan."));
  }

  /** The same sources give the same bytes: no entry has the time of its build. */
  @Test
  void jarsDoNotSayWhenTheyWereBuilt() throws IOException {
    var pom = TIMESTAMP.matcher(Files.readString(ROOT.resolve("pom.xml")));
    assertThat(pom.find()).isTrue();
    // Jars store times without a zone.
    var time = LocalDateTime.ofInstant(Instant.parse(pom.group(1)), ZoneOffset.UTC);
    for (var jar : ownJars()) {
      try (var file = new JarFile(jar.toFile())) {
        assertThat(file.stream().map(ZipEntry::getTimeLocal))
            .as(jar.toString())
            .allMatch(time::equals);
        assertThat(file.getManifest().getMainAttributes().keySet().stream().map(Object::toString))
            .doesNotContain("Built-By", "Build-Time");
      }
    }
  }

  /**
   * Maven makes the same jar in two folders. Both are made here, since a jar names the JDK on which
   * Maven ran, and {@code ./symplan} may have made this project's jars on another one.
   */
  @Test
  void aJarThatIsBuiltAgainHasTheSameBytes() throws Exception {
    var one = packaging("one");
    var other = packaging("other");
    for (var process : List.of(one, other)) {
      var said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      assertThat(process.waitFor()).as(said).isZero();
    }
    assertThat(onlyJar("one")).hasSameBinaryContentAs(onlyJar("other"));
  }

  private Process packaging(String name) throws IOException {
    var project = folder.resolve(name);
    for (var part : List.of("pom.xml", "ir/pom.xml", "ir/target/classes")) {
      copy(ROOT.resolve(part), project.resolve(part));
    }
    return new ProcessBuilder(
            "mvn",
            "-o",
            "-q",
            "-B",
            "-Dfast",
            "-f",
            project.resolve("ir/pom.xml").toString(),
            "toolchains:select-jdk-toolchain@a-JDK-25-or-newer-must-be-installed",
            "jar:jar@default-jar")
        .redirectErrorStream(true)
        .start();
  }

  private Path onlyJar(String name) throws IOException {
    try (var files = Files.list(folder.resolve(name).resolve("ir/target"))) {
      var jars = files.filter(file -> file.toString().endsWith(".jar")).toList();
      assertThat(jars).hasSize(1);
      return jars.getFirst();
    }
  }

  private static void copy(Path from, Path to) throws IOException {
    try (var files = Files.walk(from)) {
      for (var file : files.filter(Files::isRegularFile).toList()) {
        var copied = file.equals(from) ? to : to.resolve(from.relativize(file).toString());
        Files.createDirectories(requireNonNull(copied.getParent()));
        Files.copy(file, copied);
      }
    }
  }

  @Test
  void theReadmeNamesArtifactsOfTheBom() throws IOException {
    var bom = Files.readString(ROOT.resolve("runtime/bom/pom.xml"));
    var readme = Files.readString(ROOT.resolve("README.md"));
    var xml = readme.substring(readme.indexOf("```xml"));
    xml = xml.substring(0, xml.indexOf("```", 3));
    var managed = ARTIFACT.matcher(bom).results().map(found -> found.group(1)).toList();
    assertThat(ARTIFACT.matcher(xml).results().map(found -> found.group(1)))
        .hasSize(2)
        .isSubsetOf(managed);
    assertThat(VERSION.matcher(xml).results().map(found -> found.group(1)))
        .containsExactly(version(bom));
    assertThat(version(bom)).isEqualTo(version(Files.readString(ROOT.resolve("pom.xml"))));
  }

  private static String version(String pom) {
    var found = VERSION.matcher(pom);
    assertThat(found.find()).isTrue();
    return found.group(1);
  }
}
