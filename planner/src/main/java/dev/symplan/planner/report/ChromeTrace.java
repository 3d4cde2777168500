package dev.symplan.planner.report;

import com.google.common.collect.ImmutableMap;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Slices of time as JSON of Chrome's trace event format, which Perfetto and {@code
 * chrome://tracing} show: predicted and measured runs alike, a process for each rank and a thread
 * for each stream.
 */
public final class ChromeTrace {

  private record Event(
      String phase,
      String name,
      String category,
      int process,
      int thread,
      double begin,
      double duration,
      ImmutableMap<String, String> args) {}

  private final List<Event> events = new ArrayList<>();

  /** Names a process, and puts it behind those of smaller numbers. */
  public void process(int process, String name) {
    meta("process_name", process, 0, ImmutableMap.of("name", name));
    meta("process_sort_index", process, 0, ImmutableMap.of("sort_index", "" + process));
  }

  /** Names a thread of a process. */
  public void thread(int process, int thread, String name) {
    meta("thread_name", process, thread, ImmutableMap.of("name", name));
    meta("thread_sort_index", process, thread, ImmutableMap.of("sort_index", "" + thread));
  }

  private void meta(String name, int process, int thread, ImmutableMap<String, String> args) {
    events.add(new Event("M", name, "", process, thread, 0, 0, args));
  }

  /**
   * Something that takes time.
   *
   * @param category what colours and filters go by: {@code compute}, {@code collective}
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
      Map<String, String> args) {
    events.add(
        new Event(
            "X", name, category, process, thread, begin, duration, ImmutableMap.copyOf(args)));
  }

  /** {@return the trace, an event on each line, in the order in which they were added} */
  public String toJson() {
    return JsonText.of(
        json -> {
          json.writeStartObject();
          json.writeStringField("displayTimeUnit", "ns");
          json.writeArrayFieldStart("traceEvents");
          for (var event : events) {
            json.writeStartObject();
            json.writeStringField("ph", event.phase());
            json.writeStringField("name", event.name());
            json.writeNumberField("pid", event.process());
            json.writeNumberField("tid", event.thread());
            if (event.phase().equals("X")) {
              json.writeStringField("cat", event.category());
              json.writeNumberField("ts", JsonText.rounded(event.begin()));
              json.writeNumberField("dur", JsonText.rounded(event.duration()));
            }
            json.writeObjectFieldStart("args");
            for (var arg : event.args().entrySet()) {
              if (arg.getKey().equals("sort_index")) {
                json.writeNumberField(arg.getKey(), Integer.parseInt(arg.getValue()));
              } else {
                json.writeStringField(arg.getKey(), arg.getValue());
              }
            }
            json.writeEndObject();
            json.writeEndObject();
          }
          json.writeEndArray();
          json.writeEndObject();
        });
  }
}
