package dev.symplan.planner.calibrate;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.Units;
import dev.symplan.planner.calibrate.Calibration.Fit;
import dev.symplan.planner.calibrate.Calibration.MeasuredSize;
import dev.symplan.planner.report.Table;
import java.util.List;
import java.util.Locale;

/** Prints how well a calibrated target fits its points. */
public final class CalibrationPrinter {
  private CalibrationPrinter() {}

  /** {@return a table of the curves, then of the sizes whose fastest variant is not predicted} */
  public static String print(Calibration calibration) {
    var out = new StringBuilder();
    var fits =
        new Table(
            "curve",
            "variant",
            "ranks",
            "points",
            "mean error",
            "largest error",
            "held out",
            "sizes");
    for (var fit : calibration.fits()) {
      fits.row(
          fit.kind().text(),
          fit.variant().text(),
          Integer.toString(fit.ranks()),
          Integer.toString(fit.points()),
          percent(fit.meanError()),
          percent(fit.maxError()),
          fit.heldOutError().isPresent() ? percent(fit.heldOutError().getAsDouble()) : "",
          sizes(calibration.sizes(), fit));
    }
    if (!fits.isEmpty()) {
      out.append(fits.render()).append('\n');
    }
    var missed =
        new Table("not predicted", "ranks", "size", "measured fastest", "predicted", "loss");
    for (var size : calibration.sizes()) {
      if (size.fastest() != size.predicted()) {
        missed.row(
            size.kind().text(),
            Integer.toString(size.ranks()),
            Units.bytes(size.bytes()),
            size.fastest().text(),
            size.predicted().text(),
            percent(size.regret()));
      }
    }
    if (!missed.isEmpty()) {
      out.append(missed.render()).append('\n');
    }
    if (calibration.sizes().isEmpty()) {
      return out.append("no size was measured in several variants\n").toString();
    }
    out.append(
        "the fastest variant is predicted in %s of %s sizes measured in several (%s), one within 3%% of it in %s; largest loss %s\n"
            .formatted(
                agreed(calibration.sizes()),
                calibration.sizes().size(),
                percent(calibration.agreement()),
                percent(calibration.within(0.03)),
                percent(
                    calibration.sizes().stream()
                        .mapToDouble(MeasuredSize::regret)
                        .max()
                        .orElse(0))));
    return out.toString();
  }

  /** In how many of the sizes where it was measured the curve's variant is picked. */
  private static String sizes(ImmutableList<MeasuredSize> all, Fit fit) {
    long picked =
        all.stream()
            .filter(
                size ->
                    size.kind() == fit.kind()
                        && size.ranks() == fit.ranks()
                        && size.predicted() == fit.variant())
            .count();
    return picked == 0 ? "" : "fastest in " + picked;
  }

  private static long agreed(List<MeasuredSize> sizes) {
    return sizes.stream().filter(size -> size.fastest() == size.predicted()).count();
  }

  private static String percent(double share) {
    return String.format(Locale.ROOT, "%.1f%%", 100 * share);
  }
}
