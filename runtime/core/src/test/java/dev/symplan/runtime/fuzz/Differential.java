package dev.symplan.runtime.fuzz;

import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import dev.symplan.ir.DType;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.ir.text.GraphPrinter;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.check.Reference;
import dev.symplan.runtime.host.HostBackend;
import dev.symplan.runtime.host.HostKernelException;
import dev.symplan.runtime.tensor.HostTensor;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.SplittableRandom;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Compares planned execution of a program with its direct evaluation, bit by bit. */
final class Differential {
  private static final int RUNS = 2;

  /** A finding: what went wrong, in a form that shrinking must keep, and its story. */
  record Finding(String kind, String story) {}

  /**
   * The end of a case.
   *
   * @param plan absent if the compiler refused the program with reason
   * @param refused why the values did not allow evaluation
   */
  record Outcome(Optional<Plan> plan, Optional<String> refused, Optional<Finding> finding) {}

  private Differential() {}

  /** {@return the case with, for each collective, a variant that is one of the eligible} */
  static FuzzCase forceVariants(FuzzCase c) {
    var random = new SplittableRandom(c.seed() ^ 77);
    if (random.nextInt(3) > 0) {
      return c;
    }
    var variants = ImmutableMap.<String, Variant>builder();
    try {
      var plan = c.plan();
      for (var collective : plan.forRank(0).collectives()) {
        var eligible =
            collective.verdicts().stream()
                .filter(v -> v.reason().eligible())
                .map(Verdict::variant)
                .toList();
        var name = plan.forRank(0).graph().ops().get(collective.op()).results().getFirst().name();
        // Options name the collectives of the program; those that rewrites make have other names.
        if (names(c).contains(name)) {
          variants.put(name, eligible.get(random.nextInt(eligible.size())));
        }
      }
      return c.with(c.options().withVariants(variants.buildOrThrow()));
    } catch (RuntimeException e) {
      return c;
    }
  }

  private static Set<String> names(FuzzCase c) {
    return c.program().graphs().stream()
        .flatMap(graph -> graph.ops().stream())
        .flatMap(op -> op.results().stream())
        .map(Value::name)
        .collect(Collectors.toSet());
  }

  static Outcome check(FuzzCase c) {
    Plan plan;
    try {
      plan = c.plan();
    } catch (CompileException e) {
      return isFair(c, e)
          ? new Outcome(Optional.empty(), Optional.of(message(e)), Optional.empty())
          : found(Optional.empty(), "refused", e);
    } catch (RuntimeException | StackOverflowError e) {
      return found(Optional.empty(), "compiler", e);
    }
    try {
      var text = GraphPrinter.print(c.program());
      var parsed = GraphParser.parse(new SourceFile("fuzz.graph", text));
      if (!GraphPrinter.print(parsed).equals(text)) {
        return found(plan, new Finding("printed twice", text));
      }
      if (!c.plan(parsed).digest().equals(plan.digest())) {
        return found(plan, new Finding("digest of the parsed program", text));
      }
      var json = PlanFile.toJson(plan);
      // Reading verifies, as compiling does.
      var read = PlanFile.read(new SourceFile("fuzz.plan", json));
      if (!PlanFile.toJson(read).equals(json)) {
        return found(plan, new Finding("plan file", json));
      }
      return run(c, c.seed() % 2 == 0 ? plan : read);
    } catch (RuntimeException e) {
      return found(Optional.of(plan), "text", e);
    }
  }

  private static Outcome found(Plan plan, Finding finding) {
    return new Outcome(Optional.of(plan), Optional.empty(), Optional.of(finding));
  }

  /** Errors that the compiler may give for a program that its rules accept. */
  private static boolean isFair(FuzzCase c, CompileException e) {
    var options = c.options();
    boolean wanted =
        options.inputs() == MemorySpace.SYMMETRIC
            || options.outputs() == MemorySpace.SYMMETRIC
            || options.spaces().containsValue(MemorySpace.SYMMETRIC)
            || GraphPrinter.print(c.program()).contains("@symm");
    return wanted && e.getMessage().contains("is placed in symmetric memory, but not on every rank")
        || options.hosts().isPresent() && e.getMessage().contains("no variant can run")
        || e.getMessage().matches("(?s).*graph '.*' writes into '.*', which graph '.*' gives.*")
        || e.getMessage().contains("of which a conjugate or negative view is read afterwards");
  }

  private static String message(Throwable e) {
    var text = String.valueOf(e.getMessage());
    return e.getClass().getSimpleName() + ": " + text;
  }

