package dev.symplan.planner.interpret;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.planner.io.ProgramReader;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.verify.PlanMutator;
import dev.symplan.planner.verify.PlanMutator.Kind;
import dev.symplan.planner.verify.PlanVerifier;
import dev.symplan.planner.verify.RandomPrograms;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Plans do what their programs do, whatever unknown ops do. */
@Order(1) // It takes longest, so the others run beside it.
@Tag("random")
class InterpreterTest {
  private static final Path ROOT = Path.of(System.getProperty("symplan.root", "../.."));
  private static final Path WILD =
      Path.of(System.getProperty("symplan.shared", "../shared")).resolve("more/wild");

  private static final long SEED = RandomPrograms.SEED;
  private static final int ORDERS = 3;

  private static final CompileOptions BOUNDED =
      CompileOptions.DEFAULT.withDims(
          ImmutableMap.of(),
          ImmutableMap.of("s0", 4L, "s1", 4L, "s27", 4L, "s72", 4L, "s77", 4L, "u0", 8L, "u1", 8L));

  /** All rewrites, and everything with the caller. */
  private static final CompileOptions REWRITTEN =
      BOUNDED
          .withRewrites(new RewriteOptions(Mode.ON, Mode.ON, Mode.ON, Mode.ON, Mode.ON))
          .withInputs(MemorySpace.EXTERNAL)
          .withOutputs(MemorySpace.EXTERNAL);

  /** A run carries out none of these: they change only statements about other parts of the plan. */
  private static final ImmutableSet<Kind> STATEMENTS =
      ImmutableSet.of(
          Kind.LIFETIME,
          Kind.ARENA_SIZE,
          Kind.BOUND,
          Kind.IN_PLACE,
          Kind.ARENA,
          Kind.VARIANT,
          Kind.DIM,
          Kind.BORDER,
          Kind.MOVE_BORDER);

  /** Few programs have what these change, or show the change, so each has several mutants. */
  private static final ImmutableSet<Kind> RARE =
      ImmutableSet.of(
          Kind.DTYPE, Kind.EPILOGUE, Kind.EPILOGUE_STEP, Kind.SHARD, Kind.ROWS, Kind.HOSTS);

  private static List<Path> files(Path folder) throws IOException {
    try (var files = Files.list(folder)) {
      return files.sorted().toList();
    }
  }

  private static Optional<Compiled> random(long seed) {
    try {
      var planned = RandomPrograms.planned(seed);
      var graphs = new ArrayList<Graph>();
      for (int rank = 0; rank < planned.plan().worldSize(); rank++) {
        int own = rank;
        graphs.add(
            planned.program().graphs().stream()
                .filter(graph -> graph.runsOn(own))
                .findFirst()
                .orElseThrow());
      }
      return Optional.of(new Compiled(planned.plan(), graphs));
    } catch (CompileException e) {
      assertThat(e).hasMessageMatching(RandomPrograms.REFUSED);
      return Optional.empty();
    }
  }

  /** A gather that runs again before an op that may do anything. */
  @Test
  void whatIsGatheredAgainLeavesNothingBehind() {
    assertThat(random(5_152_278).orElseThrow().wrong(5_152_278, ORDERS)).isEmpty();
  }

  @Test
  void plansOfRandomProgramsDoWhatTheProgramsDo() {
    for (long seed = SEED; seed < SEED + Fuzz.times(600); seed++) {
      var compiled = random(seed);
      if (compiled.isPresent()) {
        assertThat(compiled.get().wrong(seed, ORDERS)).as("seed %s", seed).isEmpty();
      }
    }
  }

