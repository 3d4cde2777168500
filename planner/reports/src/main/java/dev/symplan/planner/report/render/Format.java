package dev.symplan.planner.report.render;

import com.google.common.base.Ascii;
import com.google.common.collect.ImmutableList;
import dev.symplan.planner.report.View;
import java.util.Arrays;
import java.util.Optional;

/** The formats of a report. */
public enum Format {
  /** For people. */
  TEXT(View.USUAL),
  /** All that the report knows, for programs. */
  JSON(ImmutableList.copyOf(View.values())),
  /** All but code and text, as a page for browsers. */
  HTML(
      ImmutableList.of(
          View.SUMMARY, View.COLLECTIVES, View.VALUES, View.SCHEDULE, View.PEAK, View.GRAPH)),
  /** Buffers, with XLA's columns. */
  CSV(ImmutableList.of(View.VALUES)),
  /** The planned graph, for Graphviz. */
  DOT(ImmutableList.of(View.GRAPH)),
  /** The planned graph, for Model Explorer. */
  MODEL_EXPLORER(ImmutableList.of(View.GRAPH)),
  /** Predicted times, as Model Explorer's custom node data. */
  MODEL_EXPLORER_DATA(ImmutableList.of(View.GRAPH)),
  /** The predicted schedule, for Perfetto. */
  PERFETTO(ImmutableList.of(View.SCHEDULE));

  private final ImmutableList<View> views;

  Format(ImmutableList<View> views) {
    this.views = views;
  }

  /** {@return the name in options, for example {@code model-explorer}} */
  public String text() {
    return Ascii.toLowerCase(name()).replace('_', '-');
  }

  /** {@return the format with this {@link #text}} */
  public static Optional<Format> ofText(String text) {
    return Arrays.stream(values()).filter(f -> Ascii.equalsIgnoreCase(f.text(), text)).findFirst();
  }

  /** {@return the views that it shows by default} */
  public ImmutableList<View> views() {
    return views;
  }

  /** {@return whether it shows whichever views it is asked for} */
  public boolean takesViews() {
    return this == TEXT || this == JSON;
  }
}
