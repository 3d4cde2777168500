package dev.symplan.ir.json;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.exc.StreamConstraintsException;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.Span;
import java.util.regex.Pattern;

/** The errors of one kind of JSON file. Here they point at the value; subclasses may name it. */
public class JsonErrors {
  private static final Pattern FOR_PROGRAMMERS =
      Pattern.compile("(?s) \\(start marker at.*|, from `[^`]*`");

  private final DiagnosticCode code;

  /** The expected kind of a value. */
  public enum Expected {
    OBJECT("an object", "not an object", "write { … }"),
    LIST("a list", "not a list", "write [ … ]"),
    STRING("a string", "not a string", "write \"…\""),
    BOOL("true or false", "neither true nor false", ""),
    NUMBER("a number", "not a number", ""),
    INTEGER("an integer", "not a 64-bit integer", ""),
    INT("an integer of 32 bits", "not a 32-bit integer", "");

    private final String text;
    private final String negation;
    private final String hint;

    Expected(String text, String negation, String hint) {
      this.text = text;
      this.negation = negation;
      this.hint = hint;
    }

    /** {@return for example {@code a list}} */
    public String text() {
      return text;
    }

    /** {@return for example {@code not a list}} */
    public String negation() {
      return negation;
    }
  }

  /**
   * The errors of a kind of file.
   *
   * @param code of each of them
   */
  public JsonErrors(DiagnosticCode code) {
    this.code = code;
  }

  /** {@return the error of a text that is not JSON, or exceeds a limit} */
  protected CompileException notJson(Span at, JsonProcessingException cause) {
    var message = message(cause);
    return error(
        at,
        cause instanceof StreamConstraintsException ? message : "this is not JSON: " + message,
        "");
  }

  /**
   * {@return what Jackson says, without a location in a form of its own, or its names of limits}
   */
  protected static String message(JsonProcessingException cause) {
    return FOR_PROGRAMMERS.matcher(cause.getOriginalMessage()).replaceAll("");
  }

  /** {@return an error about a value} */
  protected CompileException wrong(Json value, String message, String hint) {
    return error(value.span(), message, hint);
  }

  protected CompileException expected(Json value, Expected what) {
    return wrong(value, "this is " + what.negation, what.hint);
  }

  /** {@return the error of an object that lacks a field} */
  protected CompileException missing(Json object, String field) {
    return wrong(object, "'%s' is missing".formatted(field), "add it");
  }

  protected CompileException error(Span at, String message, String hint) {
    return new CompileException(Diagnostic.error(code, at, message, hint));
  }
}
