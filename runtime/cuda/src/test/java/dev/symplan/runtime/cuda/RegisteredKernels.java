package dev.symplan.runtime.cuda;

import dev.symplan.codegen.cuda.CudaKernels;
import dev.symplan.codegen.cuda.CudaKernels.LaunchShape;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.OpRegistry.Registration;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.runtime.host.HostCall;
import dev.symplan.runtime.host.HostKernels;
import dev.symplan.runtime.tensor.HostTensor;
import java.util.List;

/** Ops of a program's own, implemented for the host and for GPUs. */
final class RegisteredKernels {
  private static final String PROGRAM =
      """
      graph version 1
      op reg::rotate(Tensor input) -> Tensor  symm_mem(input)
      op reg::collect(Tensor x, Tensor(a!) slots, int shift, str group) -> Tensor  symm_mem(slots)
      op reg::scale(Tensor[] parts, Tensor? bias, float by, int[] order) -> Tensor
      group g = [%s]
      graph t(x: f32[37, 3], b: bf16[700]) {
        h = aten::relu(x)
        r: f32[37, 3] = reg::rotate(h)
        n = aten::neg(b)
        s = aten::zeros([%s, 700], dtype=torch.bfloat16)
        c: bf16[%s, 700] = reg::collect(n, s, 2, "g")
        p = aten::t(r)
        q: f32[37, 3] = reg::scale([r, p], h, 0.5, [1, 0])
        w: f32[37, 3] = reg::scale([q, p], None, 2.0, [0, 1])
        d = aten::mul.Tensor(c, c)
        return r, d, q, w, s
      }
      """;

  private static final String ROTATE =
      """
      __device__ void run(const Op& op, Group& group) {
        const float* next = op.input_peers[(group.rank + 1) % group.size];
        for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < Op::result_numel;
             i += gridDim.x * blockDim.x) {
          op.result[i] = next[i];
        }
      }
      """;

  /** Each rank writes to all, meets them, and reads what it got. */
  private static final String COLLECT =
      """
      __device__ void run(const Op& op, Group& group) {
        long long first = blockIdx.x * blockDim.x + threadIdx.x;
        long long step = gridDim.x * blockDim.x;
        for (int peer = 0; peer < group.size; peer++) {
          for (long long i = first; i < Op::x_numel; i += step) {
            op.slots_peers[peer][group.rank * Op::slots_stride(0) + i] = op.x[i];
          }
        }
        group.barrier();
        for (int peer = 0; peer < group.size; peer++) {
          int from = (peer + Op::shift) % group.size;
          for (long long i = first; i < Op::x_numel; i += step) {
            op.result[peer * Op::x_numel + i] = op.slots[from * Op::x_numel + i];
          }
        }
      }
      """;

  private static final String SCALE =
      """
      __device__ void run(const Op& op) {
        for (long long i = blockIdx.x * blockDim.x + threadIdx.x; i < Op::result_numel;
             i += gridDim.x * blockDim.x) {
          float value = (float)Op::by * op.parts[Op::order(0)][i] - op.parts[Op::order(1)][i];
          if constexpr (Op::has_bias) {
            value += op.bias[i];
          }
          op.result[i] = value;
        }
      }
      """;

  private RegisteredKernels() {}

  /** {@return the action that takes the ops back} */
  static Registration register() {
    var all =
        List.of(
            HostKernels.register("reg::rotate", RegisteredKernels::rotate),
            HostKernels.register("reg::collect", RegisteredKernels::collect),
            HostKernels.register("reg::scale", RegisteredKernels::scale),
            CudaKernels.register(
                "reg::rotate",
                ROTATE,
                tensors -> LaunchShape.covering(tensors.get("result").numel())),
            CudaKernels.register("reg::collect", COLLECT, _ -> new LaunchShape(2, 64)),
            CudaKernels.register("reg::scale", SCALE, _ -> new LaunchShape(1, 64)));
    return () -> all.forEach(Registration::close);
  }

  /** {@return a plan of the ops for all ranks} */
  static Plan plan(int ranks) {
    var members = new StringBuilder("0");
    for (int rank = 1; rank < ranks; rank++) {
      members.append(", ").append(rank);
    }
    return Compiler.forTarget(Target.H200_X4)
        .with(CompileOptions.DEFAULT.withRanks(ranks))
        .compile(
            GraphParser.parse(
                new SourceFile("registered.graph", PROGRAM.formatted(members, ranks, ranks))));
  }

  private static void rotate(HostCall call) {
    var group = call.group();
    call.result().copyFrom(group.peers("input").get((group.self() + 1) % group.size()));
  }

  private static void collect(HostCall call) {
    var group = call.group();
    for (var peer : group.peers("slots")) {
      copyRow(call.tensor("x"), peer, group.self());
    }
    group.barrier();
    int shift = Math.toIntExact(call.integer("shift"));
    for (int peer = 0; peer < group.size(); peer++) {
      for (long i = 0; i < call.tensor("x").type().numel(); i++) {
        call.result().set(call.tensor("slots").get((peer + shift) % group.size(), i), peer, i);
      }
    }
  }

  private static void copyRow(HostTensor from, HostTensor to, long row) {
    for (long i = 0; i < from.type().numel(); i++) {
      to.set(from.get(i), row, i);
    }
  }

  /** The kernel goes by the order in memory, in which a transposed matrix is the other. */
  private static void scale(HostCall call) {
    var order = call.integers("order");
    var result = call.result();
    for (long i = 0; i < result.type().size(0); i++) {
      for (long j = 0; j < result.type().size(1); j++) {
        double left = element(call.tensors("parts").get((int) order.get(0)), i, j);
        double right = element(call.tensors("parts").get((int) order.get(1)), i, j);
        float value = (float) ((float) call.number("by") * left) - (float) right;
        if (call.has("bias")) {
          value += (float) call.tensor("bias").get(i, j);
        }
        result.set(value, i, j);
      }
    }
  }

  private static double element(HostTensor part, long i, long j) {
    return part.type().size(0) < part.type().size(1) ? part.get(j, i) : part.get(i, j);
  }
}
