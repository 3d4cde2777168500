package dev.symplan.runtime.launch;

import com.google.common.hash.HashCode;
import com.google.common.hash.Hashing;
import dev.symplan.runtime.failure.RunException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.Map;
import java.util.Optional;

/** The secret that all processes of a run share. It is never sent, and never printed. */
public final class Secret {

  /** The secret itself. */
  public static final String TOKEN = "SYMPLAN_TOKEN";

  /** A file that contains the secret, and that only its owner can read. */
  public static final String TOKEN_FILE = "SYMPLAN_TOKEN_FILE";

  /** Fewer bytes could be guessed from a recorded handshake. */
  private static final int MIN_BYTES = 16;

  private static final int MAX_BYTES = 4096;

  /** Replaces a missing secret. It is public. */
  static final Secret NONE = new Secret("no secret".getBytes(StandardCharsets.US_ASCII));

  private final byte[] key;

  private Secret(byte[] key) {
    this.key = key;
  }

  /**
   * {@return the secret of a text; white space around it does not count}
   *
   * @param origin where it comes from, for people
   * @throws RunException when it is too short or too long
   */
  public static Secret of(String text, String origin) {
    var bytes = text.strip().getBytes(StandardCharsets.UTF_8);
    if (bytes.length < MIN_BYTES || bytes.length > MAX_BYTES) {
      throw new RunException(
          "%s has a secret of %s bytes; it must have %s to %s, for example those of: openssl rand -hex 32"
              .formatted(origin, bytes.length, MIN_BYTES, MAX_BYTES));
    }
    return new Secret(bytes);
  }

  /**
   * {@return the secret that the environment gives, or that of the file that it names; empty if it
   * does neither}
   *
   * @param variables as of {@link System#getenv()}
   * @throws RunException when it gives both, the file cannot be read, or others may read it
   */
  static Optional<Secret> of(Map<String, String> variables) {
    var token = variables.getOrDefault(TOKEN, "");
    var file = variables.getOrDefault(TOKEN_FILE, "");
    if (!token.isEmpty() && !file.isEmpty()) {
      throw new RunException("%s and %s are both set".formatted(TOKEN, TOKEN_FILE));
    }
    if (!file.isEmpty()) {
      return Optional.of(of(read(file), "%s (%s)".formatted(TOKEN_FILE, file)));
    }
    return token.isEmpty() ? Optional.empty() : Optional.of(of(token, TOKEN));
  }

  private static String read(String name) {
    try {
      var file = Path.of(name);
      if (Files.isDirectory(file)) {
        throw new RunException("%s: '%s' is a directory, not a file".formatted(TOKEN_FILE, name));
      }
      // The file behind a link counts: Kubernetes mounts secrets as links.
      var mode = Files.getPosixFilePermissions(file);
      var owners = EnumSet.of(PosixFilePermission.OWNER_READ, PosixFilePermission.OWNER_WRITE);
      if (!Files.isRegularFile(file) || !owners.containsAll(mode)) {
        throw new RunException(
            "%s: '%s' must be a file that only its owner can read: chmod 600 %s"
                .formatted(TOKEN_FILE, name, name));
      }
      try (var in = Files.newInputStream(file)) {
        return new String(in.readNBytes(MAX_BYTES + 1), StandardCharsets.UTF_8);
      }
    } catch (IOException | UnsupportedOperationException | IllegalArgumentException e) {
      throw new RunException(
          "%s: '%s' cannot be read%s"
              .formatted(
                  TOKEN_FILE,
                  name,
                  Files.exists(Path.of(name), LinkOption.NOFOLLOW_LINKS)
                      ? ""
                      : ": it does not exist"),
          e);
    }
  }

  /** {@return a code of some bytes that only those who know the secret can make} */
  HashCode hmac(byte[] bytes) {
    return Hashing.hmacSha256(key).hashBytes(bytes);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Secret secret && Arrays.equals(key, secret.key);
  }

  @Override
  public int hashCode() {
    return TOKEN.hashCode();
  }

  /** Does not show the secret. */
  @Override
  public String toString() {
    return "a secret";
  }
}
