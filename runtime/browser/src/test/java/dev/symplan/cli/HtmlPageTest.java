package dev.symplan.cli;

import static com.microsoft.playwright.assertions.PlaywrightAssertions.assertThat;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.fasterxml.jackson.databind.JsonNode;
import com.microsoft.playwright.Locator;
import com.microsoft.playwright.Page;
import com.microsoft.playwright.options.AriaRole;
import com.microsoft.playwright.options.ColorScheme;
import com.microsoft.playwright.options.WaitForSelectorState;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the page of a plan shows, by mouse and by keyboard; what is true comes from the report. */
@InChromium
class HtmlPageTest {
  private static final List<String> ONE_SHOT =
      Pages.with(Pages.FSDP, "--variant", "all_gather=one_shot");

  @TempDir private static Path folder;

  private static Path fsdp;
  private static JsonNode report;
  private static List<JsonNode> buffers;
  private static List<JsonNode> collectives;

  @BeforeAll
  static void write() {
    fsdp = Pages.write(folder.resolve("fsdp.html"), Pages.FSDP);
    report = Pages.report(Pages.FSDP);
    buffers = Pages.facts(report, "values");
    collectives = Pages.facts(report, "collectives");
  }

  /** {@return the largest planned buffer that some op reads} */
  private static JsonNode largest() {
    return buffers.stream()
        .filter(b -> b.get("arena").textValue().matches("symmetric|local"))
        .filter(b -> !b.get("use_names").isEmpty())
        .max(Comparator.comparingLong(b -> b.get("bytes").longValue()))
        .orElseThrow();
  }

  private static long count(Predicate<JsonNode> which) {
    return buffers.stream().filter(which).count();
  }

  @Test
  void showsThePlan(Tab tab) {
    var page = PlanPage.open(tab, fsdp);

    assertThat(page.find("plan-name")).hasText(report.get("name").textValue());
    var plan = page.state("plan");
    assertThat(plan.get("digest")).isEqualTo(report.get("digest"));
    assertThat(plan.get("ranks")).isEqualTo(report.get("ranks"));
    assertThat(plan.get("buffers").intValue()).isEqualTo(buffers.size());
    assertThat(plan.get("collectives").intValue()).isEqualTo(collectives.size());
    assertThat(plan.get("steps").intValue()).isEqualTo(Pages.facts(report, "schedule").size());
    assertThat(page.state("shown").intValue()).isEqualTo(buffers.size());
    assertThat(page.state("drawn").intValue()).isPositive();
    assertThat(page.find("map")).isVisible();
    assertThat(page.find("map-b")).hasCount(0);
    assertThat(page.find("unload")).isHidden();
    assertThat(page.find("tab-diff")).isHidden();
    assertThat(page.find("graph")).isHidden();
  }

  @Test
  void answersWhatANewcomerAsks(Tab tab) {
    var page = PlanPage.open(tab, fsdp);

    var slowest =
        collectives.stream()
            .max(Comparator.comparingDouble(c -> c.get("predicted_us").doubleValue()))
            .orElseThrow();
    assertThat(page.find("answer-slowest")).containsText(slowest.get("name").textValue());
    assertThat(page.find("answer-slowest")).containsText(slowest.get("variant").textValue());
    assertThat(page.find("answer-slowest")).containsText("one_shot");
    assertThat(page.find("answer-peak")).containsText("live at step");
    assertThat(page.find("answer-lower")).isVisible();
  }

  @Test
  void tellsOfWhatIsUnderThePointer(Tab tab) {
    var page = PlanPage.open(tab, fsdp);
    var buffer = largest();
    var box = page.box("buffer", buffer.get("id").intValue());

    page.mouse().move(box.middleX(), box.middleY());

    assertThat(page.find("tooltip")).isVisible();
    assertThat(page.find("tooltip")).containsText(buffer.get("name").textValue());
    assertThat(page.find("tooltip")).containsText(buffer.get("source").textValue());
    assertThat(page.state("hovered").get("id")).isEqualTo(buffer.get("id"));

    var step = page.box("step", 3);
    page.mouse().move(step.middleX(), step.middleY());
    assertThat(page.find("tooltip"))
        .containsText(Pages.facts(report, "schedule").get(3).get("name").textValue());

    page.find("plan-name").hover();
    assertThat(page.find("tooltip")).isHidden();
    assertThat(page.state("hovered").isNull()).isTrue();
  }

