package dev.symplan.runtime;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.TensorRef;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.runtime.tensor.HostTensor;

/** What is the same in the sessions of all backends: the signature, and what may be bound to it. */
public abstract class ExecutableSession implements Session {
  private final Executable executable;
  private final ImmutableList<Signature> signatures;
  private boolean closed;

  protected ExecutableSession(Executable executable) {
    this.executable = executable;
    this.signatures =
        executable.ranks().stream().map(Signature::of).collect(ImmutableList.toImmutableList());
  }

  protected final Executable executable() {
    return executable;
  }

  protected final RankProgram program(int rank) {
    return executable.ranks().get(rank);
  }

  @Override
  public final int ranks() {
    return executable.ranks().size();
  }

  @Override
  public final ImmutableList<String> inputNames() {
    return program(0).inputNames();
  }

  @Override
  public final int outputCount() {
    return program(0).outputs().size();
  }

  @Override
  public final boolean isExternalInput(int rank, int index) {
    return program(rank).inputs().get(index).filter(ref -> ref.arena().isExternal()).isPresent();
  }

  @Override
  public final Signature signature(int rank) {
    return signatures.get(rank);
  }

  @Override
  public final void bind(int rank, CallerMemory memory) {
    requireOpen();
    signature(rank).check(memory, alignment());
    use(rank, memory);
  }

  @Override
  public final void bindInput(int rank, int index, HostTensor tensor) {
    requireOpen();
    var name = "input '%s' of rank %s".formatted(inputNames().get(index), rank);
    var ref = program(rank).inputs().get(index);
    if (ref.isEmpty() || ref.get().arena() != ArenaKind.EXTERNAL_INPUT) {
      throw new IllegalArgumentException(name + " is planned: it has its place in an arena");
    }
    requireFits(ref.get(), tensor, name);
    useAsInput(rank, ref.get(), tensor);
  }

  @Override
  public final void bindOutput(int rank, int index, HostTensor tensor) {
    requireOpen();
    var name = "output %s of rank %s".formatted(index, rank);
    var ref = program(rank).outputs().get(index);
    if (ref.isEmpty() || !ref.get().arena().isExternal()) {
      throw new IllegalArgumentException(name + " is planned: it has its place in an arena");
    }
    if (ref.get().arena() != ArenaKind.EXTERNAL_OUTPUT || ref.get().index() != index) {
      throw new IllegalArgumentException(
          "%s has no separate memory: it shares that of %s".formatted(name, ref.get()));
    }
    if (tensor.memory().isReadOnly()) {
      throw new IllegalArgumentException(name + ": the memory is read-only");
    }
    requireFits(ref.get(), tensor, name);
    useAsOutput(rank, ref.get(), tensor);
  }

  private static void requireFits(TensorRef ref, HostTensor tensor, String name) {
    var expected = ref.type();
    if (tensor.dtype() != expected.dtype()
        || !tensor.type().sizes().equals(expected.sizes())
        || !tensor.type().strides().equals(expected.strides())) {
      throw new IllegalArgumentException(
          "%s is %s, not %s".formatted(name, expected, tensor.type()));
    }
    if (!tensor.memory().isNative()) {
      throw new IllegalArgumentException(name + ": the memory is on the Java heap; use an Arena");
    }
    if (!tensor.memory().isAccessibleBy(new Thread())) {
      throw new IllegalArgumentException(
          name + ": the memory is confined to a thread; use a shared or automatic Arena");
    }
  }

  /** Binds all inputs and outputs of a rank to memory that fits them. */
  protected abstract void use(int rank, CallerMemory memory);

  /** Binds an external input to memory that fits it. */
  protected abstract void useAsInput(int rank, TensorRef input, HostTensor tensor);

  /** Binds an external output to memory that fits it and can be written. */
  protected abstract void useAsOutput(int rank, TensorRef output, HostTensor tensor);

  protected final void requireOpen() {
    if (closed) {
      throw new IllegalStateException("the session is closed");
    }
  }

  @Override
  public final void close() {
    if (!closed) {
      closed = true;
      release();
    }
  }

  /** Frees the memory; called once. */
  protected abstract void release();
}
