package dev.symplan.planner.report.render;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.report.PlanReport;
import java.io.IOException;
import java.math.BigDecimal;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class TraceRendererTest {
  private static final Path PLANS =
      Path.of(System.getProperty("symplan.root"), "samples", "cases", "plan");

  /** Perfetto drops slices that begin before the one ahead of them on their thread ends. */
  @ParameterizedTest
  @ValueSource(strings = {"fsdp8_mlp_train_4l.0", "fsdp8_mlp_train_4l.1", "moe_ep8.0"})
  void slicesOfAThreadDoNotOverlap(String name) throws IOException {
    var plan =
        Compiler.forDefaultTarget()
            .with(CompileOptions.DEFAULT.withRanks(8))
            .compile(PLANS.resolve(name + ".fx.txt"));

    var trace =
        new ObjectMapper()
            .readTree(TraceRenderer.render(PlanReport.of(plan, Format.PERFETTO.views())));

    var threads =
        StreamSupport.stream(trace.get("traceEvents").spliterator(), false)
            .filter(event -> event.get("ph").textValue().equals("X"))
            .collect(Collectors.groupingBy(event -> event.get("pid") + "." + event.get("tid")));
    assertThat(threads).hasSizeGreaterThanOrEqualTo(8);
    for (var slices : threads.values()) {
      slices.sort(Comparator.comparing(slice -> number(slice, "ts")));
      for (int i = 1; i < slices.size(); i++) {
        assertThat(number(slices.get(i), "ts"))
            .as("%s", slices.get(i))
            .isGreaterThanOrEqualTo(
                number(slices.get(i - 1), "ts").add(number(slices.get(i - 1), "dur")));
      }
    }
  }

  private static BigDecimal number(JsonNode slice, String field) {
    return new BigDecimal(slice.get(field).asText());
  }
}
