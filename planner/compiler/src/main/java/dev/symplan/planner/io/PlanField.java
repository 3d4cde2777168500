package dev.symplan.planner.io;

import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.StreamReadConstraints;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import java.util.Arrays;
import java.util.function.BiFunction;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** A node of a plan file's JSON and the way to it, which only complaints spell out. */
final class PlanField {
  private static final int MAX_NUMBER_LENGTH = 40;

  private final SourceFile file;
  private final @Nullable PlanField parent;
  private final String name;
  private final int index;
  private final JsonNode node;

  private PlanField(
      SourceFile file, @Nullable PlanField parent, String name, int index, JsonNode node) {
    this.file = file;
    this.parent = parent;
    this.name = name;
    this.index = index;
    this.node = node;
  }

  /**
   * {@return the whole of a file}
   *
   * @throws CompileException when it is not JSON
   */
  static PlanField parse(SourceFile file) {
    return new PlanField(file, null, "", 0, read(file));
  }

  private static JsonNode read(SourceFile file) {
    var mapper =
        JsonMapper.builder()
            .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
            .enable(JsonParser.Feature.STRICT_DUPLICATE_DETECTION)
            .build();
    mapper
        .getFactory()
        .setStreamReadConstraints(
            StreamReadConstraints.builder().maxNumberLength(MAX_NUMBER_LENGTH).build());
    try {
      return mapper.readTree(file.text());
    } catch (JsonProcessingException e) {
      var at = e.getLocation();
      var span =
          at == null
              ? Span.ofFile(file)
              : new Span(file, Math.max(1, at.getLineNr()), Math.max(1, at.getColumnNr()), 1);
      throw new CompileException(
          Diagnostic.error(
              DiagnosticCode.BAD_PLAN, span, "this is not JSON: " + e.getOriginalMessage()));
    }
  }

  PlanField at(String child) {
    return child(child, 0, node.get(child));
  }

  PlanField at(int child) {
    return child("", child, node.get(child));
  }

  private PlanField child(String childName, int childIndex, @Nullable JsonNode child) {
    if (child == null) {
      throw wrong(path(childName, childIndex), "is missing", "compile the graph again");
    }
    return new PlanField(file, this, childName, childIndex, child);
  }

  private String path() {
    return parent == null ? "" : parent.path(name, index);
  }

  private String path(String childName, int childIndex) {
    var own = path();
    if (childName.isEmpty()) {
      return own + "[" + childIndex + "]";
    }
    return own.isEmpty() ? childName : own + "." + childName;
  }

  /** {@return a complaint about this} */
  CompileException wrong(String message, String hint) {
    return wrong(path(), message, hint);
  }

  private CompileException wrong(String path, String message, String hint) {
    return new CompileException(
        Diagnostic.error(
            DiagnosticCode.BAD_PLAN,
            Span.ofFile(file),
            path.isEmpty() ? message : path + ": " + message,
            hint));
  }

  int size() {
    return node.size();
  }

  <T> ImmutableList<T> list(BiFunction<PlanField, Integer, T> read) {
    if (!node.isArray()) {
      throw wrong("must be a list", "");
    }
    return IntStream.range(0, node.size())
        .mapToObj(i -> read.apply(at(i), i))
        .collect(ImmutableList.toImmutableList());
  }

  ImmutableList<Integer> ints() {
    return list((field, i) -> field.intValue());
  }

  /** {@return the text of an object, for a reader of its own} */
  String tree() {
    if (!node.isObject()) {
      throw wrong("must be an object", "compile the graph again");
    }
    return node.toPrettyString();
  }

  String text() {
    if (!node.isTextual()) {
      throw wrong("must be a string", "");
    }
    return node.textValue();
  }

  boolean bool() {
    if (!node.isBoolean()) {
      throw wrong("must be true or false", "");
    }
    return node.booleanValue();
  }

  long integer() {
    if (!node.isIntegralNumber() || !node.canConvertToLong()) {
      throw wrong("must be an integer", "");
    }
    return node.longValue();
  }

  int intValue() {
    if (!node.isIntegralNumber() || !node.canConvertToInt()) {
      throw wrong("must be an integer of 32 bits", "");
    }
    return node.intValue();
  }

  double number() {
    if (!node.isNumber()) {
      throw wrong("must be a number", "");
    }
    return node.doubleValue();
  }

  <E extends Enum<E>> E constant(Class<E> type) {
    var name = Ascii.toUpperCase(text());
    for (E constant : type.getEnumConstants()) {
      if (constant.name().equals(name)) {
        return constant;
      }
    }
    throw wrong(
        "there is no '" + text() + "'",
        "known: "
            + Arrays.stream(type.getEnumConstants())
                .map(c -> Ascii.toLowerCase(c.name()))
                .collect(Collectors.joining(", ")));
  }
}
