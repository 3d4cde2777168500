package dev.symplan.cli;

import static com.microsoft.playwright.assertions.PlaywrightAssertions.assertThat;
import static org.assertj.core.api.Assertions.assertThat;

import com.microsoft.playwright.Locator;
import com.microsoft.playwright.options.WaitForSelectorState;
import dev.symplan.cli.common.ExitCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Two plans on one page, which marks what {@code diff} prints. */
@InChromium
class PageComparisonTest {
  private static final List<String> ONE_SHOT =
      Pages.with(Pages.FSDP, "--variant", "all_gather=one_shot");

  @TempDir private static Path folder;

  @Test
  void aSecondPlanIsLaidBeside(Tab tab) {
    var page = PlanPage.open(tab, Pages.fsdp());
    var told = differences(ONE_SHOT);
    for (var format : List.of("json", "html")) {
      var file = Pages.dump(folder.resolve("other." + format), format, ONE_SHOT);
      page.find("load-file").setInputFiles(file);
      page.find("map-b").waitFor();
      var diff = page.state("diff");
      assertThat(diff.get("same").booleanValue()).isFalse();
      assertThat(diff.get("collectives").intValue()).isEqualTo(told.get("collectives"));
      assertThat(diff.get("values").intValue()).isEqualTo(told.get("values"));
      assertThat(diff.get("digest")).isEqualTo(Pages.report(ONE_SHOT).get("digest"));
      page.find("tab-diff").click();
      assertThat(page.find("panel-diff")).containsText("one_shot");
      var box = page.box("collective", 2, "b");
      page.mouse().move(box.middleX(), box.middleY());
      assertThat(page.find("tooltip")).containsText("one_shot");

      page.find("unload").click();
      assertThat(page.find("map-b")).hasCount(0);
      assertThat(page.find("tab-diff")).isHidden();
      assertThat(page.state("diff").isNull()).isTrue();
    }
    page.find("load-file").setInputFiles(Pages.fsdp());
    page.find("map-b").waitFor();
    assertThat(page.state("diff").get("same").booleanValue()).isTrue();
  }

  /** Long lines of the comparison do not push anything out of the window. */
  @Test
  void xlasMemoryIsAboveBothPlans(Tab tab) throws IOException {
    var module = folder.resolve("module.txt");
    Files.writeString(
        module,
        """
        HloModule jit_f, is_scheduled=true, num_partitions=2

        ENTRY %main (x: f32[64]) -> f32[64] {
          %x = f32[64]{0} parameter(0)
          %a = f32[4096]{0} custom-call(%x), custom_call_target="widen"
          ROOT %b = f32[64]{0} custom-call(%a), custom_call_target="narrow"
        }
        """);
    var assignment = folder.resolve("assignment.txt");
    Files.writeString(
        assignment,
        """
        BufferAssignment:
        allocation 0: size 256, page 0, parameter 0, shape |f32[64]| at ShapeIndex {}:
         value: <0 x @0> (size=256,offset=0): f32[64]{0}
        allocation 1: size 256, page 0, output shape is |f32[64]|, maybe-live-out:
         value: <2 b @0> (size=256,offset=0): f32[64]{0}
        allocation 2: size 32768, page 0, preallocated-temp:
         value: <1 a @0> (size=16384,offset=0): f32[4096]{0}
        """);
    var file = folder.resolve("xla.html");
    Pages.run(
        List.of(
            "compare-xla",
            module.toString(),
            assignment.toString(),
            "--format",
            "html",
            "-o",
            file.toString()),
        ExitCode.OK);

    var page = PlanPage.open(tab, file);
    page.page().setViewportSize(1280, 800);

    assertThat(page.find("notes")).containsText("XLA needs");
    assertThat(page.find("map-b")).isVisible();
    for (var control : List.of("theme", "help", "filter-changed", "notes", "panel-diff")) {
      var box = page.find(control).boundingBox();
      assertThat(box.x + box.width).as(control).isLessThanOrEqualTo(1280);
    }
    assertThat(page.find("plan-name").boundingBox().y).isLessThan(50);
  }

  @Test
  void aDroppedPlanIsLaidBeside(Tab tab) throws IOException {
    var page = PlanPage.open(tab, Pages.fsdp());
    var other = Pages.dump(folder.resolve("dropped.json"), "json", ONE_SHOT);

    page.page()
        .evaluate(
            """
            text => {
              const dataTransfer = new DataTransfer();
              dataTransfer.items.add(new File([text], 'dropped.json'));
              document.body.dispatchEvent(new DragEvent('drop', {dataTransfer, bubbles: true}));
            }
            """,
            Files.readString(other));

    page.find("map-b").waitFor();
    int all = page.state("shown").intValue();
    page.find("filter-changed").check();
    assertThat(page.state("shown").intValue()).isBetween(1, all - 1);
  }

  /** {@return how many lines of each kind {@code diff} prints for FSDP and another plan} */
  private static Map<String, Integer> differences(List<String> other) {
    var here = Pages.compile(folder.resolve("here.json"), Pages.FSDP);
    var there = Pages.compile(folder.resolve("there.json"), other);
    var counts = new HashMap<String, Integer>();
    var heading = "";
    for (var line : Pages.run(List.of("diff", here, there), ExitCode.FAILED).lines().toList()) {
      if (line.startsWith(" ")) {
        counts.merge(heading, 1, Integer::sum);
      } else {
        heading = line;
      }
    }
    return counts;
  }

  @Test
  void theDiffCommandWritesBoth(Tab tab) {
    var plan = Pages.compile(folder.resolve("one.json"), Pages.FSDP);
    var other = Pages.compile(folder.resolve("two.json"), ONE_SHOT);
    var file = folder.resolve("diff.html");
    Pages.run(
        List.of("diff", plan, other, "--format", "html", "-o", file.toString()), ExitCode.FAILED);

    var page = PlanPage.open(tab, file);

    assertThat(page.find("map-b")).isVisible();
    assertThat(page.find("tab-diff")).isVisible();
    assertThat(page.state("diff").get("same").booleanValue()).isFalse();
  }

  @Test
  void saysWhichFileIsNoPlan(Tab tab) throws IOException {
    var page = PlanPage.open(tab, Pages.fsdp());
    for (var text :
        List.of("", "hello", "{}", "{\"format\": \"symplan-report\"}", "<html></html>")) {
      var file = Files.writeString(folder.resolve("wrong.json"), text);
      page.find("load-file").setInputFiles(file);
      page.find("message").waitFor();
      assertThat(page.find("message")).containsText("wrong.json");
      page.find("message").click();
      page.find("message")
          .waitFor(new Locator.WaitForOptions().setState(WaitForSelectorState.HIDDEN));
    }
    assertThat(page.find("map-b")).hasCount(0);
    assertThat(page.state("shown")).isEqualTo(page.state("plan").get("buffers"));
  }
}