  @Test
  void plansOfSamplesDoWhatTheProgramsDo() throws IOException {
    var inputs = new ArrayList<Path>();
    for (var file : files(ROOT.resolve("samples"))) {
      if (file.toString().endsWith(".graph")) {
        inputs.add(file);
      }
    }
    for (var file : files(ROOT.resolve("samples/cases"))) {
      inputs.addAll(file.endsWith("plan") ? files(file) : List.of(file));
    }
    int compared =
        inputs.parallelStream()
            .mapToInt(input -> compare(input, BOUNDED, 2) + compare(input, REWRITTEN, 1))
            .sum();
    assertThat(compared).isEqualTo(2 * inputs.size());
  }

  @Test
  void plansOfPublishedTextsDoWhatTheProgramsDo() throws IOException {
    assumeTrue(Files.isDirectory(WILD), () -> "not here: " + WILD);
    var inputs = new ArrayList<>(files(WILD));
    inputs.addAll(files(WILD.resolve("unsafe")));
    assertThat(compareTexts(inputs)).isGreaterThan(60);
  }

  @Test
  void plansOfTextsInManyFormsDoWhatTheProgramsDo() throws IOException {
    var inputs = files(ROOT.resolve("runtime/cli/src/test/resources/texts"));
    assertThat(compareTexts(inputs)).isGreaterThan(inputs.size());
  }

  private static int compareTexts(List<Path> inputs) {
    return inputs.parallelStream()
        .mapToInt(
            input ->
                compare(input, BOUNDED.withRanks(2), 2) + compare(input, REWRITTEN.withRanks(2), 1))
        .sum();
  }

  /** {@return the number of graphs that could be planned} */
  private static int compare(Path input, CompileOptions options, int orders) {
    Program program;
    try {
      program = ProgramReader.read(input, options, _ -> {});
    } catch (CompileException e) {
      return 0;
    }
    int compared = 0;
    for (var name : program.graphs().stream().map(Graph::name).distinct().toList()) {
      try {
        var compiled = Compiled.of(program, Target.H200_X8, options.withGraph(name));
        for (int seed = 0; seed < orders; seed++) {
          assertThat(compiled.wrong(SEED + seed, 1)).as("%s %s", input, name).isEmpty();
        }
        compared++;
      } catch (CompileException e) {
        // Not every text can be planned.
      }
    }
    return compared;
  }

  /** The verifier rejects whatever is noticed here, and every kind of mutation is. */
  @Test
  void wrongPlansAreNoticedAndRejected() {
    var random = new Random(SEED);
    var noticed = new EnumMap<Kind, Integer>(Kind.class);
    for (long seed = SEED; seed < SEED + Fuzz.times(150); seed++) {
      var compiled = random(seed);
      for (var kind : Kind.values()) {
        if (compiled.isEmpty() || STATEMENTS.contains(kind)) {
          continue;
        }
        for (int mutants = RARE.contains(kind) ? 5 : 1; mutants > 0; mutants--) {
          var mutant = PlanMutator.mutate(compiled.get().plan(), kind, random);
          if (mutant.isPresent()) {
            var wrong = compiled.get().wrong(mutant.get(), seed, ORDERS);
            noticed.merge(kind, wrong.isPresent() ? 1 : 0, Integer::sum);
            if (wrong.isPresent()) {
              assertThat(PlanVerifier.verify(mutant.get()))
                  .as("seed %s, %s: %s", seed, kind, wrong)
                  .isNotEmpty();
            }
          }
        }
      }
    }
    assertThat(noticed).hasSize(Kind.values().length - STATEMENTS.size());
    noticed.forEach((kind, count) -> assertThat(count).as("noticed: %s", kind).isGreaterThan(5));
  }

