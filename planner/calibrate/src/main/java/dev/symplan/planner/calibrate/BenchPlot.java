package dev.symplan.planner.calibrate;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.Units;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import java.util.Collection;
import java.util.List;
import java.util.Locale;

/**
 * Measured times over sizes, both logarithmic, as SVG: a chart for each kind of collective, element
 * type and world size, a line for each implementation, and what the links would take at least.
 */
public final class BenchPlot {
  private static final double WIDTH = 860;
  private static final double HEIGHT = 420;
  private static final double LEFT = 70;
  private static final double RIGHT = 190;
  private static final double TOP = 40;
  private static final double BOTTOM = 45;

  /**
   * Okabe and Ito's colours, which people with every kind of colour vision can distinguish, without
   * yellow, which is hard to see on white.
   */
  private static final ImmutableList<String> COLOURS =
      ImmutableList.of("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#56b4e9", "#e69f00");

  private static final String GRID = "#dddddd";
  private static final String LINK = "#777777";

  private BenchPlot() {}

  /**
   * {@return the charts, one below the other}
   *
   * @param target whose links set the limit
   */
  public static String svg(Points points, Target target) {
    var comparisons = Comparison.of(points, target);
    var svg =
        new Svg(
            WIDTH,
            Math.max(1, comparisons.size()) * HEIGHT,
            "Collectives measured on " + String.join("; ", where(comparisons)),
            String.join("\n", points.comments()));
    for (int i = 0; i < comparisons.size(); i++) {
      new Chart(svg, comparisons.get(i), target, i * HEIGHT).draw();
    }
    return svg.finish();
  }

  private static List<String> where(List<Comparison> comparisons) {
    return comparisons.stream().map(Comparison::where).distinct().toList();
  }

  /** {@return microseconds for each byte, below which the links do not let a collective get} */
  private static double limit(Comparison comparison, Target target) {
    long bytes = 1 << 30;
    // NCCL's rings move no byte twice where that can be helped.
    double wire =
        VariantSpec.of(comparison.kind(), Variant.NCCL).wire().bytes(bytes, comparison.ranks());
    return wire / bytes / (1e3 * Math.min(target.link().sendRate(), target.link().receiveRate()));
  }

  /** One chart. */
  private static final class Chart {
    private final Svg svg;
    private final Comparison comparison;
    private final Target target;
    private final double top;
    private final double leastBytes;
    private final double mostBytes;
    private final double leastMicros;
    private final double mostMicros;

    Chart(Svg svg, Comparison comparison, Target target, double top) {
      this.svg = svg;
      this.comparison = comparison;
      this.target = target;
      this.top = top;
      leastBytes = comparison.rows().firstKey();
      mostBytes = Math.max(2 * leastBytes, comparison.rows().lastKey());
      var times =
          comparison.rows().values().stream()
              .map(row -> row.micros().values())
              .flatMap(Collection::stream)
              .mapToDouble(micros -> micros)
              .summaryStatistics();
      leastMicros = Math.pow(10, Math.floor(Math.log10(times.getMin())));
      mostMicros = Math.pow(10, Math.ceil(Math.log10(times.getMax() * 1.01)));
    }

    private double x(double bytes) {
      return LEFT
          + (WIDTH - LEFT - RIGHT)
              * Math.log(bytes / leastBytes)
              / Math.log(mostBytes / leastBytes);
    }

    private double y(double micros) {
      return top
          + HEIGHT
          - BOTTOM
          - (HEIGHT - TOP - BOTTOM)
              * Math.log(micros / leastMicros)
              / Math.log(mostMicros / leastMicros);
    }

    void draw() {
      svg.text(
          LEFT,
          top + 24,
          "start",
          "%s%s, %s%s"
              .formatted(
                  comparison.kind().text(),
                  comparison.dtype().isEmpty() ? "" : " of " + comparison.dtype(),
                  Units.count(comparison.ranks(), "rank"),
                  comparison.where().isEmpty() ? "" : ", " + comparison.where()));
      axes();
      link();
      for (int i = 0; i < comparison.implementations().size(); i++) {
        series(i);
      }
    }

    private void axes() {
      double right = WIDTH - RIGHT;
      double bottom = top + HEIGHT - BOTTOM;
      for (double decade = leastMicros; decade <= mostMicros * 1.01; decade *= 10) {
        for (int digit = 1; digit < 10 && decade * digit <= mostMicros * 1.01; digit++) {
          if (digit == 1 || digit == 2 || digit == 5) {
            svg.line(LEFT, y(decade * digit), right, y(decade * digit), GRID, "");
            svg.text(LEFT - 6, y(decade * digit) + 4, "end", number(decade * digit));
          }
        }
      }
      for (double bytes = leastBytes; bytes <= mostBytes * 1.01; bytes *= 4) {
        svg.line(x(bytes), top + TOP, x(bytes), bottom, GRID, "");
        svg.text(x(bytes), bottom + 18, "middle", Units.bytes((long) bytes));
      }
      svg.text((LEFT + right) / 2, bottom + 36, "middle", "bytes of one rank's operand");
      svg.text(LEFT - 6, top + TOP - 6, "end", "µs");
      svg.line(LEFT, bottom, right, bottom, "#000000", "");
      svg.line(LEFT, top + TOP, LEFT, bottom, "#000000", "");
    }

    /** Only the part of it that is in the chart. */
    private void link() {
      double micros = limit(comparison, target);
      double from = Math.max(leastBytes, leastMicros / micros);
      double to = Math.min(mostBytes, mostMicros / micros);
      if (from < to) {
        svg.path(new double[] {x(from), y(from * micros), x(to), y(to * micros)}, LINK, "2 3");
        legend(comparison.implementations().size(), "links' limit", LINK, "2 3");
      }
    }

    private void series(int index) {
      var name = comparison.implementations().get(index);
      var colour = COLOURS.get(index % COLOURS.size());
      var dash = Variant.ofText(name).isPresent() ? "" : "6 3";
      var rows =
          comparison.rows().entrySet().stream()
              .filter(row -> row.getValue().micros().containsKey(name))
              .toList();
      var points = new double[2 * rows.size()];
      for (int i = 0; i < rows.size(); i++) {
        points[2 * i] = x(rows.get(i).getKey());
        points[2 * i + 1] = y(rows.get(i).getValue().micros().getOrDefault(name, leastMicros));
      }
      svg.path(points, colour, dash);
      for (int i = 0; i < points.length; i += 2) {
        svg.mark(points[i], points[i + 1], index, colour);
      }
      svg.mark(WIDTH - RIGHT + 30, legendY(index), index, colour);
      legend(index, name, colour, dash);
    }

    private double legendY(int row) {
      return top + TOP + 10 + 20 * row;
    }

    private void legend(int row, String name, String colour, String dash) {
      svg.line(WIDTH - RIGHT + 15, legendY(row), WIDTH - RIGHT + 45, legendY(row), colour, dash);
      svg.text(WIDTH - RIGHT + 52, legendY(row) + 4, "start", name);
    }
  }

  private static String number(double value) {
    return value >= 1
        ? Long.toString(Math.round(value))
        : String.format(Locale.ROOT, "%s", Math.round(value * 1000) / 1000.0);
  }
}
