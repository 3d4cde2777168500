package dev.symplan.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.microsoft.playwright.Page;
import com.microsoft.playwright.options.ColorScheme;
import com.microsoft.playwright.options.ScreenshotAnimations;
import dev.symplan.cli.common.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIfSystemProperty;
import org.junit.jupiter.api.io.TempDir;

/** Makes the pictures of docs/inspecting.md anew, of the plans that it speaks of. */
@InChromium
@EnabledIfSystemProperty(named = "screenshots.update", matches = "true")
class ScreenshotsTest {
  private static final long MAX_BYTES = 300_000;
  private static final List<String> TRAIN =
      List.of(Pages.shared("llama3_8b_tp8_train_4l.0.fx.txt").toString(), "--ranks", "8");
  private static final List<String> PREFILL =
      List.of(Pages.shared("llama3_8b_tp8_prefill_32l.0.fx.txt").toString(), "--ranks", "8");

  @TempDir private Path folder;

  @Test
  void aPlan(Tab tab) throws IOException {
    shoot(PlanPage.open(tab, Pages.write(folder.resolve("train.html"), TRAIN)), "page.png");
  }

  @Test
  void oneCollectiveInTheDark(Tab tab) throws IOException {
    tab.page().emulateMedia(new Page.EmulateMediaOptions().setColorScheme(ColorScheme.DARK));
    var page = PlanPage.open(tab, Pages.write(folder.resolve("prefill.html"), PREFILL));
    page.press("x");
    page.page().evaluate("() => symplan.select('collective', 7)");
    page.press("f", "-", "-", "-", "-", "-", "y");
    shoot(page, "page-dark.png");
  }

  @Test
  void twoPlans(Tab tab) throws IOException {
    var auto = Pages.compile(folder.resolve("auto.json"), TRAIN);
    var forced =
        Pages.compile(
            folder.resolve("one_shot.json"), Pages.with(TRAIN, "--variant", "all_gather=one_shot"));
    var file = folder.resolve("diff.html");
    Pages.run(
        List.of("diff", auto, forced, "--format", "html", "-o", file.toString()), ExitCode.FAILED);
    var page = PlanPage.open(tab, file);
    page.find("tab-diff").click();
    shoot(page, "page-diff.png");
  }

  private static void shoot(PlanPage page, String name) throws IOException {
    page.page().setViewportSize(1400, 900);
    page.state("frames");
    var file = Pages.docs("figures").resolve(name);
    page.page()
        .screenshot(
            new Page.ScreenshotOptions()
                .setPath(file)
                .setAnimations(ScreenshotAnimations.DISABLED));
    assertThat(Files.size(file)).isLessThan(MAX_BYTES);
  }
}
