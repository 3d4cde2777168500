package dev.symplan.planner.verify;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.Notes;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.GraphBuilder;
import dev.symplan.ir.graph.GraphBuilder.ResultSpec;
import dev.symplan.ir.graph.Program;
import dev.symplan.ir.op.ArgBinder;
import dev.symplan.ir.op.InferRule;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.SchemaParser;
import dev.symplan.ir.testkit.Cuts;
import dev.symplan.ir.testkit.Fuzz;
import dev.symplan.ir.testkit.LeastMemory;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.options.Objective;
import dev.symplan.planner.options.RewriteOptions;
import dev.symplan.planner.options.RewriteOptions.Mode;
import dev.symplan.planner.plan.Plan;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * Programs of local ops, views, mutations and collectives, made from a seed; some with two graphs
 * for different ranks that agree on their collectives only.
 */
public final class RandomPrograms {

  /**
   * What errors say of programs that are refused: of outputs that ranks cannot have in symmetric
   * memory alike, or that change later, and of writes into what is read at other indices.
   */
  public static final String REFUSED =
      "(?s).*(is placed in symmetric memory, but not on every rank"
          + "|writes into '.*', which graph '.*' gives"
          + "|writes into '.*' some elements that it also reads).*";

  private static final ImmutableList<ProcessGroup> GROUPS =
      ImmutableList.of(
          ProcessGroup.world("world", 4),
          new ProcessGroup(
              "pair", ImmutableList.of(ImmutableIntArray.of(0, 1), ImmutableIntArray.of(2, 3))),
          new ProcessGroup(
              "cross", ImmutableList.of(ImmutableIntArray.of(0, 2), ImmutableIntArray.of(1, 3))),
          new ProcessGroup(
              "solo",
              ImmutableList.of(
                  ImmutableIntArray.of(0),
                  ImmutableIntArray.of(1),
                  ImmutableIntArray.of(2),
                  ImmutableIntArray.of(3))));

  private static final OpDef EXCHANGE =
      OpSpec.of("my_lib::exchange(Tensor input, Tensor other, str group) -> Tensor")
          .symmMemArgs(List.of("input"))
          .symmMemResults(List.of("0"))
          .rule(InferRule.single(call -> OpResult.fresh(call.tensor("input").contiguous())))
          .resolve();

  private static final ImmutableList<Target> TARGETS =
      ImmutableList.of(Target.H200_X4, Target.H200_X8, Target.B200_X8, Target.HOST);

  private final Random shape;
  private final Random own;
  private final boolean varies;
  private final boolean unruled;

  /** Whether slices lie along the second dimension, where collectives have one for each rank. */
  private final boolean columns;

  private final GraphBuilder builder;
  private final DiagnosticSink sink = new DiagnosticSink();
  private final List<Value> pool = new ArrayList<>();
  private final List<Value> received = new ArrayList<>();
  private int names;

  private RandomPrograms(
      Random shape, Random own, boolean varies, boolean unruled, boolean columns) {
    this.columns = columns;
    this.shape = shape;
    this.own = own;
    this.varies = varies;
    this.unruled = unruled;
    this.builder = new GraphBuilder("random", Span.NONE, sink);
  }

  private static final ImmutableList<MemorySpace> PLACES =
      ImmutableList.of(
          MemorySpace.ANY, MemorySpace.SYMMETRIC, MemorySpace.LOCAL, MemorySpace.EXTERNAL);

  /** A program, and the compiler's plan of it under random options. */
  public record Planned(Program program, Plan plan) {}

  /** The first of the programs that several tests share. */
  public static final long SEED = Fuzz.seed(20_260_101);

  /** By seed: planning takes longer than most checks of a plan, and several tests check each. */
  private static final ConcurrentMap<Long, Planned> PLANNED = new ConcurrentHashMap<>();

  /**
   * {@return the compiler's plan of a random program under random options} Collectives between
   * hosts may have phases, which add in another order than the program's. Ops may run on shares of
   * the rows, which one rank's model cannot compare with all rows.
   */
  static Plan plan(long seed) {
    var hierarchical = onTwoHosts(seed) ? Mode.values()[(int) (seed % 3)] : Mode.OFF;
    var shares = seed % 4 == 3 ? Mode.ON : Mode.OFF;
    boolean alike = hierarchical == Mode.OFF && shares == Mode.OFF;
    return (alike ? planned(seed) : plan(seed, hierarchical, shares)).plan();
  }

  /**
   * {@return a random program and its plan; every third has ops without rules, every fourth several
   * graphs, and every fifth may be for two hosts}
   */
  public static Planned planned(long seed) {
    return PLANNED.computeIfAbsent(seed, s -> plan(s, Mode.OFF, Mode.OFF));
  }

