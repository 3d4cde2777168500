package dev.symplan.cli;

import static com.microsoft.playwright.assertions.PlaywrightAssertions.assertThat;
import static org.assertj.core.api.Assertions.assertThat;

import com.microsoft.playwright.Page;
import com.microsoft.playwright.options.AriaRole;
import com.microsoft.playwright.options.ColorScheme;
import java.util.LinkedHashSet;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Whether everybody can read the page and reach what is on it. */
@InChromium
class PageLooksTest {

  /** Each control is reached by Tab, and says what it is. */
  @Test
  void everyControlIsReachedAndHasAName(Tab tab) {
    var page = PlanPage.open(tab, Pages.fsdp());
    var reached = new LinkedHashSet<String>();
    for (int i = 0; i < 60 && (reached.isEmpty() || !reached.contains("BODY")); i++) {
      page.press("Tab");
      reached.add(
          (String)
              page.page()
                  .evaluate(
                      "() => document.activeElement.dataset.testid ??"
                          + " document.activeElement.tagName"));
    }
    assertThat(reached)
        .contains(
            "search",
            "x-steps",
            "x-time",
            "zoom-in",
            "zoom-out",
            "zoom-fit",
            "load",
            "theme",
            "help",
            "filter-role-input",
            "filter-space",
            "filter-size",
            "filter-group",
            "map",
            "tab-overview");
    for (var name : List.of("Zoom in", "Zoom out", "Light or dark", "Help", "Compare with…")) {
      assertThat(page.page().getByRole(AriaRole.BUTTON, new Page.GetByRoleOptions().setName(name)))
          .hasCount(1);
    }
    assertThat(
            page.page()
                .getByRole(AriaRole.SEARCHBOX, new Page.GetByRoleOptions().setName("Search")))
        .hasCount(1);
  }

  @Test
  void themesFollowTheSystemUntilOneIsChosen(Tab tab) {
    var page = PlanPage.open(tab, Pages.fsdp());
    assertThat(page.state("theme").textValue()).isEqualTo("light");
    var light = background(page);
    page.page().emulateMedia(new Page.EmulateMediaOptions().setColorScheme(ColorScheme.DARK));
    page.page().waitForFunction("() => symplan.theme === 'dark'");
    var dark = background(page);
    assertThat(dark).isNotEqualTo(light);

    page.find("theme").click();
    assertThat(page.page().locator("html")).hasAttribute("data-theme", "light");
    assertThat(background(page)).isEqualTo(light);
    page.find("theme").click();
    assertThat(background(page)).isEqualTo(dark);
  }

  private static String background(PlanPage page) {
    return (String) page.page().evaluate("() => getComputedStyle(document.body).backgroundColor");
  }

  /** Text of both themes can be read: the contrast that WCAG 2.1 asks of it (AA). */
  @Test
  void textStandsOut(Tab tab) {
    var page = PlanPage.open(tab, Pages.fsdp());
    for (var theme : List.of("light", "dark")) {
      if (!page.state("theme").textValue().equals(theme)) {
        page.press("t");
      }
      page.press("]");
      for (var panel : List.of("tab-values", "tab-collectives", "tab-overview")) {
        page.find(panel).click();
        assertThat(page.json(Contrast.WEAK_TEXTS)).as(theme + ", " + panel).isEmpty();
      }
    }
  }

  @Test
  void fitsSmallWindows(Tab tab) {
    var page = PlanPage.open(tab, Pages.fsdp());
    resize(page, 640, 480);
    assertThat(
            (Boolean)
                page.page()
                    .evaluate("() => document.documentElement.scrollWidth <= window.innerWidth"))
        .as("nothing is cut off at the right")
        .isTrue();
    resize(page, 1920, 1080);
    var map = page.find("map").boundingBox();
    assertThat(map.width).isGreaterThan(1000);
    assertThat(page.box("step", 0).x()).isBetween(map.x, map.x + map.width);
  }

  /** Gives the window another size, and waits until the map has the size of its frame there. */
  private static void resize(PlanPage page, int width, int height) {
    page.page().setViewportSize(width, height);
    page.page()
        .waitForFunction(
            """
            width => {
              const map = document.querySelector('[data-testid=map]');
              return window.innerWidth === width
                && map.getBoundingClientRect().width
                  === Math.floor(map.parentElement.getBoundingClientRect().width);
            }
            """,
            width);
  }
}
