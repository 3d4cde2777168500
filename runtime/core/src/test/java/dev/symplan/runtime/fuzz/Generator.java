package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Notes;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.testkit.Cuts;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.Objective;
import dev.symplan.planner.options.RewriteOptions;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.SplittableRandom;
import java.util.stream.IntStream;

/** Makes a program, and how to compile it, from a seed. */
final class Generator {
  private static final int ATTEMPTS = 12;

  /** Cuts are drawn by themselves, so that a seed gives the same ops with and without them. */
  private static final long CUTS = 0xC075;

  /** Ops whose results hold numbers that nobody wrote, until somebody does. */
  private static final String EMPTY = "(new_)?empty.*";

  /** Ops that decide aliases and places rather than numbers: drawn more often. */
  private static final ImmutableList<String> FREQUENT =
      ImmutableList.of(
          "aten::view",
          "aten::permute",
          "aten::slice.Tensor",
          "aten::select.int",
          "aten::expand",
          "aten::as_strided",
          "aten::split.Tensor",
          "aten::unbind.int",
          "aten::squeeze",
          "aten::t",
          "aten::detach",
          "aten::copy_",
          "aten::copy_",
          "aten::copy_",
          "aten::clone",
          "aten::relu",
          "aten::relu",
          "aten::add.Tensor",
          "aten::mul.Tensor",
          "aten::exp",
          "aten::cat",
          "aten::mm",
          "test_fuzz::slow");

  private final ImmutableList<OpDef> ops;
  private final ImmutableList<OpDef> frequent;

  /**
   * @param ops to draw local ops from
   */
  Generator(ImmutableList<OpDef> ops) {
    this.ops = ops;
    this.frequent = FREQUENT.stream().map(Sketch::op).collect(ImmutableList.toImmutableList());
  }

  FuzzCase make(long seed) {
    var random = new SplittableRandom(seed);
    random.nextLong();
    int ranks = new int[] {1, 2, 2, 2, 3, 4, 4}[random.nextInt(7)];
    int versions = ranks == 1 || random.nextInt(10) < 7 ? 1 : random.nextInt(3) == 0 ? ranks : 2;
    var versionOf = versionOf(random, ranks, versions);
    // These take longest to run.
    boolean spliced = seed % 8 == 1;
    var hosts = hosts(random, ranks);
    var sketch = new Sketch(random, versions, hosts.isPresent(), spliced);
    var groups = groups(ranks);
    var exchanges = new Exchanges(sketch, groups, versionOf);
    for (int i = 1 + random.nextInt(2); i > 0; i--) {
      sketch.input(sketch.dtype(), sketch.shape(), Fill.ANY);
    }
    int steps = random.nextInt(12) == 0 ? 15 + random.nextInt(20) : 2 + random.nextInt(8);
    for (int i = 0; i < steps; i++) {
      if (spliced && random.nextInt(100) < 40) {
        var other = frequent.get(random.nextInt(frequent.size()));
        attempt(() -> new Splices(sketch, groups, () -> attempt(() -> local(sketch, other))).add());
      }
      // All ops get their turn; some more often.
      var next = ops.get((int) Math.floorMod(seed * 3 + i, (long) ops.size()));
      attempt(random.nextInt(100) < 35 ? exchanges::add : () -> local(sketch, next));
      if (random.nextInt(100) < 45) {
        var other = frequent.get(random.nextInt(frequent.size()));
        attempt(() -> local(sketch, other));
      }
      if (versions > 1 && random.nextInt(3) == 0) {
        sketch.vary();
      }
    }
    var graphs =
        sketch.graphs(
            IntStream.range(0, versions)
                .mapToObj(
                    v ->
                        versions == 1
                            ? ImmutableIntArray.of()
                            : ImmutableIntArray.copyOf(
                                IntStream.range(0, ranks).filter(r -> versionOf[r] == v)))
                .toList());
    var whole =
        new Program(
            ImmutableList.copyOf(groups),
            ImmutableList.of(),
            ImmutableList.copyOf(graphs),
            Notes.NONE);
    var program = seed % 4 == 0 ? Cuts.cut(whole, new SplittableRandom(seed ^ CUTS)) : whole;
    var targets = Target.names();
    return new FuzzCase(
        program,
        Target.ofName(targets.get(random.nextInt(targets.size()))).orElseThrow(),
        options(random, program, ranks, hosts),
        sketch.fills(),
        seed);
  }

  private static void attempt(Runnable step) {
    try {
      step.run();
    } catch (Sketch.Refused e) {
      // Another one follows.
    }
  }

  private static int[] versionOf(SplittableRandom random, int ranks, int versions) {
    var of = new int[ranks];
    int kind = random.nextInt(3);
    for (int rank = 0; rank < ranks; rank++) {
      of[rank] =
          kind == 0
              ? rank % versions
              : kind == 1 ? rank * versions / ranks : random.nextInt(versions);
    }
    // Every version runs somewhere.
    boolean all = IntStream.of(of).distinct().count() == versions;
    return all ? of : IntStream.range(0, ranks).map(rank -> rank % versions).toArray();
  }

