package dev.symplan.planner.report.render;

import com.google.common.collect.ImmutableMap;
import dev.symplan.planner.report.Fact;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Slices of time as JSON of Chrome's trace event format, which Perfetto and {@code
 * chrome://tracing} show: predicted and measured runs alike, a process for each rank and a thread
 * for each stream.
 */
public final class ChromeTrace {
  private static final double NANOS_PER_MICRO = 1e3;
  private static final int MICRO_DIGITS = 3;

  private record Event(
      String phase,
      String name,
      String category,
      int process,
      int thread,
      long begin,
      long duration,
      ImmutableMap<String, Fact> args) {}

  private final ImmutableMap<String, Fact> about;
  private final List<Event> events = new ArrayList<>();

  /**
   * @param about the subject of the trace, for people who look at its file
   */
  public ChromeTrace(Map<String, Fact> about) {
    this.about = ImmutableMap.copyOf(about);
  }

  /** Names a process, and puts it after those of smaller numbers. */
  public void process(int process, String name) {
    meta("process_name", process, 0, ImmutableMap.of("name", new Fact.Text(name)));
    meta("process_sort_index", process, 0, ImmutableMap.of("sort_index", new Fact.Whole(process)));
  }

  /** Names a thread of a process. */
  public void thread(int process, int thread, String name) {
    meta("thread_name", process, thread, ImmutableMap.of("name", new Fact.Text(name)));
    meta(
        "thread_sort_index",
        process,
        thread,
        ImmutableMap.of("sort_index", new Fact.Whole(thread)));
  }

  private void meta(String name, int process, int thread, ImmutableMap<String, Fact> args) {
    events.add(new Event("M", name, "", process, thread, 0, 0, args));
  }

  /**
   * Something that takes time.
   *
   * @param category the category for colours and filters: {@code compute}, {@code collective}
   * @param begin in µs
   * @param duration in µs
   * @param args shown when it is selected
   */
  public void slice(
      int process,
      int thread,
      String name,
      String category,
      double begin,
      double duration,
      Map<String, Fact> args) {
    // Begin and duration are not rounded apart: Perfetto drops a slice that begins even a
    // nanosecond before the one ahead of it on its thread ends.
    long from = nanos(begin);
    long to = nanos(begin + duration);
    events.add(
        new Event(
            "X", name, category, process, thread, from, to - from, ImmutableMap.copyOf(args)));
  }

  private static long nanos(double micros) {
    return Math.round(micros * NANOS_PER_MICRO);
  }

  private static BigDecimal micros(long nanos) {
    return BigDecimal.valueOf(nanos, MICRO_DIGITS);
  }

  /** {@return the trace, an event on each line, in the order in which they were added} */
  public String toJson() {
    return JsonText.of(
        json -> {
          json.writeStartObject();
          json.writeStringField("displayTimeUnit", "ns");
          json.writeObjectFieldStart("otherData");
          JsonText.fields(json, about);
          json.writeEndObject();
          json.writeArrayFieldStart("traceEvents");
          for (var event : events) {
            json.writeStartObject();
            json.writeStringField("ph", event.phase());
            json.writeStringField("name", event.name());
            json.writeNumberField("pid", event.process());
            json.writeNumberField("tid", event.thread());
            if (event.phase().equals("X")) {
              json.writeStringField("cat", event.category());
              json.writeNumberField("ts", micros(event.begin()));
              json.writeNumberField("dur", micros(event.duration()));
            }
            json.writeObjectFieldStart("args");
            JsonText.fields(json, event.args());
            json.writeEndObject();
            json.writeEndObject();
          }
          json.writeEndArray();
          json.writeEndObject();
        });
  }
}
