package dev.symplan.ir.aten;

import com.google.common.collect.ImmutableSetMultimap;
import dev.symplan.ir.op.OpSchema;

/**
 * The ops of PyTorch's FSDP2 that the planner writes as copies of parts of tensors. Their schemas
 * differ between versions.
 */
public final class FsdpOps {
  /** The parameters that all versions have, by the op's name. */
  private static final ImmutableSetMultimap<String, String> COPIES =
      ImmutableSetMultimap.<String, String>builder()
          .putAll(
              "all_gather_copy_in",
              "all_gather_inputs",
              "inp_split_sizes",
              "all_gather_input_numel",
              "rank")
          .putAll(
              "split_with_sizes_copy",
              "all_gather_output",
              "all_gather_input_split_sizes",
              "dim",
              "out")
          .putAll("chunk_cat", "tensors", "dim", "num_chunks", "out")
          .putAll("copy_", "tensor", "data")
          .build();

  private FsdpOps() {}

  /** {@return whether an op is one of them, with parameters that are known} */
  public static boolean copies(OpSchema schema) {
    var params = COPIES.get(schema.name().name());
    return schema.name().namespace().equals("fsdp")
        && !params.isEmpty()
        && params.stream().allMatch(schema::hasParam)
        && (!schema.name().name().equals("all_gather_copy_in")
            || schema.hasParam("all_gather_output")
            || (schema.hasParam("world_size") && schema.hasParam("dtype")));
  }
}
