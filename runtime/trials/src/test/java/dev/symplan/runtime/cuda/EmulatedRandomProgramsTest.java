package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.runtime.cuda.RandomPrograms.Lowered;
import dev.symplan.runtime.fuzz.LocalProgram;
import java.util.ArrayList;
import java.util.Optional;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Test;

/**
 * Random programs over all ops that GPUs run: the kernels, on this machine's processor, against the
 * host. Others with {@code -Dsymplan.seed=N -Dsymplan.graphs=N}.
 */
class EmulatedRandomProgramsTest {
  private static final long SEED = Fuzz.seed(20_261_123_000L);
  private static final int PROGRAMS = Integer.getInteger("symplan.graphs", 100);

  /** Functions of CUDA that C++ does not have. */
  private static final ImmutableSet<String> OF_CUDA =
      ImmutableSet.of("erfinv", "special_erfcx", "special_log_ndtr", "special_ndtri");

  @Test
  void eachOpGivesWhatTheHostGives() {
    var ops =
        LocalProgram.ops().stream()
            .filter(op -> !OF_CUDA.contains(op.name().name()))
            .collect(ImmutableList.toImmutableList());
    var programs =
        LongStream.range(SEED, SEED + PROGRAMS)
            .mapToObj(seed -> RandomPrograms.make(ops, seed))
            .flatMap(Optional::stream)
            .toList();
    var sessions = EmulatedSession.open(programs.stream().map(Lowered::executable).toList());
    var findings = new ArrayList<String>();
    int compared = 0;
    for (int i = 0; i < programs.size(); i++) {
      try (var session = sessions.get(i)) {
        var comparison = programs.get(i).run(session);
        compared += comparison.compared();
        for (var finding : comparison.findings()) {
          findings.add(finding + "\n" + programs.get(i).program());
        }
      } catch (RuntimeException e) {
        findings.add(e + "\n" + programs.get(i).program());
      }
    }
    System.out.printf("%s programs, %s results, from seed %s%n", programs.size(), compared, SEED);
    assertThat(findings).isEmpty();
    assertThat(compared).isGreaterThan(2 * PROGRAMS);
  }
}
