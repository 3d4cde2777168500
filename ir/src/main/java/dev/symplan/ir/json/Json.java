package dev.symplan.ir.json;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonLocation;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonPointer;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.StreamReadFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.json.JsonErrors.Expected;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Arrays;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * A value of a JSON text and the way to it. A method that finds something else than it asks for
 * throws the {@link CompileException} that the file's {@link JsonErrors} give.
 */
public final class Json {

  /** The only field of an object. */
  public record Case(String name, Json value) {}

  private static final JsonMapper MAPPER = new JsonMapper();

  private record File(SourceFile source, JsonFactory factory, JsonErrors errors) {}

  private final File file;
  private final @Nullable Json parent;
  private final String name;
  private final int index;
  private final JsonNode node;

  private Json(File file, @Nullable Json parent, String name, int index, JsonNode node) {
    this.file = file;
    this.parent = parent;
    this.name = name;
    this.index = index;
    this.node = node;
  }

  /** {@return the value that a text holds} */
  public static Json parse(SourceFile source, JsonErrors errors) {
    return parse(source, StreamReadConstraints.defaults(), errors);
  }

  public static Json parse(SourceFile source, StreamReadConstraints limits, JsonErrors errors) {
    var factory =
        JsonFactory.builder()
            .streamReadConstraints(limits)
            .enable(StreamReadFeature.STRICT_DUPLICATE_DETECTION)
            .build();
    var file = new File(source, factory, errors);
    try (var parser = factory.createParser(source.text())) {
      if (parser.nextToken() == null) {
        throw errors.error(Span.ofFile(source), "the file is empty", "write JSON");
      }
      JsonNode root = MAPPER.readTree(parser);
      if (parser.nextToken() != null) {
        var end = span(source, parser.currentTokenLocation(), 1);
        throw errors.error(end, "expected the end of the file", "");
      }
      return new Json(file, null, "", 0, root);
    } catch (JsonProcessingException e) {
      @Nullable JsonLocation at = e.getLocation();
      throw errors.notJson(at == null ? Span.ofFile(source) : span(source, at, 1), e);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static Span span(SourceFile source, JsonLocation at, long length) {
    return new Span(
        source,
        Math.max(1, at.getLineNr()),
        Math.max(1, at.getColumnNr()),
        (int) Math.clamp(length, 1, Integer.MAX_VALUE));
  }

  /** {@return the file as a whole} */
  public Span file() {
    return Span.ofFile(file.source);
  }

  /** {@return the way to the value, for example {@code steps[3].name}; empty for the root} */
  public String path() {
    if (parent == null) {
      return "";
    }
    var path = parent.path();
    return name.isEmpty() ? path + "[" + index + "]" : path.isEmpty() ? name : path + "." + name;
  }

  /** {@return the location of the value; the text is read once more for it} */
  public Span span() {
    return span(false);
  }

  private Span span(boolean ofName) {
    var pointer = pointer();
    try (var parser = file.factory.createParser(file.source.text())) {
      for (var token = parser.nextToken(); token != null; token = parser.nextToken()) {
        if ((token == JsonToken.FIELD_NAME) == ofName
            && parser.getParsingContext().pathAsPointer().equals(pointer)) {
          return span(file.source, parser.currentTokenLocation(), length(parser));
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return file();
  }

  private static long length(JsonParser parser) throws IOException {
    if (parser.currentToken().isStructStart()) {
      return 1;
    }
    long from = parser.currentTokenLocation().getCharOffset();
    // Where a string ends is known once it was asked for.
    int letters = parser.getText().length();
    return parser.currentToken() == JsonToken.FIELD_NAME
        ? letters + 2
        : parser.currentLocation().getCharOffset() - from;
  }

  private JsonPointer pointer() {
    return parent == null
        ? JsonPointer.empty()
        : name.isEmpty()
            ? parent.pointer().appendIndex(index)
            : parent.pointer().appendProperty(name);
  }

  /** {@return a field that must be there, and not null} */
  public Json get(String field) {
    return find(field).orElseThrow(() -> file.errors.missing(this, field));
  }

  /** {@return a field; empty if it is absent or null} */
  public Optional<Json> find(String field) {
    @Nullable JsonNode inner = object().get(field);
    return inner == null || inner.isNull() ? Optional.empty() : Optional.of(field(field, inner));
  }

  private Json field(String field, JsonNode inner) {
    return new Json(file, this, field, 0, inner);
  }

  private JsonNode object() {
    if (!node.isObject()) {
      throw file.errors.expected(this, Expected.OBJECT);
    }
    return node;
  }

  /** {@return the fields of an object, in its order} */
  public ImmutableMap<String, Json> fields() {
    var fields = ImmutableMap.<String, Json>builderWithExpectedSize(node.size());
    for (var field : object().properties()) {
      fields.put(field.getKey(), field(field.getKey(), field.getValue()));
    }
    return fields.buildOrThrow();
  }

  /** Checks that an object has no fields but these. */
  public void only(ImmutableSet<String> names) {
    for (var field : fields().entrySet()) {
      if (!names.contains(field.getKey())) {
        throw field
            .getValue()
            .wrongName(
                "unknown field '%s'".formatted(field.getKey()),
                "known: " + String.join(", ", names));
      }
    }
  }

  /** {@return the only field: how PyTorch writes the case of a union} */
  public Case union() {
    if (!node.isObject() || node.size() != 1) {
      throw wrong("it is not a union with one case", "");
    }
    var only = node.properties().iterator().next();
    return new Case(only.getKey(), field(only.getKey(), only.getValue()));
  }

  public ImmutableList<Json> items() {
    return list(Function.identity());
  }

  /** {@return the results of reading the items of a list} */
  public <T> ImmutableList<T> list(Function<Json, T> read) {
    if (!node.isArray()) {
      throw file.errors.expected(this, Expected.LIST);
    }
    var items = ImmutableList.<T>builderWithExpectedSize(node.size());
    for (int i = 0; i < node.size(); i++) {
      items.add(read.apply(new Json(file, this, "", i, node.get(i))));
    }
    return items.build();
  }

  public String text() {
    if (!node.isTextual()) {
      throw file.errors.expected(this, Expected.STRING);
    }
    return node.textValue();
  }

  public boolean bool() {
    if (!node.isBoolean()) {
      throw file.errors.expected(this, Expected.BOOL);
    }
    return node.booleanValue();
  }

  public boolean isList() {
    return node.isArray();
  }

  public boolean isObject() {
    return node.isObject();
  }

  public boolean isNumber() {
    return node.isNumber();
  }

  public double number() {
    if (!node.isNumber()) {
      throw file.errors.expected(this, Expected.NUMBER);
    }
    return node.doubleValue();
  }

  public long integer() {
    if (!node.isIntegralNumber() || !node.canConvertToLong()) {
      throw file.errors.expected(this, Expected.INTEGER);
    }
    return node.longValue();
  }

  public int intValue() {
    if (!node.isIntegralNumber() || !node.canConvertToInt()) {
      throw file.errors.expected(this, Expected.INT);
    }
    return node.intValue();
  }

  /** {@return the constant of an enum with this name, in letters of either case} */
  public <E extends Enum<E>> E constant(Class<E> type) {
    var wanted = Ascii.toUpperCase(text());
    for (E constant : type.getEnumConstants()) {
      if (constant.name().equals(wanted)) {
        return constant;
      }
    }
    throw wrong(
        "unknown value '" + text() + "'",
        "known: "
            + Arrays.stream(type.getEnumConstants())
                .map(c -> Ascii.toLowerCase(c.name()))
                .collect(Collectors.joining(", ")));
  }

  /** {@return the text of an object, for a reader of its own} */
  public String tree() {
    return object().toPrettyString();
  }

  public CompileException wrong(String message) {
    return wrong(message, "");
  }

  public CompileException wrong(String message, String hint) {
    return file.errors.wrong(this, message, hint);
  }

  /** {@return an error about the name of this field} */
  public CompileException wrongName(String message, String hint) {
    return file.errors.error(span(true), message, hint);
  }
}
