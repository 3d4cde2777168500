package dev.symplan.planner.file;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.UUID;

/** UTF-8 text files that are written whole or not at all. */
public final class AtomicFile {
  private AtomicFile() {}

  /**
   * Writes a file, in place of one that is there.
   *
   * @param what a name for the text in messages: {@code "the plan"}
   * @throws CompileException when it cannot be written
   */
  public static void write(Path file, String text, String what) {
    try {
      if (Files.exists(file) && !Files.isRegularFile(file)) {
        // A device or pipe, such as /dev/stdout, is written to, not replaced.
        Files.writeString(file, text, StandardCharsets.UTF_8);
        return;
      }
      // Not a temporary file of Java's, which only its owner could read, also once it is moved.
      var partial = file.resolveSibling(".symplan-" + UUID.randomUUID() + ".tmp");
      try {
        Files.writeString(partial, text, StandardCharsets.UTF_8, StandardOpenOption.CREATE_NEW);
        move(partial, file);
      } finally {
        Files.deleteIfExists(partial);
      }
    } catch (IOException _) {
      throw unwritable(file, what);
    }
  }

  /**
   * Looks, and touches nothing, whether a file can be written later: before work whose result would
   * be lost.
   *
   * @throws CompileException as {@link #write}
   */
  public static void check(Path file, String what) {
    var folder = file.toAbsolutePath().getParent();
    boolean writable =
        Files.exists(file) && !Files.isRegularFile(file)
            ? !Files.isDirectory(file) && Files.isWritable(file)
            : folder != null && Files.isDirectory(folder) && Files.isWritable(folder);
    if (!writable) {
      throw unwritable(file, what);
    }
  }

  private static CompileException unwritable(Path file, String what) {
    return wrong(
        file,
        what + " cannot be written here",
        "choose a folder that exists and that you may write to");
  }

  /**
   * Makes a folder for such files, and those it is in, if it is not there.
   *
   * @throws CompileException when it cannot be made
   */
  public static void folder(Path folder) {
    try {
      Files.createDirectories(folder);
    } catch (IOException _) {
      throw wrong(folder, "the folder cannot be made", "choose a place that you may write to");
    }
  }

  private static CompileException wrong(Path path, String message, String hint) {
    return CompileException.ofFile(DiagnosticCode.UNREADABLE_FILE, path, message, hint);
  }

  private static void move(Path from, Path to) throws IOException {
    try {
      Files.move(from, to, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    } catch (AtomicMoveNotSupportedException _) {
      Files.move(from, to, StandardCopyOption.REPLACE_EXISTING);
    }
  }
}
