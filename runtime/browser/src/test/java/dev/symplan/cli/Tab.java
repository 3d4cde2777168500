package dev.symplan.cli;

import com.microsoft.playwright.Browser;
import com.microsoft.playwright.BrowserContext;
import com.microsoft.playwright.ConsoleMessage;
import com.microsoft.playwright.Locator;
import com.microsoft.playwright.Page;
import com.microsoft.playwright.options.ColorScheme;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** A window of a browser without a network, which notes what the pages in it complain about. */
final class Tab {
  static final int WIDTH = 1280;
  static final int HEIGHT = 800;

  private final BrowserContext context;
  private final Page page;
  private final Set<String> opened = new HashSet<>();
  private final List<String> complaints = new ArrayList<>();

  Tab(Browser browser) {
    this.context =
        browser.newContext(
            new Browser.NewContextOptions()
                .setViewportSize(WIDTH, HEIGHT)
                .setColorScheme(ColorScheme.LIGHT)
                .setOffline(true));
    context.onConsoleMessage(this::note);
    context.onWebError(error -> complaints.add("uncaught: " + error.error()));
    context.onRequest(
        request -> {
          if (!opened.contains(request.url())) {
            complaints.add("request: " + request.url());
          }
        });
    this.page = context.newPage();
    page.onWebSocket(socket -> complaints.add("request: " + socket.url()));
  }

  private void note(ConsoleMessage message) {
    switch (message.type()) {
      case "error", "warning", "assert" ->
          complaints.add("console: %s (%s)".formatted(message.text(), message.location()));
      default -> {}
    }
  }

  Page page() {
    return page;
  }

  /** Opens a file as a double click on it does. */
  void open(Path file) {
    // A browser writes a file's address as the standard for URLs says: file:///, not Java's file:/.
    var url = file.toAbsolutePath().toUri().toString();
    opened.add(url);
    page.navigate(url);
  }

  Locator find(String testId) {
    return page.getByTestId(testId);
  }

  /** {@return the complaints of the pages so far, and forgets them} */
  List<String> takeComplaints() {
    // Events come one after the other: after this answer none is left from before.
    page.evaluate("() => new Promise(requestAnimationFrame)");
    var taken = List.copyOf(complaints);
    complaints.clear();
    return taken;
  }

  /** {@return the complaints of the pages} */
  List<String> close() {
    var last = takeComplaints();
    context.close();
    return last;
  }
}
