package dev.symplan.planner.io;

import com.google.common.base.CharMatcher;
import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.machine.TargetFile;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.ArenaSize;
import dev.symplan.planner.plan.ArgDecision;
import dev.symplan.planner.plan.Barrier;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.OrderDecision;
import dev.symplan.planner.plan.Placement;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.RankPlan;
import dev.symplan.planner.plan.Rewrite;
import dev.symplan.planner.plan.Step;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.planner.verify.PlanVerifier;
import dev.symplan.planner.verify.Violation;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Reads one plan file; every complaint names the field by its path. */
final class PlanFileReader {
  private static final CharMatcher DIGITS = CharMatcher.inRange('0', '9');

  /** Of numbers in texts. */
  private static final int MAX_DIGITS = 9;

  private final SourceFile file;
  private final Map<String, SourceFile> sources = new HashMap<>();

  PlanFileReader(SourceFile file) {
    this.file = file;
  }

  Plan read() {
    var root = PlanField.parse(file);
    if (!root.at("format").text().equals(PlanFile.FORMAT)) {
      throw root.at("format")
          .wrong("this is not a plan file", "make one with: symplan compile … -o FILE");
    }
    if (root.at("version").integer() != PlanFile.VERSION) {
      throw root.at("version")
          .wrong("this release reads version " + PlanFile.VERSION, "compile the graph again");
    }
    Plan plan;
    try {
      plan = plan(root);
    } catch (IllegalArgumentException | IndexOutOfBoundsException e) {
      throw root.wrong("the plan contradicts itself: " + e.getMessage(), "compile the graph again");
    }
    var violations = PlanVerifier.verify(plan);
    if (!violations.isEmpty()) {
      var told = violations.stream().limit(DiagnosticSink.MAX_ERRORS).toList();
      throw new CompileException(
          told.stream().map(v -> unsafe(v, v.equals(told.getLast()))).toList());
    }
    return plan;
  }

  private Diagnostic unsafe(Violation violation, boolean last) {
    return new Diagnostic(
        Diagnostic.Severity.ERROR,
        DiagnosticCode.BAD_PLAN,
        Span.ofFile(file),
        "the plan is unsafe: " + violation,
        last ? "compile the graph again" : "",
        numbered(violation.trace()));
  }

  /** The events of a counterexample, in their order. */
  private static ImmutableList<String> numbered(List<String> trace) {
    return IntStream.range(0, trace.size())
        .mapToObj(i -> "%d. %s".formatted(i + 1, trace.get(i)))
        .collect(ImmutableList.toImmutableList());
  }

  private Plan plan(PlanField root) {
    var text =
        root.at("program").list((f, i) -> f.text()).stream().collect(Collectors.joining("\n"));
    var program = GraphParser.parse(new SourceFile(file.name() + "#program", text));
    var target = TargetFile.read(new SourceFile(file.name() + "#target", root.at("target").tree()));
    var rankPlans =
        root.at("rank_plans")
            .list(
                (field, i) -> {
                  if (i >= program.graphs().size()) {
                    throw field.wrong("there is no graph for it in the program", "");
                  }
                  return rankPlan(field, program.graphs().get(i));
                });
    var planOfRank = root.at("plan_of_rank").ints();
    for (int index : planOfRank) {
      if (index < 0 || index >= rankPlans.size()) {
        throw root.at("plan_of_rank").wrong("there is no rank plan " + index, "");
      }
    }
    return new Plan(
        root.at("name").text(),
        target,
        root.at("multicast").bool(),
        program.groups(),
        program.declarations(),
        rankPlans,
        ImmutableIntArray.copyOf(planOfRank),
        size(root.at("symmetric")),
        root.at("digest").text(),
        root.at("rewrites").list((f, i) -> rewrite(f)),
        reordering(root.at("reordering")),
        ImmutableList.of());
  }

  private static Rewrite rewrite(PlanField field) {
    return new Rewrite(
        field.at("action").constant(Rewrite.Action.class),
        field
            .at("parts")
            .list(
                (part, i) ->
                    new Rewrite.Part(
                        part.at("name").text(),
                        part.at("source").text(),
                        part.at("bytes").integer())),
        field.at("pieces").intValue(),
        field.at("reason").constant(Rewrite.Reason.class),
        field.at("detail").text(),
        field.at("before_us").number(),
        field.at("after_us").number());
  }

  private static OrderDecision reordering(PlanField field) {
    return new OrderDecision(
        field.at("outcome").constant(OrderDecision.Outcome.class),
        figures(field.at("given")),
        figures(field.at("other")));
  }

  private static OrderDecision.Figures figures(PlanField field) {
    return new OrderDecision.Figures(
        field.at("peak_bytes").integer(), field.at("predicted_us").number());
  }

  private RankPlan rankPlan(PlanField field, Graph graph) {
    var sources = field.at("sources").list((f, i) -> source(f));
    if (sources.size() != graph.ops().size()) {
      throw field
          .at("sources")
          .wrong("has %d entries for %d ops".formatted(sources.size(), graph.ops().size()), "");
    }
    return new RankPlan(
        withSources(graph, sources),
        field.at("placements").list((f, i) -> placement(f)),
        field.at("buffers").list((f, i) -> buffer(f)),
        field.at("steps").list((f, i) -> step(f)),
        field.at("collectives").list((f, i) -> collective(f)),
        size(field.at("local")));
  }

