package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction;
import dev.symplan.codegen.cuda.DeviceStep.HopperLaunch;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.DeviceStep.Matrix;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.codegen.cuda.KernelArgument.Memory;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * Fetches weights into the GPU's cache before the product of a few tokens that reads them begins: a
 * kernel that waits for peers, or computes what is in the cache, leaves the memory idle.
 *
 * <p>More blocks of such a kernel do that, behind its own. They wait for nothing and write nothing,
 * and fetch only inputs that no step writes. A product is correct whether or not they have run.
 */
public final class ReadAhead {

  /** Most programs gained most with this; what more fetches, ranks that meet wait for. */
  private static final long BYTES = 4 << 20;

  private static final int BLOCKS = 16;

  /** What is fetched at once. */
  private static final int LINE = 128;

  /** Of a matrix: smaller ones may be in the cache since the run before. */
  private static final long LEAST_BYTES = 1 << 20;

  /** With more tokens, a product computes while it reads. */
  private static final long MOST_TOKENS = 128;

  private static final String FETCH =
      """
      #if __CUDA_ARCH__ >= 900
        for (long long at = (block * $THREADSll + threadIdx.x) * $LINE; at < args.ahead_bytes; at += $STEPll) {
      #pragma unroll
          for (int m = 0; m < $MATRICES; m++) {
            asm volatile("prefetch.global.L2 [%0];" ::"l"(args.ahead[m] + at));
          }
        }
      #endif
      """;

  private ReadAhead() {}

  /** {@return the programs of all ranks, whose kernels read ahead for products behind them} */
  public static ImmutableList<DeviceProgram> in(
      ImmutableList<DeviceProgram> programs, Executable executable) {
    return programs.stream()
        .map(program -> in(program, executable.ranks().get(program.rank()).instructions()))
        .collect(ImmutableList.toImmutableList());
  }

  private static DeviceProgram in(DeviceProgram program, List<Instruction> instructions) {
    var constants = ConstantInputs.of(instructions);
    var steps = new ArrayList<DeviceStep>(program.steps());
    for (int graph = 0; graph < program.begins().length(); graph++) {
      // The first of the kernels right before a step, on its stream.
      int first = program.begins().get(graph);
      for (int i = first; i < program.end(graph); i++) {
        var step = program.steps().get(i);
        var weights = weights(step, constants);
        if (first < i && step.stream() != steps.get(first).stream()) {
          first = i;
        }
        if (first < i && !weights.isEmpty() && !beginsEarly(program, first, i)) {
          steps.set(first, reading((Launch) steps.get(first), weights));
        }
        if (!weights.isEmpty() || !carries(step)) {
          first = i + 1;
        }
      }
    }
    return program.with(ImmutableList.copyOf(steps));
  }

  private static boolean carries(DeviceStep step) {
    return step instanceof Launch launch && launch.kernel().takesOthers();
  }

  /** Whether a product reads ahead itself while the only kernel before it runs. */
  private static boolean beginsEarly(DeviceProgram program, int first, int product) {
    return first == product - 1
        && !(program.steps().get(product) instanceof Product)
        && DependentLaunches.isLocal(program.rank(), (Launch) program.steps().get(first));
  }

  /** The weights in whose reading a step spends its time; none if it does not. */
  private static ImmutableList<Memory> weights(DeviceStep step, ConstantInputs constants) {
    return read(step)
        .filter(matrix -> matrix.bytes() >= LEAST_BYTES && constants.contains(matrix.address()))
        .collect(ImmutableList.toImmutableList());
  }

  private static Stream<Memory> read(DeviceStep step) {
    if (step instanceof Launch launch) {
      return launch.streamed().stream();
    }
    if (step instanceof HopperLaunch both) {
      return both.launch().streamed().stream();
    }
    if (!(step instanceof Product product) || product.batches() > 1) {
      return Stream.of();
    }
    return product.columns() <= MOST_TOKENS
        ? Stream.of(memory(product.left(), product.rows(), product.inner()))
        : product.rows() <= MOST_TOKENS
            ? Stream.of(memory(product.right(), product.inner(), product.columns()))
            : Stream.of();
  }

  private static Memory memory(Matrix matrix, long rows, long columns) {
    long lines = matrix.transposed() ? rows : columns;
    long length = matrix.transposed() ? columns : rows;
    return new Memory(
        matrix.address(), ((lines - 1) * matrix.leading() + length) * matrix.dtype().bytes());
  }

  /** Each matrix from its beginning, where products begin, too. */
  private static Launch reading(Launch launch, ImmutableList<Memory> weights) {
    long least = weights.stream().mapToLong(Memory::bytes).min().orElseThrow();
    long each = Math.min(BYTES / weights.size(), least);
    var words = ImmutableList.<KernelArgument>builder();
    weights.forEach(matrix -> words.add(new Memory(matrix.address(), each)));
    var fetch =
        FETCH
            .replace("$THREADS", Integer.toString(launch.threads()))
            .replace("$LINE", Integer.toString(LINE))
            .replace("$STEP", Long.toString((long) BLOCKS * launch.threads() * LINE))
            .replace("$MATRICES", Integer.toString(weights.size()));
    return launch.with(
        launch
            .kernel()
            .withOthers(
                launch.blocks(),
                "  const char* ahead[%s];\n  long long ahead_bytes;\n".formatted(weights.size()),
                fetch),
        BLOCKS,
        words.add(new KernelArgument.Number(each)).build());
  }
}
