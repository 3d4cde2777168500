package dev.symplan.ir.op;

/** A property of an op beyond its types. */
public enum OpTrait {
  /** Each output element depends on the input elements at the same index only. */
  ELEMENTWISE,
  /**
   * The only result is {@code self} with some elements overwritten; the op reads {@code self} only
   * to copy it.
   */
  UPDATES_SELF,
  /**
   * Each index of the dimensions before {@code dim} is computed independently: see {@link
   * dev.symplan.ir.graph.Rows}.
   */
  ROWWISE,
  /** It reads no more elements of its first argument than its result has. */
  GATHER,
  /** Gives the same value every time and reads nothing, so it may be moved and repeated freely. */
  CREATION,
  /** Every backend can leave memory between the rows of its result. */
  ROWS_APART,
  /** In PyTorch, its result is its operand, seen otherwise, so that writes into either show. */
  LAZY_VIEW,
  /** Must run exactly once, even if nothing reads its results. */
  SIDE_EFFECT,
  /** Nothing moves across it: another graph of the program begins after it. */
  BORDER,
  /** A {@link #BORDER} that ends what a session runs once, before its first run. */
  SETUP_END,
  /** Begins a copy between device and host memory on a stream of its own; another op ends it. */
  HOST_COPY,
  /** Waits for the end of a {@link #HOST_COPY}. */
  HOST_COPY_END,
  /** Its result is the tensors of its first argument, side by side along {@code dim}. */
  CONCATENATION,
  /** Scaled dot-product attention, or its gradients. */
  ATTENTION,
  /** A convolution, or its gradients. */
  CONVOLUTION,
  /** {@code wait_tensor}: its result is its argument, finished. */
  WAIT,
  /** Without a rule: its types come from annotations. Plannable, not executable. */
  OPAQUE
}
