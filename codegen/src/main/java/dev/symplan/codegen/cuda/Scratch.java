package dev.symplan.codegen.cuda;

import dev.symplan.codegen.TensorRef;
import dev.symplan.ir.TensorType;

/**
 * The memory beside a rank's arenas, as one op uses it: what one of its steps leaves there, the
 * next ones read. Libraries use the same memory: of their steps, only convolutions know what is in
 * use.
 */
final class Scratch {
  private static final long ALIGNMENT = 256;

  private long bytes;

  /** {@return how much of it the op has used} */
  long bytes() {
    return bytes;
  }

  /** {@return memory for a tensor that the op has not used yet} */
  TensorRef take(TensorType type) {
    var ref = TensorRef.scratch(bytes, type);
    bytes = Math.ceilDiv(bytes + type.storageBytes(), ALIGNMENT) * ALIGNMENT;
    return ref;
  }
}
