package dev.symplan.planner.io;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import com.google.common.base.Ascii;
import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.ImmutableTable;
import com.google.common.io.Resources;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.Target;
import dev.symplan.planner.Target.Barrier;
import dev.symplan.planner.Target.Contention;
import dev.symplan.planner.Target.Curve;
import dev.symplan.planner.Target.Knot;
import dev.symplan.planner.Target.Knots;
import dev.symplan.planner.Target.Link;
import dev.symplan.planner.Target.Protocol;
import dev.symplan.planner.Target.Protocols;
import dev.symplan.planner.Variant;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * Targets as JSON files: {@code docs/targets.md} describes the fields. The built-in targets are
 * such files beside this class.
 */
public final class TargetFile {
  /** The names of the built-in targets. */
  public static final ImmutableList<String> BUILT_IN =
      ImmutableList.of("h200x4", "h200x8", "h100x8", "b200x8", "host");

  private static final String FORMAT = "symplan-target";

  /** Version 1 had no points in curves. */
  private static final int VERSION = 2;

  private static final int MAX_RANKS = 1 << 20;
  private static final double MAX_BYTES = 1L << 40;

  private static final ConcurrentMap<String, Target> READ = new ConcurrentHashMap<>();

  private static final ImmutableSet<String> FIGURES =
      ImmutableSet.of(
          "link",
          "memory_gbps",
          "matrix_tflops",
          "launch_us",
          "barrier",
          "copy_engine_us",
          "sm_contention",
          "copy_engine_contention");

  private static final ImmutableSet<String> FIELDS =
      ImmutableSet.<String>builder()
          .add("format", "version", "name", "base", "gpus")
          .addAll(FIGURES)
          .add("workspace_bytes", "multicast", "copy_engines", "nccl", "sources", "curves")
          .build();

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
   * @throws CompileException at the first place that is wrong
   */
  public static Target read(SourceFile file) {
    return new Reader(PlacedJson.parse(file, DiagnosticCode.BAD_TARGET)).target();
  }

