package dev.symplan.planner.io;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Notes;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.ir.pt2.ExportArchive;
import dev.symplan.ir.text.GraphPrinter;
import dev.symplan.ir.text.SourceReader;
import dev.symplan.planner.file.AtomicFile;
import dev.symplan.planner.file.JsonLayout;
import dev.symplan.planner.machine.TargetFile;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.options.Objective;
import dev.symplan.planner.plan.ArenaSize;
import dev.symplan.planner.plan.ArgDecision;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Frontier;
import dev.symplan.planner.plan.OrderDecision;
import dev.symplan.planner.plan.Placement;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Plans as JSON files: {@code docs/plan.md} describes the fields.
 *
 * <p>The planned graphs are in it as text of the graph language. A plan that is read is verified,
 * so that a file that was changed by hand, or by accident, cannot run.
 */
public final class PlanFile {
  static final String FORMAT = "symplan-plan";
  static final int VERSION = 1;

  private PlanFile() {}

  /** {@return the plan as JSON; the same bytes for the same plan, everywhere} */
  public static String toJson(Plan plan) {
    var out = new StringWriter();
    try (var json = new JsonFactory().createGenerator(out)) {
      json.setPrettyPrinter(JsonLayout.printer());
      write(plan, json);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return out.append('\n').toString();
  }

  /**
   * Writes a plan, whole or not at all.
   *
   * @throws CompileException when the file cannot be written
   */
  public static void write(Plan plan, Path file) {
    AtomicFile.write(file, toJson(plan), "the plan");
  }

  /**
   * {@return the plan in a file, verified}
   *
   * @throws CompileException when the file is malformed or the plan breaks a rule
   */
  public static Plan read(SourceFile file) {
    return new PlanFileReader(file).read();
  }

  /** {@return whether a text looks like a plan file rather than a graph} */
  public static boolean isPlan(String text) {
    var head = text.substring(0, Math.min(200, text.length())).stripLeading();
    return head.startsWith("{") && head.contains(FORMAT);
  }

  /** {@return whether a file looks like a plan file} */
  public static boolean isPlan(Path file) {
    return Files.isRegularFile(file)
        && !ExportArchive.isArchive(file)
        && isPlan(SourceReader.read(file).text());
  }

  private static void write(Plan plan, JsonGenerator json) throws IOException {
    json.writeStartObject();
    json.writeStringField("format", FORMAT);
    json.writeNumberField("version", VERSION);
    json.writeStringField("name", plan.name());
    json.writeFieldName("target");
    TargetFile.write(plan.target(), json);
    var hosts = plan.topology().unlike(plan.target());
    if (hosts.isPresent()) {
      json.writeStringField("hosts", hosts.get());
    }
    json.writeBooleanField("multicast", plan.multicast());
    json.writeStringField("digest", plan.digest());
    writeSize(json, "symmetric", plan.symmetric());
    writeReordering(json, plan.reordering());
    writeFrontier(json, plan.frontier());
    if (plan.least().isPresent()) {
      json.writeNumberField("least_bytes", plan.least().getAsLong());
    }
    writeInts(json, "plan_of_rank", plan.planOfRank().asList());
    json.writeArrayFieldStart("rewrites");
    for (var rewrite : plan.rewrites()) {
      RewriteJson.write(json, rewrite);
    }
    json.writeEndArray();
    if (!plan.replicated().isEmpty()) {
      json.writeArrayFieldStart("replicated");
      for (var name : plan.replicated()) {
        json.writeString(name);
      }
      json.writeEndArray();
    }
    json.writeArrayFieldStart("program");
    for (var line : programText(plan).split("\n", -1)) {
      json.writeString(line);
    }
    json.writeEndArray();
    json.writeArrayFieldStart("rank_plans");
    for (var rankPlan : plan.rankPlans()) {
      writeRank(json, rankPlan);
    }
    json.writeEndArray();
    json.writeEndObject();
  }

  private static String programText(Plan plan) {
    var graphs =
        plan.rankPlans().stream().map(RankPlan::graph).collect(ImmutableList.toImmutableList());
    return GraphPrinter.withTypes(
        new Program(plan.groups(), plan.declarations(), graphs, Notes.NONE));
  }

  private static void writeRank(JsonGenerator json, RankPlan plan) throws IOException {
    json.writeStartObject();
    writeSize(json, "local", plan.local());
    json.writeArrayFieldStart("sources");
    for (var op : plan.graph().ops()) {
      json.writeString(op.span().toString());
    }
    json.writeEndArray();
    json.writeArrayFieldStart("buffers");
    for (var buffer : plan.buffers()) {
      writeBuffer(json, buffer);
    }
    json.writeEndArray();
    json.writeArrayFieldStart("placements");
    for (Placement placement : plan.placements()) {
      json.writeStartArray();
      json.writeNumber(placement.buffer());
      json.writeNumber(placement.offset());
      if (placement.isShard()) {
        json.writeNumber(placement.shardOf());
        json.writeNumber(placement.stride());
      } else if (placement.isInRows()) {
        json.writeNumber(Placement.NO_SHARD);
        json.writeNumber(placement.stride());
        json.writeNumber(placement.pitch());
      }
      json.writeEndArray();
    }
    json.writeEndArray();
    json.writeArrayFieldStart("steps");
    for (Step step : plan.steps()) {
      json.writeString(text(step));
    }
    json.writeEndArray();
    json.writeArrayFieldStart("collectives");
    for (var collective : plan.collectives()) {
      writeCollective(json, collective);
    }
    json.writeEndArray();
    json.writeEndObject();
  }

  private static String text(Step step) {
    return switch (step) {
      case Step.Compute(int op) -> "op " + op;
      case Step.Fused(var ops) ->
          "fused " + ops.stream().mapToObj(Integer::toString).collect(Collectors.joining(" "));
      case Step.Start(int collective) -> "start " + collective;
      case Step.Join(int collective) -> "join " + collective;
    };
  }

  private static void writeBuffer(JsonGenerator json, Buffer buffer) throws IOException {
    json.writeStartObject();
    json.writeStringField("name", buffer.name());
    json.writeStringField("arena", buffer.arena().text());
    json.writeBooleanField("symmetric", buffer.symmetric());
    json.writeNumberField("offset", buffer.offset());
    json.writeNumberField("bytes", buffer.bytes());
    json.writeNumberField("first", buffer.first());
    json.writeNumberField("last", buffer.last());
    json.writeEndObject();
  }

  private static void writeCollective(JsonGenerator json, CollectivePlan plan) throws IOException {
    json.writeStartObject();
    json.writeNumberField("op", plan.op());
    json.writeStringField("kind", plan.kind().text());
    json.writeStringField("group", plan.group());
    json.writeStringField("reduce_op", ReduceOp.text(plan.reduceOp()));
    json.writeNumberField("root", plan.root());
    writeInts(json, "operands", plan.operands());
    writeInts(json, "results", plan.results());
    json.writeStringField("variant", plan.variant().text());
    json.writeStringField("stream", plan.stream().text());
    json.writeStringField("start_barrier", plan.start().text());
    json.writeStringField("end_barrier", plan.end().text());
    json.writeBooleanField("in_place", plan.inPlace());
    json.writeNumberField("workspace", plan.workspace());
    json.writeArrayFieldStart("verdicts");
    for (Verdict verdict : plan.verdicts()) {
      json.writeStartObject();
      json.writeStringField("variant", verdict.variant().text());
      json.writeStringField("reason", Ascii.toLowerCase(verdict.reason().name()));
      json.writeStringField("detail", verdict.detail());
      // JSON has no NaN: a rejected variant has no time.
      if (verdict.reason().eligible()) {
        json.writeNumberField("transfer_us", verdict.transferMicros());
        json.writeNumberField("staging_us", verdict.stagingMicros());
      }
      json.writeEndObject();
    }
    json.writeEndArray();
    json.writeArrayFieldStart("args");
    for (ArgDecision arg : plan.args()) {
      json.writeStartObject();
      json.writeBooleanField("result", arg.result());
      json.writeStringField("value", arg.value());
      json.writeStringField("realization", Ascii.toLowerCase(arg.realization().name()));
      json.writeStringField("reason", Ascii.toLowerCase(arg.reason().name()));
      json.writeStringField("cause", arg.cause());
      json.writeNumberField("bytes", arg.bytes());
      json.writeEndObject();
    }
    json.writeEndArray();
    if (plan.epilogue().isPresent()) {
      var epilogue = plan.epilogue().get();
      json.writeObjectFieldStart("epilogue");
      json.writeStringField("reason", Ascii.toLowerCase(epilogue.reason().name()));
      json.writeBooleanField("stored", epilogue.stored());
      json.writeNumberField("saved_us", epilogue.savedMicros());
      json.writeEndObject();
    }
    json.writeEndObject();
  }

  private static void writeSize(JsonGenerator json, String name, ArenaSize size)
      throws IOException {
    json.writeObjectFieldStart(name);
    json.writeNumberField("bytes", size.bytes());
    json.writeNumberField("bound", size.bound());
    json.writeEndObject();
  }

  private static void writeReordering(JsonGenerator json, OrderDecision reordering)
      throws IOException {
    json.writeObjectFieldStart("reordering");
    json.writeStringField("outcome", Ascii.toLowerCase(reordering.outcome().name()));
    writeFigures(json, "given", reordering.given());
    writeFigures(json, "other", reordering.other());
    json.writeEndObject();
  }

  private static void writeFrontier(JsonGenerator json, Frontier frontier) throws IOException {
    json.writeObjectFieldStart("frontier");
    json.writeStringField("chosen", frontier.chosen().text());
    json.writeNumberField("min_gain", frontier.minGain());
    writeFigures(json, "alone", frontier.alone());
    for (var objective : Objective.values()) {
      writeFigures(json, objective.text(), frontier.of(objective));
    }
    json.writeEndObject();
  }

  private static void writeFigures(JsonGenerator json, String name, OrderDecision.Figures figures)
      throws IOException {
    json.writeObjectFieldStart(name);
    json.writeNumberField("peak_bytes", figures.peakBytes());
    json.writeNumberField("predicted_us", figures.micros());
    json.writeEndObject();
  }

  private static void writeInts(JsonGenerator json, String name, List<Integer> values)
      throws IOException {
    json.writeArrayFieldStart(name);
    for (int value : values) {
      json.writeNumber(value);
    }
    json.writeEndArray();
  }
}
