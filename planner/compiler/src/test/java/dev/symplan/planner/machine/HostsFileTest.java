package dev.symplan.planner.machine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class HostsFileTest {

  private static SourceFile file(String text) {
    return new SourceFile("hosts.txt", text);
  }

  @Test
  void readsHostsInOrder() {
    var hosts =
        HostsFile.read(
            file(
                """
                # the first rack
                gpu01 8
                gpu02\t8  # repaired

                  gpu-03.example.org   4
                """));
    assertThat(hosts.sizes().asList()).containsExactly(8, 8, 4);
    assertThat(hosts.text()).isEqualTo("2x8,4");
    assertThat(HostsFile.read(file("a 1\r\nb 2\r\n")).sizes().asList()).containsExactly(1, 2);
    assertThat(HostsFile.read(file("a 65536")).sizes().asList()).containsExactly(65_536);
  }

  /** Of Open MPI and MPICH, and of Slurm with a line for each rank. */
  @ParameterizedTest
  @CsvSource({
    "'a slots=8|b slots = 4 max_slots=8', '8,4'",
    "'a:8|b : 4', '8,4'",
    "'a|b', '2x1'",
    "'a|a|b  # last|', '2,1'",
    "'b|a|b|a', '[0, 2], [1, 3]'"
  })
  void readsTheFilesOfLaunchers(String text, String hosts) {
    assertThat(HostsFile.read(file(text.replace('|', '\n'))).text()).isEqualTo(hosts);
  }

  @ParameterizedTest
  @CsvSource({
    "'', 'hosts.txt', the file lists no host",
    "'# none', 'hosts.txt', the file lists no host",
    "'a 8|b', 'hosts.txt:2:1', host 'b' has no number of ranks",
    "'a 8| b  x # c', 'hosts.txt:2:5', 'x' is not a number of ranks",
    "'a 0', 'hosts.txt:1:3', '0' is not a number of ranks",
    "'a -1', 'hosts.txt:1:3', '-1' is not a number of ranks",
    "'a 8 9', 'hosts.txt:1:3', '8 9' is not a number of ranks",
    "'a slots=x', 'hosts.txt:1:3', 'slots=x' is not a number of ranks",
    "'a slot=8', 'hosts.txt:1:3', 'slot=8' is not a number of ranks",
    "'a slots=8 max_slots=', 'hosts.txt:1:3', 'slots=8 max_slots=' is not a number of ranks",
    "'a: 0', 'hosts.txt:1:4', '0' is not a number of ranks",
    "' :8', 'hosts.txt:1:2', ':8' is not the name of a host and a number of ranks",
    "'a:', 'hosts.txt:1:1', 'a:' is not the name of a host and a number of ranks",
    "'a 99999999999', 'hosts.txt:1:3', '99999999999' is not a number of ranks",
    "'a 8|# b|a 8', 'hosts.txt:3:1', host 'a' is already on line 1",
    "'a 65536|b 1', 'hosts.txt:2:3', the hosts have more than 65536 ranks"
  })
  void malformedFilesAreRefused(String text, String at, String message) {
    var error =
        catchThrowableOfType(
            CompileException.class, () -> HostsFile.read(file(text.replace('|', '\n'))));
    assertThat(error).isNotNull();
    assertThat(error.diagnostics())
        .singleElement()
        .satisfies(
            diagnostic -> {
              assertThat(diagnostic.span()).hasToString(at);
              assertThat(diagnostic.message()).isEqualTo(message);
            });
  }
}
