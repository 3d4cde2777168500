package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import com.google.common.primitives.ImmutableIntArray;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.Executable;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceLowering;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.codegen.cuda.DeviceStep;
import dev.symplan.codegen.cuda.DeviceStep.Copy;
import dev.symplan.codegen.cuda.DeviceStep.CopyRows;
import dev.symplan.codegen.cuda.DeviceStep.HopperLaunch;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.DeviceStep.Matrix;
import dev.symplan.codegen.cuda.DeviceStep.Nccl;
import dev.symplan.codegen.cuda.DeviceStep.NcclCall;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.codegen.cuda.DeviceStep.Scales;
import dev.symplan.codegen.cuda.KernelArgument;
import dev.symplan.codegen.cuda.UnsupportedOnGpu;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.runtime.failure.RunException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.BiFunction;
import java.util.function.UnaryOperator;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Steps as they are lowered stay in their buffers, and any that does not is found. */
class AddressCheckTest {
  private static final Path SAMPLES = Path.of(System.getProperty("symplan.root"), "samples");

  /** Beyond all memory, and small enough to add. */
  private static final long FAR = 1L << 50;

  static List<Path> samples() throws IOException {
    try (Stream<Path> files = Files.list(SAMPLES)) {
      return files.filter(file -> file.toString().endsWith(".graph")).sorted().toList();
    }
  }

  private static void check(Executable executable, DeviceProgram program, DeviceStep step) {
    AddressCheck.check(
        executable,
        ImmutableList.of(
            new DeviceProgram(
                program.rank(),
                ImmutableList.of(step),
                ImmutableIntArray.of(0),
                program.events(),
                program.pads())));
  }

  /** {@return the names of what was found in steps that were changed, each in one place} */
  private static Set<String> checkAll(Executable executable) {
    ImmutableList<DeviceProgram> programs;
    try {
      programs = DeviceLowering.lower(executable);
    } catch (UnsupportedOnGpu _) {
      return Set.of();
    }
    AddressCheck.check(executable, programs);
    var kinds = new HashSet<String>();
    for (var program : programs) {
      for (var step : program.steps()) {
        for (var wrong : changed(executable, program, step)) {
          assertThatThrownBy(() -> check(executable, program, wrong))
              .as("%s%n instead of %s", wrong, step)
              .isInstanceOf(RunException.class)
              .hasMessageContaining("rank %s, '", program.rank());
          kinds.add(wrong.getClass().getSimpleName());
        }
      }
    }
    return kinds;
  }

  /** {@return the bytes from an address to where the last buffer ends that it can lie in} */
  private static long room(Executable executable, Address at) {
    return executable.ranks().get(at.rank()).buffers().stream()
            .filter(b -> b.arena() == at.arena() && b.index() == at.index())
            .filter(b -> b.offset() <= at.offset())
            .mapToLong(b -> b.offset() + b.bytes())
            .max()
            .orElseThrow()
        - at.offset();
  }

