package dev.symplan.planner.file;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.UUID;

/** Files that are written whole or not at all; text is UTF-8. */
public final class AtomicFile {
  private static final String NO_FOLDER = "the folder does not exist";
  private static final String DENIED = "permission denied";

  /** Writes an existing file. */
  @FunctionalInterface
  public interface Content {
    void writeTo(Path file) throws IOException;
  }

  private AtomicFile() {}

  /**
   * Writes a file, and replaces an existing one.
   *
   * @param what a name for the text in messages: {@code "the plan"}
   * @throws CompileException when it cannot be written
   */
  public static void write(Path file, String text, String what) {
    write(file, to -> Files.writeString(to, text, StandardCharsets.UTF_8), what);
  }

  /** As {@link #write(Path, String, String)}, with anything. */
  public static void write(Path file, Content content, String what) {
    try {
      if (Files.exists(file) && !Files.isRegularFile(file)) {
        // A device or pipe, such as /dev/stdout, is written to, not replaced.
        content.writeTo(file);
        return;
      }
      // Not a temporary file of Java's, which only its owner could read, also once it is moved.
      var partial = file.resolveSibling(".symplan-" + UUID.randomUUID() + ".tmp");
      try {
        content.writeTo(Files.createFile(partial));
        move(partial, file);
      } finally {
        Files.deleteIfExists(partial);
      }
    } catch (IOException e) {
      throw unwritable(file, what, e);
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
    boolean device = Files.exists(file) && !Files.isRegularFile(file);
    var touched = device ? file : folder;
    if (Files.isDirectory(file)) {
      throw unwritable(file, what, "Is a directory");
    } else if (touched == null || !Files.exists(touched)) {
      throw unwritable(file, what, NO_FOLDER);
    } else if (!device && !Files.isDirectory(touched)) {
      throw unwritable(file, what, "Not a directory");
    } else if (!Files.isWritable(touched)) {
      throw unwritable(file, what, DENIED);
    }
  }

  /** {@return the error of a file that cannot be written, with the system's reason} */
  public static CompileException unwritable(Path file, String what, IOException why) {
    return unwritable(file, what, reason(why));
  }

  private static CompileException unwritable(Path file, String what, String reason) {
    return wrong(
        file,
        "%s cannot be written here: %s".formatted(what, reason),
        "choose an existing folder that is writable and has free space");
  }

  /** Some exceptions have a path for a message. */
  private static String reason(IOException why) {
    return switch (why) {
      case NoSuchFileException _ -> NO_FOLDER;
      case AccessDeniedException _ -> DENIED;
      case FileAlreadyExistsException _ -> "a file with this name already exists";
      case FileSystemException e when e.getReason() != null -> e.getReason();
      default -> String.valueOf(why.getMessage());
    };
  }

  /**
   * Makes a folder for such files, and those it is in, if it is not there.
   *
   * @throws CompileException when it cannot be made
   */
  public static void folder(Path folder) {
    try {
      Files.createDirectories(folder);
    } catch (IOException e) {
      throw wrong(folder, "the folder cannot be made: " + reason(e), "choose a writable place");
    }
  }

  private static CompileException wrong(Path path, String message, String hint) {
    return CompileException.ofFile(DiagnosticCode.UNWRITABLE_FILE, path, message, hint);
  }

  private static void move(Path from, Path to) throws IOException {
    try {
      Files.move(from, to, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    } catch (AtomicMoveNotSupportedException _) {
      Files.move(from, to, StandardCopyOption.REPLACE_EXISTING);
    }
  }
}
