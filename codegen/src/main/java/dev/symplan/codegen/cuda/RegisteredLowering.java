package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.Instruction.LocalOp;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.BarrierCode.Edges;
import dev.symplan.codegen.cuda.CudaKernels.Implementation;
import dev.symplan.codegen.cuda.CudaKernels.LaunchShape;
import dev.symplan.codegen.cuda.CudaKernels.Tensors;
import dev.symplan.ir.Arg;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.SchemaType;
import dev.symplan.planner.plan.ArenaKind;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.IntSupplier;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/**
 * A call of an op that {@link CudaKernels} implements, as one launch. Its text declares the call's
 * tensors and constants as {@code struct Op}, and the ranks that it communicates with as {@code
 * struct Group}.
 */
final class RegisteredLowering {
  private static final String GROUP =
      """

      struct Group {
        const Args& args;
        unsigned& meeting;
        const int rank;
        static constexpr int size = RANKS;

        __device__ __forceinline__ void barrier() { meet(args, ++meeting, true); }
      };
      """;

  private final int rank;
  private final LocalOp op;
  private final OpArguments arguments;
  private final Implementation implementation;
  private final List<KernelArgument> words = new ArrayList<>();
  private final StringBuilder members = new StringBuilder();
  private final ImmutableMap.Builder<String, TensorType> types = ImmutableMap.builder();

  private RegisteredLowering(int rank, LocalOp op, Implementation implementation) {
    this.rank = rank;
    this.op = op;
    this.arguments = new OpArguments(op);
    this.implementation = implementation;
  }

  /**
   * {@return the launch of an op that a program has registered; empty for all others}
   *
   * @param pad gives the number of the signal pad of an op that communicates
   * @throws UnsupportedOnGpu when a kernel cannot have such arguments
   */
  static Optional<DeviceStep> lower(int rank, LocalOp op, IntSupplier pad) {
    return CudaKernels.find(op.def().name())
        .map(found -> new RegisteredLowering(rank, op, found).launch(pad));
  }

  private DeviceStep launch(IntSupplier pad) {
    var schema = op.def().schema();
    for (int i = 0; i < schema.params().size(); i++) {
      var param = schema.params().get(i);
      boolean symmetric = op.def().symmMemArgs().contains(param.name());
      argument(param.name(), op.args().get(i), param.alias().write(), symmetric);
      if (param.type() instanceof SchemaType.OptionalOf) {
        boolean given = arguments.has(param.name());
        constant("bool", "has_" + param.name(), Boolean.toString(given));
        if (!given && param.type().holdsTensors()) {
          constant("const float*", param.name(), "nullptr");
        }
      }
    }
    results();
    var shape = implementation.shape().apply(new Tensors(types.buildOrThrow()));
    var text = CTypes.PRELUDE + "\nstruct Op {\n" + members + "};\n";
    var kernel = op.group().isPresent() ? meeting(text, shape) : alone(text, shape);
    var all = ImmutableList.<KernelArgument>builder();
    op.group()
        .ifPresent(group -> all.addAll(CollectiveAddresses.meeting(pad.getAsInt(), group).build()));
    return new DeviceStep.Launch(
        op.stream(), kernel, shape.blocks(), shape.threads(), all.addAll(words).build(), op.name());
  }

  private Kernel alone(String text, LaunchShape shape) {
    return new Kernel(
        text
            + "\nstruct Args { Op op; };\n"
            + source()
            + """

            extern "C" __global__ void __launch_bounds__(%s) symplan_kernel(const __grid_constant__ Args args) {
              registered::run(args.op);
            }
            """
                .formatted(shape.threads()));
  }

  private Kernel meeting(String text, LaunchShape shape) {
    int ranks = op.group().orElseThrow().members().length();
    if (ranks > DeviceProgram.MAX_RANKS || shape.blocks() > DeviceProgram.MAX_BLOCKS) {
      throw arguments.unsupported(
          "%s between %s ranks, in %s blocks".formatted(arguments.name(), ranks, shape.blocks()));
    }
    return new Kernel(
        text
            + new Edges(false, true).define(true)
            + BarrierCode.args(ranks, shape.threads(), "  Op op;\n")
            + GROUP
            + source()
            + BarrierCode.between(
                """
                  Group group{args, meeting, (int)args.self};
                  group.barrier();
                  registered::run(args.op, group);
                """));
  }

  /** The compiler's messages count lines from the start of the source. */
  private String source() {
    return "\nnamespace registered {\n#line 1 \"%s\"\n%s\n}\n#line 1 \"symplan.cu\"\n"
        .formatted(arguments.name(), implementation.source());
  }

