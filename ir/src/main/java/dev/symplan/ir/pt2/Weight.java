package dev.symplan.ir.pt2;

import dev.symplan.ir.TensorType;
import java.lang.foreign.MemorySegment;

/**
 * A tensor that an archive holds for an input of its graph.
 *
 * @param input the input's name in the graph
 * @param qualifiedName the name in the module: {@code l.weight}
 * @param type with the strides of the archive
 * @param memory from the first element on; tensors that shared a storage share it here
 */
public record Weight(String input, String qualifiedName, TensorType type, MemorySegment memory) {}