  private static Outcome found(Optional<Plan> plan, String kind, Throwable e) {
    var top = e.getStackTrace().length == 0 ? "" : e.getStackTrace()[0].toString();
    var first =
        message(e).lines().findFirst().orElse("").replaceAll("[0-9]+|'[^']*'|\\b[vwx]#", "#");
    var trace = new StringWriter();
    e.printStackTrace(new PrintWriter(trace));
    return new Outcome(
        plan,
        Optional.empty(),
        Optional.of(
            new Finding(
                kind
                    + " "
                    + e.getClass().getSimpleName()
                    + " "
                    + top
                    + first.substring(0, Math.min(110, first.length())),
                trace.toString().lines().limit(25).reduce("", (a, b) -> a + b + "\n"))));
  }

  /** Has the caller's own memory used wherever the plan leaves that to the caller. */
  private static void bind(Session session) {
    for (int rank = 0; rank < session.ranks(); rank++) {
      for (int i = 0; i < session.inputNames().size(); i++) {
        if (session.isExternalInput(rank, i)) {
          var type = session.input(rank, i).orElseThrow().type();
          session.bindInput(rank, i, HostTensor.allocate(type));
        }
      }
      for (int i = 0; i < session.outputCount(); i++) {
        var output = session.output(rank, i);
        if (output.isPresent()) {
          try {
            session.bindOutput(rank, i, HostTensor.allocate(output.get().type()));
          } catch (IllegalArgumentException e) {
            // It has its place.
          }
        }
      }
    }
  }

  private static Outcome run(FuzzCase c, Plan plan) {
    Session session;
    try {
      session = Session.open(plan, new HostBackend());
      if (c.seed() % 3 == 0) {
        bind(session);
      }
    } catch (RuntimeException e) {
      return String.valueOf(e.getMessage()).contains("the host backend has no reduction")
          ? new Outcome(Optional.of(plan), Optional.of(message(e)), Optional.empty())
          : found(Optional.of(plan), "session", e);
    }
    try (session) {
      fill(c, session);
      Reference.Result expected;
      try {
        expected =
            Reference.evaluate(
                java.util.stream.IntStream.range(0, plan.worldSize()).mapToObj(c::graphOf).toList(),
                c.program().groups(),
                session::input);
      } catch (RuntimeException e) {
        return e.getCause() instanceof HostKernelException
                || e.getCause() instanceof UnsupportedOperationException
            ? new Outcome(Optional.of(plan), Optional.of(message(e.getCause())), Optional.empty())
            : found(Optional.of(plan), "reference", e);
      }
      for (int run = 0; run < RUNS; run++) {
        if (run > 0) {
          if (c.seed() % 3 == 1) {
            bind(session);
          }
        }
        run(c, session, run);
        var difference = compare(plan, session, expected, run);
        if (difference.isPresent()) {
          return new Outcome(Optional.of(plan), Optional.empty(), difference);
        }
      }
      var difference = backwards(c, session, expected);
      if (difference.isPresent()) {
        return new Outcome(Optional.of(plan), Optional.empty(), difference);
      }
      return new Outcome(Optional.of(plan), Optional.empty(), Optional.empty());
    } catch (RuntimeException e) {
      return found(Optional.of(plan), "run", e);
    }
  }

  /**
   * Runs all graphs, at first at once, and then one after the other, each with inputs that are
   * filled when it is to run.
   */
  private static void run(FuzzCase c, Session session, int run) {
    if (run == 0) {
      session.run();
      return;
    }
    for (var graph : session.graphs()) {
      fill(c, session, graph.firstInput(), graph.endInput());
      session.run(graph.name());
    }
  }

  /**
   * Runs independent graphs, with those that take what they make, last ones first. Where nothing
   * writes into inputs, their order does not matter.
   */
  private static Optional<Finding> backwards(
      FuzzCase c, Session session, Reference.Result expected) {
    var graphs = session.graphs();
    if (c.program().graphs().stream()
        .flatMap(graph -> graph.ops().stream())
        .anyMatch(op -> op.def().schema().mutates())) {
      return Optional.empty();
    }
    int end = graphs.size();
    for (int g = graphs.size() - 1; g >= 0; g--) {
      if (!graphs.get(g).independent()) {
        continue;
      }
      for (var graph : graphs.subList(g, end)) {
        fill(c, session, graph.firstInput(), graph.endInput());
        session.run(graph.name());
      }
      for (int rank = 0; rank < session.ranks(); rank++) {
        for (int i = graphs.get(g).firstOutput(); i < graphs.get(end - 1).endOutput(); i++) {
          var finding =
              compare(
                  "output of an independent graph",
                  "rank %s, output %s".formatted(rank, i),
                  session.output(rank, i),
                  expected.outputs().get(rank).get(i));
          if (finding.isPresent()) {
            return finding;
          }
        }
      }
      end = g;
    }
    return Optional.empty();
  }

