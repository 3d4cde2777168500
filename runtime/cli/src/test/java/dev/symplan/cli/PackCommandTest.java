package dev.symplan.cli;

import static dev.symplan.cli.Ran.run;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PackCommandTest {
  static final String BUFFERS =
      """
      id,lower,upper,size
      left,0,3,4
      right,2,5,6
      late,3,5,4
      """;

  @TempDir private Path folder;

  private Path file(String name, String text) throws IOException {
    return Files.writeString(folder.resolve(name), text);
  }

  @Test
  void packsBuffersOfACsvFile() throws IOException {
    var input = file("buffers.csv", BUFFERS);
    var output = folder.resolve("packed.csv");
    var result = run("pack", input, "-o", output);
    assertThat(result.code()).as(result.err()).isZero();
    assertThat(result.out())
        .containsPattern("buffers +3\n")
        .containsPattern("height +10 \\(optimal\\)\n")
        .containsPattern("lower bound +10\n")
        .containsPattern("time +[0-9]+\\.[0-9]{3} s\n");
    assertThat(output)
        .hasContent(
            """
            id,lower,upper,size,offset
            left,0,3,4,6
            right,2,5,6,0
            late,3,5,4,6
            """);
    assertThat(run("pack", output).out())
        .as("what was written can be read")
        .containsPattern("height +10 ");
  }

  @Test
  void packsWithinACapacityOrFails() throws IOException {
    var input = file("buffers.csv", BUFFERS);
    var fits = run("pack", input, "--capacity", 10);
    assertThat(fits.code()).isZero();
    assertThat(fits.out()).containsPattern("capacity +10: fits\n");
    var large = run("pack", input, "--capacity", 9);
    assertThat(large.code()).isEqualTo(1);
    assertThat(large.out()).containsPattern("height +10 ").contains("9: cannot fit");
    assertThat(large.err()).isEmpty();
    var output = folder.resolve("out.csv");
    var lost = run("pack", input, "--capacity", 9, "-o", output);
    assertThat(lost.code()).isEqualTo(1);
    assertThat(lost.err()).isEqualTo("nothing written to %s%n".formatted(output));
    assertThat(output).doesNotExist();
    var none = run("pack", file("none.csv", "id,lower,upper,size\n"), "--capacity", 0);
    assertThat(none.code()).isZero();
    assertThat(none.out()).containsPattern("height +0 \\(optimal\\)\n");
  }

  /** Random buffers, which no search packs at their lower bound in a millisecond. */
  @Test
  void aSearchEndsInTime() throws IOException {
    var random = new Random(1);
    var text = new StringBuilder("id,lower,upper,size\n");
    for (int i = 0; i < 400; i++) {
      int lower = random.nextInt(1000);
      text.append(
          "b%s,%s,%s,%s\n"
              .formatted(i, lower, lower + 1 + random.nextInt(300), 1 + random.nextInt(1 << 20)));
    }
    var input = file("random.csv", text.toString());
    var bound = run("pack", input).out().replaceAll("(?s).*lower bound +([0-9]+)\n.*", "$1");
    var output = folder.resolve("out.csv");
    var result = run("pack", input, "--capacity", bound, "--seconds", 0.001, "-o", output);
    assertThat(result.code()).isEqualTo(1);
    assertThat(result.out())
        .containsPattern("no packing found that fits, in a search of [0-9]\\.[0-9] s\n");
    assertThat(output).doesNotExist();
    assertThat(run("pack", input, "--seconds", -1).code()).isEqualTo(2);
    assertThat(run("pack", input, "--seconds", "NaN").code()).isEqualTo(2);
  }
}
