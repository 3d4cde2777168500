package dev.symplan.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Expectations that the tests of pages hold against a page. */
@InChromium
class TabTest {
  @TempDir private Path folder;

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '`',
      textBlock =
          """
          console.error('broken') | console: broken
          console.warn('odd') | console: odd
          throw new Error('broken') | uncaught: Error: broken
          Promise.reject(new Error('late')) | uncaught: Error: late
          fetch('http://127.0.0.1:9/x').catch(() => 0) | request: http://127.0.0.1:9/x
          document.write('<img src="other.png">') | other.png
          document.write('<link rel="stylesheet" href="https://example.org/a.css">') | request: https://example.org/a.css
          """)
  void noticesWhatAPageMustNotDo(String script, String complaint, Tab tab) throws IOException {
    tab.open(page("<script>%s</script>".formatted(script)));

    assertThat(tab.takeComplaints()).anyMatch(text -> text.contains(complaint));
  }

  @Test
  void saysNothingOfAPageThatStaysByItself(Tab tab) throws IOException {
    tab.open(
        page(
            "<script>console.log('hello')</script><img"
                + " src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>"));

    assertThat(tab.takeComplaints()).isEmpty();
  }

  private Path page(String body) throws IOException {
    return Files.writeString(
        folder.resolve("page of a test.html"),
        "<!DOCTYPE html><meta charset='utf-8'><title>t</title><body>" + body);
  }
}
