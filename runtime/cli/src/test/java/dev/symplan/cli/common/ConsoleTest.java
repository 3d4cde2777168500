package dev.symplan.cli.common;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;

class ConsoleTest {
  @Test
  void progressShowsAtOnce() {
    var shown = new ByteArrayOutputStream();
    var err = new PrintStream(new BufferedOutputStream(shown), false, StandardCharsets.UTF_8);
    new Console(
            new PrintStream(OutputStream.nullOutputStream(), false, StandardCharsets.UTF_8), err)
        .progress("half of it");
    assertThat(shown.toString(StandardCharsets.UTF_8))
        .isEqualTo("half of it" + System.lineSeparator());
  }
}
