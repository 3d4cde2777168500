package dev.symplan.runtime.doctor;

import com.google.common.base.Ascii;
import com.google.common.base.CharMatcher;
import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import dev.symplan.planner.machine.BackendVariants;
import dev.symplan.planner.machine.Requirement;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.machine.Verdict.Reason;
import dev.symplan.runtime.doctor.Machine.Setting;
import java.util.Comparator;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * The consequences of a machine's facts for plans.
 *
 * @param windows whether NCCL can run its symmetric kernels on the arena
 * @param processes whether symmetric memory can be that of several processes
 * @param multicast whether NVLink multicast is there and not turned off
 * @param peers how many GPUs, from the first on, all reach each other's memory
 * @param variants the needs of each variant, and whether the machine has them
 * @param fit the built-in target that describes this machine
 */
public record Diagnosis(
    Machine machine,
    Finding windows,
    Finding processes,
    Finding multicast,
    int peers,
    ImmutableList<Support> variants,
    Optional<Fit> fit) {

  /** The first NCCL with symmetric kernels and copy-engine collectives. */
  public static final int OLDEST_NCCL = 22800;

  /** Multicast loads and stores are instructions of sm_90. */
  private static final int MULTIMEM_CAPABILITY = 90;

  private static final int RANKS_OF_SAMPLES = 4;

  private static final ImmutableList<String> WINDOWS_OFF_AT_0 =
      ImmutableList.of("NCCL_WIN_ENABLE", "NCCL_CUMEM_ENABLE");

  /**
   * Whether something is there.
   *
   * @param detail the evidence, or the missing part
   */
  public record Finding(boolean present, String detail) {}

  /**
   * The machine's support for one variant.
   *
   * @param needs for people
   * @param ranks how many GPUs can run it together; 0 if none can
   * @param lack why there are none, or no more
   */
  public record Support(Variant variant, String needs, int ranks, Optional<Lack> lack) {
    public Support {
      if (ranks == 0 && lack.isEmpty()) {
        throw new IllegalArgumentException(variant.text() + " is missing without a reason");
      }
    }
  }

  /**
   * The reason why a variant cannot run.
   *
   * @param reason the planner's reason, if a target can have it, too
   * @param detail for people
   */
  public record Lack(Optional<Reason> reason, String detail) {
    @Override
    public String toString() {
      return reason.map(r -> Ascii.toLowerCase(r.name()) + ": ").orElse("") + detail;
    }
  }

  /**
   * A built-in target for this machine.
   *
   * @param ranks how many of this machine's GPUs it plans for
   * @param command one that tries it, on the GPUs or, where they cannot be used, on the CPU
   * @param note the machine's differences; empty if none is known
   */
  public record Fit(Target target, int ranks, String command, Optional<String> note) {}

  /**
   * {@return the diagnosis of these facts}
   *
   * @param backend the variants of the GPUs' backend
   */
  public static Diagnosis of(Machine machine, BackendVariants backend) {
    var windows = windows(machine);
    var multicast = multicast(machine);
    int peers = peers(machine);
    return new Diagnosis(
        machine,
        windows,
        processes(machine),
        multicast,
        peers,
        Stream.of(Variant.values())
            .map(variant -> support(variant, machine, backend, windows, multicast, peers))
            .collect(ImmutableList.toImmutableList()),
        fit(machine));
  }

  /** {@return whether backend cuda can be used} */
  public boolean isUsable() {
    return machine.problem().isEmpty();
  }

  /** {@return the target that describes this machine, with the version of NCCL that is here} */
  public Optional<Target> target() {
    return fit.map(Fit::target)
        .map(
            known ->
                machine.nccl().isPresent()
                    ? known.withNccl(known.name(), machine.nccl().getAsInt())
                    : known);
  }

  /**
   * {@return a backend's variants without those that this machine's GPUs cannot run, for plans that
   * one process carries out}
   *
   * @param ranks of the plan; more than there are GPUs count as that many
   */
  public BackendVariants usable(BackendVariants backend, int ranks) {
    int needed = Math.min(ranks, machine.gpus().size());
    var here = backend;
    for (var support : variants) {
      int usable = Math.min(support.ranks(), support.variant() == Variant.LOCAL ? needed : peers);
      var lack =
          support.lack().filter(own -> !own.reason().equals(Optional.of(Reason.NOT_IN_BACKEND)));
      if (lack.isPresent() && usable < needed) {
        here = here.without(support.variant(), "cannot use it here: " + lack.get().detail());
      }
    }
    return here;
  }

  private static Finding windows(Machine machine) {
    if (machine.gpus().isEmpty()) {
      return new Finding(false, "no GPU was found");
    }
    for (var gpu : machine.gpus()) {
      if (!gpu.virtualMemory()) {
        return new Finding(false, "GPU %s does not support memory handles".formatted(gpu.index()));
      }
    }
    var nccl = machine.nccl();
    if (nccl.isEmpty()) {
      return new Finding(false, "NCCL was not found");
    }
    if (nccl.getAsInt() < OLDEST_NCCL) {
      return new Finding(false, tooOld(nccl.getAsInt()));
    }
    for (var name : WINDOWS_OFF_AT_0) {
      if (machine.setting(name).filter(s -> s.value().equals("0")).isPresent()) {
        return new Finding(false, "turned off by " + name + "=0");
      }
    }
    return new Finding(true, "mapped memory and NCCL " + Target.ncclVersion(nccl.getAsInt()));
  }

  private static Finding processes(Machine machine) {
    if (machine.gpus().isEmpty()) {
      return new Finding(false, "no GPU was found");
    }
    return machine.gpus().stream()
        .filter(gpu -> !gpu.virtualMemory() || !gpu.fileHandles())
        .findFirst()
        .map(
            gpu ->
                new Finding(
                    false,
                    "GPU %s cannot export memory as file descriptors".formatted(gpu.index())))
        .orElse(new Finding(true, "through file descriptors of mapped memory"));
  }

  private static Finding multicast(Machine machine) {
    if (machine.gpus().isEmpty()) {
      return new Finding(false, "no GPU was found");
    }
    for (var gpu : machine.gpus()) {
      if (!gpu.multicast()) {
        return new Finding(false, "GPU %s has no NVLink multicast".formatted(gpu.index()));
      }
    }
    // Symplan sets this variable for NCCL alone.
    return valued(machine, "NCCL_NVLS_ENABLE", "0")
        .filter(setting -> !setting.source().equals(Setting.SYMPLAN))
        .or(() -> valued(machine, "TORCH_SYMM_MEM_DISABLE_MULTICAST", "1"))
        .or(() -> valued(machine, "NVSHMEM_DISABLE_NVLS", "1"))
        .map(
            setting ->
                new Finding(
                    false,
                    "the GPUs have it, but it is off: %s=%s%s"
                        .formatted(
                            setting.name(),
                            setting.value(),
                            setting.source().equals(Setting.ENVIRONMENT)
                                ? ""
                                : ", which %s sets".formatted(setting.source()))))
        .orElse(new Finding(true, "all GPUs have it; used only with --multicast=on"));
  }

  private static Optional<Setting> valued(Machine machine, String name, String value) {
    return machine.setting(name).filter(setting -> setting.value().equals(value));
  }

  /** Ranks are the first GPUs, so this counts how many of the first ones reach each other. */
  private static int peers(Machine machine) {
    int peers = 0;
    while (peers < machine.gpus().size()
        && machine.gpus().get(peers).virtualMemory()
        && unreached(machine, peers).isEmpty()) {
      peers++;
    }
    return peers;
  }

  /** {@return a GPU before this one that it does not reach or that does not reach it} */
  private static Optional<Integer> unreached(Machine machine, int gpu) {
    return IntStream.range(0, gpu)
        .filter(other -> !reaches(machine, gpu, other) || !reaches(machine, other, gpu))
        .boxed()
        .findFirst();
  }

  private static boolean reaches(Machine machine, int from, int to) {
    return machine.link(from, to).filter(Machine.Link::peerAccess).isPresent();
  }

  private static Support support(
      Variant variant,
      Machine machine,
      BackendVariants backend,
      Finding windows,
      Finding multicast,
      int peers) {
    int gpus = machine.gpus().size();
    var lack = lack(variant, machine, backend, windows, multicast);
    int ranks = lack.isPresent() ? 0 : variant == Variant.LOCAL ? 1 : gpus;
    if (lack.isEmpty() && variant != Variant.LOCAL && peers < gpus) {
      lack =
          lack(
              Reason.NO_PEER_ACCESS,
              reachesPeers(variant)
                  ? unreachedPeer(machine, peers)
                  : "only with one process per rank, as torchrun starts them");
      ranks = !reachesPeers(variant) ? gpus : peers < 2 ? 0 : peers;
    }
    return new Support(variant, needs(variant), ranks, lack);
  }

  /**
   * {@return the reason why no ranks can run a variant, apart from GPUs that do not reach each
   * other}
   */
  private static Optional<Lack> lack(
      Variant variant,
      Machine machine,
      BackendVariants backend,
      Finding windows,
      Finding multicast) {
    var gpus = machine.gpus();
    if (machine.problem().isPresent()) {
      return Optional.of(new Lack(Optional.empty(), "backend cuda cannot be used"));
    }
    if (variant != Variant.CUSTOM && variant != Variant.LOCAL && gpus.size() < 2) {
      return lack(Reason.GROUP_SIZE, "there is one GPU");
    }
    if (specs(variant).anyMatch(VariantSpec::needsMulticast)) {
      var older = gpus.stream().filter(gpu -> gpu.capability() < MULTIMEM_CAPABILITY).findFirst();
      if (older.isPresent() || !multicast.present()) {
        return lack(
            Reason.NO_MULTICAST,
            older
                .map(gpu -> "GPU %s is sm_%s".formatted(gpu.index(), gpu.capability()))
                .orElse(multicast.detail()));
      }
    }
    if (needs(variant, new Requirement.CopyEngines())) {
      var without = gpus.stream().filter(gpu -> gpu.copyEngines() == 0).findFirst();
      if (without.isPresent()) {
        return lack(
            Reason.NO_COPY_ENGINE, "GPU %s has no copy engine".formatted(without.get().index()));
      }
    }
    // NCCL copies by the copy engines from 2.28 on, older than which it is not taken at all.
    if (variant.needsWindow() && !windows.present()) {
      return lack(Reason.LIBRARY, windows.detail());
    }
    var missing = specs(variant).map(backend::lack).toList();
    return missing.stream().allMatch(Optional::isPresent)
        ? lack(Reason.NOT_IN_BACKEND, missing.getFirst().orElseThrow())
        : Optional.empty();
  }

  private static Optional<Lack> lack(Reason reason, String detail) {
    return Optional.of(new Lack(Optional.of(reason), detail));
  }

  private static Stream<VariantSpec> specs(Variant variant) {
    return VariantSpec.ofVariant(variant).stream();
  }

  private static boolean reachesPeers(Variant variant) {
    return specs(variant).anyMatch(VariantSpec::reachesPeers);
  }

  private static boolean needs(Variant variant, Requirement requirement) {
    return specs(variant).anyMatch(spec -> spec.requirements().contains(requirement));
  }

  private static String unreachedPeer(Machine machine, int peers) {
    return machine.gpus().get(peers).virtualMemory()
        ? "GPU %s and GPU %s cannot access each other's memory"
            .formatted(unreached(machine, peers).orElseThrow(), peers)
        : "GPU %s does not support memory handles".formatted(peers);
  }

  private static String needs(Variant variant) {
    if (variant == Variant.LOCAL) {
      return "one GPU";
    }
    if (variant == Variant.CUSTOM) {
      return "the op's own CUDA implementation";
    }
    var nccl = "NCCL %s or newer".formatted(oldestNccl());
    if (!reachesPeers(variant)) {
      return nccl;
    }
    var more = ImmutableList.<String>builder();
    if (specs(variant).anyMatch(VariantSpec::needsMulticast)) {
      more.add("sm_90 or newer, with NVLink multicast");
    }
    if (needs(variant, new Requirement.CopyEngines())) {
      more.add("with copy engines");
    }
    if (variant.needsWindow()) {
      more.add("and " + nccl + " with windows");
    }
    var words = String.join(", ", more.build());
    return words.isEmpty() ? "GPUs that can access each other's memory" : "such GPUs, " + words;
  }

  private static String tooOld(int nccl) {
    return "a symmetric kernel needs NCCL %s, this machine has %s"
        .formatted(oldestNccl(), Target.ncclVersion(nccl));
  }

  /** {@return for example {@code 2.28}} */
  public static String oldestNccl() {
    return "%s.%s".formatted(OLDEST_NCCL / 10_000, OLDEST_NCCL / 100 % 100);
  }

  /** The smallest built-in target of these GPUs that has as many, or the largest. */
  private static Optional<Fit> fit(Machine machine) {
    var names = machine.gpus().stream().map(Machine.Gpu::name).distinct().toList();
    if (names.size() != 1) {
      return Optional.empty();
    }
    int gpus = machine.gpus().size();
    var words =
        Splitter.on(CharMatcher.whitespace()).splitToList(Ascii.toLowerCase(names.getFirst()));
    return Target.names().stream()
        .flatMap(name -> Target.ofName(name).stream())
        .filter(target -> target.name().contains("x") && words.contains(family(target)))
        .min(
            Comparator.comparing((Target target) -> target.gpus() < gpus)
                .thenComparingInt(target -> Math.abs(target.gpus() - gpus)))
        .map(target -> fit(target, machine));
  }

  private static Fit fit(Target target, Machine machine) {
    int ranks = Math.min(machine.gpus().size(), target.gpus());
    var nccl = machine.nccl();
    return new Fit(
        target,
        ranks,
        "symplan run %s --ranks %s --target %s --backend %s"
            .formatted(
                ranks == RANKS_OF_SAMPLES ? "samples/tp_mlp.graph" : "GRAPH",
                ranks,
                target.name(),
                machine.problem().isEmpty() ? "cuda" : "host"),
        nccl.isPresent() && nccl.getAsInt() != target.nccl()
            ? Optional.of(
                "its times are for NCCL %s, this machine has %s"
                    .formatted(target.ncclVersion(), Target.ncclVersion(nccl.getAsInt())))
            : Optional.empty());
  }

  /** {@return as in {@code h200x4}} */
  private static String family(Target target) {
    return target.name().substring(0, target.name().indexOf('x'));
  }
}
