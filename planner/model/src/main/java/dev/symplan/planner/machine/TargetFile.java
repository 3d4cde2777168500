package dev.symplan.planner.machine;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.google.common.collect.ImmutableList;
import com.google.common.io.Resources;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.json.Json;
import dev.symplan.ir.json.JsonErrors;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.file.AtomicFile;
import dev.symplan.planner.file.JsonLayout;
import dev.symplan.planner.machine.Target.Contention;
import dev.symplan.planner.machine.Target.Curve;
import dev.symplan.planner.machine.Target.Knots;
import dev.symplan.planner.machine.Target.Link;
import dev.symplan.planner.machine.Target.Network;
import dev.symplan.planner.machine.Target.Protocols;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;

/**
 * Targets as JSON files: {@code docs/targets.md} describes the fields. The built-in targets are
 * such files beside this class.
 */
public final class TargetFile {
  /** The names of the built-in targets. */
  public static final ImmutableList<String> BUILT_IN =
      ImmutableList.of("h200x4", "h200x8", "h100x4", "h100x8", "b200x8", "host");

  static final String FORMAT = "symplan-target";

  /** Version 1 had no points in curves. */
  static final int VERSION = 3;

  private static final ConcurrentMap<String, Target> READ = new ConcurrentHashMap<>();

  private TargetFile() {}

  /** {@return a target of this package's resources, read once} */
  public static Target builtIn(String name) {
    var known = READ.get(name);
    if (known != null) {
      return known;
    }
    var target = readResource(name);
    READ.put(name, target);
    return target;
  }

