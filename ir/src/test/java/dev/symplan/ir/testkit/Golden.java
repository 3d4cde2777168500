package dev.symplan.ir.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Compares text with files under {@code src/test/resources/golden} of the module under test.
 *
 * <p>Where they differ, the new text is left in {@code target/golden} and the test fails; with
 * {@code -Dgolden.update=true} it replaces the file instead.
 */
public final class Golden {
  private static final Path MODULE = Path.of(System.getProperty("basedir", ""));
  private static final Path EXPECTED = MODULE.resolve("src/test/resources/golden");
  private static final Path ACTUAL = MODULE.resolve("target/golden");

  /** The files that were asked for in this JVM. */
  private static final Set<Path> USED = ConcurrentHashMap.newKeySet();

  private Golden() {}

  /**
   * Checks that the text is that of the file.
   *
   * @param name the file's path below {@code golden}, with forward slashes
   */
  public static void check(String name, String actual) {
    USED.add(EXPECTED.resolve(name));
    check(EXPECTED, ACTUAL, name, actual, Boolean.getBoolean("golden.update"));
  }

  /** Checks that the text is that of a generated file which lies elsewhere, such as a document. */
  public static void checkFile(Path file, String actual) {
    var folder = file.toAbsolutePath().normalize().getParent();
    if (folder == null) {
      throw new IllegalArgumentException(file + " is not a file");
    }
    check(
        folder, ACTUAL, file.getFileName().toString(), actual, Boolean.getBoolean("golden.update"));
  }

  /**
   * Checks that the module has no golden file that no test has asked for. A run of some tests only
   * ({@code -Dtest}) tells nothing of that.
   */
  static void checkNoneUnused() {
    assumeTrue(System.getProperty("test", "").isEmpty(), "only some tests run");
    checkNoneUnused(EXPECTED, USED);
  }

  static void check(
      Path expectedRoot, Path actualRoot, String name, String actual, boolean update) {
    var expected = expectedRoot.resolve(name);
    try {
      if (Files.exists(expected) && Files.readString(expected).equals(actual)) {
        return;
      }
      if (update) {
        write(expected, actual);
        return;
      }
      var written = actualRoot.resolve(name);
      write(written, actual);
      var advice =
          "%s is now %s; if that is right, run again with -Dgolden.update=true"
              .formatted(expected, written);
      if (!Files.exists(expected)) {
        fail("no golden file: " + advice);
      }
      assertThat(actual).as(advice).isEqualTo(Files.readString(expected));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static void checkNoneUnused(Path expectedRoot, Set<Path> used) {
    try (var files = Files.walk(expectedRoot)) {
      assertThat(files.filter(Files::isRegularFile).filter(file -> !used.contains(file)))
          .as("golden files that no test reads")
          .isEmpty();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void write(Path file, String text) throws IOException {
    var folder = file.getParent();
    if (folder != null) {
      Files.createDirectories(folder);
    }
    Files.writeString(file, text);
  }
}