  private static boolean onTwoHosts(long seed) {
    return seed % 5 == 2;
  }

  private static Planned plan(long seed, Mode hierarchical, Mode shares) {
    var random = new Random(seed);
    var options =
        CompileOptions.DEFAULT
            .withRanks(4)
            .withMulticast(true)
            .withInputs(MemorySpace.choices().get(random.nextInt(MemorySpace.choices().size())))
            .withOutputs(PLACES.get(random.nextInt(PLACES.size())))
            .withOverlap(random.nextInt(4) > 0)
            .withVariants(variants(random));
    var target = TARGETS.get(random.nextInt(TARGETS.size()));
    var whole = program(random, seed % 3 == 0);
    var program = seed % 4 == 1 ? Cuts.cut(whole, new Random(seed)) : whole;
    var budget = random.nextInt(3) == 0 ? OptionalDouble.empty() : OptionalDouble.of(100);
    var modes = Mode.values();
    var rewrites =
        new RewriteOptions(
            modes[random.nextInt(3)],
            modes[random.nextInt(3)],
            modes[random.nextInt(3)],
            hierarchical,
            shares);
    var objective = Objective.values()[random.nextInt(Objective.values().length)];
    var prefetch = random.nextInt(3) > 0 ? OptionalInt.empty() : OptionalInt.of(random.nextInt(3));
    var usual =
        options
            .withReorderBudget(budget)
            .withRewrites(rewrites)
            .withObjective(objective)
            .withReplicated(inputs(program))
            .withPrefetch(prefetch);
    return new Planned(
        program,
        seed % 5 == 3
            ? inLeastMemory(program, target, usual)
            : plan(program, target, usual, onTwoHosts(seed)));
  }

  private static ImmutableSet<String> inputs(Program program) {
    return program.graphs().stream()
        .flatMap(graph -> graph.inputs().stream())
        .map(Value::name)
        .collect(ImmutableSet.toImmutableSet());
  }

  private static Plan inLeastMemory(Program program, Target target, CompileOptions options) {
    var compiler = Compiler.forTarget(target);
    var least =
        LeastMemory.of(
            bytes ->
                compiler.with(options.withMemoryLimit(OptionalLong.of(bytes))).compile(program));
    return compiler.with(options.withMemoryLimit(least)).compile(program);
  }

  private static Plan plan(
      Program program, Target target, CompileOptions options, boolean onTwoHosts) {
    var compiler = Compiler.forTarget(target);
    if (onTwoHosts) {
      var apart =
          options
              .withHosts(Hosts.filled(ImmutableIntArray.of(2, 2)))
              .withVariants(ImmutableMap.of());
      try {
        return compiler.with(apart).compile(program);
      } catch (CompileException e) {
        // Between hosts, there are fewer reductions and no ops that need symmetric memory.
        if (!String.valueOf(e.getMessage()).contains("no variant can run")) {
          throw e;
        }
      }
    }
    return compiler.with(options).compile(program);
  }

  private static ImmutableMap<String, Variant> variants(Random random) {
    // All targets can run these everywhere, and a kind that does not occur is an error.
    return switch (random.nextInt(4)) {
      case 0 -> ImmutableMap.of("all_reduce", Variant.TWO_SHOT);
      case 1 -> ImmutableMap.of("all_reduce", Variant.ONE_SHOT);
      case 2 -> ImmutableMap.of("all_gather", Variant.PUSH, "all_reduce", Variant.NCCL);
      default -> ImmutableMap.of();
    };
  }

  /** {@return a random program of ops with rules} */
  public static Program program(Random random) {
    return program(random, false);
  }

  private static Program program(Random random, boolean unruled) {
    int size = 4 + random.nextInt(30);
    long seed = random.nextLong();
    boolean split = random.nextInt(4) == 0;
    var graphs = ImmutableList.<Graph>builder();
    graphs.add(
        new RandomPrograms(new Random(seed), new Random(seed + 1), split, unruled, seed % 4 == 0)
            .graph(size, split ? ImmutableIntArray.of(0, 2) : ImmutableIntArray.of()));
    if (split) {
      graphs.add(
          new RandomPrograms(new Random(seed), new Random(seed + 2), true, unruled, seed % 4 == 0)
              .graph(size, ImmutableIntArray.of(1, 3)));
    }
    return new Program(GROUPS, ImmutableList.of(), graphs.build(), Notes.NONE);
  }

