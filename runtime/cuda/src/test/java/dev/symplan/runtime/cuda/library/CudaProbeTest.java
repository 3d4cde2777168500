package dev.symplan.runtime.cuda.library;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.Iterables;
import dev.symplan.runtime.cuda.CudaBackend;
import dev.symplan.runtime.doctor.Machine;
import dev.symplan.runtime.doctor.Machine.Driver;
import dev.symplan.runtime.doctor.Machine.Gpu;
import dev.symplan.runtime.doctor.Machine.Link;
import dev.symplan.runtime.doctor.Machine.NvLinks;
import dev.symplan.runtime.doctor.Machine.Setting;
import dev.symplan.runtime.doctor.MachineProbe;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Asks a driver and a library of management written for the tests. */
class CudaProbeTest {

  /** Two GPUs; the attributes that are asked for are in the order of {@link Gpu}. */
  private static final String DRIVER =
      """
      #include <stdio.h>
      #include <string.h>
      int cuInit(int flags) { return 0; }
      int cuDriverGetVersion(int* v) { *v = 13000; return 0; }
      int cuDeviceGetCount(int* n) { *n = 2; return 0; }
      int cuDeviceGet(int* d, int i) { *d = i; return 0; }
      int cuDeviceGetName(char* s, int n, int d) { snprintf(s, n, "NVIDIA H200"); return 0; }
      int cuDeviceTotalMem_v2(size_t* b, int d) { *b = 150121545728UL; return 0; }
      int cuDeviceGetPCIBusId(char* s, int n, int d) {
        snprintf(s, n, "0000:%dB:00.0", d);
        return 0;
      }
      int cuDeviceCanAccessPeer(int* can, int from, int to) { *can = from == 0; return 0; }
      int cuDeviceGetP2PAttribute(int* v, int a, int from, int to) {
        *v = a == 3 && from == 0;
        return 0;
      }
      int cuDeviceGetAttribute(int* v, int a, int d) {
        switch (a) {
          case 16: *v = 132; return 0;
          case 40: *v = 3; return 0;
          case 75: *v = 9; return 0;
          case 76: *v = 0; return 0;
          case 102: case 103: case 132: *v = 1; return 0;
          case 128: *v = 0; return 0;
          default: return 1;
        }
      }
      """;

  /** 18 links, of which 2 are down, 4 go to the other GPU and 12 to a switch. */
  private static final String MANAGEMENT =
      """
      #include <stdio.h>
      static int devices[2] = {0, 1};
      struct field { unsigned id, scope; long long time, latency; int type, status, value, rest; };
      int nvmlInit_v2() { return 0; }
      int nvmlShutdown() { return 0; }
      int nvmlSystemGetDriverVersion(char* s, unsigned n) {
        snprintf(s, n, "580.159.03");
        return 0;
      }
      int nvmlDeviceGetHandleByPciBusId_v2(const char* id, void** device) {
        *device = &devices[id[5] == '1'];
        return 0;
      }
      int nvmlDeviceGetNvLinkState(int* device, unsigned link, int* up) {
        *up = link < 16;
        return 0;
      }
      int nvmlDeviceGetNvLinkRemoteDeviceType(int* device, unsigned link, int* type) {
        *type = link < 4 ? 0 : 2;
        return 0;
      }
      int nvmlDeviceGetNvLinkRemotePciInfo_v2(int* device, unsigned link, char* info) {
        snprintf(info, 16, "0000:%dB:00.0", 1 - *device);
        return 0;
      }
      int nvmlDeviceGetFieldValues(int* device, int n, struct field* f) {
        f->status = f->id == 90 ? 0 : 3;
        f->value = 26562;
        return 0;
      }
      """;

  @TempDir private Path folder;

  private Machine probe() {
    var search = new LibrarySearch(ImmutableList.of(folder), ImmutableList.of());
    return CudaProbe.probe(new Libraries(search, search), Optional.of("a test"), Map.of());
  }

  @Test
  void tellsWhatTheDriverSaysOfGpusAndLinks() throws Exception {
    FakeLibraries.compile(folder, "libcuda.so.1", DRIVER);
    FakeLibraries.compile(folder, Nvml.SONAME, MANAGEMENT);
    var machine = probe();
    assertThat(machine.driver()).contains(new Driver(Optional.of("580.159.03"), 13000));
    assertThat(machine.gpus()).hasSize(2);
    assertThat(machine.gpus().getFirst())
        .isEqualTo(
            new Gpu(0, "NVIDIA H200", 150_121_545_728L, 90, 132, 3, true, true, false, true));
    var nvlinks = Optional.of(new NvLinks(16, OptionalDouble.of(26.562)));
    assertThat(machine.links())
        .containsExactly(
            new Link(0, 1, true, true, nvlinks), new Link(1, 0, false, false, nvlinks));
    assertThat(machine.libraries())
        .filteredOn(library -> library.name().equals("libcuda.so.1"))
        .allMatch(library -> library.version().equals(Optional.of("13.0")));
  }

