package dev.symplan.cli.common;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** The checks that commands make before they write a file. */
public final class Outputs {
  private Outputs() {}

  /**
   * Refuses to write what is read: one of the inputs, or a file in the folder of a case.
   *
   * @throws CompileException when the file is such a one
   */
  public static void requireNotRead(Path file, List<Path> inputs) {
    for (var input : inputs) {
      if (isSame(file, input)) {
        throw wrong(file, "this is the input");
      }
      var folder = file.toAbsolutePath().normalize().getParent();
      if (folder != null && Files.isDirectory(input) && isSame(folder, input)) {
        throw wrong(file, "this is in the folder that is read");
      }
    }
  }

  /**
   * {@return whether two paths are of one file or folder, which need not be there yet}
   *
   * <p>Devices and pipes are none: a terminal can be read and written.
   */
  public static boolean isSame(Path one, Path other) {
    try {
      return Files.exists(one) && Files.exists(other)
          ? (Files.isRegularFile(one) || Files.isDirectory(one)) && Files.isSameFile(one, other)
          : one.toAbsolutePath().normalize().equals(other.toAbsolutePath().normalize());
    } catch (IOException e) {
      throw wrong(one, "it cannot be compared with %s: %s".formatted(other, e.getMessage()));
    }
  }

  private static CompileException wrong(Path file, String message) {
    return CompileException.ofFile(
        DiagnosticCode.BAD_OPTION, file, message, "write to another place");
  }
}
