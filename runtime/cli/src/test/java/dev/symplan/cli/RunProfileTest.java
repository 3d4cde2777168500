package dev.symplan.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.StreamSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RunProfileTest {
  /** A donated input, a fused step, and a gather that is large enough to run beside the product. */
  private static final String GRAPH =
      """
      graph version 1

      group tp = [0, 1]

      graph g(x: f32[64, 64], s: f32[512, 1024]) {
        g = _c10d_functional::all_gather_into_tensor(s, 2, "tp")
        a = aten::neg(x)
        b = aten::relu(a)
        y = aten::mm(b, b)
        r = _c10d_functional::all_reduce(y, "sum", "tp")
        o = _c10d_functional::wait_tensor(r)
        p = _c10d_functional::wait_tensor(g)
        return o, p
      }
      """;

  @TempDir private Path folder;

  private String out = "";

  private int run(Object... args) {
    var result = Ran.run(args);
    out = result.said();
    return result.code();
  }

  private Path graph() throws IOException {
    return Files.writeString(folder.resolve("g.graph"), GRAPH);
  }

  @Test
  void measuresSteadyRunsOfPlansThatKeepTheirInputs() throws IOException {
    assertThat(run("run", graph(), "--target", "host", "--measurements", 2)).as(out).isZero();
    assertThat(out).containsPattern("a run takes [0-9.]+ µs \\(median of 2; .* µs predicted");
    assertThat(run("run", "--donate", "x", graph(), "--target", "host", "--measurements", 2))
        .isEqualTo(4);
    assertThat(out).contains("--measurements: 'x' is donated").doesNotContain("outputs");
  }

  @Test
  void tableHasARowForEachStep() throws IOException {
    // The word after the option is the input, not a file for the trace.
    assertThat(run("run", "--donate", "x", "--profile", graph(), "--target", "host"))
        .as(out)
        .isZero();
    var table = out.substring(out.indexOf("steps of rank 0, µs")).lines().toList();
    assertThat(table.get(1)).startsWith("step  does ").contains("predicted", "measured", "waited");
    assertThat(table)
        .anyMatch(row -> row.startsWith("b     2 fused ops ") && row.endsWith("host neg+relu"))
        .anyMatch(row -> row.startsWith("y     aten::mm ") && row.endsWith("host mm"))
        .anyMatch(row -> row.startsWith("r     all_reduce ") && row.contains("16.0 KiB"))
        .anyMatch(row -> row.startsWith("g     all_gather ") && row.contains("2.0 MiB"));
    assertThat(table).anyMatch(row -> row.startsWith("compute  "));
    assertThat(table.getLast()).startsWith("from the first step's begin to the last one's end: ");
  }

  @Test
  void findsThatATraceCannotBeWrittenBeforeItRuns() throws IOException {
    var file = folder.resolve("no/such/folder.json");
    assertThat(run("run", "--profile=" + file, graph(), "--target", "host")).isEqualTo(1);
    assertThat(out).contains("folder.json: error").doesNotContain("ran on");
  }

  @Test
  void traceHasAProcessForEachRankAndAThreadForEachStream() throws IOException {
    var file = folder.resolve("trace.json");
    assertThat(run("run", "--profile=" + file, graph(), "--target", "host")).as(out).isZero();
    var trace = new ObjectMapper().readTree(Files.readString(file));
    var events = StreamSupport.stream(trace.get("traceEvents").spliterator(), false).toList();
    assertThat(events)
        .filteredOn(event -> event.get("name").asText().equals("process_name"))
        .extracting(event -> event.at("/args/name").asText())
        .containsExactly("rank 0", "rank 1");
    var steps = events.stream().filter(event -> event.get("ph").asText().equals("X")).toList();
    assertThat(steps).hasSize(2 * 4);
    assertThat(steps)
        .allMatch(step -> step.get("ts").asDouble() >= 0 && step.get("dur").asDouble() >= 0);
    var gathers = steps.stream().filter(step -> step.get("name").asText().equals("g")).toList();
    assertThat(gathers).hasSize(2);
    assertThat(gathers)
        .extracting(step -> step.at("/args/kernel").asText())
        .allMatch(kernel -> kernel.startsWith("host all_gather as "));
    assertThat(gathers).extracting(step -> step.at("/args/bytes").asLong()).containsOnly(2L << 20);
    // In one stream, nothing begins before what is before it has ended.
    for (int rank = 0; rank < 2; rank++) {
      for (int stream = 0; stream < 3; stream++) {
        double end = 0;
        for (var step : steps) {
          if (step.get("pid").asInt() == rank && step.get("tid").asInt() == stream) {
            assertThat(step.get("ts").asDouble()).isGreaterThanOrEqualTo(end - 2e-3);
            end = end(step);
          }
        }
      }
    }
    // No rank of an all_reduce is done before all have begun.
    var reductions = steps.stream().filter(s -> s.get("name").asText().equals("r")).toList();
    double last = reductions.stream().mapToDouble(s -> s.get("ts").asDouble()).max().orElseThrow();
    assertThat(reductions).allMatch(step -> end(step) >= last);
  }

  private static double end(JsonNode step) {
    return step.get("ts").asDouble() + step.get("dur").asDouble();
  }
}
