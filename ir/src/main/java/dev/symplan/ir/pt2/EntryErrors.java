package dev.symplan.ir.pt2;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.exc.StreamConstraintsException;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.json.Json;
import dev.symplan.ir.json.PathErrors;
import dev.symplan.ir.text.SourceReader;

/** The errors of an entry's JSON: they name the archive, the entry and the way to the value. */
final class EntryErrors extends PathErrors {

  /** The most values, brackets and names of an entry, so that its tree fits any heap. */
  private static final StreamReadConstraints LIMITS =
      StreamReadConstraints.builder().maxTokenCount(1L << 23).build();

  private final ArchiveFile archive;
  private final String entry;

  private EntryErrors(ArchiveFile archive, String entry) {
    super(DiagnosticCode.BAD_ARCHIVE);
    this.archive = archive;
    this.entry = entry;
  }

  /**
   * {@return the JSON of an entry}
   *
   * @throws CompileException when the entry cannot be read, or is not JSON
   */
  static Json read(ArchiveFile archive, String entry) {
    var source = SourceReader.decode(archive.source().name() + "/" + entry, archive.read(entry));
    return Json.parse(source, LIMITS, new EntryErrors(archive, entry));
  }

  @Override
  protected CompileException notJson(Span at, JsonProcessingException cause) {
    var message = message(cause);
    return cause instanceof StreamConstraintsException
        ? archive.wrong(DiagnosticCode.TOO_LARGE, "entry '%s': %s".formatted(entry, message), "")
        : archive.wrong("entry '%s' is not JSON: %s".formatted(entry, message));
  }

  @Override
  protected CompileException error(Span at, String message, String hint) {
    return archive.wrong("entry '%s': %s".formatted(entry, message), hint);
  }

  @Override
  protected CompileException expected(Json value, Expected what) {
    return wrong(value, "it is " + what.negation(), "");
  }

  @Override
  protected CompileException missing(Json object, String field) {
    return wrong(object, "it has no '%s'".formatted(field), "");
  }
}
