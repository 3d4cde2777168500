package dev.symplan.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableMap;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.LaunchEnvironment.Launcher;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class LaunchEnvironmentTest {
  private static final ImmutableMap<String, String> TORCHRUN =
      ImmutableMap.of(
          "RANK", "2",
          "WORLD_SIZE", "4",
          "LOCAL_RANK", "2",
          "MASTER_ADDR", "localhost",
          "MASTER_PORT", "29400",
          "TORCHELASTIC_RUN_ID", "abc",
          "TORCHELASTIC_RESTART_COUNT", "1");

  private static final ImmutableMap<String, String> MPIRUN =
      ImmutableMap.of(
          "OMPI_COMM_WORLD_RANK", "1",
          "OMPI_COMM_WORLD_SIZE", "4",
          "OMPI_COMM_WORLD_LOCAL_RANK", "1",
          "OMPI_COMM_WORLD_LOCAL_SIZE", "4",
          "PMIX_NAMESPACE", "prte-7@1");

  private static final ImmutableMap<String, String> SRUN =
      ImmutableMap.of(
          "SLURM_PROCID", "5",
          "SLURM_NTASKS", "8",
          "SLURM_LOCALID", "1",
          "SLURM_NODELIST", "gpu[07-08,11],login1",
          "SLURM_JOB_ID", "42",
          "SLURM_STEP_ID", "0");

  private static LaunchEnvironment of(Map<String, String> variables) {
    return LaunchEnvironment.of(variables).orElseThrow();
  }

  private static Map<String, String> with(
      Map<String, String> variables, String name, String value) {
    var changed = new HashMap<>(variables);
    changed.put(name, value);
    return changed;
  }

  private static Map<String, String> without(Map<String, String> variables, String name) {
    var changed = new HashMap<>(variables);
    changed.remove(name);
    return changed;
  }

  @Test
  void noLauncherIsNoEnvironment() {
    assertThat(LaunchEnvironment.of(Map.of("PATH", "/bin", "MASTER_ADDR", "a"))).isEmpty();
  }

  @Test
  void readsTorchrun() {
    assertThat(of(TORCHRUN))
        .isEqualTo(new LaunchEnvironment(Launcher.TORCHRUN, 2, 4, 2, "localhost", 29401, "abc.1"));
  }

  @Test
  void processesOfOneHostNeedNoNameOfIt() {
    assertThat(of(with(TORCHRUN, "LOCAL_WORLD_SIZE", "4")).host()).isEqualTo("127.0.0.1");
    assertThat(of(with(TORCHRUN, "LOCAL_WORLD_SIZE", "3")).host()).isEqualTo("localhost");
    assertThat(of(with(MPIRUN, "MASTER_ADDR", "gpu1")).host()).isEqualTo("127.0.0.1");
    assertThat(of(with(with(SRUN, "SLURM_NNODES", "1"), "MASTER_ADDR", "gpu1")).host())
        .isEqualTo("127.0.0.1");
  }

  @Test
  void readsMpirun() {
    assertThat(of(MPIRUN))
        .isEqualTo(new LaunchEnvironment(Launcher.MPIRUN, 1, 4, 1, "127.0.0.1", 29501, "prte-7@1"));
    var two = with(MPIRUN, "OMPI_COMM_WORLD_LOCAL_SIZE", "2");
    assertThat(of(with(two, "MASTER_ADDR", "gpu1")).host()).isEqualTo("gpu1");
  }

  @Test
  void mpirunOnSeveralHostsNeedsAnAddress() {
    assertThatThrownBy(() -> of(with(MPIRUN, "OMPI_COMM_WORLD_LOCAL_SIZE", "2")))
        .isInstanceOf(RunException.class)
        .hasMessageContaining("MASTER_ADDR")
        .hasMessageContaining("mpirun -x");
  }

  @Test
  void readsSrun() {
    assertThat(of(SRUN))
        .isEqualTo(new LaunchEnvironment(Launcher.SRUN, 5, 8, 1, "gpu07", 29501, "42.0"));
    assertThat(of(with(SRUN, "SLURM_NNODES", "1")).host()).isEqualTo("127.0.0.1");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "gpu1 | gpu1",
        "a,b | a",
        "gpu[3-5] | gpu3",
        "r[1-2]n[07,9] | r1n07",
        "n[1,3]-ib,m | n1-ib"
      })
  void takesTheFirstNode(String list, String first) {
    assertThat(of(with(SRUN, "SLURM_NODELIST", list)).host()).isEqualTo(first);
  }

  @ParameterizedTest
  @ValueSource(strings = {"4294967290", "4294967291", ""})
  void aBatchScriptIsNoTask(String step) {
    assertThat(LaunchEnvironment.of(with(SRUN, "SLURM_STEP_ID", step))).isEmpty();
  }

  @Test
  void torchrunWinsAgainstTheSchedulerAroundIt() {
    var both = new HashMap<String, String>(SRUN);
    both.putAll(TORCHRUN);
    assertThat(of(both).launcher()).isEqualTo(Launcher.TORCHRUN);
  }

  @ParameterizedTest
  @ValueSource(strings = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR"})
  void namesWhatIsMissing(String name) {
    assertThatThrownBy(() -> of(without(TORCHRUN, name)))
        .isInstanceOf(RunException.class)
        .hasMessageContaining(name + " is not set")
        .hasMessageContaining("--launch=single");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "RANK | 4 | RANK is 4, but WORLD_SIZE is 4",
        "RANK | -1 | RANK is -1, less than 0",
        "RANK | two | RANK is 'two', which is not a number",
        "WORLD_SIZE | 0 | WORLD_SIZE is 0, less than 1",
        "LOCAL_RANK | 9 | LOCAL_RANK is 9, but WORLD_SIZE is 4",
        "MASTER_PORT | x | MASTER_PORT is 'x'",
        "MASTER_PORT | 65535 | MASTER_PORT is 65535, and the port after it does not exist: set"
            + " SYMPLAN_STORE_PORT",
        "MASTER_PORT | 65536 | MASTER_PORT is 65536, which is not a valid port",
        "SYMPLAN_STORE_PORT | 65536 | SYMPLAN_STORE_PORT is 65536, which is not a valid port",
        "SYMPLAN_STORE_PORT | 70000 | SYMPLAN_STORE_PORT is 70000, which is not a valid port"
      })
  void namesWhatIsWrong(String name, String value, String message) {
    assertThatThrownBy(() -> of(with(TORCHRUN, name, value)))
        .isInstanceOf(RunException.class)
        .hasMessageContaining(message);
  }

  @Test
  void anOwnPortIsTakenAsItIs() {
    assertThat(of(with(TORCHRUN, "SYMPLAN_STORE_PORT", "4000")).port()).isEqualTo(4000);
  }

  @Test
  void readsWhatTheHostIsTakenFor() {
    assertThat(of(TORCHRUN).hostId()).isEmpty();
    assertThat(of(with(TORCHRUN, "NCCL_HOSTID", "b")).hostId()).isEqualTo("b");
  }

  @Test
  void readsWhoMayCome() {
    assertThat(of(TORCHRUN).access()).isEqualTo(StoreAccess.DEFAULT);
    var token = "0123456789abcdef";
    var access = of(with(TORCHRUN, "SYMPLAN_TOKEN", token)).access();
    assertThat(access.secret()).contains(Secret.of(token, "here"));
    assertThat(access.toString()).doesNotContain(token);
    assertThat(of(with(TORCHRUN, "SYMPLAN_STORE_ADDRESS", "10.0.0.1")).access().address())
        .isEqualTo("10.0.0.1");
  }

  /** Of what says how many processes this host has, nothing may contradict the rest. */
  @ParameterizedTest
  @CsvSource({
    "LOCAL_WORLD_SIZE, 3, ''",
    "LOCAL_WORLD_SIZE, 4, ''",
    "LOCAL_WORLD_SIZE, 2, 'LOCAL_RANK is 2, but LOCAL_WORLD_SIZE says that this host has 2 proc'",
    "LOCAL_WORLD_SIZE, 5, 'LOCAL_RANK is 2, but LOCAL_WORLD_SIZE says that this host has 5 proc'",
    "LOCAL_WORLD_SIZE, 0, 'LOCAL_WORLD_SIZE is 0, less than 1'",
    "LOCAL_WORLD_SIZE, four, 'LOCAL_WORLD_SIZE is ''four'', which is not a number'"
  })
  void localSizesFit(String name, String value, String message) {
    check(with(TORCHRUN, name, value), message);
  }

  @ParameterizedTest
  @CsvSource({
    "'4(x2)', 1, ''",
    "'2,6', 1, ''",
    "'6,2', 1, ''",
    "'6,1(x2)', 2, 'but SLURM_TASKS_PER_NODE says that this host has 1 process'",
    "'8(x3),4', 1, 'SLURM_TASKS_PER_NODE is 8(x3),4, which is 28 tasks, but SLURM_NTASKS is 8'",
    "'4,4', 2, 'SLURM_NODEID is 2, but SLURM_TASKS_PER_NODE is 4,4, which is 2 nodes'",
    "'4(x2', 1, 'SLURM_TASKS_PER_NODE is ''4(x2'', which is not a list such as 8(x3),4'",
    "'4,', 1, 'is not a list such as'",
    "'0,8', 1, 'is not a list such as'"
  })
  void tasksPerNodeFit(String tasks, String node, String message) {
    check(with(with(SRUN, "SLURM_TASKS_PER_NODE", tasks), "SLURM_NODEID", node), message);
    // Those of the step are not compared with the tasks of the job.
    var ofStep = with(with(SRUN, "SLURM_STEP_NUM_TASKS", "8"), "SLURM_TASKS_PER_NODE", "99");
    check(
        with(with(ofStep, "SLURM_STEP_TASKS_PER_NODE", tasks), "SLURM_NODEID", node),
        message
            .replace("SLURM_TASKS_PER_NODE", "SLURM_STEP_TASKS_PER_NODE")
            .replace("SLURM_NTASKS", "SLURM_STEP_NUM_TASKS"));
  }

  private static void check(Map<String, String> variables, String message) {
    if (message.isEmpty()) {
      assertThat(of(variables).size()).isPositive();
    } else {
      assertThatThrownBy(() -> of(variables))
          .isInstanceOf(RunException.class)
          .hasMessageContaining(message);
    }
  }
}
