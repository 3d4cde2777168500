package dev.symplan.runtime.doctor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.common.collect.ImmutableList;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.testkit.Golden;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.ProgramReader;
import dev.symplan.planner.machine.BackendVariants;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import dev.symplan.planner.machine.Verdict.Reason;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.runtime.doctor.Diagnosis.Support;
import dev.symplan.runtime.doctor.Machine.Attempt;
import dev.symplan.runtime.doctor.Machine.Driver;
import dev.symplan.runtime.doctor.Machine.Gpu;
import dev.symplan.runtime.doctor.Machine.Library;
import dev.symplan.runtime.doctor.Machine.Link;
import dev.symplan.runtime.doctor.Machine.NvLinks;
import dev.symplan.runtime.doctor.Machine.Setting;
import java.util.Collections;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.BiPredicate;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class DoctorTest {
  private static final ImmutableList<Setting> SETTINGS =
      ImmutableList.of(new Setting("NCCL_NVLS_ENABLE", "0", Setting.SYMPLAN));

  private static final long H200_BYTES = 150_121_545_728L;

  private static Gpu gpu(int index, String name, int capability) {
    return new Gpu(index, name, H200_BYTES, capability, 132, 3, true, true, true, true);
  }

  private static Library found(String name, String version) {
    return new Library(
        name,
        "a test",
        Optional.of("/opt/cuda/lib/" + name),
        Optional.of(version),
        Optional.empty(),
        ImmutableList.of());
  }

  private static ImmutableList<Library> libraries(String nccl) {
    return ImmutableList.of(found("libcudart.so.13", "13.0"), found(Machine.NCCL, nccl));
  }

  private static Machine machine(
      int gpus,
      String name,
      BiPredicate<Integer, Integer> access,
      ImmutableList<Library> libraries,
      ImmutableList<Setting> settings,
      Optional<String> problem) {
    var links = ImmutableList.<Link>builder();
    for (int from = 0; from < gpus; from++) {
      for (int to = 0; to < gpus; to++) {
        if (from != to) {
          boolean reaches = access.test(from, to);
          links.add(
              new Link(
                  from,
                  to,
                  reaches,
                  reaches,
                  Optional.of(
                      reaches
                          ? new NvLinks(18, OptionalDouble.of(26.562))
                          : new NvLinks(0, OptionalDouble.empty()))));
        }
      }
    }
    return new Machine(
        "Linux amd64",
        Optional.of(new Driver(Optional.of("580.159.03"), 13000)),
        IntStream.range(0, gpus)
            .mapToObj(i -> gpu(i, name, 90))
            .collect(ImmutableList.toImmutableList()),
        links.build(),
        libraries,
        settings,
        problem);
  }

  private static Machine h200(int gpus, ImmutableList<Setting> settings) {
    return machine(
        gpus, "NVIDIA H200", (_, _) -> true, libraries("2.28.9"), settings, Optional.empty());
  }

  private static final Machine H200_X4 = h200(4, SETTINGS);

  private static Machine none() {
    var looked =
        ImmutableList.of(
            new Attempt("/usr/local/cuda/lib64", Attempt.NONE),
            new Attempt("/opt/broken", "invalid ELF header"),
            new Attempt("the loader's own places", Attempt.NONE));
    return new Machine(
        "Linux amd64",
        Optional.empty(),
        ImmutableList.of(),
        ImmutableList.of(),
        ImmutableList.of(
            new Library(
                Machine.NCCL,
                "symmetric memory and collectives",
                Optional.empty(),
                Optional.empty(),
                Optional.empty(),
                looked)),
        SETTINGS,
        Optional.of("no NVIDIA driver was found: libcuda.so.1 cannot be loaded"));
  }

  private static Machine oldNccl() {
    var problem = "2.26.2 is too old: 2.28 or newer is needed";
    var nccl =
        new Library(
            Machine.NCCL,
            "symmetric memory and collectives",
            Optional.of("/usr/lib/libnccl.so.2"),
            Optional.of("2.26.2"),
            Optional.of(problem),
            ImmutableList.of());
    return machine(
        4,
        "NVIDIA H200",
        (_, _) -> true,
        ImmutableList.of(nccl),
        SETTINGS,
        Optional.of("libnccl.so.2 " + problem));
  }

  private static Machine noPeerAccess() {
    return machine(
        4,
        "NVIDIA L40S",
        (_, _) -> false,
        libraries("2.28.9"),
        ImmutableList.of(),
        Optional.empty());
  }

  private static void check(String name, Machine machine) {
    var diagnosis = diagnosis(machine);
    Golden.check("doctor/%s.txt".formatted(name), DoctorText.print(diagnosis));
    Golden.check("doctor/%s.json".formatted(name), DoctorJson.print(diagnosis));
  }

  @Test
  void tellsOfMachinesWithAllAndWithNothing() {
    check("h200x4", H200_X4);
    check("none", none());
    check("old_nccl", oldNccl());
    check("no_peer_access", noPeerAccess());
  }

  @Test
  void writesJsonThatCanBeRead() throws Exception {
    var json = new ObjectMapper().readTree(DoctorJson.print(diagnosis(H200_X4)));
    assertThat(json.at("/gpus/3/name").asText()).isEqualTo("NVIDIA H200");
    assertThat(json.at("/links/0/nvlinks").asInt()).isEqualTo(18);
    assertThat(json.at("/target/name").asText()).isEqualTo("h200x4");
  }

  private static Diagnosis diagnosis(Machine machine) {
    return Diagnosis.of(
        machine,
        BackendVariants.all("cuda")
            .withoutMulticast("uses NVLink multicast only with --multicast=on"));
  }

  private static Support support(Machine machine, Variant variant) {
    return diagnosis(machine).variants().stream()
        .filter(support -> support.variant() == variant)
        .findFirst()
        .orElseThrow();
  }

  private static Optional<Reason> reason(Machine machine, Variant variant) {
    return support(machine, variant).lack().flatMap(Diagnosis.Lack::reason);
  }

  @Test
  void tellsOfEveryVariant() {
    assertThat(diagnosis(H200_X4).variants())
        .extracting(Support::variant)
        .containsExactly(Variant.values());
  }

  @ParameterizedTest
  @CsvSource({
    "NCCL_NVLS_ENABLE, 0, false",
    "NCCL_NVLS_ENABLE, 1, true",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST, 1, false",
    "NVSHMEM_DISABLE_NVLS, 1, false",
    "NVSHMEM_DISABLE_NVLS, 0, true"
  })
  void multicastCanBeTurnedOff(String name, String value, boolean present) {
    var machine = h200(4, ImmutableList.of(new Setting(name, value, Setting.ENVIRONMENT)));
    assertThat(diagnosis(machine).multicast().present()).isEqualTo(present);
    assertThat(support(machine, Variant.MULTIMEM).ranks()).isZero();
    assertThat(reason(machine, Variant.MULTIMEM).equals(Optional.of(Reason.NO_MULTICAST)))
        .isEqualTo(!present);
  }

  /** Symplan's settings for NCCL do not keep its own kernels from it. */
  @Test
  void multicastCanBeUsedWhereItIsSwitchedOn() {
    var all = BackendVariants.all("cuda");
    assertThat(Diagnosis.of(H200_X4, all).usable(all, 4)).isEqualTo(all);
    var off = new Setting("NCCL_NVLS_ENABLE", "0", Setting.ENVIRONMENT);
    var usable = Diagnosis.of(h200(4, ImmutableList.of(off)), all).usable(all, 4);
    for (var variant : List.of(Variant.MULTIMEM, Variant.MULTIMEM_ONE_SHOT)) {
      assertThat(usable.lack(VariantSpec.of(Kind.ALL_REDUCE, variant)))
          .contains(
              "backend cuda cannot use it here: the GPUs have it, but it is off:"
                  + " NCCL_NVLS_ENABLE=0");
    }
  }

  @Test
  void windowsCanBeTurnedOff() {
    var machine =
        h200(4, ImmutableList.of(new Setting("NCCL_CUMEM_ENABLE", "0", Setting.ENVIRONMENT)));
    assertThat(diagnosis(machine).windows().detail())
        .isEqualTo("turned off by NCCL_CUMEM_ENABLE=0");
    assertThat(support(machine, Variant.NCCL_SYMM).ranks()).isZero();
    assertThat(support(machine, Variant.NCCL).ranks()).isEqualTo(4);
  }

  @Test
  void countsTheFirstGpusThatAllReachEachOther() {
    var pairs =
        machine(
            4,
            "NVIDIA H200",
            (from, to) -> from / 2 == to / 2,
            libraries("2.28.9"),
            SETTINGS,
            Optional.empty());
    assertThat(diagnosis(pairs).peers()).isEqualTo(2);
    var oneShot = support(pairs, Variant.ONE_SHOT);
    assertThat(oneShot.ranks()).isEqualTo(2);
    assertThat(oneShot.lack().orElseThrow())
        .hasToString("no_peer_access: GPU 0 and GPU 2 cannot access each other's memory");
    assertThat(support(pairs, Variant.NCCL).ranks()).isEqualTo(4);
  }

  @Test
  void oneGpuHasNoGroup() {
    var machine = h200(1, SETTINGS);
    assertThat(support(machine, Variant.LOCAL).ranks()).isEqualTo(1);
    assertThat(reason(machine, Variant.NCCL)).contains(Reason.GROUP_SIZE);
  }

  /** Plans for all ranks of a machine have only variants that it can run. */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "1|2.28.9|true|local custom",
        "2|2.28.9|true|local one_shot one_shot_push two_shot two_shot_push push copy_engine"
            + " nccl_symm nccl_ce nccl custom",
        "4|2.28.9|true|local one_shot one_shot_push two_shot two_shot_push push copy_engine"
            + " nccl_symm nccl_ce nccl custom",
        "8|2.28.9|true|local one_shot one_shot_push two_shot two_shot_push push copy_engine"
            + " nccl_symm nccl_ce nccl custom",
        "8|2.28.9|false|local",
      })
  void plansWithWhatTheMachineHas(int gpus, String nccl, boolean access, String usable) {
    var machine =
        machine(gpus, "NVIDIA H200", (_, _) -> access, libraries(nccl), SETTINGS, Optional.empty());
    var backend =
        diagnosis(machine).usable(BackendVariants.all("cuda").withoutMulticast("lacks it"), gpus);

    assertThat(
            Stream.of(Variant.values())
                .filter(
                    variant ->
                        VariantSpec.ofVariant(variant).stream()
                            .anyMatch(spec -> backend.lack(spec).isEmpty()))
                .map(Variant::text))
        .containsExactlyInAnyOrder(usable.split(" "));
    assertThat(diagnosis(machine).target().orElseThrow().gpus()).isEqualTo(gpus > 4 ? 8 : 4);
  }

  /** A graph with every kind of collective between all ranks. */
  private static String everyKind(int ranks) {
    var splits = Collections.nCopies(ranks, 64 / ranks);
    return """
    def forward(self, x: X):
        h: X = torch.ops.aten.neg.default(x)
        r: X = torch.ops._c10d_functional.all_reduce.default(h, 'sum', '0')
        rw: X = torch.ops._c10d_functional.wait_tensor.default(r)
        g: "bf16[WHOLE, 16][16, 1]" = torch.ops._c10d_functional.all_gather_into_tensor.default(rw, RANKS, '0')
        gw: "bf16[WHOLE, 16][16, 1]" = torch.ops._c10d_functional.wait_tensor.default(g)
        s: X = torch.ops._c10d_functional.reduce_scatter_tensor.default(gw, 'sum', RANKS, '0')
        sw: X = torch.ops._c10d_functional.wait_tensor.default(s)
        a: X = torch.ops._c10d_functional.all_to_all_single.default(sw, SPLITS, SPLITS, '0')
        aw: X = torch.ops._c10d_functional.wait_tensor.default(a)
        b: X = torch.ops._c10d_functional.broadcast.default(aw, 0, '0')
        bw: X = torch.ops._c10d_functional.wait_tensor.default(b)
        return (bw,)
    """
        .replace("X", "\"bf16[64, 16][16, 1]\"")
        .replace("SPLITS", splits.toString())
        .replace("RANKS", Integer.toString(ranks))
        .replace("WHOLE", Integer.toString(64 * ranks));
  }

  /** Every collective of a plan for a machine has a variant that the machine can run. */
  @ParameterizedTest
  @CsvSource({"1, true", "2, true", "4, true", "8, true", "2, false", "8, false"})
  void everyKindIsPlannedForTheMachine(int gpus, boolean access) {
    var machine =
        machine(
            gpus, "NVIDIA H200", (_, _) -> access, libraries("2.28.9"), SETTINGS, Optional.empty());
    var variants = BackendVariants.all("cuda").withoutMulticast("lacks it");
    var backend = diagnosis(machine).usable(variants, gpus);
    var options = CompileOptions.DEFAULT.withRanks(gpus).withBackend(backend);
    var program = ProgramReader.read(new SourceFile("g.txt", everyKind(gpus)), options, _ -> {});
    var compiler = Compiler.forTarget(diagnosis(machine).target().orElseThrow()).with(options);
    if (!access) {
      assertThatThrownBy(() -> compiler.compile(program))
          .isInstanceOf(CompileException.class)
          .hasMessageContaining("cannot access each other's memory");
      return;
    }
    var chosen = compiler.compile(program).rankPlans().getFirst().collectives();
    assertThat(chosen).hasSize(5);
    assertThat(chosen)
        .allMatch(one -> backend.lack(VariantSpec.of(one.kind(), one.variant())).isEmpty());
  }

  /** Two ranks need no more than the pair. */
  @Test
  void usesWhatFewerRanksReach() {
    var pairs =
        machine(
            4,
            "NVIDIA H200",
            (from, to) -> from / 2 == to / 2,
            libraries("2.28.3"),
            SETTINGS,
            Optional.empty());
    var all = BackendVariants.all("cuda");
    var oneShot = VariantSpec.of(Kind.ALL_REDUCE, Variant.ONE_SHOT);

    assertThat(diagnosis(pairs).usable(all, 2).lack(oneShot)).isEmpty();
    assertThat(diagnosis(pairs).usable(all, 4).lack(oneShot))
        .contains(
            "backend cuda cannot use it here: GPU 0 and GPU 2 cannot access each other's memory");
    assertThat(diagnosis(pairs).target().orElseThrow().ncclVersion()).isEqualTo("2.28.3");
  }

  @ParameterizedTest
  @CsvSource({
    "2, NVIDIA H200, h200x4, 2",
    "4, NVIDIA H200, h200x4, 4",
    "5, NVIDIA H200, h200x8, 5",
    "2, NVIDIA H100 80GB HBM3, h100x4, 2",
    "8, NVIDIA H100 80GB HBM3, h100x8, 8",
    "16, NVIDIA B200, b200x8, 8",
    "2, NVIDIA GH200 480GB, , 0",
    "4, NVIDIA L40S, , 0"
  })
  void fitsTheSmallestTargetThatHasAsManyGpus(int gpus, String name, String target, int ranks) {
    var machine =
        machine(gpus, name, (_, _) -> true, libraries("2.28.9"), SETTINGS, Optional.empty());
    var fit = diagnosis(machine).fit();
    assertThat(fit.map(f -> f.target().name())).isEqualTo(Optional.ofNullable(target));
    assertThat(fit.map(Diagnosis.Fit::ranks).orElse(0)).isEqualTo(ranks);
  }

  @Test
  void aTargetThatHasMulticastIsUsedAsItIs() {
    assertThat(diagnosis(h200(8, SETTINGS)).fit().orElseThrow().command())
        .isEqualTo("symplan run GRAPH --ranks 8 --target h200x8 --backend cuda");
  }

  @Test
  void saysWhereATargetHasAnotherNccl() {
    var machine =
        machine(4, "NVIDIA H200", (_, _) -> true, libraries("2.30.7"), SETTINGS, Optional.empty());
    assertThat(diagnosis(machine).fit().orElseThrow().note())
        .contains("its times are for NCCL 2.28.9, this machine has 2.30.7");
  }

  @Test
  void refusesFactsThatContradictEachOther() {
    assertThatThrownBy(() -> new Link(1, 1, true, true, Optional.empty()))
        .isInstanceOf(IllegalArgumentException.class);
    assertThatThrownBy(
            () ->
                new Machine(
                    "Linux",
                    Optional.empty(),
                    ImmutableList.of(gpu(1, "NVIDIA H200", 90)),
                    ImmutableList.of(),
                    ImmutableList.of(),
                    ImmutableList.of(),
                    Optional.empty()))
        .isInstanceOf(IllegalArgumentException.class);
  }
}