  private static List<DeviceStep> changed(
      Executable executable, DeviceProgram program, DeviceStep step) {
    var changed = new ArrayList<DeviceStep>();
    switch (step) {
      case Launch launch -> {
        for (int i = 0; i < launch.words().size(); i++) {
          for (var word : changed(executable, program, launch.words().get(i))) {
            var words = new ArrayList<>(launch.words());
            words.set(i, word);
            changed.add(
                new Launch(
                    launch.stream(),
                    launch.kernel(),
                    launch.blocks(),
                    launch.threads(),
                    ImmutableList.copyOf(words),
                    launch.label()));
          }
        }
      }
      case HopperLaunch both -> {
        for (var launch : changed(executable, program, both.launch())) {
          changed.add(new HopperLaunch((Launch) launch, both.otherwise(), both.sameBits()));
        }
        for (int i = 0; i < both.otherwise().size(); i++) {
          for (var instead : changed(executable, program, both.otherwise().get(i))) {
            var otherwise = new ArrayList<>(both.otherwise());
            otherwise.set(i, instead);
            changed.add(
                new HopperLaunch(both.launch(), ImmutableList.copyOf(otherwise), both.sameBits()));
          }
        }
      }
      case Copy copy -> {
        long most = Math.min(room(executable, copy.from()), room(executable, copy.to()));
        BiFunction<Address, Address, Copy> with =
            (from, to) -> new Copy(copy.stream(), from, to, copy.bytes(), copy.label());
        changed.add(new Copy(copy.stream(), copy.from(), copy.to(), most + 1, copy.label()));
        elsewhere(program, copy.from()).forEach(at -> changed.add(with.apply(at, copy.to())));
        elsewhere(program, copy.to()).forEach(at -> changed.add(with.apply(copy.from(), at)));
      }
      case CopyRows copy -> {
        changed.add(rows(copy, copy.from(), copy.to(), FAR));
        elsewhere(program, copy.from())
            .forEach(at -> changed.add(rows(copy, at, copy.to(), copy.rows())));
        elsewhere(program, copy.to())
            .forEach(at -> changed.add(rows(copy, copy.from(), at, copy.rows())));
      }
      case Product product -> {
        var matrices = List.of(product.left(), product.right(), product.addend(), product.result());
        for (int i = 0; i < matrices.size(); i++) {
          var matrix = matrices.get(i);
          for (var at : elsewhere(program, matrix.address())) {
            changed.add(
                with(
                    product,
                    i,
                    new Matrix(
                        at,
                        matrix.dtype(),
                        matrix.transposed(),
                        matrix.leading(),
                        matrix.batchStride())));
          }
          changed.add(
              with(
                  product,
                  i,
                  new Matrix(matrix.address(), matrix.dtype(), matrix.transposed(), 0, FAR)));
          if (product.rows() > 1 && product.columns() > 1 && product.inner() > 1) {
            changed.add(
                with(
                    product,
                    i,
                    new Matrix(matrix.address(), matrix.dtype(), matrix.transposed(), FAR / 8, 0)));
          }
        }
        product
            .bias()
            .ifPresent(
                bias ->
                    elsewhere(program, bias)
                        .forEach(at -> changed.add(with(product, Optional.of(at), matrices))));
        product
            .scales()
            .ifPresent(
                scales -> {
                  for (var at : elsewhere(program, scales.left())) {
                    changed.add(with(product, at, scales.right()));
                  }
                  for (var at : elsewhere(program, scales.right())) {
                    changed.add(with(product, scales.left(), at));
                  }
                });
      }
      case Nccl nccl -> {
        for (int i = 0; i < nccl.calls().size(); i++) {
          var call = nccl.calls().get(i);
          if (call.count() > 0) {
            changed.add(with(nccl, i, call.from(), call.to(), FAR / 8));
            if (call.function() != DeviceStep.NcclFunction.RECEIVE) {
              for (var at : elsewhere(program, call.from())) {
                changed.add(with(nccl, i, at, call.to(), call.count()));
              }
            }
            if (call.function() != DeviceStep.NcclFunction.SEND) {
              for (var at : elsewhere(program, call.to())) {
                changed.add(with(nccl, i, call.from(), at, call.count()));
              }
            }
          }
        }
      }
      case DeviceStep.Attention attention -> changed.addAll(changed(attention));
      case DeviceStep.AttentionBackward attention -> changed.addAll(changed(attention));
      case DeviceStep.Convolution convolution -> {
        changed.addAll(changed(convolution));
        for (var one : convolution.otherwise()) {
          for (var wrong : changed(executable, program, one)) {
            changed.add(changed(convolution, ref -> ref, ImmutableList.of(wrong)));
          }
        }
      }
      case DeviceStep.Mark _, DeviceStep.Await _ -> {}
    }
    return changed;
  }

  private static CopyRows rows(CopyRows copy, Address from, Address to, long rows) {
    return new CopyRows(
        copy.stream(),
        from,
        copy.fromPitch(),
        to,
        copy.toPitch(),
        copy.bytes(),
        rows,
        copy.label());
  }

  private static List<DeviceStep> changed(DeviceStep.Attention step) {
    var changed = new ArrayList<DeviceStep>();
    for (var moved : step.tensors()) {
      UnaryOperator<TensorRef> move = ref -> ref == moved ? far(ref) : ref;
      changed.add(
          new DeviceStep.Attention(
              step.stream(),
              changed(step.scores(), move),
              move.apply(step.value()),
              move.apply(step.out()),
              step.logs().map(move),
              step.otherwise(),
              step.label()));
    }
    return changed;
  }

  private static List<DeviceStep> changed(DeviceStep.AttentionBackward step) {
    var changed = new ArrayList<DeviceStep>();
    for (var moved : step.tensors()) {
      UnaryOperator<TensorRef> move = ref -> ref == moved ? far(ref) : ref;
      changed.add(
          new DeviceStep.AttentionBackward(
              step.stream(),
              changed(step.scores(), move),
              move.apply(step.value()),
              move.apply(step.out()),
              move.apply(step.logs()),
              move.apply(step.grad()),
              move.apply(step.ofQuery()),
              move.apply(step.ofKey()),
              move.apply(step.ofValue()),
              step.otherwise(),
              step.label()));
    }
    return changed;
  }

  /** Each tensor elsewhere, and images of so many items that no memory holds them. */
  private static List<DeviceStep> changed(DeviceStep.Convolution step) {
    var changed = new ArrayList<DeviceStep>();
    for (var moved : step.tensors()) {
      changed.add(changed(step, ref -> ref == moved ? far(ref) : ref, step.otherwise()));
    }
    // The step itself refuses what is too long for the memory beside the arenas.
    if (step.scratchBytes() == 0) {
      changed.add(changed(step, ref -> ref == step.weight() ? ref : longer(ref), step.otherwise()));
    }
    return changed;
  }

