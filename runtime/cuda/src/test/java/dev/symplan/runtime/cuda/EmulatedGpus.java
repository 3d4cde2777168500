package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.collect.ImmutableSet;
import com.google.common.primitives.ImmutableIntArray;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.RankProgram;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceLowering;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.codegen.cuda.DeviceStep;
import dev.symplan.codegen.cuda.DeviceStep.Copy;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.Kernel;
import dev.symplan.codegen.cuda.KernelArgument;
import dev.symplan.runtime.Session;
import dev.symplan.runtime.cuda.library.SharedLibrary;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.SeededInputs;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;
import java.util.stream.IntStream;

/**
 * A plan's collectives on several GPUs that are emulated on this machine's processor: kernels as
 * they are generated, all ranks' threads at once, in an order that is drawn.
 */
final class EmulatedGpus {
  private static final FunctionDescriptor RUN =
      FunctionDescriptor.of(
          ValueLayout.JAVA_LONG,
          ValueLayout.JAVA_INT,
          ValueLayout.ADDRESS,
          ValueLayout.ADDRESS,
          ValueLayout.JAVA_LONG,
          ValueLayout.JAVA_LONG);

  /** A statement, its instruction, and what it takes. */
  private static final Pattern ASM =
      Pattern.compile("asm volatile\\(\"(ld|st)\\.[^;]*;\"(.*?): \"memory\"\\);", Pattern.DOTALL);

  private static final Pattern OPERAND =
      Pattern.compile("\"=?[a-z]\"\\(((?:[^()]|\\([^()]*\\))*)\\)");

  /** A multicast instruction: its types, and its operands. */
  private static final Pattern MULTIMEM =
      Pattern.compile(
          "asm volatile\\(\"multimem\\.(ld_reduce|st)\\.[^;]*\\.v4\\.(\\w+) [^;]*;\"(.*?)"
              + ": \"memory\"\\);",
          Pattern.DOTALL);

  private static final String FENCE = "asm volatile(\"fence.proxy.alias;\" ::: \"memory\");";
  private static final Pattern CLOCK = Pattern.compile("asm volatile\\(\"mov.u64[^)]*\\)\\);");

  private static final Pattern SHARED =
      Pattern.compile("__shared__ ([\\w ]+?) (\\w+)\\[([^\\]]+)\\];");

  private static final FunctionDescriptor MULTICAST =
      FunctionDescriptor.ofVoid(
          ValueLayout.ADDRESS, ValueLayout.JAVA_LONG, ValueLayout.JAVA_INT, ValueLayout.ADDRESS);

  private static final long TIMEOUT = 1_000_000_000;

  private final Arena owner = Arena.ofAuto();
  private final List<DeviceProgram> programs;
  private final List<Memory> memory = new ArrayList<>();
  private final MethodHandle run;
  private final MethodHandle multicast;
  private final int times;
  private final long symmetricBytes;
  private final Map<ImmutableIntArray, Long> multicasts = new HashMap<>();
  private final List<MemorySegment> steps = new ArrayList<>();
  private final MemorySegment counts;

  /** One rank's memory, as a session on GPUs makes it. */
  private final class Memory {
    private final MemorySegment symmetric;
    private final MemorySegment local;
    private final MemorySegment host;
    private final MemorySegment flags;
    private final MemorySegment counts;
    private final MemorySegment failure = allocate(8, (byte) 0);
    private final List<Optional<MemorySegment>> inputs;
    private final List<Optional<MemorySegment>> outputs;

    Memory(RankProgram program, long symmetricBytes, int pads) {
      symmetric = allocate(symmetricBytes, DeviceProgram.EMPTY);
      local = allocate(program.localBytes(), DeviceProgram.EMPTY);
      host = allocate(program.hostBytes(), DeviceProgram.EMPTY);
      flags = allocate((long) pads * DeviceProgram.FLAGS * Integer.BYTES, (byte) 0);
      counts = allocate((long) pads * DeviceProgram.COUNTS * Integer.BYTES, (byte) 0);
      inputs = program.inputs().stream().map(this::external).toList();
      outputs = program.outputs().stream().map(this::external).toList();
    }

