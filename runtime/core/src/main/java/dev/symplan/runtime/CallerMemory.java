package dev.symplan.runtime;

import com.google.common.primitives.ImmutableLongArray;

/**
 * Memory of the caller's for the inputs and outputs of one rank: {@link Session#bind} checks it
 * against the {@link Signature}.
 *
 * @param inputs for each input of the graph, where its first element is
 * @param outputs the same for each output
 */
public record CallerMemory(Stretches inputs, Stretches outputs) {

  /**
   * The addresses of tensors.
   *
   * @param addresses of their first elements; 0 if the caller gives no memory
   * @param bytes how much there is from each address on
   */
  public record Stretches(ImmutableLongArray addresses, ImmutableLongArray bytes) {
    public Stretches {
      if (addresses.length() != bytes.length()) {
        throw new IllegalArgumentException(
            "%s addresses, but %s sizes".formatted(addresses.length(), bytes.length()));
      }
    }

    /** {@return how many tensors there are} */
    public int count() {
      return addresses.length();
    }
  }
}
