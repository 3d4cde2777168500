package dev.symplan.runtime.host;

import dev.symplan.codegen.Instruction.GroupUse;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.List;

/** A custom op's view of its peers: its symmetric arguments, at the same offsets. */
final class CustomGroup implements HostCall.Group {
  private final LocalOp op;
  private final GroupUse use;
  private final Collectives collectives;
  private final Runnable meeting;

  CustomGroup(LocalOp op, GroupUse use, Collectives collectives) {
    this.op = op;
    this.use = use;
    this.collectives = collectives;
    this.meeting = collectives.meeting(use);
  }

  @Override
  public int size() {
    return use.members().length();
  }

  @Override
  public int self() {
    return use.self();
  }

  @Override
  public List<HostTensor> peers(String param) {
    if (!op.def().symmMemArgs().contains(param)
        || !(op.args().get(op.def().schema().indexOf(param)) instanceof Operand.Tensor(var ref))) {
      throw new IllegalArgumentException(
          "'%s' is not registered as symmetric: peers cannot access it".formatted(param));
    }
    return at(ref);
  }

  @Override
  public List<HostTensor> peerResults(int result) {
    return at(
        op.results()
            .get(result)
            .orElseThrow(
                () -> new IllegalArgumentException("no result has the position " + result)));
  }

  private List<HostTensor> at(TensorRef ref) {
    if (ref.arena() != dev.symplan.planner.plan.ArenaKind.SYMMETRIC) {
      throw new IllegalArgumentException(
          "%s is not in symmetric memory: peers cannot access it".formatted(ref));
    }
    return use.members().stream().mapToObj(rank -> collectives.memory(rank).tensor(ref)).toList();
  }

  @Override
  public void barrier() {
    meeting.run();
  }
}
