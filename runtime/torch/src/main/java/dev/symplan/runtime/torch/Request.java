package dev.symplan.runtime.torch;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.json.Json;
import dev.symplan.ir.json.JsonErrors;
import java.nio.file.Path;
import java.util.Optional;

/**
 * A request to compile a graph.
 *
 * @param graph FX text, and the name that messages give it
 * @param backend the name of what runs it
 * @param ranks the world size
 * @param dims values of symbolic sizes
 * @param page where the page of the plan goes, if anywhere
 */
record Request(
    SourceFile graph,
    String backend,
    int ranks,
    ImmutableMap<String, Long> dims,
    Optional<Path> page) {

  private static final ImmutableSet<String> FIELDS =
      ImmutableSet.of("name", "text", "backend", "ranks", "dims", "page");

  /**
   * {@return a request in JSON}
   *
   * @throws dev.symplan.ir.diag.CompileException when it is none
   */
  static Request parse(String text) {
    var json =
        Json.parse(new SourceFile("<request>", text), new JsonErrors(DiagnosticCode.BAD_OPTION));
    json.only(FIELDS);
    var dims = ImmutableMap.<String, Long>builder();
    json.find("dims").ifPresent(all -> all.fields().forEach((k, v) -> dims.put(k, v.integer())));
    return new Request(
        new SourceFile(json.get("name").text(), json.get("text").text()),
        json.get("backend").text(),
        json.get("ranks").intValue(),
        dims.buildOrThrow(),
        json.find("page").map(Json::text).map(Path::of));
  }
}
