package dev.symplan.planner.report.render;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.util.DefaultIndenter;
import com.fasterxml.jackson.core.util.DefaultPrettyPrinter;
import com.fasterxml.jackson.core.util.DefaultPrettyPrinter.FixedSpaceIndenter;
import com.fasterxml.jackson.core.util.DefaultPrettyPrinter.Indenter;
import com.fasterxml.jackson.core.util.DefaultPrettyPrinter.NopIndenter;
import dev.symplan.planner.report.Fact;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.Map;

/** JSON in memory. */
final class JsonText {
  private static final JsonFactory FACTORY = new JsonFactory();

  private JsonText() {}

  /** Writes into a generator. */
  interface Body {
    void write(JsonGenerator json) throws IOException;
  }

  /** {@return an object or array on each line} */
  static String of(Body body) {
    return of(new DefaultIndenter("", "\n"), FixedSpaceIndenter.instance, body);
  }

  /** {@return a field on each line, arrays without spaces: what is mostly columns} */
  static String columns(Body body) {
    return of(NopIndenter.instance, new DefaultIndenter("", "\n"), body);
  }

  private static String of(Indenter arrays, Indenter objects, Body body) {
    var out = new StringWriter();
    try (var json = FACTORY.createGenerator(out)) {
      var printer = new DefaultPrettyPrinter();
      printer.indentArraysWith(arrays);
      printer.indentObjectsWith(objects);
      json.setPrettyPrinter(printer);
      body.write(json);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return out.append('\n').toString();
  }

  static void fields(JsonGenerator json, Map<String, Fact> facts) throws IOException {
    for (var fact : facts.entrySet()) {
      json.writeFieldName(fact.getKey());
      value(json, fact.getValue());
    }
  }

  static void value(JsonGenerator json, Fact fact) throws IOException {
    switch (fact) {
      case Fact.Text(var text) -> json.writeString(text);
      case Fact.Whole(long number) -> json.writeNumber(number);
      case Fact.Real(double number) -> json.writeNumber(rounded(number));
      case Fact.Flag(boolean flag) -> json.writeBoolean(flag);
      case Fact.Wholes(var numbers) -> json.writeRawValue(numbers.toString());
      case Fact.Texts(var texts) -> {
        // In one line, unlike the rows.
        json.writeRawValue(line(texts));
      }
    }
  }

  /** To nanoseconds and thousandths: no model is better, and files stay small. */
  static double rounded(double number) {
    return Math.abs(number) < 1e12 ? Math.rint(number * 1e3) / 1e3 : number;
  }

  private static String line(Iterable<String> texts) throws IOException {
    var out = new StringWriter();
    try (var json = FACTORY.createGenerator(out)) {
      json.writeStartArray();
      for (var text : texts) {
        json.writeString(text);
      }
      json.writeEndArray();
    }
    return out.toString();
  }
}
