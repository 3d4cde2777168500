package dev.symplan.runtime.profile;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonGenerator;
import dev.symplan.planner.Plan;
import dev.symplan.planner.Stream;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.math.BigDecimal;
import java.math.RoundingMode;

/**
 * A profile as Chrome's trace events, which <a href="https://ui.perfetto.dev">Perfetto</a> shows: a
 * process for each rank, a thread for each stream.
 */
public final class ProfileTrace {
  private ProfileTrace() {}

  /**
   * {@return the JSON}
   *
   * @throws IllegalArgumentException when the profile is of another plan
   */
  public static String toJson(Plan plan, Profile profile) {
    var out = new StringWriter();
    try (var json = new JsonFactory().createGenerator(out)) {
      json.writeStartObject();
      json.writeStringField("displayTimeUnit", "ns");
      json.writeObjectFieldStart("otherData");
      json.writeStringField("plan", plan.name());
      json.writeStringField("target", plan.target().name());
      json.writeStringField("method", profile.method());
      json.writeEndObject();
      json.writeArrayFieldStart("traceEvents");
      names(profile, json);
      double begin =
          profile.activities().stream().mapToDouble(Profile.Activity::begin).min().orElse(0);
      for (var step : ProfiledStep.of(plan, profile)) {
        write(step, begin, json);
      }
      json.writeEndArray();
      json.writeEndObject();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return out.append('\n').toString();
  }

  private static void names(Profile profile, JsonGenerator json) throws IOException {
    for (int rank :
        profile.activities().stream().mapToInt(Profile.Activity::rank).distinct().toArray()) {
      name(json, "process_name", rank, 0, "rank " + rank);
      for (var stream : Stream.values()) {
        if (profile.activities().stream().anyMatch(a -> a.rank() == rank && a.stream() == stream)) {
          name(json, "thread_name", rank, stream.ordinal(), stream.text());
        }
      }
    }
  }

  private static void name(JsonGenerator json, String what, int process, int thread, String name)
      throws IOException {
    json.writeRaw('\n');
    json.writeStartObject();
    json.writeStringField("name", what);
    json.writeStringField("ph", "M");
    json.writeNumberField("pid", process);
    json.writeNumberField("tid", thread);
    json.writeObjectFieldStart("args");
    json.writeStringField("name", name);
    json.writeEndObject();
    json.writeEndObject();
  }

  private static void write(ProfiledStep step, double zero, JsonGenerator json) throws IOException {
    var activity = step.activity();
    json.writeRaw('\n');
    json.writeStartObject();
    json.writeStringField("name", activity.label());
    json.writeStringField("cat", step.traffic().isPresent() ? "collective" : "compute");
    json.writeStringField("ph", "X");
    json.writeNumberField("pid", activity.rank());
    json.writeNumberField("tid", activity.stream().ordinal());
    json.writeNumberField("ts", rounded(activity.begin() - zero));
    json.writeNumberField("dur", rounded(activity.micros()));
    json.writeObjectFieldStart("args");
    json.writeStringField("does", step.what());
    json.writeStringField("kernel", activity.kernel());
    json.writeNumberField("predicted_us", rounded(step.predicted()));
    if (step.traffic().isPresent()) {
      var traffic = step.traffic().get();
      json.writeNumberField("collective", traffic.collective());
      json.writeStringField("variant", traffic.variant());
      json.writeNumberField("bytes", traffic.bytes());
      json.writeNumberField("gbps", rounded(traffic.rate()));
      json.writeNumberField("waited_us", rounded(traffic.waited()));
    }
    json.writeEndObject();
    json.writeEndObject();
  }

  /** To nanoseconds. */
  private static BigDecimal rounded(double micros) {
    return BigDecimal.valueOf(micros).setScale(3, RoundingMode.HALF_UP);
  }
}
