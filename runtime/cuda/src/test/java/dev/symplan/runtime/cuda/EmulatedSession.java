package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.withinPercentage;

import com.google.common.collect.ImmutableList;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Instruction;
import dev.symplan.codegen.Instruction.Border;
import dev.symplan.codegen.Instruction.Collective;
import dev.symplan.codegen.Instruction.SetupEnd;
import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceLowering;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.codegen.cuda.DeviceStep;
import dev.symplan.codegen.cuda.DeviceStep.Copy;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.DeviceStep.Matrix;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.codegen.cuda.Kernel;
import dev.symplan.codegen.cuda.KernelArgument;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.op.ReduceOp;
import dev.symplan.runtime.CallerMemory;
import dev.symplan.runtime.ExecutableSession;
import dev.symplan.runtime.tensor.Elements;
import dev.symplan.runtime.tensor.HostTensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import java.util.stream.Stream;

/**
 * A plan's run on GPUs, but for the collectives, on this machine's processor: generated kernels as
 * they are, products of BLAS's column-major matrices in f64.
 *
 * <p>Ranks go one after the other, from collective to collective, which are done plainly.
 */
final class EmulatedSession extends ExecutableSession {
  static final long ALIGNMENT = 256;

  private final EmulatedKernels kernels;
  private final List<ImmutableList<ImmutableList<DeviceStep>>> steps;
  private final List<EmulatedMemory> memory = new ArrayList<>();
  private boolean backwards;
  private boolean hopper = true;

  /** Whether some step has another kernel, with other bits, for GPUs that are not Hopper. */
  private boolean differs;

  /** Garbage, but for what the step before left there. */
  private final MemorySegment scratch;

  private EmulatedSession(
      Executable executable,
      EmulatedKernels kernels,
      List<ImmutableList<ImmutableList<DeviceStep>>> steps) {
    super(executable);
    this.kernels = kernels;
    this.steps = steps;
    this.scratch =
        Arena.ofAuto()
            .allocate(
                Math.max(
                    1, scratchBytes(steps.stream().flatMap(List::stream).flatMap(List::stream))),
                ALIGNMENT)
            .fill((byte) -1);
    executable
        .ranks()
        .forEach(program -> memory.add(new EmulatedMemory(program, executable.symmetricBytes())));
  }

  /** {@return sessions whose kernels are compiled at once} */
  static List<EmulatedSession> open(List<Executable> executables) {
    return open(executables, EmulatedSession::lower);
  }

  /** {@return the same, with launches of their own for each instruction} */
  static List<EmulatedSession> openOneByOne(List<Executable> executables) {
    return open(
        executables,
        program ->
            program.instructions().stream()
                .map(one -> DeviceLowering.local(program.rank(), List.of(one)))
                .collect(ImmutableList.toImmutableList()));
  }

  private static List<EmulatedSession> open(
      List<Executable> executables,
      Function<RankProgram, ImmutableList<ImmutableList<DeviceStep>>> lower) {
    var lowered =
        executables.stream()
            .map(executable -> executable.ranks().stream().map(lower).toList())
            .toList();
    for (int i = 0; i < executables.size(); i++) {
      AddressCheck.check(executables.get(i), programs(lowered.get(i)));
    }
    var kernels =
        EmulatedKernels.compile(
            lowered.stream()
                .flatMap(List::stream)
                .flatMap(List::stream)
                .flatMap(List::stream)
                .flatMap(step -> step.launches().stream())
                .map(Launch::kernel)
                .<Kernel>map(kernel -> kernel)
                .toList());
    var sessions = new ArrayList<EmulatedSession>();
    for (int i = 0; i < executables.size(); i++) {
      sessions.add(new EmulatedSession(executables.get(i), kernels, lowered.get(i)));
    }
    return sessions;
  }

