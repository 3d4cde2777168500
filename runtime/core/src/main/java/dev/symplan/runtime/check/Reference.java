package dev.symplan.runtime.check;

import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.ir.Arg;
import dev.symplan.ir.ProcessGroup;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.graph.RankNumbers;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpResult;
import dev.symplan.planner.pass.analysis.GraphChoice;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.host.HostKernelException;
import dev.symplan.runtime.host.NaiveCollectives;
import dev.symplan.runtime.host.NaiveOps;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Evaluation without a plan: every op of every rank writes memory of its own, and collectives are
 * done by definition. What planned execution is compared with.
 */
public final class Reference {
  private final List<Graph> graphs;
  private final List<ProcessGroup> groups;
  private final Observer observer;
  private final List<@Nullable HostTensor[]> values = new ArrayList<>();

  /** For each rank and view, by their ids, the value that its memory was made for. */
  private final List<Map<Integer, Integer>> storages = new ArrayList<>();

  private Reference(List<Graph> graphs, List<ProcessGroup> groups, Observer observer) {
    this.graphs = graphs;
    this.groups = groups;
    this.observer = observer;
  }

  /** Hears of an evaluation's progress; what it throws ends the evaluation. */
  @FunctionalInterface
  public interface Observer {
    Observer NONE = (_, _) -> {};

    /** Called before an op; before a collective, for the first of its ranks. */
    void before(int rank, Op op);

    /** Called after an op of one rank; may change the elements of its results. */
    default void after(int rank, Op op, Function<Value, HostTensor> values) {}
  }

  /** Where the inputs of an evaluation are. */
  @FunctionalInterface
  public interface Inputs {
    /** {@return an input of a rank; empty for plain numbers} */
    Optional<HostTensor> input(int rank, int index);
  }

  /**
   * The result of an evaluation, by rank and position.
   *
   * @param inputs the inputs after the program: the same, unless it writes into them
   */
  public record Result(
      List<List<Optional<HostTensor>>> outputs, List<List<Optional<HostTensor>>> inputs) {}

  /**
   * {@return the outputs of each rank}
   *
   * @param inputs whose inputs are read; they must not have been changed by a run
   * @throws RunException when an op has no host implementation or fails
   */
  public static List<List<Optional<HostTensor>>> evaluate(Plan plan, Session inputs) {
    return evaluate(graphs(plan), plan.groups(), inputs::input).outputs();
  }

  /** {@return the graph of each rank, as passes have left it} */
  public static List<Graph> graphs(Plan plan) {
    return IntStream.range(0, plan.worldSize())
        .mapToObj(rank -> plan.forRank(rank).graph())
        .toList();
  }

  /**
   * {@return the results of graphs as they were written, in-place collectives included}
   *
   * @param graphs each rank's
   * @param inputs are copied, not written
   * @throws RunException when an op has no host implementation or fails
   */
  public static Result evaluate(List<Graph> graphs, List<ProcessGroup> groups, Inputs inputs) {
    return evaluate(graphs, groups, inputs, Observer.NONE);
  }

  /** {@return the same, heard by an observer} */
  public static Result evaluate(
      List<Graph> graphs, List<ProcessGroup> groups, Inputs inputs, Observer observer) {
    return new Reference(graphs, groups, observer).run(inputs);
  }

  /** {@return whether every collective has a definition: custom ops have none but their code} */
  public static boolean canEvaluate(List<Graph> graphs) {
    return GraphChoice.distinct(graphs).stream()
        .flatMap(graph -> graph.ops().stream())
        .flatMap(op -> op.def().collective().stream())
        .noneMatch(collective -> collective.kind() == Kind.CUSTOM);
  }

  private Result run(Inputs inputs) {
    for (int rank = 0; rank < graphs.size(); rank++) {
      var graph = graphs.get(rank);
      var own = new @Nullable HostTensor[graph.valueCount()];
      for (int i = 0; i < graph.inputs().size(); i++) {
        var input = inputs.input(rank, i);
        if (input.isPresent()) {
          own[graph.inputs().get(i).id()] = copy(input.get());
        }
      }
      values.add(own);
      storages.add(new HashMap<>());
    }
    var next = new int[graphs.size()];
    while (advance(next)) {
      collectives(next);
    }
    var outputs = new ArrayList<List<Optional<HostTensor>>>();
    var after = new ArrayList<List<Optional<HostTensor>>>();
    for (int rank = 0; rank < graphs.size(); rank++) {
      int self = rank;
      var graph = graphs.get(rank);
      outputs.add(graph.outputs().stream().map(output -> given(self, output)).toList());
      after.add(graph.inputs().stream().map(input -> given(self, new Arg.Ref(input))).toList());
    }
    return new Result(outputs, after);
  }

  private Optional<HostTensor> given(int rank, Arg arg) {
    return arg instanceof Arg.Ref(Value value) && value.isTensor()
        ? Optional.of(at(rank, value))
        : Optional.empty();
  }

  private static HostTensor copy(HostTensor tensor) {
    return tensor.copyAs(tensor.type());
  }

  private HostTensor at(int rank, Value value) {
    @Nullable HostTensor tensor = values.get(rank)[value.id()];
    if (tensor == null) {
      throw new IllegalStateException(value.name() + " has no value yet");
    }
    return tensor;
  }