  @Test
  void aClickTellsTheStoryAndShowsTheNeighbours(Tab tab) {
    var page = PlanPage.open(tab, fsdp);
    var buffer = largest();
    var box = page.box("buffer", buffer.get("id").intValue());

    page.mouse().click(box.middleX(), box.middleY());

    assertThat(page.state("selected").get("id")).isEqualTo(buffer.get("id"));
    var details = page.find("details");
    assertThat(details).isVisible();
    assertThat(details).containsText(buffer.get("name").textValue());
    assertThat(details).containsText(buffer.get("source").textValue());
    assertThat(details).containsText(buffer.get("because").textValue());
    assertThat(details)
        .containsText(Pattern.compile("\\b%d\\b".formatted(buffer.get("first").intValue())));
    assertThat(details).containsText(buffer.get("use_names").get(0).textValue());
    // What an op that reads it gives is a neighbour of it.
    var reader = buffer.get("use_names").get(0).textValue();
    var made =
        buffers.stream()
            .filter(b -> Pages.stream(b.get("values")).anyMatch(v -> v.textValue().equals(reader)))
            .findFirst()
            .orElseThrow();
    assertThat(Pages.stream(page.state("neighbours"))).contains(made.get("id"));

    page.find("details-close").click();
    assertThat(details).isHidden();
    assertThat(page.state("selected").isNull()).isTrue();
  }

  @Test
  void rowsOfTheListsSelect(Tab tab) {
    var page = PlanPage.open(tab, fsdp);

    page.find("tab-collectives").click();
    assertThat(page.find("panel-collectives")).isVisible();
    assertThat(page.find("panel-overview")).isHidden();
    var second = collectives.get(1);
    page.page()
        .locator(
            "[data-kind=collective][data-id='%d']:visible".formatted(second.get("id").intValue()))
        .first()
        .click();
    assertThat(page.state("selected").get("kind").textValue()).isEqualTo("collective");
    assertThat(page.state("selected").get("name")).isEqualTo(second.get("name"));
    assertThat(page.find("details")).containsText(second.get("source").textValue());
    for (var verdict : List.of("copy_engine", "one_shot", "nccl")) {
      assertThat(page.find("details")).containsText(verdict);
    }
    // The buffers that it moves are its neighbours.
    assertThat(Pages.stream(page.state("neighbours")))
        .containsAll(Pages.stream(second.get("operand_buffers")).toList());

    page.find("tab-values").click();
    page.page().locator("[data-kind=buffer]:visible").first().click();
    assertThat(page.state("selected").get("kind").textValue()).isEqualTo("buffer");
  }

  @Test
  void findsByName(Tab tab) {
    var page = PlanPage.open(tab, fsdp);

    page.find("search").fill("all_gather");
    int hits = page.state("hits").size();
    assertThat(hits).isGreaterThanOrEqualTo(collectives.size());
    assertThat(Pages.stream(page.state("hits")).map(hit -> hit.get("kind").textValue()))
        .contains("collective", "buffer");
    page.find("search").press("Enter");
    assertThat(page.find("search-count")).hasText("1 of " + hits);
    assertThat(page.state("selected")).isEqualTo(page.state("hits").get(0));
    page.find("search").press("Enter");
    assertThat(page.find("search-count")).hasText("2 of " + hits);
    page.find("search").press("Shift+Enter");
    assertThat(page.state("hit").intValue()).isZero();

    page.find("search").fill("no such thing");
    assertThat(page.state("hits")).isEmpty();
    page.find("search").press("Escape");
    assertThat(page.find("search")).hasValue("");
    assertThat(page.state("query").textValue()).isEmpty();
    assertThat(page.state("shown").intValue()).isEqualTo(buffers.size());
  }

  @Test
  void zoomsAndPansByMouse(Tab tab) {
    var page = PlanPage.open(tab, fsdp);
    double whole = page.span();
    assertThat(page.state("fit").booleanValue()).isTrue();
    int step = Pages.facts(report, "schedule").size() / 3;
    var before = page.box("step", step);
    double x = before.x() + before.width() / 3;
    double y = before.middleY();

    page.mouse().move(x, y);
    page.mouse().wheel(0, -400);
    page.page().waitForFunction("() => !symplan.fit");
    assertThat(page.span()).isLessThan(whole);
    // What is under the pointer stays there.
    var after = page.box("step", step);
    assertThat(after.width()).isGreaterThan(before.width());
    assertThat((x - after.x()) / after.width()).isCloseTo(1.0 / 3, within(0.02));

    double from = page.from();
    page.mouse().down();
    page.mouse().move(x - 100, y);
    page.mouse().up();
    assertThat(page.from()).isGreaterThan(from);
    // What was dragged is not selected.
    assertThat(page.state("selected").isNull()).isTrue();

    page.find("zoom-out").click();
    double wider = page.span();
    page.find("zoom-in").click();
    assertThat(page.span()).isLessThan(wider);
    page.find("zoom-fit").click();
    assertThat(page.span()).isEqualTo(whole);
    assertThat(page.state("fit").booleanValue()).isTrue();
  }

