package dev.symplan.cli;

import static dev.symplan.cli.Ran.run;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
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
    var none = run("pack", file("none.csv", "id,lower,upper,size\n"), "--capacity", 0);
    assertThat(none.code()).isZero();
    assertThat(none.out()).containsPattern("height +0 \\(optimal\\)\n");
  }
}
