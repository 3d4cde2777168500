package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import java.util.Optional;
import java.util.regex.Pattern;
import org.bytedeco.cuda.cudart.CUDA_KERNEL_NODE_PARAMS_v2;
import org.bytedeco.cuda.cudart.CUgraphNode_st;
import org.bytedeco.cuda.cudart.CUgraph_st;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.cudart.cudaGraphEdgeData;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.PointerPointer;
import org.bytedeco.javacpp.SizeTPointer;

/**
 * Finds the kernels that libraries put into a captured stream and that the next node has to wait
 * for; none if the driver does not report them.
 */
final class CapturedKernels {

  /** C++ mangles a name of no namespace so that its length stands before it. */
  private static final Pattern MANGLED = Pattern.compile("_Z([0-9]{1,4})(.*)");

  private static final int KERNEL_NODE = 0;

  private CapturedKernels() {}

  /** {@return the names of the kernels that were captured last} */
  static ImmutableList<String> last(CUstream_st stream) {
    var names = ImmutableList.<String>builder();
    // The binding lets it point to the driver's own array.
    try (var nodes = new PointerPointer<CUgraphNode_st>();
        var count = new SizeTPointer(1);
        var edges = new cudaGraphEdgeData();
        var graph = new CUgraph_st()) {
      int status =
          cudart.cudaStreamGetCaptureInfo(
              stream, new int[1], new long[1], graph, nodes, edges, count);
      if (status != cudart.cudaSuccess) {
        return ImmutableList.of();
      }
      for (int i = 0; i < count.get(0); i++) {
        name(nodes.get(CUgraphNode_st.class, i)).ifPresent(names::add);
      }
    }
    return names.build();
  }

  private static Optional<String> name(CUgraphNode_st node) {
    var type = new int[] {-1};
    if (cudart.cuGraphNodeGetType(node, type) != cudart.CUDA_SUCCESS || type[0] != KERNEL_NODE) {
      return Optional.empty();
    }
    try (var params = new CUDA_KERNEL_NODE_PARAMS_v2();
        var name = new PointerPointer<BytePointer>(1)) {
      if (cudart.cuGraphKernelNodeGetParams(node, params) != cudart.CUDA_SUCCESS) {
        return Optional.empty();
      }
      var function = params.func();
      int status =
          function == null || function.isNull()
              ? cudart.cuKernelGetName(name, params.kern())
              : cudart.cuFuncGetName(name, function);
      return status == cudart.CUDA_SUCCESS
          ? Optional.of(plain(name.get(BytePointer.class, 0).getString()))
          : Optional.empty();
    }
  }

  /** {@return a name without what C++ makes of it} */
  static String plain(String name) {
    var mangled = MANGLED.matcher(name);
    if (!mangled.matches()) {
      return name;
    }
    int length = Integer.parseInt(mangled.group(1));
    var rest = mangled.group(2);
    return length <= rest.length() ? rest.substring(0, length) : name;
  }
}