  private Graph graph(int size, ImmutableIntArray ranks) {
    builder.ranks(ranks);
    int inputs = 1 + shape.nextInt(3);
    for (int i = 0; i < inputs; i++) {
      pool.add(
          builder.input(
              "x" + i,
              TensorType.contiguous(DType.F32, 4L << shape.nextInt(3), 4L << shape.nextInt(2)),
              Span.NONE));
    }
    // Every kind that an option may force occurs.
    collective(0);
    collective(1);
    for (int i = 0; i < size; i++) {
      add();
      if (varies && own.nextInt(3) == 0) {
        vary();
      }
    }
    int outputs = 1 + shape.nextInt(3);
    for (int i = 0; i < outputs; i++) {
      builder.output(new Arg.Ref(pick()));
    }
    for (var result : received) {
      if (shape.nextBoolean()) {
        builder.output(new Arg.Ref(result));
      }
    }
    sink.throwIfErrors();
    return builder.build();
  }

  private Value pick() {
    int count = pool.size();
    // Recent values are likelier, so that chains form.
    return pool.get(
        shape.nextBoolean() ? count - 1 - shape.nextInt(Math.min(4, count)) : shape.nextInt(count));
  }

  private void add() {
    if (unruled && shape.nextInt(6) == 0) {
      unruled();
      return;
    }
    if (shape.nextInt(12) == 0) {
      constant();
      return;
    }
    int kind = shape.nextInt(20);
    if (kind < 9) {
      local(kind);
    } else if (kind < 13) {
      view(shape.nextInt(5));
    } else {
      collective(shape.nextInt(10));
    }
  }

  /** What depends on no input, mostly by a kernel that nothing is fused with. */
  private void constant() {
    var type = pick().tensor();
    var sizes = Arg.Seq.of(type.sizes().stream());
    var made = call("aten::full", List.of(sizes, new Arg.Float(1 + shape.nextInt(9))));
    if (type.rank() == 2 && shape.nextInt(4) > 0) {
      var turned = call("aten::t", List.of(new Arg.Ref(made)));
      made = call("aten::mm", List.of(new Arg.Ref(made), new Arg.Ref(turned)));
    }
    pool.add(made);
  }

  /** An op of which only the schema is known, or not even that. */
  private void unruled() {
    var a = pick();
    var b = like(a);
    var op = "test::op" + names++;
    boolean gives = shape.nextBoolean();
    var schema =
        switch (shape.nextInt(8)) {
          case 0, 1, 2 ->
              "%s(Tensor(a! -> *) x, Tensor(b! -> *) y) -> %s"
                  .formatted(op, gives ? "Tensor(*)" : "()");
          case 3 -> "%s(Tensor(a! -> *) x, Tensor(b -> *) y) -> ()".formatted(op);
          case 4 -> "%s(Tensor(a!) x, Tensor y) -> Tensor(a!)".formatted(op);
          case 5 -> "%s(Tensor(a) x, Tensor y) -> Tensor(a)".formatted(op);
          case 6 -> "%s(Tensor x, Tensor(a!) y) -> ()".formatted(op);
          default -> "%s(Tensor x, Tensor y) -> (Tensor(a), Tensor(a))".formatted(op);
        };
    var def = OpDef.opaque(SchemaParser.parse(schema));
    var args = ArgBinder.bind(def.schema(), List.of(new Arg.Ref(a), new Arg.Ref(b)), Map.of());
    var specs = new ArrayList<ResultSpec>();
    for (var result : def.schema().results()) {
      var type = a.tensor().withSpace(MemorySpace.ANY);
      boolean own = result.alias().before().isEmpty();
      specs.add(
          new ResultSpec(
              "v" + names++, Optional.of(own ? type.contiguous() : type), true, Span.NONE));
    }
    pool.addAll(builder.op(def, args, specs, Span.NONE, Notes.NONE));
  }

  /** Something that only this rank's graph does to a value. */
  private void vary() {
    int index = own.nextInt(pool.size());
    var value = pool.get(index);
    var made = call("aten::relu", List.of(new Arg.Ref(value)));
    if (made.tensor().strides().equals(value.tensor().strides())) {
      pool.set(index, made);
    }
  }

  private void local(int kind) {
    var a = pick();
    switch (kind) {
      case 0, 1 -> pool.add(call("aten::relu", List.of(new Arg.Ref(a))));
      case 2 -> pool.add(call("aten::exp", List.of(new Arg.Ref(a))));
      case 3, 4 ->
          pool.add(call("aten::mul.Tensor", List.of(new Arg.Ref(a), new Arg.Ref(like(a)))));
      case 5 -> product(a);
      case 6 -> {
        if (shape.nextBoolean()) {
          sideBySide();
        } else {
          pool.add(join(a, like(a), 0));
        }
      }
      case 7 -> {
        if (shape.nextBoolean()) {
          normalize(a);
        } else {
          pool.add(call("aten::clone", List.of(new Arg.Ref(a))));
        }
      }
      default -> copyInto(a);
    }
  }

