package dev.symplan.planner.io;

import com.fasterxml.jackson.core.StreamReadConstraints;
import com.google.common.base.CharMatcher;
import com.google.common.base.Splitter;
import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.Diagnostic;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.DiagnosticSink;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.diag.Units;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.json.Json;
import dev.symplan.ir.json.PathErrors;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.machine.Hosts;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.TargetFile;
import dev.symplan.planner.machine.Topology;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.Verdict;
import dev.symplan.planner.options.Objective;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.ArenaSize;
import dev.symplan.planner.plan.ArgDecision;
import dev.symplan.planner.plan.Barrier;
import dev.symplan.planner.plan.Buffer;
import dev.symplan.planner.plan.CollectivePlan;
import dev.symplan.planner.plan.Epilogue;
import dev.symplan.planner.plan.Frontier;
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
import java.util.OptionalLong;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Reads one plan file; every error names the field by its path. */
final class PlanFileReader {
  private static final CharMatcher DIGITS = CharMatcher.inRange('0', '9');

  /** Of numbers in texts. */
  private static final int MAX_DIGITS = 9;

  private static final StreamReadConstraints LIMITS =
      StreamReadConstraints.builder().maxNumberLength(40).build();

  private final SourceFile file;
  private final Map<String, SourceFile> sources = new HashMap<>();

  private static final class Errors extends PathErrors {
    private Errors() {
      super(DiagnosticCode.BAD_PLAN);
    }

    @Override
    protected CompileException expected(Json value, Expected what) {
      return wrong(
          value,
          "must be " + what.text(),
          what == Expected.OBJECT ? "compile the graph again" : "");
    }

    @Override
    protected CompileException missing(Json object, String field) {
      var path = object.path();
      return error(
          object.file(),
          (path.isEmpty() ? field : path + "." + field) + ": is missing",
          "compile the graph again");
    }
  }

  PlanFileReader(SourceFile file) {
    this.file = file;
  }

