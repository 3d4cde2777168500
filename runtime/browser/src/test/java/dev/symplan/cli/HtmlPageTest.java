package dev.symplan.cli;

import static com.microsoft.playwright.assertions.PlaywrightAssertions.assertThat;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.JsonNode;
import com.microsoft.playwright.options.AriaRole;
import java.util.Comparator;
import java.util.List;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Looks at the page of a plan by mouse and by keyboard. The report says what is true. */
@InChromium
class HtmlPageTest {

  private static JsonNode report;
  private static List<JsonNode> buffers;
  private static List<JsonNode> collectives;

  @BeforeAll
  static void write() {
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
    var page = PlanPage.open(tab, Pages.fsdp());

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
    var page = PlanPage.open(tab, Pages.fsdp());

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
    var page = PlanPage.open(tab, Pages.fsdp());
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
    var page = PlanPage.open(tab, Pages.fsdp());
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
        .containsText(Pattern.compile("\\b%s\\b".formatted(buffer.get("first").intValue())));
    assertThat(details).containsText(buffer.get("use_names").get(0).textValue());
    // Results of an op that reads it are its neighbours.
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
    var page = PlanPage.open(tab, Pages.fsdp());

    page.find("tab-collectives").click();
    assertThat(page.find("panel-collectives")).isVisible();
    assertThat(page.find("panel-overview")).isHidden();
    var second = collectives.get(1);
    page.page()
        .locator(
            "[data-kind=collective][data-id='%s']:visible".formatted(second.get("id").intValue()))
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
    var page = PlanPage.open(tab, Pages.fsdp());

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
    var page = PlanPage.open(tab, Pages.fsdp());
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
    // The step under the pointer stays there.
    var after = page.box("step", step);
    assertThat(after.width()).isGreaterThan(before.width());
    assertThat((x - after.x()) / after.width()).isCloseTo(1.0 / 3, within(0.02));

    double from = page.from();
    page.mouse().down();
    page.mouse().move(x - 100, y);
    page.mouse().up();
    assertThat(page.from()).isGreaterThan(from);
    // Dragging selects nothing.
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
    var page = PlanPage.open(tab, Pages.fsdp());
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
    var page = PlanPage.open(tab, Pages.fsdp());
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
    var page = PlanPage.open(tab, Pages.fsdp());
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

  @Test
  void theAxisCanBeTime(Tab tab) {
    var page = PlanPage.open(tab, Pages.fsdp());
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
    var page = PlanPage.open(tab, Pages.fsdp());
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
}
