package dev.symplan.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.runtime.failure.RunException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SecretTest {
  private static final String TEXT = "a secret that nobody guesses";

  @TempDir private Path folder;

  private Map<String, String> file(String mode, String text) throws IOException {
    var file = folder.resolve("token");
    Files.writeString(file, text);
    Files.setPosixFilePermissions(file, PosixFilePermissions.fromString(mode));
    return Map.of(Secret.TOKEN_FILE, file.toString());
  }

  @Test
  void withoutVariablesThereIsNone() {
    assertThat(Secret.of(Map.of())).isEmpty();
    assertThat(Secret.of(Map.of(Secret.TOKEN, "", Secret.TOKEN_FILE, ""))).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(strings = {"rw-------", "r--------"})
  void aFileIsWorthItsText(String mode) throws IOException {
    assertThat(Secret.of(file(mode, TEXT + "\n"))).contains(Secret.of(TEXT, "here"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"rw-r-----", "rw----r--", "rw--w----", "rwx------"})
  void aFileThatOthersCanReachIsRefused(String mode) throws IOException {
    var variables = file(mode, TEXT);
    assertThatThrownBy(() -> Secret.of(variables))
        .isInstanceOf(RunException.class)
        .hasMessageContaining("chmod 600")
        .message()
        .doesNotContain(TEXT);
  }

  @Test
  void aFileThatIsNotThereIsRefused() {
    var variables = Map.of(Secret.TOKEN_FILE, folder.resolve("none").toString());
    assertThatThrownBy(() -> Secret.of(variables)).hasMessageContaining("it does not exist");
  }

  @Test
  void aFolderIsRefused() {
    var variables = Map.of(Secret.TOKEN_FILE, folder.toString());
    assertThatThrownBy(() -> Secret.of(variables))
        .isInstanceOf(RunException.class)
        .hasMessageEndingWith("is a directory, not a file");
  }

  @Test
  void shortOnesAreRefusedAndNotShown() {
    assertThatThrownBy(() -> Secret.of(Map.of(Secret.TOKEN, "swordfish")))
        .isInstanceOf(RunException.class)
        .hasMessageStartingWith("SYMPLAN_TOKEN has a secret of 9 bytes; it must have 16 to 4096")
        .message()
        .doesNotContain("swordfish");
    assertThatThrownBy(() -> Secret.of(Map.of(Secret.TOKEN, "x".repeat(5000))))
        .hasMessageContaining("5000 bytes");
  }

  @Test
  void twoAreOneTooMany() {
    assertThatThrownBy(() -> Secret.of(Map.of(Secret.TOKEN, TEXT, Secret.TOKEN_FILE, "/x")))
        .hasMessage("SYMPLAN_TOKEN and SYMPLAN_TOKEN_FILE are both set");
  }

  @Test
  void codesDependOnTheSecret() {
    var bytes = new byte[] {1, 2, 3};
    var one = Secret.of(TEXT, "here");
    assertThat(one.hmac(bytes)).isEqualTo(Secret.of(TEXT, "there").hmac(bytes));
    assertThat(one.hmac(bytes)).isNotEqualTo(Secret.of(TEXT + ".", "here").hmac(bytes));
    assertThat(one.hmac(bytes)).isNotEqualTo(Secret.NONE.hmac(bytes));
    assertThat(one).isEqualTo(Secret.of(TEXT, "there")).isNotEqualTo(Secret.NONE);
    assertThat(one.toString()).doesNotContain(TEXT);
  }
}
