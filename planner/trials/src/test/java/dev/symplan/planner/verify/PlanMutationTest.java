package dev.symplan.planner.verify;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.Maps;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.testkit.Cuts;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.verify.PlanMutator.Kind;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** More, or others, with {@code -Dsymplan.mutations=N -Dsymplan.seed=N}. */
@Tag("random")
class PlanMutationTest {
  private static final int UNSAFE = Integer.getInteger("symplan.mutations", Fuzz.times(10_000));
  private static final long SEED = RandomPrograms.SEED;
  private static final int PER_PLAN = 12;
  private static final ImmutableList<Kind> KINDS_OF_KERNELS =
      ImmutableList.of(
          Kind.EPILOGUE,
          Kind.EPILOGUE_STEP,
          Kind.SHARD,
          Kind.ROWS,
          Kind.DTYPE,
          Kind.BARRIER,
          Kind.FUSE);

  private static final class Count {
    int unsafe;
    int missed;
    int equivalent;
    int equivalentAccepted;
  }

  private final Map<Kind, Count> counts = new EnumMap<>(Kind.class);
  private final List<String> missed = new ArrayList<>();

  @Test
  void unsafeMutationsAreRejected() {
    var random = new Random(SEED);
    int unsafe = 0;
    int copied = 0;
    long seed = SEED;
    while (unsafe < UNSAFE) {
      seed++;
      var plan = plan(seed);
      if (plan.isEmpty()) {
        continue;
      }
      copied += Cuts.hasCopies(plan.get().forRank(0).graph()) ? 1 : 0;
      var oracle = new PlanOracle(plan.get());
      assertThat(oracle.unsafe(plan.get())).as("seed %s", seed).isEmpty();
      for (int i = 0; i < PER_PLAN; i++) {
        var kind = Kind.values()[random.nextInt(Kind.values().length)];
        var mutant = PlanMutator.mutate(plan.get(), kind, random);
        if (mutant.isPresent()) {
          unsafe += judge(seed, kind, oracle, mutant.get()) ? 1 : 0;
        }
      }
    }
    report(seed, unsafe);
    assertThat(copied).as("plans of graphs that get copies").isPositive();
    assertThat(missed).isEmpty();
  }

  private static final String EPILOGUES =
      """
      graph epilogues(x: f32[8, 8], h: f32[8, 8]) {
        a = aten::mm(x, h)
        r = _c10d_functional::all_reduce(a, "sum", "tp")
        n = aten::add.Tensor(h, r)
        e = aten::relu(n)
        b = aten::mm(e, h)
        q = _c10d_functional::all_reduce(b, "sum", "tp")
        o = aten::mul.Tensor(n, q)
        p = aten::exp(q)
        return o, p
      }
      """;

  /** Plans with steps in the kernels of collectives, and with shards in rows: few others have. */
  private static final ImmutableList<String> IN_KERNELS =
      ImmutableList.of(
          EPILOGUES,
          EPILOGUES,
          """
          graph makers(x: f32[8, 8]) {
            a = aten::relu(x)
            b = aten::exp(x)
            p = symplan::reduce_scatter_dim(b, "sum", 1, 4, "tp")
            q = _c10d_functional::all_reduce(a, "sum", "tp")
            s = aten::mul.Tensor(q, a)
            return p, s
          }
          """,
          """
          graph rows(x: f32[4, 8], y: f32[8, 16]) {
            a = aten::mm(x, y)
            g = symplan::all_gather_dim(a, 1, 4, "tp")
            return g
          }
          """,
          """
          graph parts(x: f32[8, 96]) {
            a = aten::relu(x)
            b = aten::slice.Tensor(a, 1, 0, 32)
            c = aten::slice.Tensor(a, 1, 64, 96)
            q = _c10d_functional::all_reduce(b, "sum", "tp")
            p = symplan::reduce_scatter_dim(c, "sum", 1, 4, "tp")
            r = aten::exp(q)
            return p, r
          }
          """,
          """
          graph joined(x: f32[8, 64], y: f32[2, 64]) {
            a = aten::relu(x)
            b = aten::relu(y)
            q = _c10d_functional::all_reduce(a, "sum", "tp")
            w = _c10d_functional::wait_tensor(q)
            g = _c10d_functional::all_gather_into_tensor(b, 4, "tp")
            c = aten::cat([w, x, g], 1)
            d = aten::t(c)
            e = aten::mm(c, d)
            return e
          }
          """,
          """
          graph stacked(x: f32[8, 32]) {
            a = aten::relu(x)
            b = aten::exp(x)
            q = symplan::reduce_scatter_dim(a, "sum", 0, 4, "tp")
            p = symplan::reduce_scatter_dim(b, "sum", 0, 4, "tp")
            c = aten::stack([p, q], 1)
            return c
          }
          """,
          """
          graph orders(x: f32[8, 4, 16]) {
            a = aten::relu(x)
            b = aten::permute(a, [1, 0, 2])
            c = aten::slice.Tensor(a, 2, 0, 8)
            g = symplan::all_gather_dim(b, 0, 4, "tp")
            p = symplan::reduce_scatter_dim(c, "sum", 1, 4, "tp")
            return g, p
          }
          """);