  private Value join(Value a, Value b, int dim) {
    return call(
        "aten::cat",
        List.of(new Arg.Seq(ImmutableList.of(new Arg.Ref(a), new Arg.Ref(b))), new Arg.Int(dim)));
  }

  /** What is received, in rows beside those of another tensor; mostly, nothing else reads it. */
  private void sideBySide() {
    var a = pick();
    if (!a.tensor().isContiguous()) {
      return;
    }
    var group = GROUPS.get(shape.nextInt(GROUPS.size()));
    var name = new Arg.Str(group.name());
    var ns = "_c10d_functional::";
    var made =
        shape.nextBoolean() && a.tensor().bytes() <= 512
            ? call(
                ns + "all_gather_into_tensor",
                List.of(new Arg.Ref(a), new Arg.Int(group.size()), name))
            : call(ns + "all_reduce", List.of(new Arg.Ref(a), new Arg.Str("sum"), name));
    var all = pool.stream().filter(v -> v.tensor().size(0) == made.tensor().size(0)).toList();
    if (!all.isEmpty() && made.tensor().bytes() <= 1024) {
      var b = all.get(shape.nextInt(all.size()));
      pool.add(shape.nextBoolean() ? join(made, b, 1) : join(b, made, 1));
    }
    if (all.isEmpty() || shape.nextInt(4) == 0) {
      pool.add(made);
    }
  }

  /** Steps by rows, with steps by elements. */
  private void normalize(Value a) {
    if (a.tensor().rank() == 0) {
      return;
    }
    var dims = new Arg.Seq(ImmutableList.of(new Arg.Int(-1)));
    var rows = call("aten::sum.dim_IntList", List.of(new Arg.Ref(a), dims, new Arg.Bool(true)));
    var scaled = call("aten::mul.Tensor", List.of(new Arg.Ref(a), new Arg.Ref(rows)));
    pool.add(call("aten::exp", List.of(new Arg.Ref(scaled))));
    if (shape.nextBoolean()) {
      pool.add(scaled);
    }
  }

  private void product(Value a) {
    pool.add(square(a));
  }

  private Value square(Value a) {
    var transposed = call("aten::t", List.of(new Arg.Ref(a)));
    return call("aten::mm", List.of(new Arg.Ref(a), new Arg.Ref(transposed)));
  }

  /** Writes into memory that others may read, as the graph's order has it. */
  private void copyInto(Value a) {
    var target = shape.nextInt(3) > 0 ? call("aten::relu", List.of(new Arg.Ref(a))) : a;
    pool.add(target);
    if (shape.nextBoolean()) {
      pool.add(call("aten::exp", List.of(new Arg.Ref(target))));
    }
    var source = like(a);
    pool.set(
        pool.indexOf(target),
        call("aten::copy_", List.of(new Arg.Ref(target), new Arg.Ref(source))));
  }

  private Value like(Value a) {
    var same = pool.stream().filter(v -> v.tensor().sizes().equals(a.tensor().sizes())).toList();
    return same.get(shape.nextInt(same.size()));
  }

  private void view(int kind) {
    var a = pick();
    var type = a.tensor();
    switch (kind) {
      case 0 -> pool.add(call("aten::t", List.of(new Arg.Ref(a))));
      case 1, 2 -> {
        if (type.size(0) >= 8) {
          pool.add(
              call(
                  "aten::slice.Tensor",
                  List.of(
                      new Arg.Ref(a),
                      new Arg.Int(0),
                      new Arg.Int(4L * shape.nextInt(shape.nextInt(8) == 0 ? 5 : 2)),
                      new Arg.Int(type.size(0)))));
        }
      }
      case 3 -> {
        if (type.size(1) >= 8) {
          pool.add(
              call(
                  "aten::slice.Tensor",
                  List.of(new Arg.Ref(a), new Arg.Int(1), new Arg.Int(0), new Arg.Int(4))));
        }
      }
      default -> {
        if (type.isContiguous()) {
          pool.add(
              call(
                  "aten::view",
                  List.of(
                      new Arg.Ref(a),
                      new Arg.Seq(
                          ImmutableList.of(
                              new Arg.Int(type.size(1)), new Arg.Int(type.size(0)))))));
        }
      }
    }
  }

