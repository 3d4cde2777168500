package dev.symplan.cli.common;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.runtime.failure.RunException;
import java.util.Map;
import org.junit.jupiter.api.Test;

class BackendsTest {

  @Test
  void refusesOneOfSeveralProcesses() {
    assertThatThrownBy(
            () ->
                Backends.requireOneProcess(
                    "bench",
                    Map.of(
                        "OMPI_COMM_WORLD_RANK",
                        "1",
                        "OMPI_COMM_WORLD_SIZE",
                        "4",
                        "OMPI_COMM_WORLD_LOCAL_RANK",
                        "1",
                        "OMPI_COMM_WORLD_LOCAL_SIZE",
                        "4")))
        .isInstanceOf(RunException.class)
        .hasMessage(
            "bench runs all ranks in one process, but this is rank 1 of 4, started by mpirun: start"
                + " it alone");
  }

  @Test
  void takesTheOnlyProcess() {
    assertThatCode(
            () ->
                Backends.requireOneProcess(
                    "bench",
                    Map.of(
                        "SLURM_PROCID",
                        "0",
                        "SLURM_NTASKS",
                        "1",
                        "SLURM_LOCALID",
                        "0",
                        "SLURM_JOB_ID",
                        "7",
                        "SLURM_STEP_ID",
                        "0",
                        "SLURM_NNODES",
                        "1")))
        .doesNotThrowAnyException();
    assertThatCode(() -> Backends.requireOneProcess("bench", Map.of())).doesNotThrowAnyException();
  }
}