  Plan read() {
    var root = Json.parse(file, LIMITS, new Errors());
    if (!root.get("format").text().equals(PlanFile.FORMAT)) {
      throw root.get("format")
          .wrong("this is not a plan file", "make one with: symplan compile … -o FILE");
    }
    if (root.get("version").integer() != PlanFile.VERSION) {
      throw root.get("version")
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
        .mapToObj(i -> "%s. %s".formatted(i + 1, trace.get(i)))
        .collect(ImmutableList.toImmutableList());
  }

  private Plan plan(Json root) {
    var text = root.get("program").list(Json::text).stream().collect(Collectors.joining("\n"));
    var program = GraphParser.parse(new SourceFile(file.name() + "#program", text));
    var target =
        TargetFile.read(new SourceFile(file.name() + "#target", root.get("target").tree()));
    var graphs = program.graphs().iterator();
    var rankPlans =
        root.get("rank_plans")
            .list(
                field -> {
                  if (!graphs.hasNext()) {
                    throw field.wrong("the program contains no graph for it");
                  }
                  return rankPlan(field, graphs.next());
                });
    var planOfRank = root.get("plan_of_rank").list(Json::intValue);
    for (int index : planOfRank) {
      if (index < 0 || index >= rankPlans.size()) {
        throw root.get("plan_of_rank").wrong("unknown rank plan " + index, "");
      }
    }
    return new Plan(
        root.get("name").text(),
        target,
        topology(root, planOfRank.size(), target),
        root.get("multicast").bool(),
        program.groups(),
        program.declarations(),
        rankPlans,
        ImmutableIntArray.copyOf(planOfRank),
        size(root.get("symmetric")),
        root.get("digest").text(),
        root.get("rewrites").list(PlanFileReader::rewrite),
        replicated(root, program.graphs()),
        reordering(root.get("reordering")),
        frontier(root.get("frontier")),
        root.find("least_bytes")
            .map(field -> OptionalLong.of(field.integer()))
            .orElseGet(OptionalLong::empty),
        ImmutableList.of());
  }

  /** Files without the field are of plans that rely on no such inputs. */
  private static ImmutableSet<String> replicated(Json root, List<Graph> graphs) {
    var names = ImmutableSet.<String>builder();
    for (var field : root.find("replicated").map(Json::items).orElse(ImmutableList.of())) {
      var name = field.text();
      if (graphs.stream()
          .noneMatch(graph -> graph.inputs().stream().anyMatch(in -> in.name().equals(name)))) {
        throw field.wrong("no graph has an input '%s'".formatted(name), "");
      }
      names.add(name);
    }
    return names.build();
  }

  /** Files without the field are of plans whose ranks fill the target's hosts. */
  private static Topology topology(Json root, int ranks, Target target) {
    return root.find("hosts")
        .map(
            field ->
                Topology.ofHosts(
                    Hosts.parse(field.text())
                        .orElseThrow(
                            () ->
                                field.wrong(
                                    "these are not hosts", "as in 4x8, 8,4 or [0, 2], [1, 3]")),
                    target))
        .orElseGet(() -> Topology.of(ranks, target));
  }

  private static Rewrite rewrite(Json field) {
    return new Rewrite(
        field.get("action").constant(Rewrite.Action.class),
        field
            .get("parts")
            .list(
                part ->
                    new Rewrite.Member(
                        part.get("name").text(),
                        part.get("source").text(),
                        part.get("bytes").integer())),
        field.get("pieces").intValue(),
        field.get("reason").constant(Rewrite.Reason.class),
        field.get("detail").text(),
        field.get("before_us").number(),
        field.get("after_us").number());
  }

  private static OrderDecision reordering(Json field) {
    return new OrderDecision(
        field.get("outcome").constant(OrderDecision.Outcome.class),
        figures(field.get("given")),
        figures(field.get("other")));
  }

  private static Frontier frontier(Json field) {
    return new Frontier(
        field.get("chosen").constant(Objective.class),
        field.get("min_gain").number(),
        figures(field.get("alone")),
        figures(field.get("time")),
        figures(field.get("balanced")),
        figures(field.get("memory")));
  }

  private static OrderDecision.Figures figures(Json field) {
    return new OrderDecision.Figures(
        field.get("peak_bytes").integer(), field.get("predicted_us").number());
  }

  private RankPlan rankPlan(Json field, Graph graph) {
    var sources = field.get("sources").list(this::source);
    if (sources.size() != graph.ops().size()) {
      throw field
          .get("sources")
          .wrong(
              "has %s for %s"
                  .formatted(
                      Units.count(sources.size(), "entry"), Units.count(graph.ops().size(), "op")),
              "");
    }
    return new RankPlan(
        withSources(graph, sources),
        field.get("placements").list(this::placement),
        field.get("buffers").list(this::buffer),
        field.get("steps").list(this::step),
        field.get("collectives").list(this::collective),
        size(field.get("local")));
  }

  /** {@code file:line:column}, or just the file, as {@link Span} prints it. */
  private Span source(Json field) {
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

  /** Messages about an op name the location in the file that it came from. */
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

  private Placement placement(Json field) {
    var numbers = field.items();
    int buffer = numbers.isEmpty() ? -1 : numbers.get(0).intValue();
    return switch (numbers.size()) {
      case 2 -> new Placement(buffer, numbers.get(1).integer());
      case 4 ->
          new Placement(
              buffer,
              numbers.get(1).integer(),
              numbers.get(2).intValue(),
              numbers.get(3).integer());
      case 5 ->
          new Placement(
              buffer,
              numbers.get(1).integer(),
              numbers.get(2).intValue(),
              numbers.get(3).integer(),
              numbers.get(4).integer());
      default ->
          throw field.wrong(
              "must be [BUFFER, OFFSET], [BUFFER, OFFSET, WHOLE, STRIDE]"
                  + " or [BUFFER, OFFSET, -1, ROW, PITCH]");
    };
  }

  private Buffer buffer(Json field) {
    return new Buffer(
        field.get("name").text(),
        field.get("arena").constant(ArenaKind.class),
        field.get("symmetric").bool(),
        field.get("offset").integer(),
        field.get("bytes").integer(),
        field.get("first").intValue(),
        field.get("last").intValue());
  }

  private Step step(Json field) {
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

  private CollectivePlan collective(Json field) {
    return new CollectivePlan(
        field.get("op").intValue(),
        field.get("kind").constant(Kind.class),
        field.get("group").text(),
        reduceOp(field.get("reduce_op")),
        field.get("root").intValue(),
        field.get("operands").list(Json::intValue),
        field.get("results").list(Json::intValue),
        field.get("variant").constant(Variant.class),
        field.get("stream").constant(StreamKind.class),
        barrier(field.get("start_barrier")),
        barrier(field.get("end_barrier")),
        field.get("in_place").bool(),
        field.get("workspace").intValue(),
        field.get("verdicts").list(this::verdict),
        field.get("args").list(this::arg),
        field.find("epilogue").map(PlanFileReader::epilogue));
  }

  private static Epilogue epilogue(Json field) {
    var reason = field.get("reason").constant(Epilogue.Reason.class);
    boolean stored = field.get("stored").bool();
    double saved = field.get("saved_us").number();
    if (!stored && reason != Epilogue.Reason.FUSED) {
      throw field.get("stored").wrong("must be true where the reason is not 'fused'");
    }
    if (!(saved >= 0)) {
      throw field.get("saved_us").wrong("must not be negative");
    }
    return new Epilogue(reason, stored, saved);
  }

  private Optional<ReduceOp> reduceOp(Json field) {
    return field.text().isEmpty() ? Optional.empty() : Optional.of(field.constant(ReduceOp.class));
  }

  private Barrier barrier(Json field) {
    return Barrier.ofText(field.text())
        .orElseThrow(
            () ->
                field.wrong(
                    "a barrier is 'own', 'none', 'start of N' or 'end of N'",
                    "N is the index of a collective"));
  }

  private Verdict verdict(Json field) {
    var reason = field.get("reason").constant(Verdict.Reason.class);
    return new Verdict(
        field.get("variant").constant(Variant.class),
        reason,
        field.get("detail").text(),
        reason.eligible() ? field.get("transfer_us").number() : Double.NaN,
        reason.eligible() ? field.get("staging_us").number() : 0);
  }

  private ArgDecision arg(Json field) {
    return new ArgDecision(
        field.get("result").bool(),
        field.get("value").text(),
        field.get("realization").constant(ArgDecision.Realization.class),
        field.get("reason").constant(ArgDecision.Reason.class),
        field.get("cause").text(),
        field.get("bytes").integer());
  }

  private ArenaSize size(Json field) {
    return new ArenaSize(field.get("bytes").integer(), field.get("bound").integer());
  }
}