  private void results() {
    var schema = op.def().schema().results();
    for (int i = 0; i < op.results().size(); i++) {
      var declared = i < schema.size() ? schema.get(i).name() : "";
      var name = !declared.isEmpty() ? declared : "result" + (op.results().size() == 1 ? "" : i);
      boolean symmetric =
          op.def().symmMemResults().contains(Integer.toString(i))
              || op.def().symmMemResults().contains(declared);
      var operand =
          op.results()
              .get(i)
              .<Operand>map(Operand.Tensor::new)
              .orElse(new Operand.Constant(Arg.None.NONE));
      argument(name, operand, true, symmetric);
    }
  }

  private void argument(String name, Operand operand, boolean written, boolean symmetric) {
    switch (operand) {
      case Operand.Tensor(var ref) -> {
        types.put(name, ref.type());
        pointers(name, List.of(ref), "", written, symmetric);
        constant("long long", name + "_numel", Literals.integer(ref.type().numel()));
        function(name + "_size", ref.type().sizes().asList());
        function(name + "_stride", ref.type().strides().asList());
      }
      case Operand.Many(var items) -> {
        var refs = items.stream().map(item -> tensor(name, item)).toList();
        pointers(name, refs, "[%s]".formatted(refs.size()), written, symmetric);
        function(name + "_numel", refs.stream().map(ref -> ref.type().numel()).toList());
        constant("int", name + "_count", Integer.toString(refs.size()));
      }
      case Operand.Constant(var value) -> constant(name, value);
      case Operand.Passed _ -> throw arguments.unsupported();
    }
  }

  private TensorRef tensor(String name, Operand item) {
    if (item instanceof Operand.Tensor(var ref)) {
      return ref;
    }
    throw arguments.unsupported("%s without a tensor in %s".formatted(arguments.name(), name));
  }

  /** A pointer to each tensor, and, of symmetric ones, an array of pointers to each rank's. */
  private void pointers(
      String name, List<TensorRef> refs, String count, boolean written, boolean symmetric) {
    refs.forEach(arguments::checkComputes);
    var stored = refs.stream().map(ref -> CTypes.stored(ref.type().dtype())).distinct().toList();
    if (stored.size() != 1) {
      throw arguments.unsupported(
          "%s with %s element types in %s".formatted(arguments.name(), stored.size(), name));
    }
    var type = (written ? "" : "const ") + stored.getFirst() + "*";
    members.append("  %s %s%s;\n".formatted(type, name, count));
    refs.forEach(ref -> words.add(KernelArgument.Memory.of(rank, ref)));
    if (op.group().isPresent() && symmetric) {
      int ranks = op.group().get().members().length();
      members.append("  %s %s_peers%s[%s];\n".formatted(type, name, count, ranks));
      for (var ref : refs) {
        if (ref.arena() != ArenaKind.SYMMETRIC) {
          throw new IllegalStateException(ref + " is not in symmetric memory");
        }
        op.group().get().members().forEach(peer -> words.add(peer(peer, ref)));
      }
    }
  }

  private static KernelArgument peer(int peer, TensorRef ref) {
    return new KernelArgument.Memory(Address.of(peer, ref), ref.type().storageBytes());
  }

  private void constant(String name, Arg value) {
    switch (value) {
      case Arg.Int(long number) -> constant("long long", name, Literals.integer(number));
      case Arg.Bool(boolean flag) -> constant("bool", name, Boolean.toString(flag));
      case Arg.Float(double number) -> {
        if (!Double.isFinite(number)) {
          throw arguments.unsupported("%s with %s = %s".formatted(arguments.name(), name, number));
        }
        constant("double", name, Literals.floating(number, true));
      }
      case Arg.Seq(var items) when items.stream().allMatch(Arg.Int.class::isInstance) -> {
        function(name, items.stream().map(item -> ((Arg.Int) item).value()).toList());
        constant("int", name + "_count", Integer.toString(items.size()));
      }
      case Arg.Seq _,
          Arg.Ref _,
          Arg.Str _,
          Arg.None _,
          Arg.Dtype _,
          Arg.Symbol _,
          Arg.Device _ -> {}
    }
  }

  private void constant(String type, String name, String value) {
    members.append("  static constexpr %s %s = %s;\n".formatted(type, name, value));
  }

  /** Numbers by their position; static arrays cannot be read by it on a GPU. */
  private void function(String name, List<Long> values) {
    var list =
        IntStream.range(0, values.size())
            .mapToObj(i -> "i == %s ? %s : ".formatted(i, Literals.integer(values.get(i))))
            .collect(Collectors.joining());
    members.append(
        "  static __device__ __forceinline__ long long %s(int i) { return %s0; }\n"
            .formatted(name, list));
  }
}
