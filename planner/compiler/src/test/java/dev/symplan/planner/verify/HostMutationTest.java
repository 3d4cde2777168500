package dev.symplan.planner.verify;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.verify.PlanMutator.Kind;
import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/**
 * Collectives of a mesh of 4 x 8 ranks, on four hosts with eight ranks each or on hosts with
 * different numbers of ranks: those between hosts are in no symmetric memory, and the verifier
 * finds every change that puts one there. More, or others, with {@code -Dsymplan.mutations=N
 * -Dsymplan.seed=N}.
 */
@Tag("random")
class HostMutationTest {
  private static final int UNSAFE = Integer.getInteger("symplan.mutations", Fuzz.times(2000));
  private static final long SEED = Fuzz.seed(22_700_000);
  private static final int PER_PLAN = 100;
  private static final int HOST = 8;
  private static final List<Kind> KINDS = List.of(Kind.HOSTS, Kind.VARIANT);

  private static final String GROUPS =
      """
      graph version 1
      group tp = mesh [4, 8] dim 1
      group dp = mesh [4, 8] dim 0
      group all = [0:32]
      group pairs = mesh [2, 2, 8] dim 1
      group twos = mesh [16, 2] dim 1
      group fours = mesh [8, 4] dim 1
      """;

  private static Plan plan(Random random) {
    var text = new StringBuilder(GROUPS).append("graph mesh(x: f32[256, 64]) {\n");
    var last = "x";
    for (int i = 0; i < 5; i++) {
      var group = List.of("tp", "dp", "all", "pairs", "twos", "fours").get(random.nextInt(6));
      int size =
          switch (group) {
            case "tp" -> 8;
            case "dp", "fours" -> 4;
            case "all" -> 32;
            default -> 2;
          };
      var rows = String.join(", ", Collections.nCopies(size, "" + 256 / size));
      var call =
          switch (random.nextInt(5)) {
            case 0 -> "all_reduce(%s, \"sum\"".formatted(last);
            case 1 -> "broadcast(%s, %s".formatted(last, random.nextInt(size));
            case 2 -> "all_to_all_single(%s, [%s], [%s]".formatted(last, rows, rows);
            case 3 -> "all_gather_into_tensor(%s, %s".formatted(last, size);
            default -> "reduce_scatter_tensor(%s, \"max\", %s".formatted(last, size);
          };
      text.append("  r%s = _c10d_functional::%s, \"%s\")\n".formatted(i, call, group));
      text.append("  w%1$s = _c10d_functional::wait_tensor(r%1$s)\n".formatted(i));
      // Others take what the graph gets, so that all have the same rows.
      boolean same = !call.startsWith("all_gather") && !call.startsWith("reduce_scatter");
      last = same ? "w" + i : last;
    }
    var results = IntStream.range(0, 5).mapToObj(i -> "w" + i).toList();
    text.append("  return ").append(String.join(", ", results)).append("\n}\n");
    var modes = Mode.values();
    var options =
        CompileOptions.DEFAULT
            .withHosts(hosts(random))
            .withRewrites(
                RewriteOptions.AUTO.withHierarchical(modes[random.nextInt(modes.length)]));
    return Compiler.forTarget(Target.H200_X8)
        .with(options)
        .compile(GraphParser.parse(new SourceFile("mesh.graph", text.toString())));
  }

  private static Hosts hosts(Random random) {
    if (random.nextInt(3) == 0) {
      return Hosts.parse("4x8").orElseThrow();
    }
    var filled = Hosts.filled(unequal(random));
    if (random.nextInt(3) > 0) {
      return filled;
    }
    // Twos stay together, and hosts have as many ranks as before.
    var twos = new ArrayList<>(IntStream.range(0, 2 * HOST).boxed().toList());
    Collections.shuffle(twos, random);
    return new Hosts(
        ImmutableIntArray.copyOf(
            IntStream.range(0, 4 * HOST)
                .map(rank -> filled.ofRank().get(2 * twos.get(rank / 2) + rank % 2))));
  }

  /**
   * Hosts of one to eight ranks, 32 in all. Parts of a group may have 3 ranks on one and 1 on
   * another; if hosts have even numbers of ranks, twos are within them.
   */
  private static ImmutableIntArray unequal(Random random) {
    int unit = 1 << random.nextInt(3);
    var hosts = ImmutableIntArray.builder();
    for (int left = 4 * HOST; left > 0; ) {
      int own = unit * (1 + random.nextInt(Math.min(HOST, left) / unit));
      hosts.add(own);
      left -= own;
    }
    return hosts.build();
  }

  /** By the list of hosts, and nothing else of the planner's. */
  private static int[] hostOfRank(Plan plan) {
    return plan.topology().placement().ofRank().toArray();
  }

  private static boolean isApart(Plan plan, CollectivePlan collective) {
    var hosts = hostOfRank(plan);
    return plan.group(collective.group()).members().stream()
        .anyMatch(part -> part.stream().map(rank -> hosts[rank]).distinct().count() > 1);
  }

  private static boolean reachesOtherHosts(Plan plan) {
    return plan.rankPlans().stream()
        .flatMap(rank -> rank.collectives().stream())
        .anyMatch(collective -> collective.spec().reachesPeers() && isApart(plan, collective));
  }

  private static boolean isEqual(Plan plan) {
    return plan.topology().hosts().stream().distinct().count() == 1;
  }

  @Test
  void symmetricMemoryStaysWithinHosts() {
    var unsafe = new EnumMap<Kind, Integer>(Kind.class);
    int within = 0;
    int withinUnequal = 0;
    for (long seed = SEED; sum(unsafe) < UNSAFE; seed++) {
      var random = new Random(seed);
      var plan = plan(random);
      for (var collective : plan.forRank(0).collectives()) {
        boolean nccl = collective.variant() == Variant.NCCL;
        assertThat(nccl).as("seed %s: %s", seed, collective).isEqualTo(isApart(plan, collective));
        within += nccl ? 0 : 1;
        withinUnequal += nccl || isEqual(plan) ? 0 : 1;
      }
      for (int i = 0; i < PER_PLAN; i++) {
        var kind = KINDS.get(random.nextInt(KINDS.size()));
        var mutant = PlanMutator.mutate(plan, kind, random);
        if (mutant.filter(HostMutationTest::reachesOtherHosts).isPresent()) {
          unsafe.merge(kind, 1, Integer::sum);
          assertThat(PlanVerifier.verify(mutant.get()))
              .as("seed %s, %s %s", seed, kind, i)
              .anyMatch(violation -> violation.message().contains("in the NVLink domains"));
        }
      }
    }
    assertThat(within).isPositive();
    assertThat(withinUnequal).isPositive();
    assertThat(unsafe.keySet()).containsAll(KINDS);
    System.out.println("rejected, as ranks of several hosts would share memory: " + unsafe);
  }

  private static int sum(Map<Kind, Integer> counts) {
    return counts.values().stream().mapToInt(count -> count).sum();
  }
}
