package dev.symplan.samples;

import dev.symplan.codegen.cuda.CudaKernels;
import dev.symplan.codegen.cuda.CudaKernels.LaunchShape;
import dev.symplan.ir.op.OpRegistry.Registration;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.runtime.Backend;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.host.HostCall;
import dev.symplan.runtime.host.HostKernels;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.SeededInputs;
import java.nio.file.Path;

/**
 * Runs {@code custom_op.graph} with implementations of its op for the host and for GPUs: each rank
 * reads the next rank's tensor straight from that rank's memory.
 */
public final class CustomOp {
  private static final String EXCHANGE =
      """
      __device__ void run(const Op& op, Group& group) {
        const float* next = op.input_peers[(group.rank + 1) % group.size];
        for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < Op::result_numel;
             i += gridDim.x * blockDim.x) {
          op.result[i] = next[i];
        }
      }
      """;

  private CustomOp() {}

  /**
   * Computes {@code result = input of the next rank}. The runtime's barriers come before and after
   * the call.
   */
  static void exchange(HostCall call) {
    var group = call.group();
    var next = group.peers("input").get((group.self() + 1) % group.size());
    call.result().copyFrom(next);
  }

  /** {@return rank 0's output} */
  static HostTensor run(Path graph, Backend backend) {
    var plan = Compiler.forTarget(Target.H200_X4).compile(graph);
    try (Registration _ = HostKernels.register("my_lib::exchange", CustomOp::exchange);
        Registration _ =
            CudaKernels.register(
                "my_lib::exchange",
                EXCHANGE,
                tensors -> LaunchShape.covering(tensors.get("result").numel()));
        Session session = Session.open(plan, backend)) {
      for (int rank = 0; rank < session.ranks(); rank++) {
        for (int i = 0; i < session.inputNames().size(); i++) {
          SeededInputs.fill(session.input(rank, i).orElseThrow(), 0, rank, "input" + i);
        }
      }
      session.run();
      var output = session.output(0, 0).orElseThrow();
      var copy = HostTensor.allocate(output.type());
      copy.copyFrom(output);
      return copy;
    }
  }

  /** Takes the graph, and the backend: {@code host} or {@code cuda}. */
  public static void main(String[] args) {
    var graph = Path.of(args.length > 0 ? args[0] : "samples/custom_op.graph");
    var backend = Backend.ofName(args.length > 1 ? args[1] : "host").orElseThrow();
    var output = run(graph, backend);
    System.out.println("o[0, 0] = " + output.get(0, 0));
  }
}
