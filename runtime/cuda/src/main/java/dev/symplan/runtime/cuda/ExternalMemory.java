package dev.symplan.runtime.cuda;

import com.google.common.collect.ArrayListMultimap;
import com.google.common.collect.ListMultimap;
import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.TensorRef;
import dev.symplan.planner.plan.ArenaKind;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.function.LongConsumer;
import java.util.function.LongUnaryOperator;

/**
 * The addresses of one rank's external inputs and outputs: in the caller's memory or, if the caller
 * gives none, in the session's. Users of an address are notified when it changes.
 */
final class ExternalMemory {

  private record Tensor(ArenaKind arena, int index) {}

  private final Map<Tensor, Long> bytes = new HashMap<>();
  private final Map<Tensor, Long> bases = new HashMap<>();
  private final ListMultimap<Tensor, LongConsumer> followers = ArrayListMultimap.create();
  private final LongUnaryOperator allocate;

  /**
   * @param allocate gives the address of so many bytes that stay as long as this
   */
  ExternalMemory(RankProgram program, LongUnaryOperator allocate) {
    this.allocate = allocate;
    note(program.inputs(), ArenaKind.EXTERNAL_INPUT);
    note(program.outputs(), ArenaKind.EXTERNAL_OUTPUT);
  }

  /** An output may lie in the memory of an input or of another output, which are listed as well. */
  private void note(List<Optional<TensorRef>> signature, ArenaKind arena) {
    for (int i = 0; i < signature.size(); i++) {
      int index = i;
      signature
          .get(i)
          .filter(ref -> ref.arena() == arena && ref.index() == index)
          .ifPresent(
              ref -> bytes.put(new Tensor(arena, index), ref.offset() + ref.type().storageBytes()));
    }
  }

  /** {@return whether a tensor, which is at {@code base} now, was elsewhere before} */
  boolean move(ArenaKind arena, int index, long base) {
    var tensor = known(arena, index);
    var before = bases.put(tensor, base);
    if (before != null && before == base) {
      return false;
    }
    followers.get(tensor).forEach(follower -> follower.accept(base));
    return true;
  }

  /** Calls with the address of a tensor, now if there is one, and whenever it is another one. */
  void follow(ArenaKind arena, int index, LongConsumer follower) {
    var tensor = known(arena, index);
    followers.put(tensor, follower);
    var base = bases.get(tensor);
    if (base != null) {
      follower.accept(base);
    }
  }

  /** {@return the address of a tensor, in memory of the session's if it has no other} */
  long base(ArenaKind arena, int index) {
    var tensor = known(arena, index);
    if (!bases.containsKey(tensor)) {
      move(arena, index, allocate.applyAsLong(Objects.requireNonNull(bytes.get(tensor))));
    }
    return Objects.requireNonNull(bases.get(tensor));
  }

  /** Gives memory of the session's to all tensors that have none. */
  void allocateAll() {
    bytes.keySet().forEach(tensor -> base(tensor.arena(), tensor.index()));
  }

  private Tensor known(ArenaKind arena, int index) {
    var tensor = new Tensor(arena, index);
    if (!bytes.containsKey(tensor)) {
      throw new IllegalStateException("no external tensor: " + tensor);
    }
    return tensor;
  }
}
