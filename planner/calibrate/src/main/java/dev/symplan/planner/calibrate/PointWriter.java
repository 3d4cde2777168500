package dev.symplan.planner.calibrate;

import com.google.common.base.CharMatcher;
import dev.symplan.planner.calibrate.Point.Subject;
import dev.symplan.planner.machine.Variant;
import java.util.List;
import java.util.Locale;

/** Points as CSV, as {@link Points} reads it. */
public final class PointWriter {
  private static final CharMatcher SEPARATORS = CharMatcher.anyOf(",\n\r");

  private PointWriter() {}

  /** {@return comments, and the line that names the columns} */
  public static String header(List<String> comments) {
    var out = new StringBuilder();
    comments.forEach(comment -> out.append("# ").append(comment).append('\n'));
    return out.append(
            "kind,variant,dtype,bytes,ranks,hosts,micros,min_us,max_us,flops,compute_us,transfer_us,gpu,date\n")
        .toString();
  }

  /** {@return one line} */
  public static String row(Point point) {
    var subject =
        switch (point.subject()) {
          case Subject.Transfer t ->
              new String[] {
                t.kind().text(),
                t.implementation(),
                Long.toString(t.bytes()),
                Integer.toString(t.ranks()),
                "",
                "",
                ""
              };
          case Subject.BetweenHosts(var kind, long bytes, var reach) ->
              new String[] {
                kind.text(),
                Variant.NCCL.text(),
                Long.toString(bytes),
                Integer.toString(reach.ranks()),
                "",
                "",
                ""
              };
          case Subject.Copy(long bytes) ->
              new String[] {"copy", "", Long.toString(bytes), "", "", "", ""};
          case Subject.Gemm(double flops) ->
              new String[] {"gemm", "", "", "", String.format(Locale.ROOT, "%.0f", flops), "", ""};
          case Subject.Barrier(int ranks) ->
              new String[] {"barrier", "", "", Integer.toString(ranks), "", "", ""};
          case Subject.Launch _ -> new String[] {"launch", "", "", "", "", "", ""};
          case Subject.CopyEngineStart _ -> new String[] {"copy_engine", "", "", "", "", "", ""};
          case Subject.Together(var name, double compute, double transfer) ->
              new String[] {"overlap", name, "", "", "", number(compute), number(transfer)};
        };
    return String.join(
            ",",
            subject[0],
            subject[1],
            point.dtype(),
            subject[2],
            subject[3],
            point.subject() instanceof Subject.BetweenHosts(_, _, var reach)
                ? Integer.toString(reach.domains())
                : "",
            number(point.micros()),
            number(point.least()),
            number(point.most()),
            subject[4],
            subject[5],
            subject[6],
            SEPARATORS.replaceFrom(point.gpu(), ' '),
            point.date())
        + "\n";
  }

  private static String number(double value) {
    return String.format(Locale.ROOT, "%.2f", value);
  }
}
