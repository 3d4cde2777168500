package dev.symplan.ir.pt2;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;

/** Archives for tests: those of samples/export, taken apart and put together again. */
final class Archives {
  static final String MODEL = "graph/models/model.json";
  static final String WEIGHTS = "graph/data/weights/model_weights_config.json";

  private Archives() {}

  static Path sample(String name) {
    return Path.of(System.getProperty("symplan.root", ".."))
        .resolve("samples/export")
        .resolve(name)
        .resolve("graph.pt2");
  }

  static Map<String, byte[]> entries(Path file) throws IOException {
    var entries = new LinkedHashMap<String, byte[]>();
    try (var zip = new ZipFile(file.toFile())) {
      for (var all = zip.entries(); all.hasMoreElements(); ) {
        var entry = all.nextElement();
        try (var in = zip.getInputStream(entry)) {
          entries.put(entry.getName(), in.readAllBytes());
        }
      }
    }
    return entries;
  }

  /** A copy of a sample with one text replaced in one entry. */
  static Path edited(Path folder, String name, String entry, String from, String to)
      throws IOException {
    var entries = entries(sample(name));
    var text =
        new String(Objects.requireNonNull(entries.get(entry), entry), StandardCharsets.UTF_8);
    if (!text.contains(from)) {
      throw new AssertionError("%s of %s has no %s".formatted(entry, name, from));
    }
    entries.put(entry, text.replace(from, to).getBytes(StandardCharsets.UTF_8));
    return write(folder.resolve("edited.pt2"), entries, false);
  }

  static Path write(Path file, Map<String, byte[]> entries, boolean compressed) throws IOException {
    try (OutputStream out = Files.newOutputStream(file);
        var zip = new ZipOutputStream(out)) {
      for (var entry : entries.entrySet()) {
        var header = new ZipEntry(entry.getKey());
        if (!compressed) {
          var crc = new CRC32();
          crc.update(entry.getValue());
          header.setMethod(ZipEntry.STORED);
          header.setSize(entry.getValue().length);
          header.setCrc(crc.getValue());
        }
        zip.putNextEntry(header);
        zip.write(entry.getValue());
        zip.closeEntry();
      }
    }
    return file;
  }

  /** Replaces bytes wherever they stand, headers included. */
  static Path patched(Path file, String from, String to) throws IOException {
    var text = new String(Files.readAllBytes(file), StandardCharsets.ISO_8859_1);
    if (!text.contains(from) || from.length() != to.length()) {
      throw new AssertionError(from);
    }
    return Files.write(file, text.replace(from, to).getBytes(StandardCharsets.ISO_8859_1));
  }
}
