package dev.symplan.planner.calibrate;

import com.google.common.xml.XmlEscapers;
import java.util.Locale;

/**
 * Writes lines, marks and words of a scalable drawing.
 *
 * <p>The libraries that draw charts need {@code java.desktop}, which a runtime made for servers
 * with GPUs does not have; a chart of measured times needs no more than this.
 */
final class Svg {
  private final StringBuilder out = new StringBuilder();

  Svg(double width, double height, String title, String description) {
    out.append(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%1$s\" height=\"%2$s\" viewBox=\"0 0 %1$s %2$s\" font-family=\"sans-serif\" font-size=\"12\">\n"
            .formatted(number(width), number(height)));
    out.append("<title>%s</title>\n".formatted(escaped(title)));
    out.append("<desc>%s</desc>\n".formatted(escaped(description)));
    out.append("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n");
  }

  private static String number(double value) {
    var text = String.format(Locale.ROOT, "%.1f", value);
    return text.endsWith(".0") ? text.substring(0, text.length() - 2) : text;
  }

  private static String escaped(String text) {
    return XmlEscapers.xmlContentEscaper().escape(text);
  }

  /** {@code dash} as SVG has it; empty for a line without gaps. */
  void line(double x1, double y1, double x2, double y2, String colour, String dash) {
    out.append(
        "<line x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\" stroke=\"%s\"%s/>\n"
            .formatted(number(x1), number(y1), number(x2), number(y2), colour, dashes(dash)));
  }

  /** A filled rectangle. */
  void bar(double x, double y, double width, double height, String colour) {
    out.append(
        "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" fill=\"%s\"/>\n"
            .formatted(number(x), number(y), number(width), number(height), colour));
  }

  /** A line through points, x and y in turn. */
  void path(double[] points, String colour, String dash) {
    var through = new StringBuilder();
    for (int i = 0; i < points.length; i += 2) {
      through.append(i == 0 ? "M" : " L");
      through.append(number(points[i])).append(' ').append(number(points[i + 1]));
    }
    out.append(
        "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"%s/>\n"
            .formatted(through, colour, dashes(dash)));
  }

  private static String dashes(String dash) {
    return dash.isEmpty() ? "" : " stroke-dasharray=\"%s\"".formatted(dash);
  }

  /** {@code anchor}: start, middle or end. */
  void text(double x, double y, String anchor, String text) {
    out.append(
        "<text x=\"%s\" y=\"%s\" text-anchor=\"%s\">%s</text>\n"
            .formatted(number(x), number(y), anchor, escaped(text)));
  }

  /** One of several shapes, which distinguish lines of the same colour. */
  void mark(double x, double y, int shape, String colour) {
    var outline =
        switch (shape % 7) {
          case 0 -> "M-4 -4 H4 V4 H-4 Z";
          case 1 -> "M0 -5 L5 4 H-5 Z";
          case 2 -> "M0 -5 L5 0 L0 5 L-5 0 Z";
          case 3 -> "M-4 0 A4 4 0 1 0 4 0 A4 4 0 1 0 -4 0 Z";
          case 4 -> "M0 5 L5 -4 H-5 Z";
          case 5 -> "M-4 -4 L4 4 M-4 4 L4 -4";
          default -> "M-5 0 H5 M0 -5 V5";
        };
    out.append(
        "<path transform=\"translate(%s %s)\" d=\"%s\" fill=\"#ffffff\" stroke=\"%s\" stroke-width=\"1.5\"/>\n"
            .formatted(number(x), number(y), outline, colour));
  }

  /** {@return the whole drawing; nothing can be added after that} */
  String finish() {
    return out.append("</svg>\n").toString();
  }
}
