package dev.symplan.ir.op;

import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableListMultimap;
import com.google.common.collect.ImmutableSet;
import com.google.common.io.Resources;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.stream.Stream;

/**
 * The schemas of PyTorch's ops that have no rule here, with everything that the ops write and
 * alias.
 *
 * <p>PyTorch's own schemas are in {@code native-schemas.txt}. Those that say less than their ops do
 * are replaced by {@code understated-schemas.txt}. {@code other-schemas.txt} has those of ops that
 * vLLM registers. An op with a composite kernel may return an argument, or a view of one, where its
 * schema has a fresh result.
 */
public final class NativeSchemas {
  private static final String COMPOSITE = "composite";
  private static final String INPLACE_VIEW = "inplace_view";

  private static final ImmutableSet<String> ANYTHING = ImmutableSet.of(AliasInfo.ANYTHING);

  /** A set that no schema of PyTorch's uses. */
  private static final AliasInfo SHARED = AliasInfo.of("shared", false);

  /** The lines of the resources by op, read when somebody asks. */
  private static final class Lines {
    static final ImmutableListMultimap<String, String> UNDERSTATED =
        lines("understated-schemas.txt");
    static final ImmutableListMultimap<String, String> NATIVE = lines("native-schemas.txt");
    static final ImmutableListMultimap<String, String> OTHER = lines("other-schemas.txt");
  }

  private NativeSchemas() {}

  private static ImmutableListMultimap<String, String> lines(String resource) {
    var lines = ImmutableListMultimap.<String, String>builder();
    try {
      for (var line :
          Resources.readLines(
              Resources.getResource(NativeSchemas.class, resource), StandardCharsets.UTF_8)) {
        if (!line.isEmpty() && !line.startsWith("#")) {
          lines.put(line.substring(0, line.indexOf('(')), line);
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return lines.build();
  }

  /** {@return the schemas that an op has in some version of PyTorch; none if it is not known} */
  public static ImmutableList<OpSchema> of(OpName name) {
    var text = name.toString();
    return Stream.of(Lines.UNDERSTATED, Lines.NATIVE, Lines.OTHER)
        .map(lines -> lines.get(text))
        .filter(lines -> !lines.isEmpty())
        .findFirst()
        .orElse(ImmutableList.of())
        .stream()
        .map(NativeSchemas::schema)
        .collect(ImmutableList.toImmutableList());
  }

  /** {@return whose schema {@link #of} gives, for people} */
  public static String origin(OpName name) {
    return Lines.OTHER.containsKey(name.toString()) ? "vLLM's" : "PyTorch's";
  }

  private static OpSchema schema(String line) {
    var words = Splitter.on('\t').splitToList(line);
    var schema = SchemaParser.parse(words.getFirst());
    var tags = words.subList(1, words.size());
    if (tags.contains(INPLACE_VIEW)) {
      return movesSelf(schema);
    }
    return tags.contains(COMPOSITE) ? mayReturnArguments(schema) : schema;
  }

  /**
   * A tensor that the op writes may get the storage of any argument, or another offset in its own.
   */
  private static OpSchema movesSelf(OpSchema schema) {
    return schema.withAliases(
        (type, alias) ->
            !type.holdsTensors()
                ? alias
                : new AliasInfo(
                    alias.isPresent() ? alias.before() : SHARED.before(),
                    alias.write(),
                    ANYTHING,
                    alias.outermost()),
        (type, alias) -> alias);
  }

  private static OpSchema mayReturnArguments(OpSchema schema) {
    boolean fresh =
        schema.results().stream()
            .anyMatch(result -> result.type().holdsTensors() && !result.alias().isPresent());
    return fresh ? schema.withAliases(NativeSchemas::share, NativeSchemas::share) : schema;
  }

  private static AliasInfo share(SchemaType type, AliasInfo alias) {
    return type.holdsTensors() && !alias.isPresent() ? SHARED : alias;
  }

  /** {@return every name that has a schema} */
  static ImmutableSet<String> names() {
    return ImmutableSet.<String>builder()
        .addAll(Lines.UNDERSTATED.keySet())
        .addAll(Lines.NATIVE.keySet())
        .addAll(Lines.OTHER.keySet())
        .build();
  }
}
