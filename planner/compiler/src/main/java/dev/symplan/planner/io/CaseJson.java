package dev.symplan.planner.io;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.text.SourceReader;
import java.nio.file.Path;

/** The small JSON files of a case. */
final class CaseJson {
  private static final JsonMapper MAPPER = JsonMapper.builder().build();

  private CaseJson() {}

  /**
   * {@return the object in a file}
   *
   * @param form what to write instead of anything else
   * @throws CompileException when it holds none
   */
  static JsonNode object(Path file, String form) {
    JsonNode root;
    try {
      root = MAPPER.readTree(SourceReader.read(file).text());
    } catch (JsonProcessingException e) {
      throw wrong(file, DiagnosticCode.SYNTAX, "this is not JSON: " + e.getOriginalMessage(), "");
    }
    if (!root.isObject()) {
      throw wrong(file, DiagnosticCode.SYNTAX, "this is not a JSON object", "write " + form);
    }
    return root;
  }

  static CompileException wrong(Path file, DiagnosticCode code, String message, String hint) {
    return CompileException.ofFile(code, file, message, hint);
  }
}