  @Test
  void theKeyboardDoesAllOfIt(Tab tab) {
    var page = PlanPage.open(tab, fsdp);
    double whole = page.span();

    page.press("+", "+", "+");
    double zoomed = page.span();
    assertThat(zoomed).isLessThan(whole / 2);
    double from = page.from();
    page.press("ArrowRight");
    double little = page.from() - from;
    assertThat(little).isPositive();
    page.press("Shift+ArrowRight");
    assertThat(page.from() - from - little).isGreaterThan(2 * little);
    page.press("ArrowLeft");
    page.press("-");
    assertThat(page.span()).isGreaterThan(zoomed);
    page.press("0");
    assertThat(page.span()).isEqualTo(whole);

    page.press("/");
    assertThat(page.find("search")).isFocused();
    page.press("m", "m", "Enter");
    int hits = page.state("hits").size();
    assertThat(hits).isGreaterThan(1);
    assertThat(page.find("search")).hasValue("mm");
    page.page().keyboard().press("Tab");
    page.press("n");
    assertThat(page.state("hit").intValue()).isEqualTo(1);
    page.press("Shift+N");
    assertThat(page.state("hit").intValue()).isZero();
    page.press("Escape");
    assertThat(page.state("query").textValue()).isEmpty();
    assertThat(page.state("selected").isNull()).isTrue();

    page.press("]");
    var first = page.state("selected");
    assertThat(first.get("kind").textValue()).isEqualTo("buffer");
    page.press("]");
    assertThat(page.state("selected")).isNotEqualTo(first);
    page.press("[");
    assertThat(page.state("selected")).isEqualTo(first);

    page.press("x");
    assertThat(page.state("axis").textValue()).isEqualTo("time");
    page.press("t");
    assertThat(page.state("theme").textValue()).isEqualTo("dark");
    page.press("?");
    assertThat(page.find("help-dialog")).isVisible();
    page.press("Escape");
    assertThat(page.find("help-dialog")).isHidden();
  }

  @Test
  void offsetsZoomApartFromTheSchedule(Tab tab) {
    var page = PlanPage.open(tab, fsdp);
    var buffer = largest().get("id").intValue();
    var whole = page.box("buffer", buffer);

    page.mouse().move(whole.middleX(), whole.middleY());
    page.page().keyboard().down("Shift");
    page.mouse().wheel(0, -200);
    page.page().keyboard().up("Shift");
    page.page()
        .waitForFunction(
            "([id, height]) => symplan.rectOf('buffer', id).height > height",
            List.of(buffer, whole.height()));
    assertThat(page.box("buffer", buffer).width()).isCloseTo(whole.width(), within(1.0));
    assertThat(page.state("fit").booleanValue()).isTrue();
    page.press("Shift+ArrowDown", "Shift+ArrowDown", "Shift+ArrowDown");
    assertThat(page.box("buffer", buffer)).isEqualTo(whole);

    page.page().evaluate("id => symplan.select('buffer', id)", buffer);
    page.press("f");
    assertThat(page.state("fit").booleanValue()).isFalse();
    assertThat(page.box("buffer", buffer).width()).isGreaterThan(whole.width());
    page.press("0");
    assertThat(page.box("buffer", buffer).width()).isEqualTo(whole.width());
  }

  @Test
  void listsAreWalkedByTheKeyboard(Tab tab) {
    var page = PlanPage.open(tab, fsdp);
    page.find("tab-overview").focus();
    page.press("ArrowRight");
    assertThat(page.find("tab-collectives")).isFocused();
    assertThat(page.find("panel-collectives")).isVisible();

    page.page().getByRole(AriaRole.LISTBOX).focus();
    page.press("ArrowDown");
    var first = page.state("selected");
    assertThat(first.get("kind").textValue()).isEqualTo("collective");
    page.press("ArrowDown");
    assertThat(page.state("selected")).isNotEqualTo(first);
    page.press("ArrowUp");
    assertThat(page.state("selected")).isEqualTo(first);
    assertThat(page.page().locator("[role=option][aria-selected=true]")).hasCount(1);
  }

