package dev.symplan.runtime;

import dev.symplan.ir.Arg;
import dev.symplan.ir.Op;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.OpResult;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.Plan;
import dev.symplan.runtime.host.NaiveCollectives;
import dev.symplan.runtime.host.NaiveOps;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Evaluation without a plan: every op of every rank writes memory of its own, and collectives are
 * done by definition. What planned execution is compared with.
 */
public final class Reference {
  private final Plan plan;
  private final List<@Nullable HostTensor[]> values = new ArrayList<>();

  private Reference(Plan plan) {
    this.plan = plan;
  }

  /**
   * {@return the outputs of each rank}
   *
   * @param inputs whose inputs are read; they must not have been changed by a run
   * @throws RunException when an op has no host implementation or fails
   */
  public static List<List<Optional<HostTensor>>> evaluate(Plan plan, Session inputs) {
    return new Reference(plan).run(inputs);
  }

  /** {@return whether every collective has a definition: custom ops have none but their code} */
  public static boolean canEvaluate(Plan plan) {
    return plan.rankPlans().stream()
        .flatMap(rankPlan -> rankPlan.collectives().stream())
        .noneMatch(collective -> collective.kind() == Kind.CUSTOM);
  }

  private List<List<Optional<HostTensor>>> run(Session inputs) {
    for (int rank = 0; rank < plan.worldSize(); rank++) {
      var graph = plan.forRank(rank).graph();
      var own = new @Nullable HostTensor[graph.valueCount()];
      for (int i = 0; i < graph.inputs().size(); i++) {
        var input = inputs.input(rank, i);
        if (input.isPresent()) {
          own[graph.inputs().get(i).id()] = copy(input.get());
        }
      }
      values.add(own);
    }
    var next = new int[plan.worldSize()];
    while (advance(next)) {
      collective(next);
    }
    var outputs = new ArrayList<List<Optional<HostTensor>>>();
    for (int rank = 0; rank < plan.worldSize(); rank++) {
      var own = new ArrayList<Optional<HostTensor>>();
      for (var output : plan.forRank(rank).graph().outputs()) {
        own.add(
            output instanceof Arg.Ref(Value value) && value.isTensor()
                ? Optional.of(at(rank, value))
                : Optional.empty());
      }
      outputs.add(own);
    }
    return outputs;
  }

  private static HostTensor copy(HostTensor tensor) {
    var copy = HostTensor.allocate(tensor.type());
    copy.copyFrom(tensor);
    return copy;
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
      var ops = plan.forRank(rank).graph().ops();
      while (next[rank] < ops.size() && !isCollective(ops.get(next[rank]))) {
        local(rank, ops.get(next[rank]++));
      }
      more |= next[rank] < ops.size();
    }
    return more;
  }

  private static boolean isCollective(Op op) {
    return op.def().collective().isPresent() && !op.def().has(OpTrait.WAIT);
  }

  private void local(int rank, Op op) {
    var inferred = op.infer();
    var fresh = new ArrayList<Optional<HostTensor>>();
    boolean computes = op.def().schema().mutates();
    for (int i = 0; i < op.results().size(); i++) {
      var result = op.results().get(i);
      fresh.add(Optional.empty());
      if (result.type() instanceof TensorType type) {
        var view = inferred.get(i).view();
        computes |= view.isEmpty();
        var tensor = view.isPresent() ? view(rank, view.get(), type) : HostTensor.allocate(type);
        values.get(rank)[result.id()] = tensor;
        fresh.set(i, Optional.of(tensor));
      }
    }
    if (computes) {
      NaiveOps.run(op, value -> at(rank, value), fresh);
    }
  }

  private HostTensor view(int rank, OpResult.View view, TensorType type) {
    var base = at(rank, view.of());
    long offset = view.offset() * view.of().tensor().dtype().bytes();
    return new HostTensor(
        type.numel() == 0 ? base.memory().asSlice(0, 0) : base.memory().asSlice(offset), type);
  }

  private void collective(int[] next) {
    var done = new boolean[next.length];
    for (int rank = 0; rank < next.length; rank++) {
      if (!done[rank]) {
        var op = plan.forRank(rank).graph().ops().get(next[rank]);
        var spec = op.def().collective().orElseThrow();
        if (spec.kind() == Kind.CUSTOM) {
          throw new RunException(
              "%s (%s) has no meaning but its implementation's: there is nothing to compare with"
                  .formatted(op.def().name(), op.span().shortForm()));
        }
        var name = op.arg(spec.group()) instanceof Arg.Str(String text) ? text : "";
        var group = plan.group(name);
        var members = group.members().get(group.partOf(rank).orElseThrow());
        var calls = new ArrayList<NaiveCollectives.Call>();
        for (int member : members.asList()) {
          calls.add(call(member, next[member]));
          next[member]++;
          done[member] = true;
        }
        NaiveCollectives.run(spec, calls);
      }
    }
  }

  private NaiveCollectives.Call call(int rank, int index) {
    var op = plan.forRank(rank).graph().ops().get(index);
    var operands = new ArrayList<HostTensor>();
    var spec = op.def().collective().orElseThrow();
    op.arg(spec.operand()).forEachValue(value -> operands.add(at(rank, value)));
    var results = new ArrayList<HostTensor>();
    for (var result : op.results()) {
      var tensor = HostTensor.allocate(result.tensor());
      values.get(rank)[result.id()] = tensor;
      results.add(tensor);
    }
    return new NaiveCollectives.Call(op, operands, results);
  }
}
