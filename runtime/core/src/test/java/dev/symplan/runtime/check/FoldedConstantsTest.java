package dev.symplan.runtime.check;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.host.HostBackend;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.SeededInputs;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** What a session computes once is right in every run. */
class FoldedConstantsTest {
  private static final int PROGRAMS = Integer.getInteger("symplan.graphs", 300);
  private static final long SEED = Fuzz.seed(20_261_128_000L);

  /** One session; the memory of its inputs was handed out once. */
  private record Runs(Session session, FoldedPrograms made, List<Input> inputs) {

    private record Input(int rank, String name, HostTensor tensor) {}

    static Runs of(Session session, FoldedPrograms made) {
      var inputs = new ArrayList<Input>();
      for (int rank : session.localRanks()) {
        for (var name : session.inputNames(rank)) {
          inputs.add(new Input(rank, name, session.input(rank, name)));
        }
      }
      return new Runs(session, made, inputs);
    }

    void fill(long seed, boolean weights) {
      for (var input : inputs) {
        if (weights || !FoldedPrograms.WEIGHTS.contains(input.name())) {
          SeededInputs.fill(input.tensor(), seed, input.rank(), input.name());
        }
      }
    }

    void run(String what) {
      var graphs =
          IntStream.range(0, FoldedPrograms.RANKS)
              .mapToObj(_ -> made.program().graphs().getFirst())
              .toList();
      int count = inputs.size() / FoldedPrograms.RANKS;
      var expected =
          Reference.evaluate(
                  graphs,
                  made.plan().groups(),
                  (rank, index) -> Optional.of(inputs.get(rank * count + index).tensor()))
              .outputs();
      session.run();
      for (int rank = 0; rank < FoldedPrograms.RANKS; rank++) {
        for (int i = 0; i < session.outputCount(); i++) {
          var wanted = expected.get(rank).get(i).orElseThrow();
          LoweredAttentionTest.compare(
              wanted, session.output(rank, i).orElseThrow(), 2e-4, what + "\n" + made.text());
        }
      }
    }
  }

  /** The setup has memory that results have later. */
  @Test
  void theSetupDoesNotRunBetweenGraphsThatHandResultsOn() {
    var program =
        GraphParser.parse(
            new SourceFile(
                "t.graph",
                """
                graph version 1
                graph f(x: f32[64, 64], w: f32[64, 64]) {
                  v = aten::mm(w, w)
                  u = aten::mm(v, w)
                  s = aten::mm(x, u)
                  symplan::border("b", 2, 0)
                  t = aten::mm(s, s)
                  return t
                }
                """));
    var options = CompileOptions.DEFAULT.withRanks(1).withFoldWeights(ImmutableSet.of("w"));
    var plan = Compiler.forTarget(Target.H200_X4).with(options).compile(program);
    try (var session = Session.open(plan, new HostBackend())) {
      var found = new ArrayList<Double>();
      for (boolean asks : new boolean[] {false, true}) {
        for (var name : List.of("x", "w")) {
          SeededInputs.fill(session.input(0, name), SEED, 0, name);
        }
        session.run("f");
        if (asks) {
          session.input(0, "w");
        }
        session.run("b");
        found.add(session.output(0, 0).orElseThrow().get(3, 5));
      }
      assertThat(found.get(1)).isEqualTo(found.get(0));
    }
  }

  @Test
  void whatTheCallerGivesAwayIsNotWhereTheyAre() {
    var program =
        GraphParser.parse(
            new SourceFile(
                "t.graph",
                """
                graph version 1
                graph f(x: f32[64, 64], u: f32[64, 64] @donated) {
                  p = aten::full([64, 64], 0.5)
                  s = aten::mm(p, p)
                  y = aten::mm(x, s)
                  return y
                }
                """));
    var options = CompileOptions.DEFAULT.withRanks(1);
    var plan = Compiler.forTarget(Target.H200_X4).with(options).compile(program);
    try (var session = Session.open(plan, new HostBackend())) {
      SeededInputs.fill(session.input(0, "x"), SEED, 0, "x");
      var found = new ArrayList<Double>();
      for (int run = 0; run < 2; run++) {
        SeededInputs.fill(session.input(0, "u"), SEED, 0, "u");
        session.run();
        found.add(session.output(0, 0).orElseThrow().get(3, 5));
      }
      assertThat(found.get(1)).isEqualTo(found.get(0));
    }
  }

  @Test
  void everyRunGivesWhatAFreshSessionGives() {
    for (long seed = SEED; seed < SEED + PROGRAMS / 10; seed++) {
      FoldedPrograms.of(seed).check(new HostBackend());
    }
  }

  @Test
  void everyRunFindsWhatTheSetupMade() {
    int folded = 0;
    int weights = 0;
    for (long seed = SEED; seed < SEED + PROGRAMS; seed++) {
      var made = FoldedPrograms.of(seed);
      boolean foldsWeights = made.foldsWeights();
      folded += made.hasSetup() ? 1 : 0;
      weights += made.hasSetup() && foldsWeights ? 1 : 0;
      try (var session = Session.open(made.plan(), new HostBackend())) {
        var runs = Runs.of(session, made);
        for (int run = 0; run < 3; run++) {
          runs.fill(seed + run, run == 0 || !foldsWeights);
          runs.run("seed %s, run %s".formatted(seed, run));
        }
        runs.fill(seed + 3, true);
        session.setUpAgain();
        runs.run("seed %s, set up again".formatted(seed));
        FoldedPrograms.WEIGHTS.forEach(name -> session.input(0, name));
        runs.fill(seed + 4, true);
        runs.run("seed %s, weights handed out".formatted(seed));
      }
    }
    System.out.printf(
        "%s of %s programs have a setup, %s of these may fold weights, from seed %s%n",
        folded, PROGRAMS, weights, SEED);
    assertThat(folded).as("programs with a setup").isGreaterThan(PROGRAMS / 3);
    assertThat(weights).as("programs that may fold weights").isGreaterThan(PROGRAMS / 6);
  }
}