    private Optional<MemorySegment> external(Optional<TensorRef> ref) {
      return ref.filter(r -> r.arena().isExternal())
          .map(r -> allocate(r.offset() + r.type().storageBytes(), DeviceProgram.EMPTY));
    }

    private MemorySegment allocate(long bytes, byte fill) {
      return owner.allocate(Math.max(8, bytes), 256).fill(fill);
    }

    MemorySegment at(dev.symplan.planner.plan.ArenaKind arena, int index) {
      return switch (arena) {
        case SYMMETRIC -> symmetric;
        case LOCAL -> local;
        case HOST -> host;
        case EXTERNAL_INPUT -> inputs.get(index).orElseThrow();
        case EXTERNAL_OUTPUT -> outputs.get(index).orElseThrow();
      };
    }

    HostTensor tensor(TensorRef ref) {
      return new HostTensor(
          at(ref.arena(), ref.index()).asSlice(ref.offset(), ref.type().storageBytes()),
          ref.type());
    }
  }

  /** The kernels of some programs, each once. */
  private record Kernels(ImmutableMap<Kernel, Integer> numbers, SymbolLookup library) {
    static Kernels of(List<ImmutableList<DeviceProgram>> programs, UnaryOperator<String> change) {
      var all =
          programs.stream()
              .flatMap(List::stream)
              .flatMap(program -> program.steps().stream())
              .flatMap(step -> step.launches().stream())
              .<Kernel>map(Launch::kernel)
              .collect(ImmutableSet.toImmutableSet())
              .asList();
      var numbers = ImmutableMap.<Kernel, Integer>builder();
      for (int i = 0; i < all.size(); i++) {
        numbers.put(all.get(i), i);
      }
      return new Kernels(
          numbers.buildOrThrow(),
          Emulation.compile("/gpus", all, text -> plain(change.apply(text))));
    }

    MemorySegment find(String function) {
      return library.findOrThrow(function);
    }

    MemorySegment find(Kernel kernel) {
      return find("call" + numbers.get(kernel));
    }
  }

  /**
   * @param times how often each rank goes through its program in one run, without waiting for
   *     others
   * @param change the change to the text of every kernel
   */
  EmulatedGpus(Executable executable, int times, UnaryOperator<String> change) {
    this(executable, DeviceLowering.lower(executable), times, change);
  }

  /**
   * @param programs the executable's, or what is left of them
   */
  EmulatedGpus(
      Executable executable,
      ImmutableList<DeviceProgram> programs,
      int times,
      UnaryOperator<String> change) {
    this(executable, programs, times, Kernels.of(List.of(programs), change));
  }

  /** {@return GPUs for each program, whose kernels are compiled together} */
  static List<EmulatedGpus> of(List<Executable> executables, int times) {
    var programs = executables.stream().map(DeviceLowering::lower).toList();
    var kernels = Kernels.of(programs, text -> text);
    return IntStream.range(0, executables.size())
        .mapToObj(i -> new EmulatedGpus(executables.get(i), programs.get(i), times, kernels))
        .toList();
  }