  /** {@return the target as JSON; the same bytes for the same target, everywhere} */
  public static String toJson(Target target) {
    var out = new StringWriter();
    try (var json = new JsonFactory().createGenerator(out)) {
      json.setPrettyPrinter(PlanFile.printer());
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
    WholeFile.write(file, toJson(target), "the target");
  }

  static void write(Target target, JsonGenerator json) throws IOException {
    json.writeStartObject();
    json.writeStringField("format", FORMAT);
    json.writeNumberField("version", VERSION);
    json.writeStringField("name", target.name());
    json.writeNumberField("gpus", target.gpus());
    json.writeObjectFieldStart("link");
    number(json, "send_gbps", target.link().sendRate());
    number(json, "receive_gbps", target.link().receiveRate());
    number(json, "latency_us", target.link().latencyMicros());
    json.writeEndObject();
    number(json, "memory_gbps", target.memoryRate());
    number(json, "matrix_tflops", target.matrixRate());
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
        json.writeObjectFieldStart(Ascii.toLowerCase(kind.name()));
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
      case Knots(var list, double rate) -> {
        json.writeArrayFieldStart("points");
        for (var knot : list) {
          json.writeStartArray();
          number(json, knot.wireBytes());
          number(json, knot.micros());
          json.writeEndArray();
        }
        json.writeEndArray();
        number(json, "gbps", rate);
      }
    }
    json.writeBooleanField("measured", curve.measured());
    json.writeStringField("source", curve.source());
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

  /** Reads one file. */
  private static final class Reader {
    private final PlacedJson root;
    private final Optional<Target> base;

    Reader(PlacedJson root) {
      this.root = root;
      if (!root.find("format").map(PlacedJson::text).orElse("").equals(FORMAT)) {
        throw root.wrong("this is no target file", "begin with \"format\": \"" + FORMAT + "\"");
      }
      var version = root.get("version");
      if (version.count(Integer.MAX_VALUE) > VERSION) {
        throw version.wrong("this release reads versions 1 to " + VERSION, "");
      }
      root.only(FIELDS);
      this.base = root.find("base").map(Reader::baseTarget);
    }

    private static Target baseTarget(PlacedJson field) {
      if (!BUILT_IN.contains(field.text())) {
        throw field.wrong(
            "there is no built-in target '%s'".formatted(field.text()),
            "there are " + String.join(", ", BUILT_IN));
      }
      // Not a constant of Target: the constants themselves are read here.
      return builtIn(field.text());
    }

    Target target() {
      return new Target(
          name(),
          field("gpus", f -> f.count(MAX_RANKS), Target::gpus),
          field("link", Reader::link, Target::link),
          field("memory_gbps", PlacedJson::positive, Target::memoryRate),
          field("matrix_tflops", PlacedJson::positive, Target::matrixRate),
          field("launch_us", PlacedJson::notNegative, Target::launchMicros),
          field("barrier", Reader::barrier, Target::barrier),
          field("copy_engine_us", PlacedJson::notNegative, Target::copyEngineMicros),
          field("sm_contention", Reader::contention, Target::smOverlap),
          field("copy_engine_contention", Reader::contention, Target::copyEngineOverlap),
          field("workspace_bytes", Reader::bytes, Target::workspaceBytes),
          field("multicast", PlacedJson::truth, Target::multicast),
          field("copy_engines", PlacedJson::truth, Target::copyEngines),
          field("nccl", Reader::version, Target::nccl),
          sources(),
          curves());
    }

    private String name() {
      var field = root.get("name");
      if (field.text().isBlank()) {
        throw field.wrong("the name is empty", "");
      }
      return field.text();
    }

    private <T> T field(String name, Function<PlacedJson, T> read, Function<Target, T> inherited) {
      return root.find(name)
          .map(read)
          .or(() -> base.map(inherited))
          .orElseThrow(
              () ->
                  root.wrong(
                      "there is no '%s'".formatted(name),
                      "add it, or name a built-in target as \"base\""));
    }

    private static Link link(PlacedJson json) {
      json.only(ImmutableSet.of("send_gbps", "receive_gbps", "latency_us"));
      return new Link(
          json.get("send_gbps").positive(),
          json.get("receive_gbps").positive(),
          json.get("latency_us").notNegative());
    }

    private static Barrier barrier(PlacedJson json) {
      json.only(ImmutableSet.of("base_us", "per_rank_us"));
      return new Barrier(json.get("base_us").notNegative(), json.get("per_rank_us").notNegative());
    }

    private static Contention contention(PlacedJson json) {
      json.only(ImmutableSet.of("compute", "transfer"));
      return new Contention(json.get("compute").notNegative(), json.get("transfer").notNegative());
    }

    private static long bytes(PlacedJson json) {
      double bytes = json.notNegative();
      if (bytes != Math.rint(bytes) || bytes > MAX_BYTES) {
        throw json.wrong("this is no number of bytes", "");
      }
      return (long) bytes;
    }

    private static int version(PlacedJson json) {
      var parts = Splitter.on('.').splitToList(json.text());
      if (parts.size() != 3 || !parts.stream().allMatch(part -> part.matches("[0-9]{1,2}"))) {
        throw json.wrong("this is no version of NCCL", "expected three numbers, as in 2.28.9");
      }
      return Integer.parseInt(parts.get(0)) * 10_000
          + Integer.parseInt(parts.get(1)) * 100
          + Integer.parseInt(parts.get(2));
    }

    /** What is inherited was not measured here. */
    private ImmutableMap<String, String> sources() {
      var sources = ImmutableMap.<String, String>builder();
      root.find("sources")
          .ifPresent(
              json -> {
                json.only(FIGURES);
                json.entries().forEach((name, text) -> sources.put(name, text.text()));
              });
      return sources.buildOrThrow();
    }

    private ImmutableTable<Kind, Variant, ImmutableList<Curve>> curves() {
      var curves = ImmutableTable.<Kind, Variant, ImmutableList<Curve>>builder();
      var own = root.find("curves");
      own.ifPresent(Reader::checkKinds);
      for (var kind : Kind.values()) {
        var ofKind = own.flatMap(json -> json.find(Ascii.toLowerCase(kind.name())));
        for (var variant : Variant.values()) {
          ofKind
              .flatMap(json -> json.find(variant.text()))
              .map(Reader::curveList)
              .or(() -> base.flatMap(target -> inherited(target, kind, variant)))
              .ifPresent(list -> curves.put(kind, variant, list));
        }
      }
      return curves.buildOrThrow();
    }

    private static Optional<ImmutableList<Curve>> inherited(
        Target base, Kind kind, Variant variant) {
      return Optional.ofNullable(base.curves().get(kind, variant))
          .map(
              list ->
                  list.stream()
                      .map(curve -> curve.carriedOver(base.name()))
                      .collect(ImmutableList.toImmutableList()));
    }

    private static void checkKinds(PlacedJson curves) {
      for (var kind : curves.entries().entrySet()) {
        var known = constant(Kind.values(), kind.getKey());
        if (known.isEmpty()) {
          throw curves.wrongName(
              kind.getKey(),
              "there is no collective '%s'".formatted(kind.getKey()),
              "known: " + names(Kind.values()));
        }
        for (var variant : kind.getValue().entries().keySet()) {
          var found = Variant.ofText(variant).filter(v -> v != Variant.LOCAL);
          if (found.isEmpty() || !found.get().implementsKind(known.get())) {
            throw kind.getValue()
                .wrongName(
                    variant,
                    "there is no variant '%s' of %s".formatted(variant, kind.getKey()),
                    "there are "
                        + Arrays.stream(Variant.values())
                            .filter(v -> v != Variant.LOCAL && v.implementsKind(known.get()))
                            .map(Variant::text)
                            .collect(Collectors.joining(", ")));
          }
        }
      }
    }

    private static ImmutableList<Curve> curveList(PlacedJson json) {
      if (json.items().isEmpty()) {
        throw json.wrong("the list is empty", "leave the variant out where nothing is known of it");
      }
      var seen = new HashSet<Integer>();
      var list = ImmutableList.<Curve>builder();
      for (var item : json.items()) {
        var curve = curve(item);
        if (!seen.add(curve.ranks())) {
          throw item.get("ranks").wrong("a second curve for this number of ranks", "");
        }
        list.add(curve);
      }
      return list.build();
    }

    private static Curve curve(PlacedJson json) {
      json.only(
          ImmutableSet.of(
              "ranks",
              "per_rank_us",
              "floor_us",
              "protocols",
              "points",
              "gbps",
              "measured",
              "source"));
      return new Curve(
          json.get("ranks").count(MAX_RANKS),
          json.find("per_rank_us").map(PlacedJson::notNegative).orElse(0.0),
          json.find("points").isPresent() ? knots(json) : protocols(json),
          json.find("measured").map(PlacedJson::truth).orElse(false),
          json.find("source").map(PlacedJson::text).orElse(""));
    }

    private static Protocols protocols(PlacedJson json) {
      for (var protocol : json.get("protocols").items()) {
        protocol.only(ImmutableSet.of("latency_us", "gbps"));
      }
      var list =
          json.get("protocols").items().stream()
              .map(
                  protocol ->
                      new Protocol(
                          protocol.get("latency_us").notNegative(),
                          protocol.get("gbps").positive()))
              .collect(ImmutableList.toImmutableList());
      if (list.isEmpty()) {
        throw json.get("protocols").wrong("the list is empty", "give at least one protocol");
      }
      forbid(json, "gbps");
      return new Protocols(json.find("floor_us").map(PlacedJson::notNegative).orElse(0.0), list);
    }

    private static Knots knots(PlacedJson json) {
      var list = ImmutableList.<Knot>builder();
      double bytes = -1;
      double micros = 0;
      for (var point : json.get("points").items()) {
        var pair = point.items();
        if (pair.size() != 2) {
          throw point.wrong("this is no point", "write [BYTES, MICROSECONDS]");
        }
        if (pair.getFirst().notNegative() <= bytes || pair.getLast().notNegative() < micros) {
          throw point.wrong(
              "the points do not rise", "sort them by bytes; more bytes take no less time");
        }
        bytes = pair.getFirst().notNegative();
        micros = pair.getLast().notNegative();
        list.add(new Knot(bytes, micros));
      }
      var built = list.build();
      if (built.isEmpty()) {
        throw json.get("points").wrong("the list is empty", "give at least one point");
      }
      forbid(json, "protocols");
      forbid(json, "floor_us");
      return new Knots(built, json.get("gbps").positive());
    }

    private static void forbid(PlacedJson json, String name) {
      if (json.find(name).isPresent()) {
        throw json.wrongName(
            name,
            "a curve has protocols, with floor_us, or points, with gbps",
            "leave one of them out");
      }
    }

    private static <E extends Enum<E>> Optional<E> constant(E[] values, String text) {
      return Arrays.stream(values)
          .filter(value -> Ascii.toLowerCase(value.name()).equals(text))
          .findFirst();
    }

    private static String names(Enum<?>[] values) {
      return Arrays.stream(values)
          .map(value -> Ascii.toLowerCase(value.name()))
          .collect(Collectors.joining(", "));
    }
  }
}
