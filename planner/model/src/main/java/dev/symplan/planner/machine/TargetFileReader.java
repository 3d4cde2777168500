package dev.symplan.planner.machine;

import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.ImmutableTable;
import dev.symplan.ir.json.Json;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.planner.machine.Target.Barrier;
import dev.symplan.planner.machine.Target.Contention;
import dev.symplan.planner.machine.Target.Curve;
import dev.symplan.planner.machine.Target.Knot;
import dev.symplan.planner.machine.Target.Knots;
import dev.symplan.planner.machine.Target.Link;
import dev.symplan.planner.machine.Target.Network;
import dev.symplan.planner.machine.Target.Protocol;
import dev.symplan.planner.machine.Target.Protocols;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;

/** Reads a target file; whatever is wrong is reported where it is. */
final class TargetFileReader {
  private static final int MAX_RANKS = 1 << 20;
  private static final double MAX_BYTES = 1L << 40;

  /** How much faster Hopper's 16-bit products are than those of f32, and its multiprocessors. */
  private static final double F32_SHARE = 13;

  private static final int MULTIPROCESSORS = 132;

  private static final ImmutableSet<String> FIGURES =
      ImmutableSet.of(
          "link",
          "network",
          "host_link",
          "memory_gbps",
          "matrix_tflops",
          "matrix_f32_tflops",
          "multiprocessors",
          "kernel_us",
          "launch_us",
          "barrier",
          "copy_engine_us",
          "sm_contention",
          "copy_engine_contention");

  private static final ImmutableSet<String> FIELDS =
      ImmutableSet.<String>builder()
          .add("format", "version", "name", "base", "gpus", "hosts_per_domain")
          .addAll(FIGURES)
          .add("workspace_bytes", "multicast", "copy_engines", "nccl", "sources", "curves")
          .build();

  private final Json root;
  private final Optional<Target> base;

  TargetFileReader(Json root) {
    this.root = root;
    if (!root.find("format").map(Json::text).orElse("").equals(TargetFile.FORMAT)) {
      throw root.wrong(
          "this is not a target file", "begin with \"format\": \"" + TargetFile.FORMAT + "\"");
    }
    var version = root.get("version");
    if (count(version, Integer.MAX_VALUE) > TargetFile.VERSION) {
      throw version.wrong("this release reads versions 1 to " + TargetFile.VERSION, "");
    }
    root.only(FIELDS);
    this.base = root.find("base").map(TargetFileReader::baseTarget);
  }

  private static Target baseTarget(Json field) {
    if (!TargetFile.BUILT_IN.contains(field.text())) {
      throw field.wrong(
          "unknown built-in target '%s'".formatted(field.text()),
          "there are " + String.join(", ", TargetFile.BUILT_IN));
    }
    // Not a constant of Target: the constants themselves are read here.
    return TargetFile.builtIn(field.text());
  }