  private static void fill(FuzzCase c, Session session) {
    fill(c, session, 0, session.inputNames().size());
  }

  static void fill(Session session, ImmutableMap<String, Fill> fills, long seed) {
    fill(session, fills, ImmutableSet.of(), seed, 0, session.inputNames().size());
  }

  private static void fill(FuzzCase c, Session session, int from, int to) {
    fill(session, c.fills(), c.options().replicated(), c.seed(), from, to);
  }

  private static void fill(
      Session session,
      ImmutableMap<String, Fill> fills,
      Set<String> replicated,
      long seed,
      int from,
      int to) {
    for (int rank = 0; rank < session.ranks(); rank++) {
      for (int i = from; i < to; i++) {
        var name = session.inputNames().get(i);
        var fill = fills.getOrDefault(name, Fill.ANY);
        int drawn = replicated.contains(name) ? 0 : rank;
        var random = new SplittableRandom(seed * 31 + drawn * 1000L + name.hashCode());
        random.nextLong();
        session.input(rank, i).ifPresent(tensor -> fill.write(tensor, random));
      }
    }
  }

  private static Optional<Finding> compare(
      Plan plan, Session session, Reference.Result expected, int run) {
    for (int rank = 0; rank < session.ranks(); rank++) {
      for (int i = 0; i < session.outputCount(); i++) {
        var finding =
            compare(
                "output",
                "run %s, rank %s, output %s".formatted(run, rank, i),
                session.output(rank, i),
                expected.outputs().get(rank).get(i));
        if (finding.isPresent()) {
          return finding;
        }
      }
      for (int i = 0; i < session.inputNames().size(); i++) {
        var input = plan.forRank(rank).graph().inputs().get(i);
        if (input.isTensor() && input.tensor().space() == MemorySpace.DONATED) {
          continue;
        }
        var finding =
            compare(
                "input",
                "run %s, rank %s, input %s after the run"
                    .formatted(run, rank, session.inputNames().get(i)),
                session.input(rank, i),
                expected.inputs().get(rank).get(i));
        if (finding.isPresent()) {
          return finding;
        }
      }
    }
    return Optional.empty();
  }

  private static Optional<Finding> compare(
      String kind, String what, Optional<HostTensor> found, Optional<HostTensor> wanted) {
    if (found.isPresent() != wanted.isPresent()) {
      return Optional.of(new Finding(kind, what + " is missing on one side"));
    }
    if (found.isEmpty()) {
      return Optional.empty();
    }
    @Nullable String difference = difference(found.get(), wanted.orElseThrow());
    return difference == null
        ? Optional.empty()
        : Optional.of(new Finding(kind, what + ": " + difference));
  }

  private static @Nullable String difference(HostTensor found, HostTensor wanted) {
    var left = found.contiguous();
    var right = wanted.contiguous();
    if (left.dtype() != right.dtype() || !left.type().sizes().equals(right.type().sizes())) {
      return "%s, not %s".formatted(left.type(), right.type());
    }
    long bytes = left.type().bytes();
    long at = left.memory().asSlice(0, bytes).mismatch(right.memory().asSlice(0, bytes));
    if (at < 0) {
      return null;
    }
    var dtype = left.dtype().real();
    int width = dtype.bytes();
    for (long i = at / width; i < bytes / width; i++) {
      if (left.memory().asSlice(i * width, width).mismatch(right.memory().asSlice(i * width, width))
          >= 0) {
        double a = flat(left, dtype).get(i);
        double b = flat(right, dtype).get(i);
        if (!(Double.isNaN(a) && Double.isNaN(b))) {
          return "number %s is %s, not %s".formatted(i, a, b);
        }
      }
    }
    return null;
  }

  private static HostTensor flat(HostTensor tensor, DType dtype) {
    return tensor.as(TensorType.contiguous(dtype, tensor.type().bytes() / dtype.bytes()));
  }

  static List<String> opsOf(FuzzCase c, Plan plan) {
    var names = new ArrayList<String>();
    plan.rankPlans()
        .forEach(r -> r.graph().ops().forEach(op -> names.add(op.def().name().toString())));
    for (var graph : c.program().graphs()) {
      graph.ops().stream()
          .filter(op -> op.def().collective().isPresent() || isLike(op))
          .forEach(op -> names.add(op.def().name().toString()));
    }
    return names;
  }

  /** Whether the direct evaluation runs an op, and plans may have one with sizes instead. */
  private static boolean isLike(Op op) {
    return op.def().name().name().endsWith("_like");
  }
}