  /** {@return all ranks' own work} */
  private static ImmutableList<DeviceProgram> programs(
      List<ImmutableList<ImmutableList<DeviceStep>>> steps) {
    return IntStream.range(0, steps.size())
        .mapToObj(
            rank ->
                new DeviceProgram(
                    rank,
                    steps.get(rank).stream()
                        .flatMap(List::stream)
                        .collect(ImmutableList.toImmutableList()),
                    ImmutableIntArray.of(0),
                    0,
                    0))
        .collect(ImmutableList.toImmutableList());
  }

  private static boolean endsLaunches(Instruction instruction) {
    return instruction instanceof Collective
        || instruction instanceof Border
        || instruction instanceof SetupEnd;
  }

  /** {@return steps in place of the first instruction of those that no collective separates} */
  static ImmutableList<ImmutableList<DeviceStep>> lower(RankProgram program) {
    var lowered = new ArrayList<ImmutableList<DeviceStep>>();
    var instructions = program.instructions();
    int begin = 0;
    for (int end = 0; end <= instructions.size(); end++) {
      if (end == instructions.size() || endsLaunches(instructions.get(end))) {
        var between = instructions.subList(begin, end);
        if (!between.isEmpty()) {
          lowered.add(DeviceLowering.local(program.rank(), between));
        }
        while (lowered.size() < Math.min(end + 1, instructions.size())) {
          lowered.add(ImmutableList.of());
        }
        begin = end + 1;
      }
    }
    return ImmutableList.copyOf(lowered);
  }

  /** {@return how many launches a run of the first rank has} */
  long launches() {
    return steps.getFirst().stream()
        .flatMap(List::stream)
        .mapToLong(step -> step.launches().size())
        .sum();
  }

  /** Has the threads and blocks of the next runs go the other way. */
  void turn() {
    backwards = !backwards;
  }

  /** {@return whether the next runs are those of another GPU, whose bits may differ} */
  boolean nextGpu() {
    hopper = !hopper;
    return !hopper && differs;
  }

  @Override
  protected Optional<HostTensor> inputMemory(int rank, int index) {
    return program(rank).inputs().get(index).map(memory.get(rank)::tensor);
  }

  @Override
  public Optional<HostTensor> output(int rank, int index) {
    return program(rank).outputs().get(index).map(memory.get(rank)::tensor);
  }

  @Override
  public long alignment() {
    return ALIGNMENT;
  }

  @Override
  protected Runnable binding(int rank, CallerMemory caller) {
    throw new UnsupportedOperationException();
  }

  @Override
  public void runIn(long stream) {
    throw new UnsupportedOperationException();
  }

  @Override
  protected void useAsInput(int rank, TensorRef input, HostTensor tensor) {
    throw new UnsupportedOperationException();
  }

  @Override
  protected void useAsOutput(int rank, TensorRef output, HostTensor tensor) {
    throw new UnsupportedOperationException();
  }

  @Override
  protected void release() {}

  @Override
  protected void execute(int graph, int times) {
    if (takeSetup()) {
      execute(SETUP);
    }
    for (int i = 0; i < times; i++) {
      execute(graph);
    }
  }

  private void execute(int graph) {
    var next = new int[ranks()];
    var end = new int[ranks()];
    for (int rank = 0; rank < next.length; rank++) {
      var instructions = program(rank).instructions();
      int run = program(rank).setupEnd().map(instructions::indexOf).orElse(-1) + 1;
      next[rank] =
          switch (graph) {
            case SETUP -> 0;
            case ALL -> run;
            default -> graph == 0 ? run : begin(instructions, graph);
          };
      end[rank] =
          switch (graph) {
            case SETUP -> run;
            case ALL -> instructions.size();
            default -> begin(instructions, graph + 1);
          };
    }
    while (true) {
      var waiting = new ArrayList<Collective>();
      for (int rank = 0; rank < next.length; rank++) {
        var instructions = program(rank).instructions();
        while (next[rank] < end[rank]) {
          int self = next[rank]++;
          if (instructions.get(self) instanceof Collective collective) {
            waiting.add(collective);
            break;
          }
          run(rank, steps.get(rank).get(self));
        }
      }
      if (waiting.isEmpty()) {
        return;
      }
      // All ranks have their collectives in one order, but not all take part in each.
      assertAll(waiting);
      collective(waiting);
    }
  }

