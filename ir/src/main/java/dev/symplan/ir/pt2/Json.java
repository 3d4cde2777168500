package dev.symplan.ir.pt2;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.core.exc.StreamConstraintsException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.text.SourceReader;
import java.io.IOException;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A place in the JSON of an entry. What is asked of it must be there; if it is not, the exception
 * names the archive, the entry and the place.
 */
final class Json {

  /** What an entry may hold of values, brackets and names, so that its tree fits any heap. */
  private static final long MAX_TOKENS = 1L << 23;

  private static final JsonMapper MAPPER =
      JsonMapper.builder(
              JsonFactory.builder()
                  .streamReadConstraints(
                      StreamReadConstraints.builder().maxTokenCount(MAX_TOKENS).build())
                  .build())
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .enable(JsonParser.Feature.STRICT_DUPLICATE_DETECTION)
          .build();

  /** The one case of a union that is set, by PyTorch's name of the case. */
  record Case(String name, Json value) {}

  private final ArchiveFile archive;
  private final String entry;
  private final String place;
  private final JsonNode node;

  private Json(ArchiveFile archive, String entry, String place, JsonNode node) {
    this.archive = archive;
    this.entry = entry;
    this.place = place;
    this.node = node;
  }

  /**
   * {@return the root of an entry's JSON}
   *
   * @throws CompileException when the entry cannot be read, or is not JSON
   */
  static Json read(ArchiveFile archive, String entry) {
    var text =
        SourceReader.decode(archive.source().name() + "/" + entry, archive.read(entry)).text();
    try {
      @Nullable JsonNode root = MAPPER.readTree(text);
      if (root == null || !root.isObject()) {
        throw archive.wrong("entry '%s' is not a JSON object".formatted(entry));
      }
      return new Json(archive, entry, "", root);
    } catch (StreamConstraintsException e) {
      throw archive.wrong(
          DiagnosticCode.TOO_LARGE, "entry '%s': %s".formatted(entry, e.getOriginalMessage()), "");
    } catch (JsonProcessingException e) {
      throw archive.wrong("entry '%s' is not JSON: %s".formatted(entry, e.getOriginalMessage()));
    } catch (IOException e) {
      throw archive.wrong("entry '%s' is not JSON: %s".formatted(entry, e.getMessage()));
    }
  }

  private Json at(String step, JsonNode inner) {
    return new Json(archive, entry, place + step, inner);
  }

  Json get(String field) {
    return find(field).orElseThrow(() -> wrong("it has no '%s'".formatted(field)));
  }

  /** {@return a field; empty where it is absent or null} */
  Optional<Json> find(String field) {
    @Nullable JsonNode inner = node.get(field);
    return inner == null || inner.isNull()
        ? Optional.empty()
        : Optional.of(at(place.isEmpty() ? field : "." + field, inner));
  }

  ImmutableList<Json> items() {
    if (!node.isArray()) {
      throw wrong("it is not a list");
    }
    var items = ImmutableList.<Json>builderWithExpectedSize(node.size());
    for (int i = 0; i < node.size(); i++) {
      items.add(at("[" + i + "]", node.get(i)));
    }
    return items.build();
  }

  ImmutableMap<String, Json> fields() {
    if (!node.isObject()) {
      throw wrong("it is not an object");
    }
    var fields = ImmutableMap.<String, Json>builderWithExpectedSize(node.size());
    for (var field : node.properties()) {
      fields.put(field.getKey(), at("." + field.getKey(), field.getValue()));
    }
    return fields.buildOrThrow();
  }

  Case union() {
    if (!node.isObject() || node.size() != 1) {
      throw wrong("it is not a union with one case");
    }
    var field = node.properties().iterator().next();
    return new Case(field.getKey(), at("." + field.getKey(), field.getValue()));
  }

  String text() {
    if (!node.isTextual()) {
      throw wrong("it is not a string");
    }
    return node.textValue();
  }

  /** {@return a string of letters, digits, {@code _} and dots} */
  String word() {
    var text = text();
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c >= 128 || !(Character.isLetterOrDigit(c) || c == '_' || c == '.')) {
        throw wrong("it is not a name");
      }
    }
    return text;
  }

  long integer() {
    if (!node.isIntegralNumber() || !node.canConvertToLong()) {
      throw wrong("it is not a 64-bit integer");
    }
    return node.longValue();
  }

  boolean bool() {
    if (!node.isBoolean()) {
      throw wrong("it is neither true nor false");
    }
    return node.booleanValue();
  }

  /** {@return a number; PyTorch writes those that JSON has not as strings} */
  double number() {
    if (node.isNumber()) {
      return node.doubleValue();
    }
    return switch (node.asText()) {
      case "Infinity" -> Double.POSITIVE_INFINITY;
      case "-Infinity" -> Double.NEGATIVE_INFINITY;
      case "NaN" -> Double.NaN;
      default -> throw wrong("it is not a number");
    };
  }

  CompileException wrong(String message) {
    return archive.wrong(
        place.isEmpty()
            ? "entry '%s': %s".formatted(entry, message)
            : "entry '%s': %s: %s".formatted(entry, place, message));
  }
}
