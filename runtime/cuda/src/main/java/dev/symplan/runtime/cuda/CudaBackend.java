package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Executable;
import dev.symplan.planner.machine.BackendVariants;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.SessionOptions;
import dev.symplan.runtime.cuda.library.Libraries;
import dev.symplan.runtime.doctor.Diagnosis;
import dev.symplan.runtime.doctor.Diagnosis.Finding;
import dev.symplan.runtime.doctor.MachineProbe;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.launch.LaunchEnvironment;
import dev.symplan.runtime.launch.World;
import java.time.Duration;
import java.util.Optional;
import org.bytedeco.cuda.global.nccl;

/**
 * Ranks are the GPUs of this host: in the driver's order, each driven by a thread of this process,
 * or one for each process that a launcher started, on this host or on several.
 *
 * <p>Nothing of CUDA is loaded before somebody asks {@link #unavailable}.
 */
public final class CudaBackend implements Backend {

  /** How long a rank waits for others, and a run may take, before it is given up. */
  private static final Duration TIMEOUT = Duration.ofSeconds(30);

  private static final String NAME = "cuda";

  private static final BackendVariants VARIANTS = BackendVariants.all(NAME);

  private static final BackendVariants WITHOUT_MULTICAST =
      VARIANTS.withoutMulticast("uses NVLink multicast only with --multicast=on");

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public BackendVariants variants(boolean multicast) {
    return multicast ? VARIANTS : WITHOUT_MULTICAST;
  }

  @Override
  public void begin() {
    Libraries.begin();
  }

  @Override
  public Optional<String> unavailable() {
    return Libraries.problem();
  }

  @Override
  public Optional<String> lacks(Plan plan, SessionOptions options) {
    boolean alone =
        options.world().isEmpty() && options.launch().environment(System.getenv()).isEmpty();
    var version = new int[1];
    new Check(0).nccl(nccl.ncclGetVersion(version), "ncclGetVersion");
    return new PlanNeeds(Devices.count(), version[0], CudaBackend::multicast).lacking(plan, alone);
  }

  private static Finding multicast() {
    return Diagnosis.of(MachineProbe.ofThisMachine(), VARIANTS).multicast();
  }

  @Override
  public void requireOps(Executable executable) {
    var _ = CudaSession.lower(executable, SessionOptions.DEFAULT);
  }

  @Override
  public ImmutableList<Long> memoryInUse(int ranks) {
    return Devices.ofAllRanks(ranks).entrySet().stream()
        .map(entry -> Devices.memoryInUse(entry.getValue(), entry.getKey()))
        .collect(ImmutableList.toImmutableList());
  }

  @Override
  public boolean canSpanProcesses() {
    return true;
  }

  @Override
  public Session open(Executable executable, SessionOptions options) {
    unavailable()
        .ifPresent(
            problem -> {
              throw new RunException("backend cuda: " + problem);
            });
    var timeout = options.timeout().orElse(TIMEOUT);
    var known = options.withTimeout(timeout);
    var environment =
        options.world().isPresent()
            ? Optional.<LaunchEnvironment>empty()
            : options.launch().environment(System.getenv());
    if (environment.isEmpty()) {
      return CudaSession.open(executable, known);
    }
    var world = World.join(environment.get(), timeout);
    try {
      var session = CudaSession.open(executable, known.withWorld(world));
      session.onClose(world::close);
      return session;
    } catch (RuntimeException | Error e) {
      world.close();
      throw e;
    }
  }
}