  private static DeviceStep.Convolution changed(
      DeviceStep.Convolution step,
      UnaryOperator<TensorRef> change,
      ImmutableList<DeviceStep> otherwise) {
    return new DeviceStep.Convolution(
        step.stream(),
        step.pass(),
        change.apply(step.large()),
        change.apply(step.weight()),
        change.apply(step.small()),
        step.windows(),
        step.scratchBytes(),
        otherwise,
        step.label());
  }

  private static TensorRef longer(TensorRef ref) {
    var sizes = ref.type().sizes().toArray();
    sizes[0] = 1 << 20;
    return ref.with(
        new TensorType(
            ref.type().dtype(),
            ImmutableLongArray.copyOf(sizes),
            ref.type().strides(),
            MemorySpace.ANY));
  }

  private static DeviceStep.Scores changed(
      DeviceStep.Scores scores, UnaryOperator<TensorRef> move) {
    return new DeviceStep.Scores(
        move.apply(scores.query()),
        move.apply(scores.key()),
        scores.bias().map(move),
        scores.causal(),
        scores.scale());
  }

  private static TensorRef far(TensorRef ref) {
    return new TensorRef(ref.arena(), ref.scratchEnd() > 0 ? 0 : ref.index(), FAR, ref.type());
  }

  private static List<KernelArgument> changed(
      Executable executable, DeviceProgram program, KernelArgument word) {
    return switch (word) {
      case KernelArgument.Memory(var at, long bytes) when bytes > 0 && !at.isScratch() -> {
        var words = new ArrayList<KernelArgument>();
        words.add(new KernelArgument.Memory(at, room(executable, at) + 1));
        words.add(new KernelArgument.Memory(at, -1));
        elsewhere(program, at).forEach(other -> words.add(new KernelArgument.Memory(other, bytes)));
        yield words;
      }
      case KernelArgument.TensorMap map ->
          elsewhere(program, map.address()).stream()
              .<KernelArgument>map(
                  at ->
                      new KernelArgument.TensorMap(
                          at,
                          map.near(),
                          map.lines(),
                          map.pitch(),
                          map.matrices(),
                          map.matrixPitch(),
                          map.boxLines()))
              .toList();
      case KernelArgument.Multicast(var members, long offset, long bytes) when bytes > 0 ->
          List.of(
              new KernelArgument.Multicast(members, FAR, bytes),
              new KernelArgument.Multicast(members, -bytes, bytes),
              new KernelArgument.Multicast(members, offset, FAR));
      case KernelArgument.Flags(int pad, int rank) ->
          List.of(
              new KernelArgument.Flags(program.pads(), rank),
              new KernelArgument.Flags(-1, rank),
              new KernelArgument.Flags(pad, 99));
      case KernelArgument.Meetings _ ->
          List.of(new KernelArgument.Meetings(program.pads()), new KernelArgument.Meetings(-1));
      case KernelArgument.Memory _,
          KernelArgument.Multicast _,
          KernelArgument.Number _,
          KernelArgument.Failure _,
          KernelArgument.Timeout _ ->
          List.of();
    };
  }

  private static List<Address> elsewhere(DeviceProgram program, Address at) {
    int other = program.rank() == 0 ? 1 : 0;
    return List.of(
        new Address(at.rank(), at.arena(), at.index(), FAR),
        new Address(at.rank(), at.arena(), at.index(), -8),
        new Address(99, at.arena(), at.index(), at.offset()),
        new Address(at.rank(), ArenaKind.EXTERNAL_INPUT, 99, at.offset()),
        new Address(other, ArenaKind.LOCAL, 0, at.offset()));
  }

  private static Product with(Product product, int index, Matrix matrix) {
    var matrices =
        new ArrayList<>(
            List.of(product.left(), product.right(), product.addend(), product.result()));
    matrices.set(index, matrix);
    return with(product, product.bias(), matrices);
  }

  private static Product with(Product p, Address left, Address right) {
    var scales = p.scales().orElseThrow();
    return with(
        p,
        p.bias(),
        List.of(p.left(), p.right(), p.addend(), p.result()),
        Optional.of(new Scales(left, right, scales.byLine(), scales.fast(), scales.otherwise())));
  }

  private static Product with(Product p, Optional<Address> bias, List<Matrix> matrices) {
    return with(p, bias, matrices, p.scales());
  }

