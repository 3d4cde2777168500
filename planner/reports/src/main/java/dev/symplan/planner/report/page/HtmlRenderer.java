package dev.symplan.planner.report.page;

import com.google.common.collect.ImmutableList;
import com.google.common.hash.Hashing;
import com.google.common.html.HtmlEscapers;
import com.google.common.io.BaseEncoding;
import com.google.common.io.Resources;
import dev.symplan.planner.report.PlanReport;
import dev.symplan.planner.report.render.JsonTables;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Reports as one HTML file that needs nothing else: maps of the arenas over the schedule, the
 * streams, collectives and values, to be looked through in a browser.
 *
 * <p>The page is {@code page.html} with styles, scripts, D3 and the report in it. The report is
 * that of {@link JsonTables}; the scripts compute all that is shown from it. The page's content
 * security policy admits these scripts and styles by their hashes and nothing else, so that opening
 * it makes no request.
 */
public final class HtmlRenderer {
  private static final Pattern SLOT = Pattern.compile("\\{\\{([a-z_0-9]+)}}");

  private static final String STYLES = "page.css";
  private static final String LIBRARY = "d3.min.js";
  private static final String LICENSE = "d3.LICENSE";
  private static final ImmutableList<String> SCRIPTS =
      ImmutableList.of(
          "data.js",
          "text.js",
          "diff.js",
          "colours.js",
          "offsets.js",
          "map.js",
          "paint.js",
          "marks.js",
          "finder.js",
          "rows.js",
          "panels.js",
          "controls.js",
          "state.js",
          "main.js");

  private HtmlRenderer() {}

  /** {@return the page; the same bytes for the same report, everywhere} */
  public static String render(PlanReport report) {
    return page(report.name(), data(report), "", "");
  }

  /** {@return a page that shows two plans side by side, and in what they differ} */
  public static String render(PlanReport before, PlanReport after) {
    return render(before, after, "");
  }

  /**
   * {@return a page that shows two plans side by side, and in what they differ}
   *
   * @param notes lines above the plans; empty for none
   */
  public static String render(PlanReport before, PlanReport after, String notes) {
    return page(before.name() + " and " + after.name(), data(before), data(after), notes);
  }

  /** {@return the parts that differ from page to page} */
  public static String data(PlanReport report) {
    // In JSON, < stands in strings only; there, it could end the element or begin a comment.
    return JsonTables.render(report).replace("<", "\\u003c");
  }

  private static String page(String title, String first, String second, String notes) {
    var styles = asset(STYLES);
    var library = asset(LIBRARY);
    var scripts = SCRIPTS.stream().map(HtmlRenderer::asset).collect(Collectors.joining("\n"));
    return SLOT.matcher(asset("page.html"))
        .replaceAll(
            slot ->
                Matcher.quoteReplacement(
                    switch (slot.group(1)) {
                      case "title" -> HtmlEscapers.htmlEscaper().escape(title);
                      case "styles" -> styles;
                      case "styles_hash" -> hash(styles);
                      case "library" -> library;
                      case "library_hash" -> hash(library);
                      case "library_license" -> asset(LICENSE);
                      case "scripts" -> scripts;
                      case "scripts_hash" -> hash(scripts);
                      case "first" -> first;
                      case "second" -> second;
                      case "notes" -> notes(notes);
                      default -> throw new IllegalStateException("the page has " + slot.group());
                    }));
  }

  private static String notes(String lines) {
    return lines.isEmpty()
        ? ""
        : "  <details class=\"notes\" data-testid=\"notes\" open><summary>Comparison</summary><pre>"
            + HtmlEscapers.htmlEscaper().escape(lines)
            + "</pre></details>\n";
  }

  private static String hash(String text) {
    var digest = Hashing.sha256().hashString(text, StandardCharsets.UTF_8);
    return "'sha256-" + BaseEncoding.base64().encode(digest.asBytes()) + "'";
  }

  static String asset(String name) {
    try {
      return Resources.toString(
          Resources.getResource(HtmlRenderer.class, name), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
