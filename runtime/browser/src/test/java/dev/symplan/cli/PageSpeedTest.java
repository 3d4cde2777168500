package dev.symplan.cli;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.bench.TransformerGraph;
import dev.symplan.bench.TransformerGraph.Form;
import dev.symplan.ir.text.GraphPrinter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;

/**
 * A measurement, which checks nothing: how fast pages of large plans open and move. It prints what
 * docs/performance.md has.
 */
@InChromium
@EnabledIfSystemProperty(named = "page.speed", matches = "true")
class PageSpeedTest {
  private static final int OPENINGS = 5;
  private static final int MILLIS = 5000;

  /**
   * The times of all frames of the browser in which the page is moved, as {@code move} does with
   * the time since the beginning, and how many of them the page drew anew.
   */
  private static final String FRAMES =
      """
      async () => {
        const canvas = document.querySelector('[data-testid=map]');
        const box = canvas.getBoundingClientRect();
        const at = {clientX: box.left + box.width * 0.6, clientY: box.top + box.height / 2, bubbles: true, cancelable: true, view: window};
        const move = %s;
        const drawn = symplan.frames;
        const times = [];
        const script = [];
        await new Promise((done) => {
          const begin = performance.now();
          const frame = (now) => {
            times.push(now);
            script.push(symplan.frameMs);
            if (now - begin > %s) {
              done();
              return;
            }
            move(canvas, at, now - begin);
            requestAnimationFrame(frame);
          };
          requestAnimationFrame(frame);
        });
        const gaps = times.slice(1).map((time, i) => time - times[i]).sort((a, b) => a - b);
        script.sort((a, b) => a - b);
        const of = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
        const seconds = (times.at(-1) - times[0]) / 1000;
        return [gaps.length / seconds, (symplan.frames - drawn) / seconds, of(gaps, 0.99), of(script, 0.5), of(script, 0.99)];
      }
      """;

  private static final String ZOOM =
      """
      (canvas, at, time) =>
        canvas.dispatchEvent(new WheelEvent('wheel', {...at, deltaY: Math.sin(time / 400) < 0 ? 25 : -25}))\
      """;

  private static final String PAN =
      """
      (canvas, at, time) =>
        document.body.dispatchEvent(new KeyboardEvent('keydown', {key: Math.sin(time / 600) < 0 ? 'ArrowLeft' : 'ArrowRight', bubbles: true}))\
      """;

  @TempDir private Path folder;

  @Test
  void movesTheLargestSharedPlan(Tab tab) {
    var graph = Pages.shared("llama3_8b_tp8_prefill_32l.0.fx.txt");
    var page =
        PlanPage.open(
            tab,
            Pages.write(
                folder.resolve("llama.html"),
                List.of(graph.toString(), "--ranks", "8", "--no-advice")));
    header(tab, page);
    print("zooming", page, ZOOM);
    page.press("0", "+", "+", "+", "+");
    print("panning, zoomed in", page, PAN);
  }

  @Test
  void opensAHundredThousandOps(Tab tab) throws IOException {
    var graph = folder.resolve("large.graph");
    Files.writeString(
        graph, GraphPrinter.print(TransformerGraph.of(Form.TENSOR_PARALLEL, 100_000, 1)));
    var file =
        Pages.write(
            folder.resolve("large.html"), List.of(graph.toString(), "--ranks", "8", "--no-advice"));
    for (int i = 0; i < OPENINGS; i++) {
      var page = PlanPage.open(tab, file);
      if (i == 0) {
        header(tab, page);
        System.out.printf(Locale.ROOT, "  file: %.1f MB%n", Files.size(file) / 1e6);
      }
      System.out.printf(
          Locale.ROOT,
          "  from navigation to the first whole drawing: %.0f ms, drawing it %.0f ms%n",
          page.state("loadMs").doubleValue(),
          page.state("frameMs").doubleValue());
    }
    var page = PlanPage.open(tab, file);
    print("zooming", page, ZOOM);
    page.press("0", "+", "+", "+", "+");
    print("panning, zoomed in", page, PAN);
  }

  private static void header(Tab tab, PlanPage page) {
    System.out.printf(
        "%s%n  Chromium %s, window of %s x %s, JDK %s, %s %s, %s processors%n",
        page.state("plan"),
        tab.page().context().browser().version(),
        Tab.WIDTH,
        Tab.HEIGHT,
        System.getProperty("java.version"),
        System.getProperty("os.name"),
        System.getProperty("os.arch"),
        Runtime.getRuntime().availableProcessors());
  }

  private static void print(String what, PlanPage page, String move) {
    var figures = (List<?>) page.page().evaluate(FRAMES.formatted(move, MILLIS));
    assertThat(figures).hasSize(5);
    System.out.printf(
        Locale.ROOT,
        "  %s: %.1f frames a second, %.1f of them drawn anew; 99 %% within %.1f ms; script of a"
            + " frame %.1f ms, 99 %% within %.1f%n",
        what,
        number(figures, 0),
        number(figures, 1),
        number(figures, 2),
        number(figures, 3),
        number(figures, 4));
  }

  private static double number(List<?> figures, int index) {
    return ((Number) figures.get(index)).doubleValue();
  }
}
