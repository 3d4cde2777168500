package dev.symplan.cli;

import com.microsoft.playwright.Browser;
import com.microsoft.playwright.BrowserType;
import com.microsoft.playwright.Playwright;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/**
 * Tests with a parameter of type {@link Tab} get one in a headless Chromium, which all tests share;
 * they fail when the pages in it complained or asked for anything but themselves. Where there is no
 * Chromium, or no Node.js to drive it with, the tests are skipped.
 */
@Target(ElementType.TYPE)
@Retention(RetentionPolicy.RUNTIME)
@ExtendWith(InChromium.Extension.class)
@interface InChromium {

  /** A Chromium that is open until the last test is over. */
  record Session(Playwright playwright, Browser browser) implements AutoCloseable {

    static Session open(Path chromium, Path node) {
      // Playwright writes what it sends in small letters of the default locale.
      Locale.setDefault(Locale.ROOT);
      var playwright =
          Playwright.create(
              new Playwright.CreateOptions()
                  .setEnv(
                      Map.of(
                          "PLAYWRIGHT_NODEJS_PATH",
                          node.toString(),
                          "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD",
                          "1")));
      return new Session(
          playwright,
          playwright
              .chromium()
              .launch(new BrowserType.LaunchOptions().setExecutablePath(chromium)));
    }

    @Override
    public void close() {
      playwright.close();
    }
  }

  /** A test, as JUnit calls it. */
  final class Extension implements ExecutionCondition, ParameterResolver, AfterEachCallback {
    private static final Namespace NAMESPACE = Namespace.create(InChromium.class);
    private static final int OLDEST_NODE = 20;

    private static final Optional<Path> CHROMIUM =
        onPath("chromium", "chromium-browser", "google-chrome");
    private static final Optional<Path> NODE =
        onPath("node").filter(node -> version(node) >= OLDEST_NODE);

    @Override
    public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
      if (CHROMIUM.isEmpty()) {
        return skipped("no Chromium is on the PATH (Debian's package: chromium)");
      }
      if (NODE.isEmpty()) {
        return skipped("no Node.js %s or newer is on the PATH".formatted(OLDEST_NODE));
      }
      return ConditionEvaluationResult.enabled("there are a Chromium and a Node.js");
    }

    private static ConditionEvaluationResult skipped(String reason) {
      System.out.println("tests of the HTML page are skipped: " + reason);
      return ConditionEvaluationResult.disabled(reason);
    }

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
      return parameter.getParameter().getType() == Tab.class;
    }

    @Override
    public Tab resolveParameter(ParameterContext parameter, ExtensionContext context) {
      var session =
          context
              .getRoot()
              .getStore(NAMESPACE)
              .getOrComputeIfAbsent(
                  Session.class,
                  _ -> Session.open(CHROMIUM.orElseThrow(), NODE.orElseThrow()),
                  Session.class);
      var tab = new Tab(session.browser());
      context.getStore(NAMESPACE).put(Tab.class, tab);
      return tab;
    }

    @Override
    public void afterEach(ExtensionContext context) {
      var tab = context.getStore(NAMESPACE).remove(Tab.class, Tab.class);
      if (tab != null) {
        var complaints = tab.close();
        if (!complaints.isEmpty()) {
          throw new AssertionError(String.join("\n", complaints));
        }
      }
    }

    private static Optional<Path> onPath(String... names) {
      var folders = Optional.ofNullable(System.getenv("PATH")).orElse("").split(File.pathSeparator);
      return Stream.of(names)
          .flatMap(name -> Stream.of(folders).map(folder -> Path.of(folder, name)))
          .filter(Files::isExecutable)
          .findFirst();
    }

    /** {@return the first number of what Node.js says of its version; 0 if it says nothing} */
    private static int version(Path node) {
      try {
        var process =
            new ProcessBuilder(List.of(node.toString(), "--version"))
                .redirectErrorStream(true)
                .start();
        try (var out = process.inputReader()) {
          var digits = out.readAllAsString().replaceFirst("(?s)^v(\\d{1,4}).*", "$1");
          return process.waitFor(10, TimeUnit.SECONDS) && digits.matches("\\d+")
              ? Integer.parseInt(digits)
              : 0;
        }
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        return 0;
      }
    }
  }
}
