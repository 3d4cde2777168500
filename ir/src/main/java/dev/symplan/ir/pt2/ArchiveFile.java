package dev.symplan.ir.pt2;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Units;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import org.jspecify.annotations.Nullable;

/**
 * The zip file of an archive: all entries lie in one folder, whose name is left out here.
 *
 * <p>The file is not trusted: names that lead out of the folder or come twice, sizes beyond the
 * limits, and contents without the size and checksum of their entry are refused.
 */
final class ArchiveFile {
  private static final int MAX_ENTRIES = 1 << 17;

  /** The longest text entry read, in bytes. */
  private static final long MAX_TEXT = 1L << 27;

  /**
   * The most bytes that compressed entries may unpack to, all together. PyTorch compresses nothing:
   * it reads tensors where they lie.
   */
  private static final long MAX_INFLATED = 1L << 30;

  private static final int CHUNK = 1 << 16;

  private final Path path;
  private final String root;
  private final ImmutableMap<String, Entry> entries;

  private record Entry(String fullName, long bytes, long crc) {}

  private ArchiveFile(Path path, String root, ImmutableMap<String, Entry> entries) {
    this.path = path;
    this.root = root;
    this.entries = entries;
  }

  /**
   * {@return the archive, after a check of its directory}
   *
   * @throws CompileException when it cannot be read, or its directory is refused
   */
  static ArchiveFile open(Path path) {
    try (var zip = zip(path)) {
      return directory(path, zip);
    } catch (IOException e) {
      throw unreadable(path, e);
    }
  }

  private static ZipFile zip(Path path) throws IOException {
    if (Files.exists(path) && !Files.isRegularFile(path)) {
      throw wrong(path, DiagnosticCode.UNREADABLE_FILE, "is not a file", "");
    }
    try {
      return new ZipFile(path.toFile());
    } catch (IllegalArgumentException e) {
      throw new IOException(e.getMessage(), e);
    }
  }

  private static ArchiveFile directory(Path path, ZipFile zip) throws IOException {
    if (zip.size() > MAX_ENTRIES) {
      throw wrong(
          path,
          DiagnosticCode.TOO_LARGE,
          "it has %s entries, more than %s".formatted(zip.size(), MAX_ENTRIES),
          "");
    }
    long size = Files.size(path);
    long packed = 0;
    long inflated = 0;
    @Nullable String root = null;
    Map<String, Entry> entries = new LinkedHashMap<>();
    for (var all = zip.entries(); all.hasMoreElements(); ) {
      var entry = all.nextElement();
      var name = entry.getName();
      checkName(path, name);
      int slash = name.indexOf('/');
      var folder = slash < 0 ? "" : name.substring(0, slash);
      if (root == null) {
        root = folder;
      } else if (!root.equals(folder)) {
        throw wrong(
            path,
            DiagnosticCode.BAD_ARCHIVE,
            "entry '%s' is not in the folder '%s', as those before it are".formatted(name, root),
            "");
      }
      boolean stored = entry.getMethod() == ZipEntry.STORED;
      packed += checkedSize(path, name, entry.getCompressedSize(), size);
      if (stored && entry.getSize() != entry.getCompressedSize()) {
        throw wrong(
            path,
            DiagnosticCode.BAD_ARCHIVE,
            "entry '%s' states two sizes: %s and %s bytes"
                .formatted(name, entry.getSize(), entry.getCompressedSize()),
            "");
      }
      if (!stored) {
        inflated += checkedSize(path, name, entry.getSize(), MAX_INFLATED);
      }
      if (packed > size) {
        throw wrong(
            path,
            DiagnosticCode.BAD_ARCHIVE,
            "its entries take more room than the file has: at '%s' they overlap".formatted(name),
            "");
      }
      if (inflated > MAX_INFLATED) {
        throw tooLarge(path, name, MAX_INFLATED);
      }
      var inner = name.substring(slash + 1);
      if (entries.put(inner, new Entry(name, entry.getSize(), entry.getCrc())) != null) {
        throw wrong(
            path, DiagnosticCode.BAD_ARCHIVE, "entry '%s' occurs twice".formatted(name), "");
      }
    }
    return new ArchiveFile(path, root == null ? "" : root, ImmutableMap.copyOf(entries));
  }

  private static long checkedSize(Path path, String name, long bytes, long limit) {
    if (bytes < 0 || bytes > limit) {
      throw tooLarge(path, name, limit);
    }
    return bytes;
  }

  private static CompileException tooLarge(Path path, String name, long limit) {
    return wrong(
        path,
        DiagnosticCode.TOO_LARGE,
        "entry '%s' exceeds the limit of %s bytes".formatted(name, limit),
        "torch.export.save compresses nothing; save the program again");
  }

