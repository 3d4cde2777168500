package dev.symplan.ir.testkit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class GoldenTest {

  @Test
  void failsAndLeavesTheNewTextWhereItDiffers(@TempDir Path folder) throws IOException {
    var expected = folder.resolve("expected");
    var actual = folder.resolve("actual");
    Files.createDirectories(expected.resolve("plans"));
    Files.writeString(expected.resolve("plans/a.txt"), "one\n");

    Golden.check(expected, actual, "plans/a.txt", "one\n", false);
    assertThat(actual).doesNotExist();
    assertThatThrownBy(() -> Golden.check(expected, actual, "plans/a.txt", "two\n", false))
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("-Dgolden.update=true");
    assertThat(actual.resolve("plans/a.txt")).hasContent("two");
    assertThatThrownBy(() -> Golden.check(expected, actual, "plans/b.txt", "two\n", false))
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("no golden file");
  }

  @Test
  void replacesTheFileWhenAsked(@TempDir Path folder) {
    var expected = folder.resolve("expected");

    Golden.check(expected, folder.resolve("actual"), "plans/a.txt", "new\n", true);

    assertThat(expected.resolve("plans/a.txt")).hasContent("new");
    Golden.check(expected, folder.resolve("actual"), "plans/a.txt", "new\n", false);
  }

  @Test
  void findsUnusedFiles(@TempDir Path folder) throws IOException {
    Files.createDirectories(folder.resolve("plans"));
    Files.writeString(folder.resolve("plans/a.txt"), "");
    Files.writeString(folder.resolve("plans/b.txt"), "");

    var one = folder.resolve("plans/a.txt");
    var other = folder.resolve("plans/b.txt");
    assertThatCode(() -> Golden.checkNoneUnused(folder, Set.of(one, other)))
        .doesNotThrowAnyException();
    assertThatThrownBy(() -> Golden.checkNoneUnused(folder, Set.of(one)))
        .isInstanceOf(AssertionError.class)
        .hasMessageContaining("b.txt");
  }
}