  private static Target readResource(String name) {
    var resource = name + ".json";
    try {
      var text =
          Resources.toString(
              Resources.getResource(TargetFile.class, resource), StandardCharsets.UTF_8);
      return read(new SourceFile(resource, text));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * {@return the target in a file}
   *
   * @throws CompileException at the first value that is wrong
   */
  public static Target read(SourceFile file) {
    return new TargetFileReader(Json.parse(file, new JsonErrors(DiagnosticCode.BAD_TARGET)))
        .target();
  }

  /** {@return the target as JSON; the same bytes for the same target, everywhere} */
  public static String toJson(Target target) {
    var out = new StringWriter();
    try (var json = new JsonFactory().createGenerator(out)) {
      json.setPrettyPrinter(JsonLayout.printer());
      write(target, json);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return out.append('\n').toString();
  }

  /**
   * Writes a target, whole or not at all.
   *
   * @throws CompileException when the file cannot be written
   */
  public static void write(Target target, Path file) {
    AtomicFile.write(file, toJson(target), "the target");
  }

  /** Writes a target as a part of another file. */
  public static void write(Target target, JsonGenerator json) throws IOException {
    json.writeStartObject();
    json.writeStringField("format", FORMAT);
    json.writeNumberField("version", VERSION);
    json.writeStringField("name", target.name());
    json.writeNumberField("gpus", target.gpus());
    // Default fields are left out, so that plan files stay the same.
    if (target.hostsPerDomain() != 1) {
      json.writeNumberField("hosts_per_domain", target.hostsPerDomain());
    }
    if (!target.network().equals(Network.NDR)) {
      json.writeObjectFieldStart("network");
      number(json, "gbps", target.network().rate());
      number(json, "latency_us", target.network().latencyMicros());
      if (target.network().railRate() != target.network().rate()) {
        number(json, "rail_gbps", target.network().railRate());
      }
      if (target.network().windows()) {
        json.writeBooleanField("windows", true);
      }
      if (!target.network().curves().isEmpty()) {
        json.writeObjectFieldStart("curves");
        for (var kind : Kind.values()) {
          var curve = target.network().curves().get(kind);
          if (curve != null) {
            json.writeObjectFieldStart(kind.text());
            write(curve, json);
            json.writeEndObject();
          }
        }
        json.writeEndObject();
      }
      json.writeEndObject();
    }
    link(json, "link", target.link());
    if (!target.hostLink().equals(Link.PCIE_5)) {
      link(json, "host_link", target.hostLink());
    }
    number(json, "memory_gbps", target.memoryRate());
    number(json, "matrix_tflops", target.compute().matrixRate());
    number(json, "matrix_f32_tflops", target.compute().matrixF32Rate());
    json.writeNumberField("multiprocessors", target.compute().multiprocessors());
    number(json, "kernel_us", target.compute().kernelMicros());
    number(json, "launch_us", target.launchMicros());
    json.writeObjectFieldStart("barrier");
    number(json, "base_us", target.barrier().base());
    number(json, "per_rank_us", target.barrier().perRank());
    json.writeEndObject();
    number(json, "copy_engine_us", target.copyEngineMicros());
    contention(json, "sm_contention", target.smOverlap());
    contention(json, "copy_engine_contention", target.copyEngineOverlap());
    json.writeNumberField("workspace_bytes", target.workspaceBytes());
    json.writeBooleanField("multicast", target.multicast());
    json.writeBooleanField("copy_engines", target.copyEngines());
    json.writeStringField("nccl", target.ncclVersion());
    json.writeObjectFieldStart("sources");
    for (var source : target.sources().entrySet()) {
      json.writeStringField(source.getKey(), source.getValue());
    }
    json.writeEndObject();
    json.writeObjectFieldStart("curves");
    for (var kind : Kind.values()) {
      if (target.curves().containsRow(kind)) {
        json.writeObjectFieldStart(kind.text());
        for (var variant : Variant.values()) {
          var curves = target.curves().get(kind, variant);
          if (curves != null) {
            json.writeArrayFieldStart(variant.text());
            for (var curve : curves) {
              write(curve, json);
            }
            json.writeEndArray();
          }
        }
        json.writeEndObject();
      }
    }
    json.writeEndObject();
    json.writeEndObject();
  }

  private static void write(Curve curve, JsonGenerator json) throws IOException {
    json.writeStartObject();
    json.writeNumberField("ranks", curve.ranks());
    number(json, "per_rank_us", curve.perRank());
    switch (curve.shape()) {
      case Protocols(double floor, var list) -> {
        number(json, "floor_us", floor);
        json.writeArrayFieldStart("protocols");
        for (var protocol : list) {
          json.writeStartObject();
          number(json, "latency_us", protocol.latency());
          number(json, "gbps", protocol.rate());
          json.writeEndObject();
        }
        json.writeEndArray();
      }
      case Knots knots -> write(knots, json);
    }
    json.writeBooleanField("measured", curve.measured());
    json.writeStringField("source", curve.source());
    json.writeEndObject();
  }

  private static void write(Knots knots, JsonGenerator json) throws IOException {
    json.writeArrayFieldStart("points");
    for (var knot : knots.list()) {
      json.writeStartArray();
      number(json, knot.wireBytes());
      number(json, knot.micros());
      json.writeEndArray();
    }
    json.writeEndArray();
    number(json, "gbps", knots.rate());
  }

  private static void link(JsonGenerator json, String name, Link link) throws IOException {
    json.writeObjectFieldStart(name);
    number(json, "send_gbps", link.sendRate());
    number(json, "receive_gbps", link.receiveRate());
    number(json, "latency_us", link.latencyMicros());
    json.writeEndObject();
  }

  private static void contention(JsonGenerator json, String name, Contention contention)
      throws IOException {
    json.writeObjectFieldStart(name);
    number(json, "compute", contention.compute());
    number(json, "transfer", contention.transfer());
    json.writeEndObject();
  }

  private static void number(JsonGenerator json, String name, double value) throws IOException {
    json.writeFieldName(name);
    number(json, value);
  }

  private static void number(JsonGenerator json, double value) throws IOException {
    if (value == Math.rint(value) && Math.abs(value) < 1e15) {
      json.writeNumber((long) value);
    } else {
      json.writeNumber(value);
    }
  }
}
