package dev.symplan.cli;

import static com.microsoft.playwright.assertions.PlaywrightAssertions.assertThat;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.data.Percentage.withPercentage;

import com.fasterxml.jackson.databind.JsonNode;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The axis of offsets: small buffers can be seen beside one that takes most of an arena. */
@InChromium
class PageOffsetsTest {
  /** Its 4 MiB of {@code y} are 170 times as large as the workspace above them. */
  private static final List<String> UNEVEN = List.of(Pages.sample("tp_mlp.graph"));

  @TempDir private Path folder;

  private static JsonNode buffer(List<String> input, String name) {
    return Pages.facts(Pages.report(input), "values").stream()
        .filter(row -> row.get("name").textValue().equals(name))
        .findFirst()
        .orElseThrow();
  }

  private static PlanPage.Box box(PlanPage page, JsonNode buffer) {
    return page.box("buffer", buffer.get("id").intValue());
  }

  @Test
  void aStretchOfOneBufferIsDrawnShortened(Tab tab) {
    var page = PlanPage.open(tab, Pages.write(folder.resolve("mlp.html"), UNEVEN));
    var workspace = buffer(UNEVEN, "workspace 0");
    var gate = buffer(UNEVEN, "gate");
    var large = buffer(UNEVEN, "y");
    assertThat(large.get("bytes").longValue())
        .isGreaterThan(100 * workspace.get("bytes").longValue());

    var seen = box(page, workspace);
    assertThat(seen.height()).isGreaterThan(12);
    assertThat(box(page, large).height()).isLessThan(5 * box(page, gate).height());
    // Offsets that are not shortened have one scale.
    assertThat(box(page, gate).height() / seen.height())
        .isCloseTo(
            gate.get("bytes").doubleValue() / workspace.get("bytes").doubleValue(),
            withPercentage(3));

    page.mouse().move(seen.middleX(), seen.middleY());
    assertThat(page.find("tooltip")).containsText("workspace");
    assertThat(page.state("hovered").get("id")).isEqualTo(workspace.get("id"));
  }

  @Test
  void zoomsIntoShortenedOffsetsAndBack(Tab tab) {
    var page = PlanPage.open(tab, Pages.write(folder.resolve("mlp.html"), UNEVEN));
    var gate = buffer(UNEVEN, "gate");
    var before = box(page, gate);
    page.press("Shift+ArrowUp");
    page.press("ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown");
    assertThat(box(page, gate).height()).isGreaterThan(1.2 * before.height());
    page.press("0");
    assertThat(box(page, gate)).isEqualTo(before);
  }

  @Test
  void evenArenasHaveOneScale(Tab tab) {
    var page = PlanPage.open(tab, Pages.fsdp());
    var symmetric =
        Pages.facts(Pages.report(Pages.FSDP), "values").stream()
            .filter(row -> row.get("symmetric").booleanValue())
            .toList();
    assertThat(symmetric).hasSizeGreaterThan(5);
    double scale =
        box(page, symmetric.getFirst()).height() / symmetric.getFirst().get("bytes").doubleValue();
    for (var buffer : symmetric) {
      assertThat(box(page, buffer).height() / buffer.get("bytes").doubleValue())
          .isCloseTo(scale, withPercentage(3));
    }
  }
}
