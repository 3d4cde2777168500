package dev.symplan.cli;

import static com.microsoft.playwright.assertions.PlaywrightAssertions.assertThat;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Pages of plans that are unusual, small or large. */
@InChromium
class PageInputsTest {
  @TempDir private static Path folder;

  @Test
  void groupsCanBeLookedAtAlone(Tab tab) {
    var input = List.of(Pages.sample("two_groups.graph"));
    var page = PlanPage.open(tab, Pages.write(folder.resolve("groups.html"), input));
    var moved = Pages.facts(Pages.report(input), "collectives");
    assertThat(moved).extracting(c -> c.get("group").textValue()).doesNotHaveDuplicates();
    for (var collective : moved) {
      page.find("filter-group").selectOption(collective.get("group").textValue());
      page.find("tab-collectives").click();
      assertThat(page.page().locator("[data-kind=collective]:visible")).hasCount(1);
      assertThat(page.page().locator("[data-kind=collective]:visible"))
          .hasAttribute("data-id", collective.get("id").toString());
    }
  }

  @Test
  void ranksWithGraphsOfTheirOwnCanBeChosen(Tab tab) {
    var input = List.of(Pages.sample("cases/mesh_2d"));
    var page = PlanPage.open(tab, Pages.write(folder.resolve("mesh.html"), input));
    assertThat(page.find("graph")).isVisible();
    assertThat(page.find("graph").locator("option")).hasCount(4);
    page.find("graph").selectOption("3");
    assertThat(page.state("plan").get("collectives").intValue()).isEqualTo(2);
    page.press("]");
    assertThat(page.state("selected").isNull()).isFalse();
  }

  /** Names come from the input, and the page must not take them for its own. */
  @Test
  void namesAreOnlyShown(Tab tab) throws IOException {
    var evil = "</script><img src=x onerror=alert(1)><!--";
    var graph =
        Files.writeString(
            folder.resolve("a<b>&'c.graph"),
            """
            graph version 1

            group "%s" = [0, 1]

            graph g(x: f32[64, 64]) {
              y = aten::relu(x)
              r = _c10d_functional::all_reduce(y, "sum", "%s")
              return r
            }
            """
                .formatted(evil, evil));
    var page =
        PlanPage.open(tab, Pages.write(folder.resolve("names.html"), List.of(graph.toString())));
    page.find("filter-group").selectOption(evil);
    page.find("tab-collectives").click();
    page.page().locator("[data-kind=collective]:visible").first().click();
    assertThat(page.find("details")).containsText(evil);
    assertThat(page.find("details")).containsText("a<b>&'c.graph");
    assertThat(page.page().locator("img")).hasCount(0);
  }

  @Test
  void aPlanOfNearlyNothingOpens(Tab tab) throws IOException {
    var graph =
        Files.writeString(
            folder.resolve("nothing.graph"),
            """
            graph version 1

            graph g(x: f32[0]) {
              return x
            }
            """);
    var page =
        PlanPage.open(tab, Pages.write(folder.resolve("nothing.html"), List.of(graph.toString())));
    page.press("+", "]", "x", "/", "0", "Escape");
    for (var panel : List.of("tab-values", "tab-collectives", "tab-overview")) {
      page.find(panel).click();
    }
    assertThat(page.state("plan").get("collectives").intValue()).isZero();
  }

  /** 64 layers, of which a window shows a few: what is selected comes into view. */
  @Test
  void largePlansAreWalkedThrough(Tab tab) throws IOException {
    var graph = Files.writeString(folder.resolve("layers.graph"), layers(64));
    var input = List.of(graph.toString(), "--ranks", "8", "--no-advice");
    var page = PlanPage.open(tab, Pages.write(folder.resolve("layers.html"), input));
    page.press("+", "+", "+", "+", "+", "+");

    page.find("search").fill("all_reduce_40");
    page.find("search").press("Enter");

    var hit = page.state("selected");
    assertThat(hit.get("name").textValue()).isEqualTo("all_reduce_40");
    var map = page.find("map").boundingBox();
    var box = page.box("collective", hit.get("id").intValue());
    assertThat(box.middleX()).isBetween(map.x, map.x + map.width);
    page.find("search").press("Escape");
    page.mouse().move(box.middleX(), box.middleY());
    assertThat(page.find("tooltip")).containsText("all_reduce_40");
  }

  private static String layers(int count) {
    var text = new StringBuilder("graph version 1\n\ngroup tp = [0, 1, 2, 3, 4, 5, 6, 7]\n\n");
    text.append("graph layers(x_0: bf16[512, 1024], v: bf16[1024, 256], w: bf16[256, 1024]) {\n");
    for (int i = 0; i < count; i++) {
      text.append(
          """
            up_%1$s = aten::mm(x_%1$s, v)
            h_%1$s = aten::silu(up_%1$s)
            down_%1$s = aten::mm(h_%1$s, w)
            all_reduce_%1$s = _c10d_functional::all_reduce(down_%1$s, "sum", "tp")
            wait_%1$s = _c10d_functional::wait_tensor(all_reduce_%1$s)
            x_%2$s = aten::add.Tensor(x_%1$s, wait_%1$s)
          """
              .formatted(i, i + 1));
    }
    return text + "  return x_%s\n}\n".formatted(count);
  }
}
