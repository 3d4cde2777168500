package dev.symplan.planner.file;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonLocation;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.LinkedHashMap;
import java.util.Optional;

/** A JSON value that knows where it stands, so that a complaint about it can point there. */
public final class PlacedJson {
  private static final JsonFactory FACTORY =
      JsonFactory.builder().enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION).build();

  private sealed interface Content {
    record Fields(ImmutableMap<String, Field> byName) implements Content {}

    record Items(ImmutableList<PlacedJson> list) implements Content {}

    record Text(String text) implements Content {}

    record Numeral(double value) implements Content {}

    record Truth(boolean value) implements Content {}

    record Nothing() implements Content {}
  }

  /** A value with the place of its name. */
  private record Field(Span name, PlacedJson value) {}

  private final DiagnosticCode code;
  private final Span span;
  private final Content content;

  private PlacedJson(DiagnosticCode code, Span span, Content content) {
    this.code = code;
    this.span = span;
    this.content = content;
  }

  /**
   * {@return the value that a text holds}
   *
   * @param code of every diagnostic about it
   * @throws CompileException when it is not JSON
   */
  public static PlacedJson parse(SourceFile file, DiagnosticCode code) {
    try (var parser = FACTORY.createParser(file.text())) {
      if (parser.nextToken() == null) {
        throw new CompileException(
            Diagnostic.error(code, Span.ofFile(file), "the file is empty", "expected an object"));
      }
      var root = new Reader(file, code, parser).value();
      if (parser.nextToken() != null) {
        var span = span(file, parser.currentTokenLocation(), 1);
        throw new CompileException(Diagnostic.error(code, span, "expected the end of the file"));
      }
      return root;
    } catch (JsonProcessingException e) {
      var at = e.getLocation();
      throw new CompileException(
          Diagnostic.error(
              code,
              at == null ? Span.ofFile(file) : span(file, at, 1),
              "this is not JSON: " + firstClause(e.getOriginalMessage())));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Jackson's messages go on with a place in a form of its own. */
  private static String firstClause(String message) {
    int marker = message.indexOf(" (start marker at");
    return marker < 0 ? message : message.substring(0, marker);
  }

  private static Span span(SourceFile file, JsonLocation at, long length) {
    return new Span(
        file,
        Math.max(1, at.getLineNr()),
        Math.max(1, at.getColumnNr()),
        (int) Math.clamp(length, 1, Integer.MAX_VALUE));
  }

  /** Reads one text. */
  private record Reader(SourceFile file, DiagnosticCode code, JsonParser parser) {

    PlacedJson value() throws IOException {
      return switch (parser.currentToken()) {
        case START_OBJECT -> fields();
        case START_ARRAY -> items();
        case VALUE_STRING -> {
          // Where a string ends is known once it was asked for.
          var text = parser.getText();
          yield leaf(new Content.Text(text));
        }
        case VALUE_NUMBER_INT, VALUE_NUMBER_FLOAT ->
            leaf(new Content.Numeral(parser.getDoubleValue()));
        case VALUE_TRUE, VALUE_FALSE ->
            leaf(new Content.Truth(parser.currentToken() == JsonToken.VALUE_TRUE));
        case VALUE_NULL, NOT_AVAILABLE, END_OBJECT, END_ARRAY, FIELD_NAME, VALUE_EMBEDDED_OBJECT ->
            leaf(new Content.Nothing());
      };
    }

    private PlacedJson leaf(Content content) {
      return new PlacedJson(code, here(), content);
    }

    private Span here() {
      var from = parser.currentTokenLocation();
      return span(file, from, parser.currentLocation().getCharOffset() - from.getCharOffset());
    }

    private PlacedJson items() throws IOException {
      var start = span(file, parser.currentTokenLocation(), 1);
      var list = ImmutableList.<PlacedJson>builder();
      while (parser.nextToken() != JsonToken.END_ARRAY) {
        list.add(value());
      }
      return new PlacedJson(code, start, new Content.Items(list.build()));
    }

    private PlacedJson fields() throws IOException {
      var start = span(file, parser.currentTokenLocation(), 1);
      var byName = new LinkedHashMap<String, Field>();
      while (parser.nextToken() != JsonToken.END_OBJECT) {
        var name = parser.currentName();
        var at = span(file, parser.currentTokenLocation(), name.length() + 2L);
        parser.nextToken();
        byName.put(name, new Field(at, value()));
      }
      return new PlacedJson(code, start, new Content.Fields(ImmutableMap.copyOf(byName)));
    }
  }

  /**
   * Checks that an object has no fields but these.
   *
   * @throws CompileException at the first that it should not have
   */
  public PlacedJson only(ImmutableSet<String> names) {
    for (var field : fields().byName.entrySet()) {
      if (!names.contains(field.getKey())) {
        throw error(
            field.getValue().name(),
            "there is no field '%s' here".formatted(field.getKey()),
            "known: " + String.join(", ", names));
      }
    }
    return this;
  }

  public PlacedJson get(String name) {
    return find(name).orElseThrow(() -> wrong("there is no '%s'".formatted(name), "add it"));
  }

  public Optional<PlacedJson> find(String name) {
    return Optional.ofNullable(fields().byName.get(name)).map(Field::value);
  }

  /** {@return the fields of an object, in its order} */
  public ImmutableMap<String, PlacedJson> entries() {
    var entries = ImmutableMap.<String, PlacedJson>builder();
    fields().byName.forEach((name, field) -> entries.put(name, field.value()));
    return entries.buildOrThrow();
  }

  /** Complains about the name of a field. */
  public CompileException wrongName(String name, String message, String hint) {
    var field = fields().byName.get(name);
    return error(field == null ? span : field.name(), message, hint);
  }

  public ImmutableList<PlacedJson> items() {
    if (content instanceof Content.Items(var list)) {
      return list;
    }
    throw wrong("this is not a list", "write [ … ]");
  }

  public String text() {
    if (content instanceof Content.Text(var text)) {
      return text;
    }
    throw wrong("this is not a string", "write \"…\"");
  }

  public boolean truth() {
    if (content instanceof Content.Truth(boolean value)) {
      return value;
    }
    throw wrong("this is neither true nor false", "");
  }

  /** {@return a number that is not negative} */
  public double notNegative() {
    double value = number("a number from 0");
    if (value < 0 || Double.isInfinite(value)) {
      throw wrong("this is not a number from 0", "");
    }
    return value;
  }

  public double positive() {
    double value = number("a number above 0");
    if (value <= 0 || Double.isInfinite(value)) {
      throw wrong("this is not a number above 0", "");
    }
    return value;
  }

  public int count(int max) {
    double value = number("a whole number");
    if (value != Math.rint(value) || value < 1 || value > max) {
      throw wrong("this is not a whole number from 1 to " + max, "");
    }
    return (int) value;
  }

  private double number(String expected) {
    if (content instanceof Content.Numeral(double value)) {
      return value;
    }
    throw wrong("this is not a number", "expected " + expected);
  }

  private Content.Fields fields() {
    if (content instanceof Content.Fields found) {
      return found;
    }
    throw wrong("this is not an object", "write { … }");
  }

  public CompileException wrong(String message, String hint) {
    return error(span, message, hint);
  }

  private CompileException error(Span at, String message, String hint) {
    return new CompileException(Diagnostic.error(code, at, message, hint));
  }
}