  private static Product with(
      Product p, Optional<Address> bias, List<Matrix> matrices, Optional<Scales> scales) {
    return new Product(
        p.stream(),
        p.rows(),
        p.columns(),
        p.inner(),
        p.alpha(),
        p.beta(),
        matrices.get(0),
        matrices.get(1),
        matrices.get(2),
        bias,
        matrices.get(3),
        p.batches(),
        scales,
        p.label());
  }

  private static Nccl with(Nccl nccl, int index, Address from, Address to, long count) {
    var calls = new ArrayList<>(nccl.calls());
    var old = calls.get(index);
    calls.set(
        index,
        new NcclCall(old.function(), from, to, count, old.dtype(), old.reduceOp(), old.peer()));
    return new Nccl(
        nccl.stream(),
        nccl.members(),
        nccl.pad(),
        nccl.self(),
        nccl.windows(),
        nccl.copyEngines(),
        ImmutableList.copyOf(calls),
        nccl.label());
  }

  @ParameterizedTest
  @MethodSource("samples")
  void samples(Path sample) {
    checkAll(Lowering.lower(Compiler.forTarget(Target.H200_X4).compile(sample)));
  }

  @ParameterizedTest
  @EnumSource(
      value = Variant.class,
      names = {"LOCAL", "CUSTOM", "MULTIMEM", "MULTIMEM_ONE_SHOT", "NCCL_SYMM"},
      mode = EnumSource.Mode.EXCLUDE)
  void variants(Variant variant) {
    var forced =
        Arrays.stream(Kind.values())
            .filter(kind -> kind != Kind.CUSTOM && variant.implementsKind(kind))
            .collect(ImmutableMap.toImmutableMap(Kind::text, _ -> variant));
    var plan =
        Compiler.forTarget(Target.H200_X4)
            .with(CompileOptions.DEFAULT.withVariants(forced))
            .compile(SAMPLES.resolve("collectives.graph"));
    assertThat(checkAll(Lowering.lower(plan)))
        .contains(variant.name().startsWith("NCCL") ? "Nccl" : "Launch");
  }

  /** Not all collectives of the sample can have these. */
  @ParameterizedTest
  @CsvSource({"NCCL_SYMM, Nccl", "MULTIMEM, Launch", "MULTIMEM_ONE_SHOT, Launch"})
  void sums(Variant variant, String found) {
    var text =
        """
        graph version 1
        group g = [0, 1, 2, 3]
        graph t(x: f32[64, 64]) {
          a = aten::mul.Scalar(x, 0.5)
          b = _c10d_functional::all_reduce(a, "sum", "g")
          c = _c10d_functional::wait_tensor(b)
          d = aten::neg(c)
          return d
        }
        """;
    var plan =
        Compiler.forTarget(Target.H200_X8)
            .with(GroupProgram.asWritten("all_reduce", variant).withMulticast(true))
            .compile(GraphParser.parse(new SourceFile("t.graph", text)));
    assertThat(checkAll(Lowering.lower(plan))).contains(found);
  }

  @Test
  void products() {
    var found =
        Stream.of(
                LocalPrograms.products(),
                LocalPrograms.fewTokens(),
                LocalPrograms.shortFloats(),
                LocalPrograms.joinedProducts(),
                LocalPrograms.pairedProducts(),
                LocalPrograms.tokenProducts(),
                LocalPrograms.groupedProducts())
            .flatMap(List::stream)
            .flatMap(text -> checkAll(Lowering.lower(LocalPrograms.plan(text))).stream())
            .collect(Collectors.toSet());
    assertThat(found).contains("Product", "Launch", "HopperLaunch");
  }

  @Test
  void attention() {
    var found =
        LocalPrograms.attention().stream()
            .flatMap(text -> checkAll(Lowering.lower(LocalPrograms.plan(text))).stream())
            .collect(Collectors.toSet());
    assertThat(found).contains("Launch", "Attention", "AttentionBackward");
  }

  @Test
  void convolutions() {
    var found =
        Stream.of(
                ConvolutionPrograms.programs(1, 30),
                ConvolutionPrograms.parts(),
                ConvolutionPrograms.apart())
            .flatMap(List::stream)
            .flatMap(text -> checkAll(Lowering.lower(LocalPrograms.plan(text))).stream())
            .collect(Collectors.toSet());
    assertThat(found).contains("Convolution", "Launch");
  }

  @Test
  void buffersBeyondTheirArena() {
    var executable =
        Lowering.lower(Compiler.forTarget(Target.H200_X4).compile(SAMPLES.resolve("tp_mlp.graph")));
    var smaller =
        new Executable(
            executable.name(),
            executable.symmetricBytes() - 1,
            executable.digest(),
            executable.ranks());
    assertThatThrownBy(() -> AddressCheck.check(smaller, ImmutableList.of()))
        .isInstanceOf(RunException.class)
        .hasMessageContaining("of the symmetric arena, which has " + smaller.symmetricBytes());
  }
}