  private EmulatedGpus(
      Executable executable, ImmutableList<DeviceProgram> programs, int times, Kernels library) {
    this.programs = programs;
    this.times = times;
    AddressCheck.check(executable, programs);
    for (var program : executable.ranks()) {
      memory.add(new Memory(program, executable.symmetricBytes(), programs.getFirst().pads()));
    }
    this.symmetricBytes = executable.symmetricBytes();
    this.multicast = Linker.nativeLinker().downcallHandle(library.find("multicast"), MULTICAST);
    this.run = Linker.nativeLinker().downcallHandle(library.find("run"), RUN);
    this.counts = owner.allocate(ValueLayout.JAVA_INT, programs.size());
    for (int rank = 0; rank < programs.size(); rank++) {
      var words = new ArrayList<Long>();
      for (int time = 0; time < times; time++) {
        for (var step : programs.get(rank).steps()) {
          switch (step) {
            case Launch launch -> {
              words.add(library.find(launch.kernel()).address());
              words.add((long) launch.blocks());
              words.add((long) launch.threads());
              words.add(array(launch.words(), rank));
            }
            case Copy copy -> {
              words.addAll(List.of(0L, 1L, 1L));
              words.add(array(List.of(at(copy.to()), at(copy.from()), copy.bytes())));
            }
            case DeviceStep.CopyRows copy -> {
              for (long row = 0; row < copy.rows(); row++) {
                words.addAll(List.of(0L, 1L, 1L));
                words.add(
                    array(
                        List.of(
                            at(copy.to()) + row * copy.toPitch(),
                            at(copy.from()) + row * copy.fromPitch(),
                            copy.bytes())));
              }
            }
            // In the order of the program: one stream after the other.
            case DeviceStep.Mark _, DeviceStep.Await _ -> {}
            default -> throw new IllegalArgumentException("not emulated: " + step);
          }
        }
      }
      counts.setAtIndex(ValueLayout.JAVA_INT, rank, words.size() / 4);
      var array = owner.allocate(ValueLayout.JAVA_LONG, Math.max(1, words.size()));
      for (int i = 0; i < words.size(); i++) {
        array.setAtIndex(ValueLayout.JAVA_LONG, i, words.get(i));
      }
      steps.add(array);
    }
  }

  /** Instructions for memory that peers share become calls, at which others may go on. */
  private static String plain(String text) {
    var shared = SHARED.matcher(text).replaceAll("$1* $2 = shared_array<$1>(__LINE__, $3);");
    var clocked = CLOCK.matcher(shared).replaceAll("now = 0;").replace(FENCE, "gpus::fence();");
    var single =
        MULTIMEM
            .matcher(clocked)
            .replaceAll(
                statement -> {
                  boolean load = statement.group(1).equals("ld_reduce");
                  return call(
                      load ? "load_reduce<gpus::" + statement.group(2) + ">" : "store_all",
                      load,
                      statement.group(3));
                });
    return ASM.matcher(single)
        .replaceAll(
            statement -> {
              boolean load = statement.group(1).equals("ld");
              return call(load ? "load" : "store", load, statement.group(2));
            });
  }

  /** {@return a call with the address first, which a statement that loads has after the values} */
  private static String call(String function, boolean load, String taken) {
    var operands = OPERAND.matcher(taken).results().map(m -> m.group(1)).toList();
    var ordered = new ArrayList<String>();
    ordered.add(load ? operands.getLast() : operands.getFirst());
    ordered.addAll(
        load ? operands.subList(0, operands.size() - 1) : operands.subList(1, operands.size()));
    return "gpus::%s(%s);".formatted(function, String.join(", ", ordered));
  }

  private long array(List<KernelArgument> words, int rank) {
    return array(words.stream().map(word -> value(word, rank)).toList());
  }

  private long array(List<Long> values) {
    var array = owner.allocate(ValueLayout.JAVA_LONG, Math.max(1, values.size()));
    for (int i = 0; i < values.size(); i++) {
      array.setAtIndex(ValueLayout.JAVA_LONG, i, values.get(i));
    }
    return array.address();
  }

  private long value(KernelArgument word, int rank) {
    var own = memory.get(rank);
    return switch (word) {
      case KernelArgument.Number(long number) -> number;
      case KernelArgument.Memory(var address, long _) -> at(address);
      case KernelArgument.TensorMap _ ->
          throw new IllegalArgumentException("not emulated: " + word);
      case KernelArgument.Flags(int pad, int peer) ->
          memory.get(peer).flags.address() + (long) pad * DeviceProgram.FLAGS * Integer.BYTES;
      case KernelArgument.Meetings(int pad) ->
          own.counts.address() + (long) pad * DeviceProgram.COUNTS * Integer.BYTES;
      case KernelArgument.Failure _ -> own.failure.address();
      case KernelArgument.Timeout _ -> TIMEOUT;
      case KernelArgument.Multicast(var members, long offset, long _) ->
          multicasts.computeIfAbsent(members, this::multicast) + offset;
    };
  }

