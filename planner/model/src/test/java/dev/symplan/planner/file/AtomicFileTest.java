package dev.symplan.planner.file;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.symplan.ir.diag.CompileException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

class AtomicFileTest {
  @TempDir Path folder;

  @Test
  void replacesWhatIsThereAndLeavesNothingBeside() throws IOException {
    var file = Files.writeString(folder.resolve("plan.json"), "before");
    AtomicFile.write(file, "after", "the plan");
    assertThat(file).hasContent("after");
    try (var files = Files.list(folder)) {
      assertThat(files).containsExactly(file);
    }
  }

  /** As the user's mask says, not only for the user. */
  @Test
  void canBeReadByThoseWhoReadTheUsersOtherFiles() throws IOException {
    assumeTrue(folder.getFileSystem().supportedFileAttributeViews().contains("posix"));
    var other = Files.writeString(folder.resolve("other"), "");
    var file = folder.resolve("page.html");
    AtomicFile.write(file, "", "the page");
    assertThat(Files.getPosixFilePermissions(file)).isEqualTo(Files.getPosixFilePermissions(other));
  }

  @Test
  void saysWhatCannotBeWritten() {
    assertSaid(
        () -> AtomicFile.write(folder.resolve("no/plan.json"), "", "the plan"),
        "the folder does not exist");
    assertSaid(() -> AtomicFile.write(folder, "", "the plan"), "Is a directory");
    assertSaid(
        () ->
            AtomicFile.write(
                folder.resolve("plan.json"),
                _ -> {
                  throw new IOException("No space left on device");
                },
                "the plan"),
        "No space left on device");
    assertThat(folder).isEmptyDirectory();
  }

  @Test
  @EnabledOnOs(OS.LINUX)
  void saysThatADiskIsFull() {
    assertSaid(
        () -> AtomicFile.write(Path.of("/dev/full"), "{}", "the plan"), "No space left on device");
  }

  @Test
  void looksBeforeWithoutATrace() throws IOException {
    assertSaid(
        () -> AtomicFile.check(folder.resolve("no/plan.json"), "the plan"),
        "the folder does not exist");
    assertSaid(() -> AtomicFile.check(folder, "the plan"), "Is a directory");
    AtomicFile.check(folder.resolve("plan.json"), "the plan");
    assertThat(folder).isEmptyDirectory();
    AtomicFile.check(Files.writeString(folder.resolve("plan.json"), "before"), "the plan");
    assertThat(folder.resolve("plan.json")).hasContent("before");
  }

  private static void assertSaid(ThrowingCallable writing, String reason) {
    assertThatThrownBy(writing)
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("the plan cannot be written here: " + reason);
  }
}
