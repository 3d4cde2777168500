package dev.symplan.cli.bench;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import dev.symplan.runtime.doctor.Machine;
import dev.symplan.runtime.doctor.Machine.Setting;
import dev.symplan.runtime.host.HostBackend;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class BenchDeviceTest {

  @Test
  void showsSettingsButNoPathsOfTheMachine() {
    var machine =
        new Machine(
            "Linux amd64",
            Optional.empty(),
            ImmutableList.of(),
            ImmutableList.of(),
            ImmutableList.of(),
            ImmutableList.of(
                new Setting("NCCL_NVLS_ENABLE", "0", Setting.SYMPLAN),
                new Setting("SYMPLAN_CACHE", "/home/me/cache", Setting.ENVIRONMENT),
                new Setting("SYMPLAN_JAVA_OPTS", "-Xmx4g", Setting.ENVIRONMENT)),
            Optional.empty());
    assertThat(new BenchDevice(new HostBackend(), Optional.of(machine)).machine())
        .contains("NCCL_NVLS_ENABLE=0; SYMPLAN_JAVA_OPTS=-Xmx4g; ")
        .doesNotContain("/home/me");
  }
}
