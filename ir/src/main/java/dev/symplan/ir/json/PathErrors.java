package dev.symplan.ir.json;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;

/** Errors of files that are not written by hand: they name the way to the value, not its line. */
public class PathErrors extends JsonErrors {

  /**
   * The errors of a kind of file.
   *
   * @param code of each of them
   */
  public PathErrors(DiagnosticCode code) {
    super(code);
  }

  @Override
  protected CompileException wrong(Json value, String message, String hint) {
    var path = value.path();
    return error(value.file(), path.isEmpty() ? message : path + ": " + message, hint);
  }
}