  @Test
  void unsafeMutationsOfWhatRunsInKernelsAreRejected() {
    var random = new Random(SEED);
    var options =
        CompileOptions.DEFAULT
            .withOverlap(false)
            .withVariants(
                ImmutableMap.of(
                    "all_reduce", Variant.TWO_SHOT,
                    "reduce_scatter", Variant.ONE_SHOT,
                    "all_gather", Variant.PUSH));
    int unsafe = 0;
    for (int i = 0; i < IN_KERNELS.size(); i++) {
      var text = IN_KERNELS.get(i);
      var own =
          new HashMap<>(Maps.filterKeys(options.variants(), kind -> text.contains("::" + kind)));
      if (i > 0) {
        own.computeIfPresent("all_reduce", (_, _) -> Variant.ONE_SHOT);
      }
      var plan =
          VerifierFixtures.compileReadingRows(text, options.withVariants(ImmutableMap.copyOf(own)));
      var oracle = new PlanOracle(plan);
      assertThat(oracle.unsafe(plan)).isEmpty();
      for (int m = 0; m < UNSAFE / 10; m++) {
        var kinds = m % 2 == 0 ? KINDS_OF_KERNELS : ImmutableList.copyOf(Kind.values());
        var kind = kinds.get(random.nextInt(kinds.size()));
        var mutant = PlanMutator.mutate(plan, kind, random);
        if (mutant.isPresent()) {
          unsafe += judge(i, kind, oracle, mutant.get()) ? 1 : 0;
        }
      }
    }
    report(SEED, unsafe);
    assertThat(missed).isEmpty();
    for (var kind : KINDS_OF_KERNELS) {
      assertThat(counts.getOrDefault(kind, new Count()).unsafe).as("unsafe %s", kind).isPositive();
    }
  }

  /** Gradients that are added in a wider type: any other type is a false statement. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "symplan::reduce_scatter_dim(a, 'sum', 1, 4, 'tp', dtype=torch.float32)",
        "symplan::reduce_scatter_coalesced([a, b], 'sum', 4, 'tp', dtype=torch.float32)"
      })
  void otherTypesOfWhatIsConvertedAreRejected(String call) {
    boolean several = call.contains("coalesced");
    var text =
        """
        graph converted(x: bf16[8, 8]) {
          a = aten::relu(x)
          b = aten::exp(x)
          %s = %s
          return %s
        }
        """
            .formatted(several ? "p, q" : "p", call.replace('\'', '"'), several ? "p, q" : "p, b");
    var plan = VerifierFixtures.compile(text, CompileOptions.DEFAULT);
    assertThat(PlanVerifier.verify(plan)).isEmpty();
    var random = new Random(SEED);
    int mutants = 0;
    for (int m = 0; m < 20; m++) {
      var mutant = PlanMutator.mutate(plan, Kind.DTYPE, random);
      if (mutant.isPresent()) {
        mutants++;
        assertThat(PlanVerifier.verify(mutant.get())).isNotEmpty();
      }
    }
    assertThat(mutants).isPositive();
  }

  private static Optional<Plan> plan(long seed) {
    try {
      return Optional.of(RandomPrograms.plan(seed));
    } catch (CompileException e) {
      // Outputs that the ranks cannot have in symmetric memory alike.
      return Optional.empty();
    }
  }

  private boolean judge(long seed, Kind kind, PlanOracle oracle, Plan mutant) {
    var count = counts.computeIfAbsent(kind, k -> new Count());
    var why = kind.isStatement() ? Optional.of("a false statement") : oracle.unsafe(mutant);
    boolean accepted = PlanVerifier.verify(mutant).isEmpty();
    if (why.isEmpty()) {
      count.equivalent++;
      count.equivalentAccepted += accepted ? 1 : 0;
      return false;
    }
    count.unsafe++;
    if (accepted) {
      count.missed++;
      missed.add("seed %s %s: %s".formatted(seed, kind, why.get()));
    }
    return true;
  }

  private void report(long lastSeed, int unsafe) {
    var table = new StringBuilder();
    table.append("mutations of plans from seeds %s to %s\n".formatted(SEED + 1, lastSeed));
    table.append("kind              unsafe  missed  harmless  of these accepted\n");
    counts.forEach(
        (kind, c) ->
            table.append(
                "%-16s  %6d  %6d  %8d  %8d\n"
                    .formatted(kind, c.unsafe, c.missed, c.equivalent, c.equivalentAccepted)));
    table.append("%s of %s unsafe ones rejected".formatted(unsafe - missed.size(), unsafe));
    missed.forEach(one -> table.append("\nmissed: ").append(one));
    System.out.println(table);
  }
}
