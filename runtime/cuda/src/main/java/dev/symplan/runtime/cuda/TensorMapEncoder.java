package dev.symplan.runtime.cuda;

import dev.symplan.codegen.cuda.KernelArgument.TensorMap;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import org.bytedeco.cuda.cudart.CUtensorMap;
import org.bytedeco.cuda.global.cudart;

/**
 * Has the driver encode where a tensor is, again whenever it is elsewhere.
 *
 * @param label of the launch, in messages
 */
record TensorMapEncoder(Check check, TensorMap map, String label) {

  /** The driver refuses to write a map anywhere else than at a multiple. */
  private static final int ALIGNMENT = 64;

  /** {@return the words of the tensor map for an address} */
  long[] encode(long address) {
    try (var arena = Arena.ofConfined()) {
      var words = arena.allocate((long) map.words() * Long.BYTES, ALIGNMENT);
      check.driver(
          cudart.cuTensorMapEncodeTiled(
              new CUtensorMap(new DevicePointer(words.address())),
              cudart.CU_TENSOR_MAP_DATA_TYPE_UINT16,
              3,
              new DevicePointer(address),
              new long[] {map.near(), map.lines(), map.matrices()},
              new long[] {map.pitchBytes(), map.matrixPitchBytes()},
              new int[] {TensorMap.BOX, map.boxLines(), 1},
              new int[] {1, 1, 1},
              cudart.CU_TENSOR_MAP_INTERLEAVE_NONE,
              cudart.CU_TENSOR_MAP_SWIZZLE_128B,
              cudart.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
              cudart.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
          "cuTensorMapEncodeTiled for '%s'".formatted(label));
      return words.toArray(ValueLayout.JAVA_LONG);
    }
  }
}