  /** {@return addresses that nothing lies at, but which stand for the memory of several ranks} */
  private long multicast(ImmutableIntArray members) {
    var none = owner.allocate(symmetricBytes, 256);
    var all = owner.allocate(ValueLayout.ADDRESS, members.length());
    for (int i = 0; i < members.length(); i++) {
      all.setAtIndex(ValueLayout.ADDRESS, i, memory.get(members.get(i)).symmetric);
    }
    try {
      multicast.invokeExact(none, symmetricBytes, members.length(), all);
    } catch (Throwable e) {
      throw SharedLibrary.failed(e);
    }
    return none.address();
  }

  private long at(Address address) {
    return memory.get(address.rank()).at(address.arena(), address.index()).address()
        + address.offset();
  }

  HostTensor tensor(int rank, TensorRef ref) {
    return memory.get(rank).tensor(ref);
  }

  /**
   * Runs all programs, to the end of all.
   *
   * @param limit so many turns, after which threads are taken to wait for ever
   */
  void run(long seed, long limit) {
    try (var arena = Arena.ofConfined()) {
      var all = arena.allocate(ValueLayout.ADDRESS, steps.size());
      for (int rank = 0; rank < steps.size(); rank++) {
        all.setAtIndex(ValueLayout.ADDRESS, rank, steps.get(rank));
      }
      long turns = (long) run.invokeExact(steps.size(), all, counts, seed, limit);
      assertThat(turns).as("threads wait for each other for ever, seed %s", seed).isNotNegative();
    } catch (Throwable e) {
      throw SharedLibrary.failed(e);
    }
    for (var own : memory) {
      assertThat(own.failure.get(ValueLayout.JAVA_INT, 0)).isZero();
    }
  }

  /** Fails where the results of another plan of the same program have other bits. */
  void assertAs(EmulatedGpus other, Executable own, Executable others, long seed, long limit) {
    fill(own, seed);
    other.fill(others, seed);
    run(seed, limit);
    other.run(seed, limit);
    for (int rank = 0; rank < own.ranks().size(); rank++) {
      for (int i = 0; i < own.ranks().get(rank).outputs().size(); i++) {
        Bits.assertSame(
            tensor(rank, own.ranks().get(rank).outputs().get(i).orElseThrow()),
            other.tensor(rank, others.ranks().get(rank).outputs().get(i).orElseThrow()),
            "output %s of rank %s, seed %s".formatted(i, rank, seed));
      }
    }
  }

  private void fill(Executable executable, long seed) {
    for (int rank = 0; rank < executable.ranks().size(); rank++) {
      var program = executable.ranks().get(rank);
      for (int i = 0; i < program.inputs().size(); i++) {
        SeededInputs.fill(
            tensor(rank, program.inputs().get(i).orElseThrow()),
            seed,
            rank,
            program.inputNames().get(i));
      }
    }
  }

  /** Fails if a run from seeded inputs does not give the numbers that the host backend gives. */
  void assertAsHost(Session host, Executable executable, long seed, long limit, String what) {
    assertAsHost(host, executable, seed, limit, what, 1);
  }

  /**
   * @param host of the same program, or of one with the first of its inputs only
   * @param every the host has each so many-th output, from the first on
   */
  void assertAsHost(
      Session host, Executable executable, long seed, long limit, String what, int every) {
    for (int rank = 0; rank < executable.ranks().size(); rank++) {
      var program = executable.ranks().get(rank);
      for (int i = 0; i < host.inputNames(rank).size(); i++) {
        var made = host.input(rank, i).orElseThrow();
        SeededInputs.fill(made, seed, rank, program.inputNames().get(i));
        tensor(rank, program.inputs().get(i).orElseThrow()).copyFrom(made);
      }
    }
    // A program may write into its inputs.
    for (int time = 0; time < times; time++) {
      host.run();
    }
    run(seed, limit);
    for (int rank = 0; rank < executable.ranks().size(); rank++) {
      var program = executable.ranks().get(rank);
      for (int i = 0; i < program.outputs().size(); i += every) {
        Bits.assertSameNumbers(
            tensor(rank, program.outputs().get(i).orElseThrow()),
            host.output(rank, i / every).orElseThrow(),
            "output %s of rank %s, seed %s%n%s".formatted(i, rank, seed, what));
      }
    }
  }
}