  /** {@return where a graph of the program begins; after the last one, the end} */
  private static int begin(List<Instruction> instructions, int graph) {
    int borders = 0;
    int at = 0;
    while (at < instructions.size() && borders < graph) {
      borders += instructions.get(at++) instanceof Border ? 1 : 0;
    }
    return at;
  }

  private void assertAll(List<Collective> waiting) {
    if (waiting.size() != ranks()
        || waiting.stream().anyMatch(c -> c.group().members().length() != ranks())) {
      throw new UnsupportedOperationException("collectives of some of the ranks");
    }
  }

  private void collective(List<Collective> all) {
    int ranks = ranks();
    for (int t = 0; t < all.getFirst().operands().size(); t++) {
      var operands = new ArrayList<HostTensor>();
      for (int rank = 0; rank < ranks; rank++) {
        var from = memory.get(rank).tensor(all.get(rank).operands().get(t));
        var copy = from.copyAs(from.type().contiguous());
        operands.add(copy);
      }
      for (int rank = 0; rank < ranks; rank++) {
        var result = memory.get(rank).tensor(all.get(rank).results().get(t));
        long rows = result.type().rank() == 0 ? 1 : result.type().size(0);
        long width = result.type().numel() / Math.max(1, rows);
        var flat = HostTensor.allocate(TensorType.contiguous(result.dtype(), rows * width));
        var kind = all.get(rank).kind();
        var dims = all.get(rank).dims();
        for (long i = 0; i < flat.type().numel(); i++) {
          long to = element(result.type(), dims.result(), ranks, i);
          switch (kind) {
            case ALL_REDUCE -> flat.set(reduce(all.get(rank), operands, i), i);
            case REDUCE_SCATTER -> {
              var type = operands.getFirst().type();
              long from = element(type, dims.operand(), ranks, i + rank * flat.type().numel());
              flat.set(reduce(all.get(rank), operands, from), i);
            }
            case ALL_GATHER -> {
              long part = flat.type().numel() / ranks;
              flat.set(flat(operands.get((int) (i / part))).get(i % part), to);
            }
            case ALL_TO_ALL -> {
              // All parts are of one size.
              long part = flat.type().numel() / ranks;
              var operand = operands.get((int) (i / part));
              long from = element(operand.type(), dims.operand(), ranks, rank * part + i % part);
              flat.set(flat(operand).get(from), to);
            }
            default -> throw new UnsupportedOperationException(kind.name());
          }
        }
        result.copyFrom(flat.as(result.type().contiguous()));
      }
    }
  }

  /** Which element of a tensor is one of its slices, which are counted one after the other. */
  private static long element(TensorType type, int dim, int ranks, long number) {
    if (dim == 0) {
      return number;
    }
    long slice = type.numel() / ranks;
    long row = slice;
    for (int i = 0; i < dim; i++) {
      row /= type.size(i);
    }
    return (number % slice / row * ranks + number / slice) * row + number % row;
  }

  private static HostTensor flat(HostTensor tensor) {
    return tensor.as(TensorType.contiguous(tensor.dtype(), tensor.type().numel()));
  }

  private static double reduce(Collective collective, List<HostTensor> operands, long at) {
    var op = collective.reduceOp().orElseThrow();
    double sum = 0;
    for (var operand : operands) {
      double value = flat(operand).get(at);
      sum =
          switch (op) {
            case SUM, AVG -> sum + value;
            case PRODUCT, MIN, MAX, BAND, BOR, BXOR ->
                throw new UnsupportedOperationException(op.text());
          };
    }
    return op == ReduceOp.AVG ? sum / operands.size() : sum;
  }

