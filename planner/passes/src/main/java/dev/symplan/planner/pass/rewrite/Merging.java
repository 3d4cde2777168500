package dev.symplan.planner.pass.rewrite;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.graph.Graph;
import dev.symplan.ir.graph.Op;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpTrait;
import dev.symplan.planner.pass.analysis.Analyses;
import dev.symplan.planner.pass.analysis.Collective;
import dev.symplan.planner.pass.analysis.GraphCopier;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Puts the collectives of each bucket of one graph together. Views follow: those of operands come
 * before the merged collective, those of results after it.
 */
final class Merging {
  private final Analyses source;
  private final ImmutableList<Op> ops;
  private final ImmutableList<Bucket> buckets;
  private final GraphCopier copier;

  /** By op, the bucket that it is in; -1 for none. */
  private final int[] bucketOf;

  /** By value, the op that gives it; -1 for inputs. */
  private final int[] producer;

  /** By value, the bucket that it has to wait for; -1 once it is there. */
  private final int[] awaited;

  private final boolean[] done;

  /** By bucket, the views that wait for it. */
  private final List<List<Integer>> waiting = new ArrayList<>();

  private Merging(Analyses source, ImmutableList<Bucket> buckets) {
    this.source = source;
    this.ops = source.graph().ops();
    this.buckets = buckets;
    this.copier = new GraphCopier(source.graph());
    this.bucketOf = new int[ops.size()];
    this.producer = new int[source.graph().valueCount()];
    this.awaited = new int[source.graph().valueCount()];
    this.done = new boolean[ops.size()];
    Arrays.fill(bucketOf, -1);
    Arrays.fill(producer, -1);
    Arrays.fill(awaited, -1);
    for (int b = 0; b < buckets.size(); b++) {
      waiting.add(new ArrayList<>());
      for (int k : buckets.get(b).members()) {
        bucketOf[source.collectives().get(k).index()] = b;
      }
    }
    for (int i = 0; i < ops.size(); i++) {
      int index = i;
      ops.get(i).results().forEach(result -> producer[result.id()] = index);
    }
  }

  /** {@return the graph with one collective for each bucket} */
  static Graph run(Analyses source, ImmutableList<Bucket> buckets) {
    return buckets.isEmpty() ? source.graph() : new Merging(source, buckets).merge();
  }

  private Graph merge() {
    for (int i = 0; i < ops.size(); i++) {
      if (done[i]) {
        continue;
      }
      if (bucketOf[i] >= 0) {
        visitMember(i, bucketOf[i]);
      } else if (isView(i) && lastAwaited(ops.get(i)) >= 0) {
        postpone(i, lastAwaited(ops.get(i)));
      } else {
        keep(i);
      }
    }
    return copier.finish();
  }

  private boolean isView(int op) {
    return source.aliases().isView(op) || ops.get(op).def().has(OpTrait.WAIT);
  }

  private void keep(int index) {
    copier.keep(ops.get(index));
    done[index] = true;
  }

  private void postpone(int index, int bucket) {
    waiting.get(bucket).add(index);
    ops.get(index).results().forEach(result -> awaited[result.id()] = bucket);
  }

  /** {@return the bucket that comes last of those that an op's operands wait for; -1 for none} */
  private int lastAwaited(Op op) {
    int last = -1;
    for (var value : op.operands()) {
      int bucket = awaited[value.id()];
      if (bucket >= 0 && (last < 0 || buckets.get(bucket).anchor() > buckets.get(last).anchor())) {
        last = bucket;
      }
    }
    return last;
  }

  private void visitMember(int index, int b) {
    done[index] = true;
    var bucket = buckets.get(b);
    if (source.collectives().get(bucket.anchor()).index() != index) {
      if (source.collectives().get(bucket.anchor()).index() > index) {
        ops.get(index).results().forEach(result -> awaited[result.id()] = b);
      }
      return;
    }
    var members = bucket.members().stream().map(source.collectives()::get).toList();
    members.forEach(member -> member.operands().forEach(this::define));
    emit(members);
    members.forEach(member -> member.op().results().forEach(result -> awaited[result.id()] = -1));
    for (int view : waiting.get(b)) {
      if (!done[view]) {
        keep(view);
      }
      ops.get(view).results().forEach(result -> awaited[result.id()] = -1);
    }
  }

  /** Makes the views that a value is, as far as they come later in the source. */
  private void define(Value value) {
    var stack = new ArrayDeque<Value>();
    stack.push(value);
    while (!stack.isEmpty()) {
      int op = producer[stack.peek().id()];
      if (op < 0 || done[op]) {
        stack.pop();
        continue;
      }
      int open = stack.size();
      for (var operand : ops.get(op).operands()) {
        int from = producer[operand.id()];
        if (from >= 0 && !done[from]) {
          stack.push(operand);
        }
      }
      if (stack.size() == open) {
        keep(op);
        stack.pop();
      }
    }
  }

  private void emit(List<Collective> members) {
    var first = members.getFirst().op();
    var def = listForm(first.def());
    var args = ImmutableList.<Arg>builder();
    for (var param : def.schema().params()) {
      args.add(
          param.name().equals("inputs")
              ? new Arg.Seq(
                  members.stream()
                      .flatMap(member -> member.operands().stream())
                      .map(operand -> new Arg.Ref(copier.now(operand)))
                      .collect(ImmutableList.toImmutableList()))
              : first.arg(param.name()));
    }
    copier.emit(
        members.stream()
            .flatMap(member -> member.op().results().stream())
            .collect(ImmutableList.toImmutableList()),
        def,
        args.build(),
        first);
  }

  /** {@return the collective of several tensors that does what one does} */
  static OpDef listForm(OpDef def) {
    var name = def.name().name();
    return name.endsWith("_coalesced")
        ? def
        : BuiltinOps.registry().get("_c10d_functional::" + name + "_coalesced");
  }
}