  private void collective(int kind) {
    var a = pick();
    int group = shape.nextInt(GROUPS.size());
    var name = new Arg.Str(GROUPS.get(group).name());
    long ranks = GROUPS.get(group).size();
    var reduce = new Arg.Str(shape.nextInt(4) == 0 ? "max" : "sum");
    var size = new Arg.Int(ranks);
    var empty = new Arg.Seq(ImmutableList.of());
    long bytes = a.tensor().bytes();
    var ns = "_c10d_functional::";
    if (columns && kind >= 1 && kind <= 3) {
      columns(kind, a, reduce, size, name);
      return;
    }
    switch (kind) {
      case 0, 6 -> finish(call(ns + "all_reduce", List.of(new Arg.Ref(a), reduce, name)));
      case 1 -> {
        var from = bytes > 2048 ? pool.getFirst() : a;
        finish(call(ns + "all_gather_into_tensor", List.of(new Arg.Ref(from), size, name)));
      }
      case 2 -> {
        if (a.tensor().size(0) % ranks == 0) {
          finish(call(ns + "reduce_scatter_tensor", List.of(new Arg.Ref(a), reduce, size, name)));
        }
      }
      case 3 -> {
        if (a.tensor().size(0) % ranks == 0) {
          finish(call(ns + "all_to_all_single", List.of(new Arg.Ref(a), empty, empty, name)));
        }
      }
      case 4 ->
          finish(
              call(
                  ns + "broadcast",
                  List.of(new Arg.Ref(a), new Arg.Int(shape.nextInt((int) ranks)), name)));
      case 5 -> {
        var all =
            calls(
                ns + "all_reduce_coalesced",
                List.of(
                    new Arg.Seq(ImmutableList.of(new Arg.Ref(a), new Arg.Ref(pick()))),
                    reduce,
                    name));
        all.forEach(this::finish);
      }
      case 8 ->
          finish(
              call(
                  "symplan::collective_permute",
                  List.of(new Arg.Ref(a), pairs((int) ranks), name)));
      case 7 ->
          finish(call(EXCHANGE, List.of(new Arg.Ref(a), new Arg.Ref(pick()), name)).getFirst());
      default -> {
        var target = call("aten::relu", List.of(new Arg.Ref(a)));
        finish(call(ns + "all_reduce_", List.of(new Arg.Ref(target), reduce, name)));
      }
    }
  }

  /** Each rank sends to some other or itself, or to none. */
  private Arg pairs(int ranks) {
    var targets = IntStream.range(0, ranks).boxed().collect(Collectors.toList());
    Collections.shuffle(targets, shape);
    return new Arg.Seq(
        IntStream.range(0, ranks)
            .filter(_ -> shape.nextInt(4) > 0)
            .mapToObj(source -> (Arg) Arg.Seq.of(source, targets.get(source)))
            .collect(ImmutableList.toImmutableList()));
  }

  private void columns(int kind, Value a, Arg reduce, Arg.Int size, Arg name) {
    var one = new Arg.Int(1);
    if (kind == 1) {
      var small = a.tensor().bytes() > 2048 ? pool.getFirst() : a;
      var from = shape.nextBoolean() ? square(small) : small;
      finish(call("symplan::all_gather_dim", List.of(new Arg.Ref(from), one, size, name)));
    } else if (a.tensor().size(1) % size.value() == 0) {
      var operand = new Arg.Ref(a);
      finish(
          kind == 2
              ? call("symplan::reduce_scatter_dim", List.of(operand, reduce, one, size, name))
              : call("symplan::all_to_all_dim", List.of(operand, one, new Arg.Int(0), size, name)));
    }
  }

  /** Waits at once, or leaves that to whoever reads. */
  private void finish(Value result) {
    var made =
        shape.nextInt(3) == 0
            ? result
            : call("_c10d_functional::wait_tensor", List.of(new Arg.Ref(result)));
    pool.add(made);
    received.add(made);
  }

  private Value call(String name, List<Arg> args) {
    return calls(name, args).getFirst();
  }

  private ImmutableList<Value> calls(String name, List<Arg> args) {
    return call(BuiltinOps.registry().get(name), args);
  }

  private ImmutableList<Value> call(OpDef def, List<Arg> args) {
    var bound = ArgBinder.bind(def.schema(), args, Map.of());
    int results = def.infer(bound).orElseThrow().size();
    var specs = new ArrayList<ResultSpec>();
    for (int i = 0; i < results; i++) {
      specs.add(ResultSpec.named("v" + names++, Span.NONE));
    }
    return builder.op(def, bound, specs, Span.NONE, Notes.NONE);
  }
}
