package dev.symplan.planner.io;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.joint.Tie;
import dev.symplan.ir.json.Json;
import dev.symplan.ir.json.JsonErrors;
import dev.symplan.ir.text.SourceReader;
import java.nio.file.Path;

/**
 * The ties between graphs that are planned together: a list of objects, each with {@code from} and
 * {@code to}, which have a {@code graph}, its position from 0, and the name of a {@code value}; and
 * {@code keep} for an output that the caller gets as well, {@code copy} for an input with other
 * strides.
 */
final class TiesFile {
  private static final ImmutableSet<String> TIE = ImmutableSet.of("from", "to", "keep", "copy");
  private static final ImmutableSet<String> END = ImmutableSet.of("graph", "value");

  private TiesFile() {}

  /**
   * {@return the ties in a file}
   *
   * @throws CompileException when the file is malformed
   */
  static ImmutableList<Tie> read(Path file) {
    return Json.parse(SourceReader.read(file), new JsonErrors(DiagnosticCode.BAD_TIES))
        .list(TiesFile::tie);
  }

  private static Tie tie(Json tie) {
    tie.only(TIE);
    var from = tie.get("from");
    var to = tie.get("to");
    from.only(END);
    to.only(END);
    try {
      return new Tie(
          from.get("graph").intValue(),
          from.get("value").text(),
          to.get("graph").intValue(),
          to.get("value").text(),
          tie.find("keep").map(Json::bool).orElse(false),
          tie.find("copy").map(Json::bool).orElse(false),
          tie.span());
    } catch (IllegalArgumentException e) {
      throw tie.wrong(String.valueOf(e.getMessage()), "graphs run in the order of their files");
    }
  }
}