  private static void checkName(Path path, String name) {
    boolean bad = name.isEmpty() || name.startsWith("/") || name.indexOf('\\') >= 0;
    for (int i = 0; i < name.length() && !bad; i++) {
      bad = Character.isISOControl(name.charAt(i));
    }
    for (var part : name.split("/", -1)) {
      bad |= part.equals("..") || part.equals(".");
    }
    if (bad) {
      throw wrong(
          path,
          DiagnosticCode.BAD_ARCHIVE,
          "entry '%s' has a name that leads out of the archive".formatted(name),
          "");
    }
  }

  /** {@return whether all entries lie in a folder, as PyTorch has them} */
  boolean hasRoot() {
    return !root.isEmpty();
  }

  /** {@return the names of all entries, without the folder that they lie in} */
  ImmutableSet<String> names() {
    return entries.keySet();
  }

  boolean has(String name) {
    return entries.containsKey(name);
  }

  /** {@return an entry's content} */
  byte[] read(String name) {
    var entry = entry(name);
    if (entry.bytes > MAX_TEXT) {
      throw tooLarge(path, name, MAX_TEXT);
    }
    var content = new byte[(int) entry.bytes];
    try (var zip = zip(path)) {
      copy(zip, name, MemorySegment.ofArray(content));
      return content;
    } catch (IOException e) {
      throw damaged(name, e);
    }
  }

  /** {@return the content of entries, in memory that the garbage collector frees} */
  ImmutableMap<String, MemorySegment> memory(Iterable<String> names) {
    var contents = ImmutableMap.<String, MemorySegment>builder();
    try (var zip = zip(path)) {
      for (var name : names) {
        // Tensors are aligned for the widest vector loads.
        var memory = Arena.ofAuto().allocate(Math.max(1, entry(name).bytes), Long.BYTES * 8);
        var content = memory.asSlice(0, entry(name).bytes);
        try {
          copy(zip, name, content);
        } catch (IOException e) {
          throw damaged(name, e);
        }
        contents.put(name, content);
      }
    } catch (IOException e) {
      throw unreadable(path, e);
    }
    return contents.buildKeepingLast();
  }

  private Entry entry(String name) {
    @Nullable Entry entry = entries.get(name);
    if (entry == null) {
      throw wrong("it has no entry '%s'".formatted(name));
    }
    return entry;
  }

  private void copy(ZipFile zip, String name, MemorySegment to) throws IOException {
    var entry = entry(name);
    @Nullable ZipEntry zipEntry = zip.getEntry(entry.fullName);
    if (zipEntry == null) {
      throw new IOException("the file changed while it was read");
    }
    var crc = new CRC32();
    var chunk = new byte[CHUNK];
    long at = 0;
    try (InputStream in = zip.getInputStream(zipEntry)) {
      for (int n = in.read(chunk); n >= 0; n = in.read(chunk)) {
        if (n > entry.bytes - at) {
          throw new IOException(
              "it is longer than the %s that it states"
                  .formatted(Units.count(entry.bytes, "byte")));
        }
        MemorySegment.copy(MemorySegment.ofArray(chunk), 0, to, at, n);
        crc.update(chunk, 0, n);
        at += n;
      }
    }
    if (at != entry.bytes) {
      throw new IOException(
          "it has %s of the %s that it states".formatted(at, Units.count(entry.bytes, "byte")));
    }
    if (crc.getValue() != entry.crc) {
      throw new IOException("its checksum differs from the stated one");
    }
  }

  private CompileException damaged(String name, IOException cause) {
    return wrong(
        "entry '%s' is damaged: %s".formatted(name, cause.getMessage()),
        "copy the file again, or save the program again");
  }

  private static CompileException unreadable(Path path, IOException cause) {
    return switch (cause) {
      case NoSuchFileException _ ->
          wrong(path, DiagnosticCode.UNREADABLE_FILE, "the file does not exist", "");
      case AccessDeniedException _ ->
          wrong(path, DiagnosticCode.UNREADABLE_FILE, "permission denied", "");
      default ->
          wrong(
              path,
              DiagnosticCode.BAD_ARCHIVE,
              "this is not a zip file, or it is damaged: " + cause.getMessage(),
              "copy the file again, or save the program again");
    };
  }

  SourceFile source() {
    return new SourceFile(path.toString(), "");
  }

  CompileException wrong(String message) {
    return wrong(message, "");
  }

  CompileException wrong(String message, String hint) {
    return wrong(path, DiagnosticCode.BAD_ARCHIVE, message, hint);
  }

  CompileException wrong(DiagnosticCode code, String message, String hint) {
    return wrong(path, code, message, hint);
  }

  private static CompileException wrong(
      Path path, DiagnosticCode code, String message, String hint) {
    return CompileException.ofFile(code, path, message, hint);
  }
}