  Target target() {
    return new Target(
        name(),
        field("gpus", f -> count(f, MAX_RANKS), Target::gpus),
        optional("hosts_per_domain", f -> count(f, MAX_RANKS), Target::hostsPerDomain).orElse(1),
        field("link", TargetFileReader::link, Target::link),
        optional("network", TargetFileReader::network, Target::network).orElse(Network.NDR),
        optional("host_link", TargetFileReader::link, Target::hostLink).orElse(Link.PCIE_5),
        field("memory_gbps", TargetFileReader::positive, Target::memoryRate),
        compute(),
        field("launch_us", TargetFileReader::notNegative, Target::launchMicros),
        field("barrier", TargetFileReader::barrier, Target::barrier),
        field("copy_engine_us", TargetFileReader::notNegative, Target::copyEngineMicros),
        field("sm_contention", TargetFileReader::contention, Target::smOverlap),
        field("copy_engine_contention", TargetFileReader::contention, Target::copyEngineOverlap),
        field("workspace_bytes", TargetFileReader::bytes, Target::workspaceBytes),
        field("multicast", Json::bool, Target::multicast),
        field("copy_engines", Json::bool, Target::copyEngines),
        field("nccl", TargetFileReader::version, Target::nccl),
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

  /** Files of versions before 3 have the first figure only. */
  private Compute compute() {
    double rate =
        field("matrix_tflops", TargetFileReader::positive, target -> target.compute().matrixRate());
    return new Compute(
        rate,
        figure("matrix_f32_tflops", TargetFileReader::positive, Compute::matrixF32Rate)
            .orElse(rate / F32_SHARE),
        figure("multiprocessors", f -> count(f, MAX_RANKS), Compute::multiprocessors)
            .orElse(MULTIPROCESSORS),
        figure("kernel_us", TargetFileReader::notNegative, Compute::kernelMicros)
            .orElseGet(
                () -> field("launch_us", TargetFileReader::notNegative, Target::launchMicros)));
  }

  private <T> Optional<T> figure(
      String name, Function<Json, T> read, Function<Compute, T> inherited) {
    return optional(name, read, target -> inherited.apply(target.compute()));
  }

  private <T> Optional<T> optional(
      String name, Function<Json, T> read, Function<Target, T> inherited) {
    return root.find(name).map(read).or(() -> base.map(inherited));
  }

  private <T> T field(String name, Function<Json, T> read, Function<Target, T> inherited) {
    return optional(name, read, inherited)
        .orElseThrow(
            () ->
                root.wrong(
                    "'%s' is missing".formatted(name),
                    "add it, or name a built-in target as \"base\""));
  }

  private static Link link(Json json) {
    json.only(ImmutableSet.of("send_gbps", "receive_gbps", "latency_us"));
    return new Link(
        positive(json.get("send_gbps")),
        positive(json.get("receive_gbps")),
        notNegative(json.get("latency_us")));
  }

  private static Network network(Json json) {
    json.only(ImmutableSet.of("gbps", "latency_us", "rail_gbps", "windows", "curves"));
    double rate = positive(json.get("gbps"));
    return new Network(
        rate,
        notNegative(json.get("latency_us")),
        json.find("rail_gbps").map(rail -> atLeast(rail, rate)).orElse(rate),
        json.find("windows").map(Json::bool).orElse(false),
        json.find("curves").map(TargetFileReader::networkCurves).orElse(ImmutableMap.of()));
  }

  private static double atLeast(Json json, double least) {
    double value = positive(json);
    if (value < least) {
      throw json.wrong(
          "this is less than gbps", "one collective cannot get more than all together");
    }
    return value;
  }

  private static ImmutableMap<Kind, Knots> networkCurves(Json json) {
    var curves = ImmutableMap.<Kind, Knots>builder();
    json.fields()
        .forEach(
            (name, curve) -> {
              curve.only(ImmutableSet.of("points", "gbps"));
              curves.put(kind(name, curve), knots(curve));
            });
    return curves.buildOrThrow();
  }

  private static Barrier barrier(Json json) {
    json.only(ImmutableSet.of("base_us", "per_rank_us"));
    return new Barrier(notNegative(json.get("base_us")), notNegative(json.get("per_rank_us")));
  }

  private static Contention contention(Json json) {
    json.only(ImmutableSet.of("compute", "transfer"));
    return new Contention(notNegative(json.get("compute")), notNegative(json.get("transfer")));
  }

  private static long bytes(Json json) {
    double bytes = notNegative(json);
    if (bytes != Math.rint(bytes) || bytes > MAX_BYTES) {
      throw json.wrong("this is not a number of bytes", "");
    }
    return (long) bytes;
  }

  private static int version(Json json) {
    var parts = Splitter.on('.').splitToList(json.text());
    if (parts.size() != 3 || !parts.stream().allMatch(part -> part.matches("[0-9]{1,2}"))) {
      throw json.wrong("this is not a version of NCCL", "expected three numbers, as in 2.28.9");
    }
    return Integer.parseInt(parts.get(0)) * 10_000
        + Integer.parseInt(parts.get(1)) * 100
        + Integer.parseInt(parts.get(2));
  }

  /** Inherited values were not measured on this machine. */
  private ImmutableMap<String, String> sources() {
    var sources = ImmutableMap.<String, String>builder();
    root.find("sources")
        .ifPresent(
            json -> {
              json.only(FIGURES);
              json.fields().forEach((name, text) -> sources.put(name, text.text()));
            });
    return sources.buildOrThrow();
  }

  private ImmutableTable<Kind, Variant, ImmutableList<Curve>> curves() {
    var curves = ImmutableTable.<Kind, Variant, ImmutableList<Curve>>builder();
    var own = root.find("curves");
    own.ifPresent(TargetFileReader::checkKinds);
    for (var kind : Kind.values()) {
      var ofKind = own.flatMap(json -> json.find(kind.text()));
      for (var variant : Variant.values()) {
        ofKind
            .flatMap(json -> json.find(variant.text()))
            .map(TargetFileReader::curveList)
            .or(() -> base.flatMap(target -> inherited(target, kind, variant)))
            .ifPresent(list -> curves.put(kind, variant, list));
      }
    }
    return curves.buildOrThrow();
  }

  private static Optional<ImmutableList<Curve>> inherited(Target base, Kind kind, Variant variant) {
    return Optional.ofNullable(base.curves().get(kind, variant))
        .map(
            list ->
                list.stream()
                    .map(curve -> curve.carriedOver(base.name()))
                    .collect(ImmutableList.toImmutableList()));
  }

  private static void checkKinds(Json curves) {
    for (var kind : curves.fields().entrySet()) {
      var known = kind(kind.getKey(), kind.getValue());
      for (var variant : kind.getValue().fields().entrySet()) {
        var variants = Variant.ofKind(known);
        if (Variant.ofText(variant.getKey()).filter(variants::contains).isEmpty()) {
          throw variant
              .getValue()
              .wrongName(
                  "unknown variant '%s' of %s".formatted(variant.getKey(), kind.getKey()),
                  "there are "
                      + variants.stream().map(Variant::text).collect(Collectors.joining(", ")));
        }
      }
    }
  }

  private static Kind kind(String name, Json value) {
    return Kind.ofText(name)
        .orElseThrow(
            () ->
                value.wrongName(
                    "unknown collective '%s'".formatted(name),
                    "known: "
                        + Arrays.stream(Kind.values())
                            .map(Kind::text)
                            .collect(Collectors.joining(", "))));
  }

  private static ImmutableList<Curve> curveList(Json json) {
    if (json.items().isEmpty()) {
      throw json.wrong("the list is empty", "leave the variant out if nothing is known about it");
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

  private static Curve curve(Json json) {
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
        count(json.get("ranks"), MAX_RANKS),
        json.find("per_rank_us").map(TargetFileReader::notNegative).orElse(0.0),
        json.find("points").isPresent() ? knots(json) : protocols(json),
        json.find("measured").map(Json::bool).orElse(false),
        json.find("source").map(Json::text).orElse(""));
  }

  private static Protocols protocols(Json json) {
    for (var protocol : json.get("protocols").items()) {
      protocol.only(ImmutableSet.of("latency_us", "gbps"));
    }
    var list =
        json.get("protocols").items().stream()
            .map(
                protocol ->
                    new Protocol(
                        notNegative(protocol.get("latency_us")), positive(protocol.get("gbps"))))
            .collect(ImmutableList.toImmutableList());
    if (list.isEmpty()) {
      throw json.get("protocols").wrong("the list is empty", "give at least one protocol");
    }
    forbid(json, "gbps");
    return new Protocols(
        json.find("floor_us").map(TargetFileReader::notNegative).orElse(0.0), list);
  }

  private static Knots knots(Json json) {
    var list = ImmutableList.<Knot>builder();
    double bytes = -1;
    double micros = 0;
    for (var point : json.get("points").items()) {
      var pair = point.items();
      if (pair.size() != 2) {
        throw point.wrong("this is not a point", "write [BYTES, MICROSECONDS]");
      }
      if (notNegative(pair.getFirst()) <= bytes || notNegative(pair.getLast()) < micros) {
        throw point.wrong(
            "the points do not rise", "sort them by bytes; more bytes take no less time");
      }
      bytes = notNegative(pair.getFirst());
      micros = notNegative(pair.getLast());
      list.add(new Knot(bytes, micros));
    }
    var built = list.build();
    if (built.isEmpty()) {
      throw json.get("points").wrong("the list is empty", "give at least one point");
    }
    forbid(json, "protocols");
    forbid(json, "floor_us");
    return new Knots(built, positive(json.get("gbps")));
  }

  private static void forbid(Json json, String name) {
    json.find(name)
        .ifPresent(
            field -> {
              throw field.wrongName(
                  "a curve has protocols, with floor_us, or points, with gbps",
                  "leave one of them out");
            });
  }

  private static double notNegative(Json json) {
    double value = number(json, "a number from 0");
    if (value < 0 || Double.isInfinite(value)) {
      throw json.wrong("this is not a number from 0");
    }
    return value;
  }

  private static double positive(Json json) {
    double value = number(json, "a number above 0");
    if (value <= 0 || Double.isInfinite(value)) {
      throw json.wrong("this is not a number above 0");
    }
    return value;
  }

  private static int count(Json json, int max) {
    double value = number(json, "a whole number");
    if (value != Math.rint(value) || value < 1 || value > max) {
      throw json.wrong("this is not a whole number from 1 to " + max);
    }
    return (int) value;
  }

  private static double number(Json json, String expected) {
    if (!json.isNumber()) {
      throw json.wrong("this is not a number", "expected " + expected);
    }
    return json.number();
  }
}
