package dev.symplan.cli;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.microsoft.playwright.Locator;
import com.microsoft.playwright.Mouse;
import com.microsoft.playwright.Page;
import java.io.UncheckedIOException;
import java.nio.file.Path;

/** A page of a plan, open in a tab. */
final class PlanPage {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String READY = "html[data-ready=true]";

  /** A rectangle in pixels of the window. */
  record Box(double x, double y, double width, double height) {
    double middleX() {
      return x + width / 2;
    }

    double middleY() {
      return y + height / 2;
    }
  }

  private final Tab tab;

  private PlanPage(Tab tab) {
    this.tab = tab;
  }

  static PlanPage open(Tab tab, Path file) {
    tab.open(file);
    tab.page().waitForSelector(READY);
    return new PlanPage(tab);
  }

  Page page() {
    return tab.page();
  }

  Mouse mouse() {
    return tab.page().mouse();
  }

  Locator find(String testId) {
    return tab.page().getByTestId(testId);
  }

  /** Presses keys, one after the other, wherever the focus is. */
  void press(String... keys) {
    for (var key : keys) {
      tab.page().keyboard().press(key);
    }
  }

  /** {@return a field of what the page says of itself, after it has drawn everything} */
  JsonNode state(String field) {
    tab.page().evaluate("() => new Promise(requestAnimationFrame)");
    return json("symplan." + field);
  }

  /** {@return where something is drawn; fails where it is out of view} */
  Box box(String kind, int id) {
    return box(kind, id, "a");
  }

  Box box(String kind, int id, String map) {
    var box = state("rectOf('%s', %s, '%s')".formatted(kind, id, map));
    if (box.isNull()) {
      throw new AssertionError("%s %s is out of view".formatted(kind, id));
    }
    return new Box(
        box.get("x").doubleValue(),
        box.get("y").doubleValue(),
        box.get("width").doubleValue(),
        box.get("height").doubleValue());
  }

  /** {@return the width of the part of the x axis that is in view} */
  double span() {
    var domain = state("domain");
    return domain.get(1).doubleValue() - domain.get(0).doubleValue();
  }

  double from() {
    return state("domain").get(0).doubleValue();
  }

  JsonNode json(String expression) {
    try {
      return JSON.readTree(
          (String) tab.page().evaluate("() => JSON.stringify(%s)".formatted(expression)));
    } catch (com.fasterxml.jackson.core.JsonProcessingException e) {
      throw new UncheckedIOException(e);
    }
  }
}
