package dev.symplan.planner.simulate;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.google.common.base.Ascii;
import dev.symplan.ir.diag.Units;
import dev.symplan.planner.file.JsonLayout;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.report.Table;
import dev.symplan.planner.simulate.Sensitivity.Loss;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/** A simulated step, and what would be slower, for people and for programs. */
public final class SimulationReport {
  private static final int SHOWN_COLLECTIVES = 12;
  private static final int SHOWN_LOSSES = 4;

  private final Plan plan;
  private final Scenario scenario;
  private final SimulatedStep step;
  private final Sensitivity sensitivity;

  private SimulationReport(Scenario scenario, SimulatedStep step, Sensitivity sensitivity) {
    this.plan = scenario.job().plan();
    this.scenario = scenario;
    this.step = step;
    this.sensitivity = sensitivity;
  }

  /** {@return the report on a plan on such hosts} */
  public static SimulationReport of(Scenario scenario) {
    var step = SimulatedStep.of(scenario);
    return new SimulationReport(scenario, step, Sensitivity.of(scenario, step));
  }

  /** {@return lines for people} */
  public String text() {
    var out = new StringBuilder();
    out.append(
        "%s · %s on hosts %s · target %s\n"
            .formatted(
                plan.name(),
                Units.count(plan.worldSize(), "rank"),
                scenario.job().topology().text(),
                plan.target().name()));
    line(
        out,
        "step",
        "%s predicted; rank %s is the last to end"
            .formatted(Units.micros(step.micros()), step.lastRank()));
    line(out, "compute", "%s of that".formatted(Units.micros(step.computeMicros())));
    line(
        out,
        "exposed",
        "%s of communication that compute does not hide"
            .formatted(Units.micros(step.exposedMicros())));
    line(out, "rails", rails());
    if (!step.collectives().isEmpty()) {
      out.append('\n').append(collectives());
    }
    out.append('\n').append(losses());
    return out.toString();
  }

  private static void line(StringBuilder out, String title, String text) {
    out.append("%-9s%s\n".formatted(title, text));
  }

  private String rails() {
    var busiest =
        step.gpus().stream().max(Comparator.comparingDouble(SimulatedStep.Gpu::rail)).orElseThrow();
    if (busiest.rail() == 0) {
      return "not used: no collective leaves an NVLink domain";
    }
    return "%s is in use for %s (%s %%), for %s of it by several collectives"
        .formatted(
            scenario.gpu(busiest.rank()),
            Units.micros(busiest.rail()),
            String.format(Locale.ROOT, "%.1f", 100 * busiest.rail() / step.micros()),
            Units.micros(busiest.shared()));
  }

  private String collectives() {
    var table = new Table("collective", "group", "runs as", "alone", "here", "shared", "waited");
    step.collectives().stream()
        .sorted(
            Comparator.comparingDouble(
                    (SimulatedStep.Collective own) -> own.micros() + own.waited())
                .reversed())
        .limit(SHOWN_COLLECTIVES)
        .forEach(
            own -> {
              var collective = collective(own);
              table.row(
                  name(own),
                  collective.group(),
                  "%s %s"
                      .formatted(
                          Ascii.toLowerCase(collective.kind().name()), collective.variant().text()),
                  Units.micros(own.alone()),
                  Units.micros(own.micros()),
                  Units.micros(own.shared()),
                  Units.micros(own.waited()));
            });
    int more = step.collectives().size() - SHOWN_COLLECTIVES;
    return table.render() + (more > 0 ? "and %s more\n".formatted(more) : "");
  }

  private String losses() {
    var table = new Table("at half its rate", "others like it", "step");
    rows(table, "rail", sensitivity.rails());
    rows(table, "GPU", sensitivity.gpus());
    return table.render();
  }

  /** Kinds of ranks whose losses look the same are one row. */
  private void rows(Table table, String what, List<Loss> losses) {
    var alike =
        losses.stream()
            .collect(
                Collectors.groupingBy(
                    loss -> Units.micros(loss.micros()), LinkedHashMap::new, Collectors.toList()));
    alike.entrySet().stream()
        .limit(SHOWN_LOSSES)
        .forEach(
            row -> {
              int ranks = row.getValue().stream().mapToInt(Loss::ranks).sum();
              table.row(
                  what + " " + scenario.gpu(row.getValue().getFirst().rank()),
                  Integer.toString(ranks - 1),
                  "+" + row.getKey());
            });
  }

  private CollectivePlan collective(SimulatedStep.Collective own) {
    return plan.rankPlans().get(own.rankPlan()).collectives().get(own.index());
  }

  private String name(SimulatedStep.Collective own) {
    return plan.rankPlans().get(own.rankPlan()).graph().ops().get(collective(own).op()).label();
  }

  /** {@return the same as JSON, with times in µs} */
  public String json() {
    var out = new StringWriter();
    try (var json = new JsonFactory().createGenerator(out)) {
      json.setPrettyPrinter(JsonLayout.printer());
      write(json);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return out.append('\n').toString();
  }

  private void write(JsonGenerator json) throws IOException {
    json.writeStartObject();
    json.writeStringField("format", "symplan-simulation");
    json.writeNumberField("version", 1);
    json.writeStringField("name", plan.name());
    json.writeStringField("target", plan.target().name());
    json.writeStringField("digest", plan.digest());
    json.writeStringField("hosts", scenario.job().topology().text());
    json.writeNumberField("ranks", plan.worldSize());
    json.writeNumberField("step_us", step.micros());
    json.writeNumberField("last_rank", step.lastRank());
    json.writeNumberField("compute_us", step.computeMicros());
    json.writeNumberField("exposed_us", step.exposedMicros());
    json.writeArrayFieldStart("collectives");
    for (var own : step.collectives()) {
      var collective = collective(own);
      json.writeStartObject();
      json.writeStringField("name", name(own));
      json.writeStringField("kind", Ascii.toLowerCase(collective.kind().name()));
      json.writeStringField("group", collective.group());
      json.writeStringField("variant", collective.variant().text());
      json.writeNumberField("alone_us", own.alone());
      json.writeNumberField("here_us", own.micros());
      json.writeNumberField("shared_us", own.shared());
      json.writeNumberField("waited_us", own.waited());
      json.writeEndObject();
    }
    json.writeEndArray();
    json.writeArrayFieldStart("gpus");
    for (var gpu : step.gpus()) {
      json.writeStartObject();
      json.writeStringField("gpu", scenario.gpu(gpu.rank()));
      json.writeNumberField("rank", gpu.rank());
      json.writeNumberField("ranks", gpu.ranks());
      json.writeNumberField("compute_us", gpu.compute());
      json.writeNumberField("rail_us", gpu.rail());
      json.writeNumberField("rail_shared_us", gpu.shared());
      json.writeEndObject();
    }
    json.writeEndArray();
    json.writeNumberField("factor", Sensitivity.FACTOR);
    losses(json, "slower_rails", sensitivity.rails());
    losses(json, "slower_gpus", sensitivity.gpus());
    json.writeEndObject();
  }

  private void losses(JsonGenerator json, String name, List<Loss> losses) throws IOException {
    json.writeArrayFieldStart(name);
    for (var loss : losses) {
      json.writeStartObject();
      json.writeStringField("gpu", scenario.gpu(loss.rank()));
      json.writeNumberField("rank", loss.rank());
      json.writeNumberField("ranks", loss.ranks());
      json.writeNumberField("more_us", loss.micros());
      json.writeEndObject();
    }
    json.writeEndArray();
  }
}
