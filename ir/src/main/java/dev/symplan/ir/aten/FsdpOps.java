package dev.symplan.ir.aten;

import com.google.common.collect.ImmutableSetMultimap;
import dev.symplan.ir.op.OpSchema;

/**
 * The ops of PyTorch's FSDP2, and of Inductor's buckets, that the planner writes as copies of parts
 * of tensors. Their schemas differ between versions.
 */
public final class FsdpOps {
  /** The parameter of the ops of buckets that has the number of ranks. */
  public static final String GROUP_SIZE = "group_size";

  /** The parameters that all versions have, by the op's name. */
  private static final ImmutableSetMultimap<String, String> COPIES =
      ImmutableSetMultimap.<String, String>builder()
          .putAll(
              "fsdp::all_gather_copy_in",
              "all_gather_inputs",
              "inp_split_sizes",
              "all_gather_input_numel",
              "rank")
          .putAll(
              "fsdp::split_with_sizes_copy",
              "all_gather_output",
              "all_gather_input_split_sizes",
              "dim",
              "out")
          .putAll("fsdp::chunk_cat", "tensors", "dim", "num_chunks", "out")
          .putAll("aten::_chunk_cat", "tensors", "dim", "num_chunks")
          .putAll("aten::_chunk_cat.out", "tensors", "dim", "num_chunks", "out")
          .putAll("aten::split_with_sizes_copy", "self", "split_sizes", "dim")
          .putAll("aten::split_with_sizes_copy.out", "self", "split_sizes", "dim", "out")
          .putAll("fsdp::copy_", "tensor", "data")
          .putAll("aten::_foreach_copy_", "self", "src")
          .putAll("bucketing::_pre_bucket_all_gather", "ag_ins", GROUP_SIZE, "dtype", "rank")
          .putAll("bucketing::_pre_bucket_reduce_scatter", "rs_ins", GROUP_SIZE)
          .build();

  private FsdpOps() {}

  /** {@return whether an op is one of them, with parameters that are known} */
  public static boolean copies(OpSchema schema) {
    var params = COPIES.get(schema.name().toString());
    return !params.isEmpty()
        && params.stream().allMatch(schema::hasParam)
        && (!schema.name().name().equals("all_gather_copy_in")
            || schema.hasParam("all_gather_output")
            || (schema.hasParam("world_size") && schema.hasParam("dtype")));
  }
}