  private void run(int rank, List<DeviceStep> all) {
    all.forEach(step -> run(rank, step));
  }

  private void run(int rank, DeviceStep step) {
    switch (step) {
      case Launch launch ->
          kernels.launch(
              launch, launch.words().stream().flatMapToLong(this::words).toArray(), backwards);
      case DeviceStep.HopperLaunch both when both.sameBits() -> runBoth(rank, both);
      case DeviceStep.HopperLaunch both -> {
        differs = true;
        run(rank, hopper ? List.of(both.launch()) : both.otherwise());
      }
      case Copy copy ->
          MemorySegment.copy(
              at(copy.from(), copy.bytes()), 0, at(copy.to(), copy.bytes()), 0, copy.bytes());
      case DeviceStep.CopyRows copy -> {
        for (long row = 0; row < copy.rows(); row++) {
          MemorySegment.copy(
              at(copy.from()),
              row * copy.fromPitch(),
              at(copy.to()),
              row * copy.toPitch(),
              copy.bytes());
        }
      }
      case Product product -> multiply(rank, product);
      case DeviceStep.Attention attention -> run(rank, attention.otherwise());
      case DeviceStep.AttentionBackward attention -> run(rank, attention.otherwise());
      case DeviceStep.Convolution convolution ->
          EmulatedConvolution.check(
              convolution,
              ref ->
                  new HostTensor(at(Address.of(rank, ref), ref.type().storageBytes()), ref.type()),
              () -> run(rank, convolution.otherwise()));
      case DeviceStep.Nccl _, DeviceStep.Mark _, DeviceStep.Await _ ->
          throw new IllegalStateException("not local: " + step);
    }
  }

  /** Both kernels take the same inputs, and leave everything the same, to the bit. */
  private void runBoth(int rank, DeviceStep.HopperLaunch both) {
    var before = memory.stream().flatMap(EmulatedMemory::all).map(EmulatedSession::copy).toList();
    run(rank, both.otherwise());
    var after = memory.stream().flatMap(EmulatedMemory::all).map(EmulatedSession::copy).toList();
    var all = memory.stream().flatMap(EmulatedMemory::all).toList();
    for (int i = 0; i < all.size(); i++) {
      all.get(i).copyFrom(before.get(i));
    }
    run(rank, both.launch());
    for (int i = 0; i < all.size(); i++) {
      assertThat(all.get(i).mismatch(after.get(i)))
          .as("the first byte that differs after '%s'", both.launch().label())
          .isEqualTo(-1);
    }
  }

  private static MemorySegment copy(MemorySegment from) {
    return MemorySegment.ofArray(from.toArray(ValueLayout.JAVA_BYTE));
  }

  private LongStream words(KernelArgument word) {
    return switch (word) {
      case KernelArgument.Memory(var address, long bytes) ->
          LongStream.of(at(address, bytes).address());
      case KernelArgument.Number(long value) -> LongStream.of(value);
      // As emulation.hpp reads it.
      case KernelArgument.TensorMap map ->
          LongStream.concat(
              LongStream.of(
                  at(map.address()).address(),
                  map.near(),
                  map.lines(),
                  map.pitch(),
                  map.matrices(),
                  map.matrixPitch(),
                  map.boxLines()),
              LongStream.range(7, map.words()));
      case KernelArgument.Multicast _,
          KernelArgument.Flags _,
          KernelArgument.Meetings _,
          KernelArgument.Failure _,
          KernelArgument.Timeout _ ->
          throw new IllegalStateException("not local: " + word);
    };
  }

  private MemorySegment at(Address address, long bytes) {
    return address.isScratch() ? scratch.asSlice(address.offset(), bytes) : at(address);
  }