  /** A collective beside compute, a copy for it, and memory that is used twice. */
  private static Compiled small() {
    var text =
        """
        def forward(self, x: "bf16[1024, 1024][1024, 1]", y: "bf16[1024, 1024][1024, 1]"):
            a: "bf16[1024, 1024][1024, 1]" = torch.ops.aten.mm.default(x, y)
            t: "bf16[1024, 1024][1, 1024]" = torch.ops.aten.t.default(a)
            r: "bf16[2048, 1024][1024, 1]" = torch.ops._c10d_functional.all_gather_into_tensor.default(t, 2, '0')
            b: "bf16[1024, 1024][1024, 1]" = torch.ops.aten.mm.default(x, a)
            c: "bf16[1024, 1024][1024, 1]" = torch.ops.aten.mm.default(x, b)
            w: "bf16[2048, 1024][1024, 1]" = torch.ops._c10d_functional.wait_tensor.default(r)
            d: "bf16[2048, 1024][1024, 1]" = torch.ops.aten.mm.default(w, c)
            return (d,)
        """;
    var options = CompileOptions.DEFAULT.withRanks(2);
    var program = ProgramReader.read(new SourceFile("small.fx.txt", text), options, _ -> {});
    return Compiled.of(program, Target.H200_X4, options);
  }

  private static Plan changed(
      Plan plan, UnaryOperator<List<Step>> steps, UnaryOperator<Buffer> buffers) {
    var ranks = ImmutableList.<RankPlan>builder();
    for (var rank : plan.rankPlans()) {
      ranks.add(
          new RankPlan(
              rank.graph(),
              rank.placements(),
              rank.buffers().stream().map(buffers).collect(ImmutableList.toImmutableList()),
              ImmutableList.copyOf(steps.apply(rank.steps())),
              rank.collectives(),
              rank.local()));
    }
    return new Plan(
        plan.name(),
        plan.target(),
        plan.topology(),
        plan.multicast(),
        plan.groups(),
        plan.declarations(),
        ranks.build(),
        plan.planOfRank(),
        plan.symmetric(),
        plan.digest(),
        plan.rewrites(),
        plan.replicated(),
        plan.reordering(),
        plan.frontier(),
        plan.least(),
        plan.warnings());
  }

  private static Optional<String> without(Compiled compiled, Predicate<Step> dropped) {
    var plan = compiled.plan();
    var steps = plan.rankPlans().getFirst().steps();
    assertThat(steps.stream().filter(dropped)).hasSize(1);
    return compiled.wrong(
        changed(
            plan, all -> all.stream().filter(dropped.negate()).toList(), UnaryOperator.identity()),
        0,
        ORDERS);
  }

  @Test
  void aWaitThatIsMissingIsNoticed() {
    assertThat(small().wrong(0, ORDERS)).isEmpty();
    assertThat(without(small(), Step.Join.class::isInstance))
        .hasValueSatisfying(why -> assertThat(why).contains("r is read before it is made"));
  }

  @Test
  void aCopyThatIsMissingIsNoticed() {
    var compiled = small();
    var ops = compiled.plan().rankPlans().getFirst().graph().ops();
    assertThat(
            without(
                compiled,
                step ->
                    step instanceof Step.Compute(int op)
                        && ops.get(op).def().name().name().equals("stage")))
        .hasValueSatisfying(why -> assertThat(why).contains("t_staged is read before it is made"));
  }

  /** Each pair of buffers of which both hold data at once, one put over the other. */
  @Test
  void buffersThatOverlapAreNoticed() {
    var compiled = small();
    var buffers = compiled.plan().rankPlans().getFirst().buffers();
    int pairs = 0;
    for (var a : buffers) {
      for (var b : buffers) {
        if (a != b
            && !a.arena().isExternal()
            && a.arena() == b.arena()
            && a.bytes() <= b.bytes()
            && a.first() < b.last()
            && b.first() < a.last()) {
          pairs++;
          var moved =
              new Buffer(
                  a.name(), a.arena(), a.symmetric(), b.offset(), a.bytes(), a.first(), a.last());
          var plan =
              changed(
                  compiled.plan(), UnaryOperator.identity(), one -> one.equals(a) ? moved : one);
          assertThat(compiled.wrong(plan, 0, ORDERS)).as("%s over %s", a, b).isPresent();
        }
      }
    }
    assertThat(pairs).isPositive();
  }
}