  @Test
  void tellsOfGpusWithoutManagement() throws Exception {
    FakeLibraries.compile(folder, "libcuda.so.1", DRIVER);
    FakeLibraries.damaged(folder, Nvml.SONAME);
    var machine = probe();
    assertThat(machine.gpus()).hasSize(2);
    assertThat(machine.links()).allMatch(link -> link.nvlinks().isEmpty());
    assertThat(Iterables.getLast(machine.libraries()).looked()).isNotEmpty();
  }

  @Test
  void saysWhatADriverSays() throws Exception {
    FakeLibraries.compile(
        folder,
        "libcuda.so.1",
        DRIVER.replace("cuInit(int flags) { return 0; }", "cuInit(int flags) { return 34; }")
            + """
            int cuGetErrorName(int status, const char** name) {
              *name = "CUDA_ERROR_STUB_LIBRARY";
              return 0;
            }
            """);
    var driver =
        new LibrarySearch(ImmutableList.of(folder), ImmutableList.of()).find("libcuda.so.1");
    assertThat(Libraries.driverProblem(driver.library().orElseThrow()))
        .contains("the NVIDIA driver cannot be used: cuInit says CUDA_ERROR_STUB_LIBRARY");
    assertThat(probe().gpus()).isEmpty();
  }

  @Test
  void refusesADriverThatIsTooOld() throws Exception {
    FakeLibraries.compile(folder, "libcuda.so.1", DRIVER.replace("*v = 13000", "*v = 12040"));
    var driver =
        new LibrarySearch(ImmutableList.of(folder), ImmutableList.of()).find("libcuda.so.1");
    assertThat(Libraries.driverProblem(driver.library().orElseThrow()))
        .contains("the NVIDIA driver is too old: it supports CUDA 12.4, but 13.0 is needed");
  }

  @Test
  void refusesADriverThatLacksFunctions() throws Exception {
    FakeLibraries.compile(folder, "libcuda.so.1", DRIVER.replace("cuDeviceGetName", "another"));
    var driver =
        new LibrarySearch(ImmutableList.of(folder), ImmutableList.of()).find("libcuda.so.1");
    assertThat(Libraries.driverProblem(driver.library().orElseThrow()).orElseThrow())
        .contains("has no cuDeviceGetName: it is a stub or damaged");
    assertThat(probe().gpus()).isEmpty();
  }

  @Test
  void takesTheCallersSettingsBeforeItsOwn() throws IOException {
    var conf = folder.resolve("nccl.conf");
    Files.writeString(
        conf,
        """
        # what the administrator wants
        NCCL_NVLS_ENABLE=1
        NCCL_SOCKET_IFNAME = eth0
        NCCL_DEBUG=WARN
        nonsense
        """);
    assertThat(
            Settings.of(
                Map.of(
                    "NCCL_CONF_FILE", conf.toString(),
                    "NCCL_DEBUG", "INFO",
                    "NCCL_RUNTIME_CONNECT", "1",
                    "RANK", "3",
                    "EDITOR", "vi")))
        .containsExactly(
            new Setting("NCCL_CONF_FILE", conf.toString(), Setting.ENVIRONMENT),
            new Setting("NCCL_DEBUG", "INFO", Setting.ENVIRONMENT),
            new Setting("NCCL_NVLS_ENABLE", "0", Setting.SYMPLAN),
            new Setting("NCCL_RUNTIME_CONNECT", "1", Setting.ENVIRONMENT),
            new Setting("NCCL_SINGLE_PROC_MEM_REG_ENABLE", "1", Setting.SYMPLAN),
            new Setting("NCCL_SOCKET_IFNAME", "eth0", conf.toString()),
            new Setting("RANK", "3", Setting.ENVIRONMENT));
  }

  /** People show reports to others. */
  @Test
  void keepsSecretsToItself() {
    var settings = Settings.of(Map.of("SYMPLAN_TOKEN", "known to few", "SYMPLAN_STORE_PORT", "1"));
    assertThat(settings)
        .contains(
            new Setting("SYMPLAN_STORE_PORT", "1", Setting.ENVIRONMENT),
            new Setting("SYMPLAN_TOKEN", "not shown", Setting.ENVIRONMENT));
    assertThat(settings.toString()).doesNotContain("known to few");
  }

  @Test
  void isFoundByTheCommand() {
    var machine = MachineProbe.ofThisMachine();
    assertThat(machine.problem()).isEqualTo(new CudaBackend().unavailable());
  }
}