  /** Runs every rank up to its next collective; false when all are through. */
  private boolean advance(int[] next) {
    boolean more = false;
    for (int rank = 0; rank < next.length; rank++) {
      var ops = graphs.get(rank).ops();
      while (next[rank] < ops.size() && !isCollective(ops.get(next[rank]))) {
        local(rank, RankNumbers.on(ops.get(next[rank]++), rank));
      }
      more |= next[rank] < ops.size();
    }
    return more;
  }

  private static boolean isCollective(Op op) {
    return op.def().collective().isPresent();
  }

  private void local(int rank, Op op) {
    observer.before(rank, op);
    var inferred = op.infer();
    var fresh = new ArrayList<Optional<HostTensor>>();
    boolean computes = op.def().schema().mutates();
    for (int i = 0; i < op.results().size(); i++) {
      var result = op.results().get(i);
      fresh.add(Optional.empty());
      if (result.type() instanceof TensorType type) {
        var view = inferred.get(i).view();
        computes |= view.isEmpty();
        var tensor = view.isPresent() ? view(rank, result, view.get()) : HostTensor.allocate(type);
        values.get(rank)[result.id()] = tensor;
        fresh.set(i, Optional.of(tensor));
      }
    }
    if (computes) {
      run(rank, op, () -> NaiveOps.run(op, value -> at(rank, value), fresh));
    }
    observer.after(rank, op, value -> at(rank, value));
  }

  /** Whatever else fails is an error of Symplan's own. */
  private static void run(int rank, Op op, Runnable kernel) {
    try {
      kernel.run();
    } catch (HostKernelException | UnsupportedOperationException e) {
      var name = op.results().isEmpty() ? "" : " '%s'".formatted(op.results().getFirst().name());
      throw new RunException(
          "rank %s, %s%s (%s), evaluated without a plan: %s"
              .formatted(rank, op.def().name(), name, op.span().shortForm(), e.getMessage()),
          e);
    }
  }

  private HostTensor view(int rank, Value value, OpResult.View view) {
    var type = value.tensor();
    var own = storages.get(rank);
    int storage = own.getOrDefault(view.of().id(), view.of().id());
    own.put(value.id(), storage);
    var base =
        view.fromStorage()
            ? Objects.requireNonNull(values.get(rank)[storage])
            : at(rank, view.of());
    long offset = view.offset() * view.of().tensor().dtype().bytes();
    return new HostTensor(
        type.numel() == 0 ? base.memory().asSlice(0, 0) : base.memory().asSlice(offset), type);
  }

  /** Runs the collectives for which all their ranks have come. */
  private void collectives(int[] next) {
    var done = new boolean[next.length];
    boolean moved = false;
    for (int rank = 0; rank < next.length; rank++) {
      if (!done[rank] && isComplete(rank, next)) {
        moved = true;
        var op = graphs.get(rank).ops().get(next[rank]);
        observer.before(rank, op);
        var spec = op.def().collective().orElseThrow();
        if (spec.kind() == Kind.CUSTOM) {
          throw new RunException(
              "%s (%s) is defined only by its implementation: there is nothing to compare with"
                  .formatted(op.def().name(), op.span().shortForm()));
        }
        var members = members(rank, op);
        var calls = new ArrayList<NaiveCollectives.Call>();
        for (int member : members.asList()) {
          calls.add(call(member, next[member]));
          next[member]++;
          done[member] = true;
        }
        run(rank, op, () -> NaiveCollectives.run(spec, calls));
        for (int member : members.asList()) {
          var own = graphs.get(member).ops().get(next[member] - 1);
          observer.after(member, own, value -> at(member, value));
        }
      }
    }
    if (!moved) {
      throw new IllegalStateException("the ranks wait for each other in their collectives");
    }
  }

  private ImmutableIntArray members(int rank, Op op) {
    var name = op.collective().orElseThrow().group();
    var group = groups.stream().filter(g -> g.name().equals(name)).findFirst().orElseThrow();
    return group.members().get(group.partOf(rank).orElseThrow());
  }

  /** Whether all ranks of a rank's next collective have come to it, if it is at one. */
  private boolean isComplete(int rank, int[] next) {
    var members = waiting(rank, next);
    return members.isPresent()
        && members.get().stream().allMatch(member -> waiting(member, next).equals(members));
  }

  /** The ranks of the collective that a rank has come to. */
  private Optional<ImmutableIntArray> waiting(int rank, int[] next) {
    var ops = graphs.get(rank).ops();
    return next[rank] < ops.size() && isCollective(ops.get(next[rank]))
        ? Optional.of(members(rank, ops.get(next[rank])))
        : Optional.empty();
  }

  private NaiveCollectives.Call call(int rank, int index) {
    var op = graphs.get(rank).ops().get(index);
    var operands =
        op.collective().orElseThrow().operands().stream().map(value -> at(rank, value)).toList();
    var results = new ArrayList<HostTensor>();
    var inferred = op.infer();
    for (int i = 0; i < op.results().size(); i++) {
      var type = op.results().get(i).tensor();
      var written = inferred.get(i).view();
      var tensor =
          written.isPresent()
              ? view(rank, op.results().get(i), written.get())
              : HostTensor.allocate(type);
      values.get(rank)[op.results().get(i).id()] = tensor;
      results.add(tensor);
    }
    return new NaiveCollectives.Call(op, operands, results);
  }
}