  private static List<ProcessGroup> groups(int ranks) {
    var groups = new ArrayList<ProcessGroup>();
    groups.add(ProcessGroup.world("world", ranks));
    groups.add(
        new ProcessGroup(
            "solo",
            IntStream.range(0, ranks)
                .mapToObj(ImmutableIntArray::of)
                .collect(ImmutableList.toImmutableList())));
    groups.add(ProcessGroup.world("again", ranks));
    if (ranks == 2) {
      groups.add(new ProcessGroup("back", ImmutableList.of(ImmutableIntArray.of(1, 0))));
    }
    if (ranks == 4) {
      var pairs = ImmutableList.of(ImmutableIntArray.of(0, 1), ImmutableIntArray.of(2, 3));
      groups.add(new ProcessGroup("mixed", ImmutableList.of(ImmutableIntArray.of(3, 1, 0, 2))));
      groups.add(new ProcessGroup("pairs", pairs));
      groups.add(new ProcessGroup("rows", pairs));
      groups.add(
          new ProcessGroup(
              "across", ImmutableList.of(ImmutableIntArray.of(2, 0), ImmutableIntArray.of(1, 3))));
    }
    return groups;
  }

  static void local(Sketch sketch, OpDef def) {
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      boolean bare = def.name().name().matches(EMPTY);
      var made = sketch.apply(def, Recipes.args(sketch, def), !bare);
      if (made.isPresent()) {
        if (bare) {
          var empty = made.get().getFirst();
          sketch.apply(
              Sketch.op("aten::copy_"),
              ImmutableList.of(
                  new Arg.Ref(empty), new Arg.Ref(sketch.like(empty)), new Arg.Bool(false)),
              true);
        }
        return;
      }
    }
  }

  /** Several hosts, in some cases. */
  private static Optional<Hosts> hosts(SplittableRandom random, int ranks) {
    return ranks > 1 && random.nextInt(8) == 0
        ? Optional.of(Hosts.filled(ImmutableIntArray.of(ranks / 2, ranks - ranks / 2)))
        : Optional.empty();
  }

  private static CompileOptions options(
      SplittableRandom random, Program program, int ranks, Optional<Hosts> hosts) {
    var spaces = MemorySpace.values();
    var options =
        CompileOptions.DEFAULT
            .withRanks(ranks)
            .withMulticast(true)
            .withInputs(random.nextInt(3) == 0 ? MemorySpace.ANY : spaces[random.nextInt(4)])
            .withOutputs(random.nextInt(3) == 0 ? MemorySpace.ANY : spaces[random.nextInt(4)])
            .withOverlap(random.nextInt(4) > 0);
    if (random.nextInt(4) == 0) {
      var named = new LinkedHashMap<String, MemorySpace>();
      var graph = program.graphs().getFirst();
      var values = new ArrayList<Value>(graph.inputs());
      values.addAll(graph.outputValues());
      for (int i = 0; i < 2; i++) {
        named.put(values.get(random.nextInt(values.size())).name(), spaces[random.nextInt(4)]);
      }
      options = options.withSpaces(ImmutableMap.copyOf(named));
    }
    options =
        switch (random.nextInt(4)) {
          case 0 -> options.withReorderBudget(OptionalDouble.empty());
          case 1 -> options;
          default -> options.withReorderBudget(OptionalDouble.of(100));
        };
    var modes = RewriteOptions.Mode.values();
    var rewrites =
        new RewriteOptions(
            modes[random.nextInt(modes.length)],
            modes[random.nextInt(modes.length)],
            modes[random.nextInt(modes.length)],
            hosts.isEmpty() ? RewriteOptions.Mode.AUTO : modes[random.nextInt(modes.length)],
            modes[random.nextInt(modes.length)]);
    var objectives = Objective.values();
    if (hosts.isPresent()) {
      options = options.withHosts(hosts.get());
    }
    if (random.nextInt(3) == 0) {
      options =
          options.withReplicated(
              program.graphs().getFirst().inputs().stream()
                  .map(Value::name)
                  .filter(_ -> random.nextInt(4) > 0)
                  .collect(ImmutableSet.toImmutableSet()));
    }
    return options
        .withAcrossGraphs(random.nextInt(4) == 0)
        .withFusion(random.nextInt(8) > 0)
        .withEpilogues(random.nextInt(8) > 0)
        .withRewrites(rewrites)
        .withObjective(objectives[random.nextInt(objectives.length)])
        .withPrefetch(
            random.nextInt(3) > 0 ? OptionalInt.empty() : OptionalInt.of(random.nextInt(3)));
  }
}