  /** The memory beside the arenas that the steps of a program reach. */
  private static long scratchBytes(Stream<DeviceStep> steps) {
    return steps.mapToLong(EmulatedSession::scratchBytes).max().orElse(0);
  }

  private static long scratchBytes(DeviceStep step) {
    if (step instanceof Copy copy) {
      return Math.max(scratchEnd(copy.from(), copy.bytes()), scratchEnd(copy.to(), copy.bytes()));
    }
    return step.launches().stream()
        .flatMap(launch -> launch.words().stream())
        .mapToLong(
            word ->
                word instanceof KernelArgument.Memory(var address, long bytes)
                    ? scratchEnd(address, bytes)
                    : 0)
        .max()
        .orElse(0);
  }

  private static long scratchEnd(Address address, long bytes) {
    return address.isScratch() ? address.offset() + bytes : 0;
  }

  private MemorySegment at(Address address) {
    return memory.get(address.rank()).at(address.arena(), address.index(), address.offset());
  }

  /** A step that a library may compute or leave to other steps comes out the same both ways. */
  private void multiply(int rank, Product product) {
    var dtype = product.dtype();
    product.scales().ifPresent(scales -> run(rank, scales.otherwise()));
    for (long batch = 0; batch < product.batches(); batch++) {
      long of = batch;
      var vectors =
          LongStream.range(0, product.columns())
              .mapToObj(column -> elements(product, product.right(), of, column, true))
              .toList();
      for (long each = 0; each < product.rows(); each++) {
        long row = each;
        var line = elements(product, product.left(), of, row, false);
        for (int column = 0; column < product.columns(); column++) {
          var vector = vectors.get(column);
          double sum = 0;
          for (int k = 0; k < line.length; k++) {
            sum += line[k] * vector[k];
          }
          double value = product.alpha() * sum;
          if (product.scales().isPresent()) {
            var scales = product.scales().orElseThrow();
            value *= scale(scales.left(), scales.byLine() ? row : 0);
            value *= scale(scales.right(), scales.byLine() ? column : 0);
          }
          if (product.beta() != 0) {
            value += product.beta() * element(product.addend(), batch, row, column).get();
          }
          if (product.bias().isPresent()) {
            var bias = at(product.bias().get()).asSlice(row * dtype.bytes());
            value += new HostTensor(bias, TensorType.contiguous(dtype)).get();
          }
          var result = element(product.result(), batch, row, column);
          if (product.scales().isPresent()) {
            assertThat(result.get()).isCloseTo(value, withinPercentage(1));
          }
          result.set(value);
        }
      }
    }
  }

  /**
   * {@return a row, or a column, of an operand} As BLAS does it: nothing times alpha is nothing,
   * whatever the factors are.
   */
  private double[] elements(Product product, Matrix matrix, long batch, long at, boolean isColumn) {
    var elements = new double[product.alpha() == 0 ? 0 : Math.toIntExact(product.inner())];
    int width = matrix.dtype().bytes();
    Elements.load(
        at(matrix.address()),
        (isColumn ? offset(matrix, batch, 0, at) : offset(matrix, batch, at, 0)) * width,
        (matrix.transposed() == isColumn ? matrix.leading() : 1) * width,
        matrix.dtype(),
        elements,
        elements.length);
    return elements;
  }

  private double scale(Address address, long index) {
    var at = at(address).asSlice(index * Float.BYTES);
    return new HostTensor(at, TensorType.contiguous(DType.F32)).get();
  }

  private HostTensor element(Matrix matrix, long batch, long row, long column) {
    var dtype = matrix.dtype();
    return new HostTensor(
        at(matrix.address()).asSlice(offset(matrix, batch, row, column) * dtype.bytes()),
        TensorType.contiguous(dtype));
  }

  private static long offset(Matrix matrix, long batch, long row, long column) {
    return batch * matrix.batchStride()
        + (matrix.transposed() ? row * matrix.leading() + column : column * matrix.leading() + row);
  }
}
