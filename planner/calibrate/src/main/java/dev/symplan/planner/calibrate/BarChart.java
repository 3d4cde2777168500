package dev.symplan.planner.calibrate;

import com.google.common.collect.ImmutableList;
import java.util.List;
import java.util.Locale;
import java.util.OptionalDouble;

/** Times as bars, all of one scale, as SVG: parts one below the other, each with a title. */
public final class BarChart {
  private static final double WIDTH = 860;
  private static final double LEFT = 260;
  private static final double RIGHT = 90;
  private static final double ROW = 22;
  private static final double TITLE = 44;
  private static final String BAR = "#56b4e9";
  private static final String FILLED = "#0072b2";

  private BarChart() {}

  /**
   * One bar.
   *
   * @param micros its length
   * @param filled how much of it is drawn darker; empty if that is unknown
   */
  public record Bar(String label, double micros, OptionalDouble filled) {}

  /** Bars below a title. */
  public record Part(String title, ImmutableList<Bar> bars) {}

  /**
   * {@return the chart}
   *
   * @param title of the whole, for readers who cannot see it
   * @param comments how it was measured
   */
  public static String svg(String title, List<String> comments, List<Part> parts) {
    double height = ROW;
    double most = 1e-3;
    for (var part : parts) {
      height += TITLE + ROW * part.bars().size();
      for (var bar : part.bars()) {
        most = Math.max(most, bar.micros());
      }
    }
    var svg = new Svg(WIDTH, height, title, String.join("\n", comments));
    double y = 0;
    for (var part : parts) {
      svg.text(LEFT, y + TITLE - 12, "start", part.title());
      y += TITLE;
      for (var bar : part.bars()) {
        draw(svg, bar, y, (WIDTH - LEFT - RIGHT) / most);
        y += ROW;
      }
    }
    return svg.finish();
  }

  private static void draw(Svg svg, Bar bar, double y, double scale) {
    svg.text(LEFT - 8, y + 15, "end", bar.label());
    svg.bar(LEFT, y + 3, bar.micros() * scale, ROW - 6, BAR);
    bar.filled()
        .ifPresent(
            micros ->
                svg.bar(LEFT, y + 3, Math.min(micros, bar.micros()) * scale, ROW - 6, FILLED));
    svg.text(
        LEFT + bar.micros() * scale + 6,
        y + 15,
        "start",
        String.format(Locale.ROOT, "%.1f µs", bar.micros()));
  }
}
