package dev.symplan.planner.pass.rewrite;

import dev.symplan.ir.TensorType;

/**
 * The sizes of attention.
 *
 * @param heads of keys, in each batch
 * @param group the heads of queries that share a head of keys
 * @param units the heads of keys of all batches
 * @param rows of queries in a head
 * @param keys in a head
 */
record AttentionSizes(long heads, long group, long units, long rows, long keys) {

  static AttentionSizes of(TensorType query, TensorType key) {
    int rank = query.rank();
    long heads = rank > 2 ? key.size(rank - 3) : 1;
    long group = rank > 2 ? query.size(rank - 3) / heads : 1;
    long batches = rank > 3 ? query.size(0) : 1;
    return new AttentionSizes(
        heads, group, heads * batches, query.size(rank - 2), key.size(rank - 2));
  }
}
