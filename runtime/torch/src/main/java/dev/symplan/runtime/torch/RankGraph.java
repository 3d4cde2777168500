package dev.symplan.runtime.torch;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.json.Json;
import dev.symplan.ir.json.JsonErrors;
import dev.symplan.runtime.failure.RunException;
import java.nio.charset.StandardCharsets;
import java.util.Optional;

/**
 * The graph of one rank, which the ranks of a plan tell each other.
 *
 * @param text FX text, and the name that messages give it
 * @param backend the name of what runs it
 * @param dims values of symbolic sizes
 * @param groups as JSON, the process groups that it names: for each name, the ranks in order
 * @param refused why it cannot run as a plan; empty if it may
 */
record RankGraph(
    SourceFile text,
    String backend,
    ImmutableMap<String, Long> dims,
    Optional<Json> groups,
    String refused) {

  static final ImmutableSet<String> FIELDS =
      ImmutableSet.of("name", "text", "backend", "dims", "groups", "refused");

  /** Processes can exchange a little more at once. */
  private static final int MAX_BYTES = 14 << 20;

  /**
   * {@return the graph in these fields of an object}
   *
   * @throws dev.symplan.ir.diag.CompileException when one is missing
   */
  static RankGraph of(Json json) {
    var dims = ImmutableMap.<String, Long>builder();
    json.find("dims").ifPresent(all -> all.fields().forEach((k, v) -> dims.put(k, v.integer())));
    return new RankGraph(
        new SourceFile(json.get("name").text(), json.get("text").text()),
        json.get("backend").text(),
        dims.buildOrThrow(),
        json.find("groups"),
        json.find("refused").map(Json::text).orElse(""));
  }

  /** {@return the graph that {@link #toBytes} was asked for} */
  static RankGraph ofBytes(byte[] bytes) {
    var text = new String(bytes, StandardCharsets.UTF_8);
    return of(Json.parse(new SourceFile("<rank>", text), new JsonErrors(DiagnosticCode.BAD_GROUP)));
  }

  /** {@return the bytes that other ranks read: all of it, or only why it is refused} */
  byte[] toBytes() {
    var node = JsonNodeFactory.instance.objectNode();
    node.put("name", text.name()).put("text", text.text()).put("backend", backend);
    var sizes = node.putObject("dims");
    dims.forEach(sizes::put);
    var named = node.putObject("groups");
    groups.ifPresent(
        all ->
            all.fields()
                .forEach(
                    (name, ranks) ->
                        ranks.list(Json::intValue).forEach(named.withArray(name)::add)));
    var all = bytes(node);
    boolean fits = all.length <= MAX_BYTES;
    return refused.isEmpty() && fits
        ? all
        : bytes(
            node.put("text", "")
                .put("refused", refused.isEmpty() ? "its text has more than 14 MiB" : refused));
  }

  private static byte[] bytes(ObjectNode node) {
    return node.toString().getBytes(StandardCharsets.UTF_8);
  }

  /**
   * Throws the reason for which it cannot run as a plan, if it has one.
   *
   * @throws RunException naming the rank
   */
  void requireNotRefused(int rank) {
    if (!refused.isEmpty()) {
      throw new RunException("rank %s: %s".formatted(rank, refused));
    }
  }
}