  /** Each control is reached by Tab, and says what it is. */
  @Test
  void everyControlIsReachedAndHasAName(Tab tab) {
    var page = PlanPage.open(tab, fsdp);
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
  void theAxisCanBeTime(Tab tab) {
    var page = PlanPage.open(tab, fsdp);
    double predicted =
        Pages.facts(report, "summary").stream()
            .filter(facts -> facts.has("predicted_us"))
            .findFirst()
            .orElseThrow()
            .get("predicted_us")
            .doubleValue();

    page.find("x-time").click();

    assertThat(page.find("x-time")).hasAttribute("aria-pressed", "true");
    assertThat(page.find("x-steps")).hasAttribute("aria-pressed", "false");
    assertThat(page.state("domain").get(1).doubleValue()).isCloseTo(predicted, within(0.01));
    var schedule = Pages.facts(report, "schedule");
    var longest =
        schedule.stream()
            .filter(step -> step.get("stream").textValue().equals("compute"))
            .max(Comparator.comparingDouble(s -> s.get("duration_us").doubleValue()))
            .orElseThrow();
    var box = page.box("step", longest.get("step").intValue());
    var map = page.find("map").boundingBox();
    double part = longest.get("duration_us").doubleValue() / predicted;
    assertThat(box.width() / map.width).isBetween(0.8 * part, part);
    page.find("x-steps").click();
    assertThat(page.state("axis").textValue()).isEqualTo("steps");
  }

  @Test
  void filtersKeepWhatTheySay(Tab tab) {
    var page = PlanPage.open(tab, fsdp);
    int all = buffers.size();

    for (var role : List.of("input", "output", "staging", "collective", "workspace", "temporary")) {
      long of = count(b -> b.get("role").textValue().equals(role));
      page.find("filter-role-" + role).uncheck();
      assertThat(page.state("shown").longValue()).as(role).isEqualTo(all - of);
      page.find("filter-role-" + role).check();
    }
    page.find("filter-space").selectOption("symmetric");
    assertThat(page.state("shown").longValue())
        .isEqualTo(count(b -> b.get("symmetric").booleanValue()));
    page.find("filter-space").selectOption("local");
    assertThat(page.state("shown").longValue())
        .isEqualTo(count(b -> !b.get("symmetric").booleanValue()));
    page.find("filter-space").selectOption("all");
    for (long least : List.of(65536L, 1L << 20, 1L << 24, 1L << 28)) {
      page.find("filter-size").selectOption(Long.toString(least));
      assertThat(page.state("shown").longValue())
          .isEqualTo(count(b -> b.get("bytes").longValue() >= least));
    }
    page.find("filter-size").selectOption("0");
    assertThat(page.state("shown").intValue()).isEqualTo(all);
  }

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

  @Test
  void themesFollowTheSystemUntilOneIsChosen(Tab tab) {
    var page = PlanPage.open(tab, fsdp);
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
    var page = PlanPage.open(tab, fsdp);
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
  void aSecondPlanIsLaidBeside(Tab tab) {
    var page = PlanPage.open(tab, fsdp);
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
    page.find("load-file").setInputFiles(fsdp);
    page.find("map-b").waitFor();
    assertThat(page.state("diff").get("same").booleanValue()).isTrue();
  }

  @Test
  void aDroppedPlanIsLaidBeside(Tab tab) throws IOException {
    var page = PlanPage.open(tab, fsdp);
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

  /** {@return how many lines of each kind {@code diff} tells of FSDP and another plan} */
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
    var page = PlanPage.open(tab, fsdp);
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
    assertThat(page.state("shown").intValue()).isEqualTo(buffers.size());
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

  @Test
  void fitsSmallWindows(Tab tab) {
    var page = PlanPage.open(tab, fsdp);
    page.page().setViewportSize(640, 480);
    assertThat(
            (Boolean)
                page.page()
                    .evaluate("() => document.documentElement.scrollWidth <= window.innerWidth"))
        .as("nothing is cut off at the right")
        .isTrue();
    page.page().setViewportSize(1920, 1080);
    var map = page.find("map").boundingBox();
    assertThat(map.width).isGreaterThan(1000);
    assertThat(page.box("step", 0).x()).isBetween(map.x, map.x + map.width);
  }

  /** 32 layers, of which a window shows a few: what is selected comes into view. */
  @Test
  void largePlansAreWalkedThrough(Tab tab) {
    var graph = Pages.shared("llama3_8b_tp8_prefill_32l.0.fx.txt");
    assumeTrue(Files.exists(graph), "the shared cases are not here");
    var input = List.of(graph.toString(), "--ranks", "8", "--no-advice");
    var page = PlanPage.open(tab, Pages.write(folder.resolve("llama.html"), input));
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
}
