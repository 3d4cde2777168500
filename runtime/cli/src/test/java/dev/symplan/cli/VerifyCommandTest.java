package dev.symplan.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.symplan.ir.testkit.Golden;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Consumer;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Changed plan files are refused with the way they go wrong, event by event. */
class VerifyCommandTest {
  private static final ObjectMapper JSON = new ObjectMapper();

  private static final String GRAPH =
      """
      graph version 1

      group tp = [0, 1, 2, 3]

      graph layers(x: f32[64, 64], w: f32[64, 64]) {
        a = aten::mm(x, w)
        p = _c10d_functional::all_reduce(a, "sum", "tp")
        b = aten::mm(p, w)
        q = _c10d_functional::all_reduce(b, "sum", "tp")
        c = aten::mm(q, w)
        d = aten::mm(p, c)
        return d
      }
      """;

  @TempDir private Path folder;

  private static JsonNode plan(JsonNode root) {
    return root.at("/rank_plans/0");
  }

  private static ObjectNode collective(JsonNode root, int index) {
    return (ObjectNode) plan(root).at("/collectives/" + index);
  }

  private static ObjectNode buffer(JsonNode root, String name) {
    for (var buffer : plan(root).get("buffers")) {
      if (buffer.get("name").textValue().equals(name)) {
        return (ObjectNode) buffer;
      }
    }
    throw new AssertionError("no buffer " + name);
  }

  private static Arguments edit(String name, Consumer<JsonNode> edit) {
    return Arguments.of(name, edit);
  }

  static List<Arguments> edits() {
    return List.of(
        edit("no_barrier_before", plan -> collective(plan, 1).put("start_barrier", "none")),
        edit("no_barrier_after", plan -> collective(plan, 1).put("end_barrier", "none")),
        edit(
            "barrier_passed_too_early",
            plan -> collective(plan, 1).put("start_barrier", "end of 0")),
        edit(
            "memory_taken_too_early",
            plan -> buffer(plan, "q").put("offset", buffer(plan, "p").get("offset").longValue())),
        edit(
            "steps_swapped",
            plan -> {
              var steps = (ArrayNode) plan(plan).get("steps");
              var last = steps.remove(steps.size() - 1);
              steps.insert(steps.size() - 1, last);
            }),
        edit("not_symmetric", plan -> buffer(plan, "b").put("symmetric", false)));
  }

  @ParameterizedTest(name = "{0}")
  @MethodSource("edits")
  void tellsHowItGoesWrong(String name, Consumer<JsonNode> edit) throws IOException {
    var graph = Files.writeString(folder.resolve("layers.graph"), GRAPH).toString();
    var file = folder.resolve("plan.json");
    assertThat(run("compile", graph, "--variant", "all_reduce=one_shot", "-o", file.toString()))
        .startsWith("0\n");
    var plan = JSON.readTree(file.toFile());
    edit.accept(plan);
    JSON.writeValue(file.toFile(), plan);

    var told = run("verify", file.toString()).replace(folder + "/", "");

    assertThat(told).startsWith("1\n");
    Golden.check("verify/" + name + ".txt", told.substring(2));
  }

  /** {@return the exit code, and what was printed} */
  private static String run(String... words) {
    var printed = new ByteArrayOutputStream();
    try (var out = new PrintStream(printed, true, StandardCharsets.UTF_8)) {
      return Main.run(words, out, out) + "\n" + printed.toString(StandardCharsets.UTF_8);
    }
  }
}
