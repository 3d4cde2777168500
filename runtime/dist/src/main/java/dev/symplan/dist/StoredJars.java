package dev.symplan.dist;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDateTime;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;

/**
 * Writes every jar of some folders anew without compression: the archive that they go into is
 * compressed as a whole, and gets a fifth smaller than with entries that are compressed one by one.
 */
final class StoredJars {
  private static final LocalDateTime TIME = LocalDateTime.of(2026, 1, 1, 0, 0);

  private StoredJars() {}

  /**
   * @param args the folders
   */
  public static void main(String[] args) throws IOException {
    for (var folder : args) {
      try (var files = Files.newDirectoryStream(Path.of(folder), "*.jar")) {
        for (var file : files) {
          var stored = Files.createTempFile(file.getParent(), "stored", ".tmp");
          try (var out = Files.newOutputStream(stored)) {
            store(file, out);
          }
          Files.delete(file);
          Files.move(stored, file);
        }
      }
    }
  }

  private static void store(Path file, OutputStream out) throws IOException {
    try (var jar = new ZipFile(file.toFile());
        var stored = new ZipOutputStream(out)) {
      stored.setMethod(ZipOutputStream.STORED);
      // In the order of the file: a manifest comes first.
      for (var entry : jar.stream().toList()) {
        var bytes = jar.getInputStream(entry).readAllBytes();
        var crc = new CRC32();
        crc.update(bytes);
        var copy = new ZipEntry(entry.getName());
        copy.setTimeLocal(TIME);
        copy.setSize(bytes.length);
        copy.setCrc(crc.getValue());
        stored.putNextEntry(copy);
        stored.write(bytes);
        stored.closeEntry();
      }
    }
  }
}
