package dev.symplan.ir.text;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.zip.GZIPInputStream;

/**
 * Reads text files: UTF-8, with or without a byte order mark, with either line end, and as gzip
 * packs them.
 */
public final class SourceReader {

  /** The longest text read, in bytes. */
  public static final long MAX_BYTES = 1L << 30;

  private SourceReader() {}

  /**
   * {@return the file's text, under the path as given}
   *
   * @throws CompileException when it cannot be read, is too large or is not UTF-8
   */
  public static SourceFile read(Path path) {
    var name = path.toString();
    try {
      if (Files.isDirectory(path)) {
        throw failure(DiagnosticCode.UNREADABLE_FILE, name, "is a directory, not a file");
      }
      if (Files.isRegularFile(path)) {
        checkSize(name, Files.size(path));
        try {
          return source(name, Files.readString(path));
        } catch (CharacterCodingException e) {
          return readBytes(name, Files.readAllBytes(path));
        }
      }
      try (var in = Files.newInputStream(path)) {
        return read(name, in);
      }
    } catch (NoSuchFileException e) {
      throw failure(DiagnosticCode.UNREADABLE_FILE, name, "the file does not exist");
    } catch (AccessDeniedException e) {
      throw failure(DiagnosticCode.UNREADABLE_FILE, name, "permission denied");
    } catch (IOException e) {
      throw failure(DiagnosticCode.UNREADABLE_FILE, name, "cannot be read: " + e.getMessage());
    }
  }

  /**
   * {@return the text of a stream to its end}
   *
   * @param name the name in messages, for example {@code <stdin>}
   * @throws CompileException as {@link #read(Path)}
   */
  public static SourceFile read(String name, InputStream in) {
    try {
      var bytes = in.readNBytes((int) MAX_BYTES + 1);
      checkSize(name, bytes.length);
      return readBytes(name, bytes);
    } catch (IOException e) {
      throw failure(DiagnosticCode.UNREADABLE_FILE, name, "cannot be read: " + e.getMessage());
    }
  }

  /** Nothing that gzip packed is UTF-8: its second byte continues a character that none began. */
  private static SourceFile readBytes(String name, byte[] bytes) throws IOException {
    if (bytes.length < 2 || bytes[0] != 0x1F || bytes[1] != (byte) 0x8B) {
      return decode(name, bytes);
    }
    try (var unpacked = new GZIPInputStream(new ByteArrayInputStream(bytes))) {
      var text = unpacked.readNBytes((int) MAX_BYTES + 1);
      checkSize(name, text.length);
      return decode(name, text);
    }
  }

  /**
   * {@return the text of bytes that were read already}
   *
   * @throws CompileException with {@link DiagnosticCode#INVALID_UTF8} at the first byte that is not
   *     UTF-8
   */
  public static SourceFile decode(String name, byte[] bytes) {
    var decoder =
        StandardCharsets.UTF_8
            .newDecoder()
            .onMalformedInput(CodingErrorAction.REPORT)
            .onUnmappableCharacter(CodingErrorAction.REPORT);
    var in = ByteBuffer.wrap(bytes);
    var out = CharBuffer.allocate(bytes.length);
    var result = decoder.decode(in, out, true);
    if (!result.isError()) {
      return source(name, out.flip().toString());
    }
    throw invalidUtf8(name, out.flip().toString(), in.position(), bytes[in.position()]);
  }

  private static CompileException invalidUtf8(String name, String valid, int offset, byte bad) {
    int lineStart = valid.lastIndexOf('\n') + 1;
    int line = 1 + (int) valid.chars().filter(c -> c == '\n').count();
    var file = new SourceFile(name, valid + '\uFFFD');
    return new CompileException(
        Diagnostic.error(
            DiagnosticCode.INVALID_UTF8,
            new Span(file, line, valid.length() - lineStart + 1, 1),
            "byte 0x%02X at offset %s is not UTF-8".formatted(bad & 0xFF, offset),
            "save the file as UTF-8"));
  }

  private static void checkSize(String name, long bytes) {
    if (bytes > MAX_BYTES) {
      throw failure(
          DiagnosticCode.TOO_LARGE, name, "is larger than %s MiB".formatted(MAX_BYTES >> 20));
    }
  }

  private static SourceFile source(String name, String text) {
    return new SourceFile(name, text.startsWith("\uFEFF") ? text.substring(1) : text);
  }

  private static CompileException failure(DiagnosticCode code, String name, String message) {
    return new CompileException(
        Diagnostic.error(code, Span.ofFile(new SourceFile(name, "")), message));
  }
}