  /** {@code file:line:column}, or just the file, as {@link Span} prints it. */
  private Span source(PlanField field) {
    var text = field.text();
    int column = text.lastIndexOf(':');
    int line = text.lastIndexOf(':', column - 1);
    return line >= 0
            && isNumber(text, line + 1, column)
            && isNumber(text, column + 1, text.length())
        ? new Span(
            sourceFile(text.substring(0, line)),
            Integer.parseInt(text, line + 1, column, 10),
            Integer.parseInt(text, column + 1, text.length(), 10),
            1)
        : Span.ofFile(sourceFile(text));
  }

  /** All ops of a graph come from a file or two. */
  private SourceFile sourceFile(String name) {
    return sources.computeIfAbsent(name, n -> new SourceFile(n, ""));
  }

  private static boolean isNumber(String text, int from, int to) {
    return from < to && to - from <= MAX_DIGITS && DIGITS.matchesAllOf(text.substring(from, to));
  }

  /** What a plan says of an op names the place in the file that it came from. */
  private static Graph withSources(Graph graph, ImmutableList<Span> sources) {
    var ops = ImmutableList.<Op>builderWithExpectedSize(sources.size());
    for (int i = 0; i < sources.size(); i++) {
      var op = graph.ops().get(i);
      ops.add(new Op(op.def(), op.args(), op.results(), sources.get(i), op.notes()));
    }
    return new Graph(
        graph.name(),
        graph.ranks(),
        graph.inputs(),
        ops.build(),
        graph.outputs(),
        graph.valueCount(),
        graph.span(),
        graph.notes(),
        graph.endNotes());
  }

  private Placement placement(PlanField field) {
    int buffer = field.at(0).intValue();
    long offset = field.at(1).integer();
    return field.size() == 2
        ? new Placement(buffer, offset)
        : new Placement(buffer, offset, field.at(2).intValue(), field.at(3).integer());
  }

  private Buffer buffer(PlanField field) {
    return new Buffer(
        field.at("name").text(),
        field.at("arena").constant(ArenaKind.class),
        field.at("symmetric").bool(),
        field.at("offset").integer(),
        field.at("bytes").integer(),
        field.at("first").intValue(),
        field.at("last").intValue());
  }

  private Step step(PlanField field) {
    var words = Splitter.on(' ').splitToList(field.text());
    var numbers = words.subList(1, words.size());
    if (!numbers.isEmpty() && numbers.stream().allMatch(word -> isNumber(word, 0, word.length()))) {
      int index = Integer.parseInt(numbers.getFirst());
      switch (words.getFirst() + (numbers.size() > 1 ? " …" : "")) {
        case "op":
          return new Step.Compute(index);
        case "fused …":
          return new Step.Fused(
              ImmutableIntArray.copyOf(numbers.stream().mapToInt(Integer::parseInt)));
        case "start":
          return new Step.Start(index);
        case "join":
          return new Step.Join(index);
        default:
          break;
      }
    }
    throw field.wrong("a step is 'op N', 'fused N M …', 'start N' or 'join N'", "");
  }

  private CollectivePlan collective(PlanField field) {
    return new CollectivePlan(
        field.at("op").intValue(),
        field.at("kind").constant(Kind.class),
        field.at("group").text(),
        reduceOp(field.at("reduce_op")),
        field.at("root").intValue(),
        field.at("operands").ints(),
        field.at("results").ints(),
        field.at("variant").constant(Variant.class),
        field.at("stream").constant(StreamKind.class),
        barrier(field.at("start_barrier")),
        barrier(field.at("end_barrier")),
        field.at("in_place").bool(),
        field.at("workspace").intValue(),
        field.at("verdicts").list((f, i) -> verdict(f)),
        field.at("args").list((f, i) -> arg(f)));
  }

  private Optional<ReduceOp> reduceOp(PlanField field) {
    return field.text().isEmpty() ? Optional.empty() : Optional.of(field.constant(ReduceOp.class));
  }

  private Barrier barrier(PlanField field) {
    return Barrier.ofText(field.text())
        .orElseThrow(
            () ->
                field.wrong(
                    "a barrier is 'own', 'none', 'start of N' or 'end of N'",
                    "N is the index of a collective"));
  }

  private Verdict verdict(PlanField field) {
    var reason = field.at("reason").constant(Verdict.Reason.class);
    return new Verdict(
        field.at("variant").constant(Variant.class),
        reason,
        field.at("detail").text(),
        reason.eligible() ? field.at("transfer_us").number() : Double.NaN,
        reason.eligible() ? field.at("staging_us").number() : 0);
  }

  private ArgDecision arg(PlanField field) {
    return new ArgDecision(
        field.at("result").bool(),
        field.at("value").text(),
        field.at("realization").constant(ArgDecision.Realization.class),
        field.at("reason").constant(ArgDecision.Reason.class),
        field.at("cause").text(),
        field.at("bytes").integer());
  }

  private ArenaSize size(PlanField field) {
    return new ArenaSize(field.at("bytes").integer(), field.at("bound").integer());
  }
}
