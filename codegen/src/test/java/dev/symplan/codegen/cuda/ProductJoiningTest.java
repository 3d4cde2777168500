package dev.symplan.codegen.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.MoreCollectors;
import dev.symplan.codegen.Address;
import dev.symplan.codegen.Instruction.Fused;
import dev.symplan.codegen.Instruction.Part;
import dev.symplan.codegen.Operand;
import dev.symplan.codegen.TensorRef;
import dev.symplan.codegen.cuda.DeviceStep.HopperLaunch;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.codegen.cuda.DeviceStep.Mark;
import dev.symplan.codegen.cuda.DeviceStep.Matrix;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import dev.symplan.codegen.cuda.DeviceStep.Share;
import dev.symplan.codegen.cuda.KernelArgument.Memory;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.Span;
import dev.symplan.planner.plan.ArenaKind;
import dev.symplan.planner.plan.StreamKind;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Products that share a launch, and products that must not. */
class ProductJoiningTest {
  private static final ConstantInputs CONSTANTS = ConstantInputs.of(List.of());
  private static final int VECTORS = 4;
  private static final long INNER = 256;
  private static final long ROWS = 6144;
  private static final long RESULT = VECTORS * ROWS * 2;
  private static final long INPUT = VECTORS * INNER * 2;

  /** Where things are unless a test puts them elsewhere: apart. */
  private static final long X = 0;

  private static final long GATE = 1 << 20;
  private static final long UP = 2 << 20;
  private static final long OUT = 3 << 20;

  private static Address local(long offset) {
    return new Address(0, ArenaKind.LOCAL, 0, offset);
  }

  private static Address weights(int index) {
    return new Address(0, ArenaKind.EXTERNAL_INPUT, index, 0);
  }

  private static Product product(
      String name, Address weights, long x, Optional<Address> bias, long result, long rows) {
    var to = new Matrix(local(result), DType.BF16, false, rows, 0);
    return new Product(
        StreamKind.COMPUTE,
        rows,
        VECTORS,
        INNER,
        1,
        0,
        new Matrix(weights, DType.BF16, true, INNER, 0),
        new Matrix(local(x), DType.BF16, false, INNER, 0),
        to,
        bias,
        to,
        1,
        Optional.empty(),
        name);
  }

  private static Product product(String name, int weights, long result) {
    return product(name, weights(weights), X, Optional.empty(), result, ROWS);
  }

  private static Product added(Product to, long addend) {
    return new Product(
        to.stream(),
        to.rows(),
        to.columns(),
        to.inner(),
        1,
        1,
        to.left(),
        to.right(),
        new Matrix(local(addend), DType.BF16, false, to.rows(), 0),
        to.bias(),
        to.result(),
        1,
        Optional.empty(),
        to.label());
  }

  /** As many vectors of as large matrices as Hopper GPUs have a kernel for. */
  private static Product large(String name, int weights, long result) {
    long vectors = 16;
    long inner = 2048;
    return new Product(
        StreamKind.COMPUTE,
        ROWS,
        vectors,
        inner,
        1,
        0,
        new Matrix(weights(weights), DType.BF16, true, inner, 0),
        new Matrix(local(X), DType.BF16, false, inner, 0),
        new Matrix(local(result), DType.BF16, false, ROWS, 0),
        Optional.empty(),
        new Matrix(local(result), DType.BF16, false, ROWS, 0),
        1,
        Optional.empty(),
        name);
  }

  private static TensorType type(long vectors) {
    return TensorType.contiguous(DType.BF16, vectors, ROWS);
  }

  private static TensorRef ref(long offset, long vectors) {
    return new TensorRef(ArenaKind.LOCAL, 0, offset, type(vectors));
  }

  private static Part part(String op, Operand result, Operand... args) {
    return new Part(
        BuiltinOps.registry().get(op),
        ImmutableList.copyOf(args),
        ImmutableList.of(result),
        "out",
        Span.NONE);
  }

  /** silu(gate) · up. */
  private static Fused gated(long gate, long up, long out) {
    return gated(gate, up, out, VECTORS, ImmutableSet.of());
  }

  private static Fused gated(
      long gate, long up, long out, long vectors, ImmutableSet<TensorRef> lastReads) {
    var passed = new Operand.Passed(0, type(vectors));
    return new Fused(
        StreamKind.COMPUTE,
        1,
        ImmutableList.of(
            part("aten::silu", passed, new Operand.Tensor(ref(gate, vectors))),
            part(
                "aten::mul.Tensor",
                new Operand.Tensor(ref(out, vectors)),
                passed,
                new Operand.Tensor(ref(up, vectors)))),
        lastReads);
  }

  private static ImmutableList<DeviceStep> join(DeviceStep... steps) {
    var joining = new ProductJoining(0, CONSTANTS);
    Arrays.stream(steps).forEach(joining::add);
    return joining.build();
  }

  private static ImmutableList<DeviceStep> join(Product one, Product other, Fused fused) {
    var joining = new ProductJoining(0, CONSTANTS);
    joining.add(one);
    joining.add(other);
    joining.add(fused);
    return joining.build();
  }

  private static List<Share> shares(DeviceStep step) {
    return ((Launch) step).shares();
  }

  @Test
  void productsOfOneInputShareALaunch() {
    var steps =
        join(product("a", 0, GATE), product("b", 1, UP), product("c", 2, OUT), product("d", 0, 0));
    // The last one's result is where the input is.
    assertThat(steps).hasSize(2);
    assertThat(shares(steps.getFirst()))
        .containsExactly(
            new Share("a", ROWS * INNER * 2),
            new Share("b", ROWS * INNER * 2),
            new Share("c", ROWS * INNER * 2));
    assertThat(((Launch) steps.getFirst()).blocks()).isEqualTo(3 * (int) ROWS / 32);
    assertThat(shares(steps.getLast())).isEmpty();
  }

  @Test
  void matricesMayHaveDifferentRows() {
    var few = product("k", weights(1), X, Optional.of(local(OUT)), UP, 4100);
    var steps = join(product("q", weights(0), X, Optional.empty(), GATE, 4096), few);
    assertThat(steps).singleElement().extracting(step -> ((Launch) step).blocks()).isEqualTo(513);
  }

  /** A launch must not read what its other blocks write. */
  @ParameterizedTest
  @CsvSource({
    "x",
    "weights",
    "bias",
    "addend",
    "result",
    "last byte of x",
    "stream",
    "rows",
    "inner"
  })
  void productsStayApart(String why) {
    var one = product("a", weights(0), X, Optional.of(local(OUT)), GATE, ROWS);
    var other =
        switch (why) {
          case "x" -> product("b", weights(1), GATE, Optional.empty(), UP, ROWS);
          case "weights" -> product("b", local(GATE), X, Optional.empty(), UP, ROWS);
          case "bias" -> product("b", weights(1), X, Optional.empty(), OUT + 2 * ROWS - 2, ROWS);
          case "addend" -> added(product("b", 1, UP), GATE + RESULT - 2);
          case "result" -> product("b", weights(1), X, Optional.empty(), GATE + RESULT - 2, ROWS);
          case "last byte of x" -> product("b", weights(1), X, Optional.empty(), INPUT - 2, ROWS);
          // Alone, it adds up in another order.
          case "rows" -> product("b", weights(1), X, Optional.empty(), UP, 4096);
          case "inner" -> {
            var same = product("b", 1, UP);
            yield new Product(
                same.stream(),
                same.rows(),
                same.columns(),
                INNER + 128,
                1,
                0,
                same.left(),
                same.right(),
                same.addend(),
                Optional.empty(),
                same.result(),
                1,
                Optional.empty(),
                "b");
          }
          default -> product("b", 1, UP);
        };
    var mark = new Mark(StreamKind.COMPUTE, 0);
    var steps = why.equals("stream") ? join(one, mark, other) : join(one, other);
    assertThat(steps).filteredOn(Launch.class::isInstance).hasSize(2);
    assertThat(steps).filteredOn(Launch.class::isInstance).allMatch(step -> shares(step).isEmpty());
  }

  /** Blocks may read an addend that others have overwritten, unless it is just where they write. */
  @Test
  void addendsAreApartFromTheirResultsOrTheSame() {
    assertThat(join(added(product("a", 0, GATE), GATE))).hasOnlyElementsOfType(Launch.class);
    assertThat(join(added(product("a", 0, GATE), UP))).hasOnlyElementsOfType(Launch.class);
    assertThat(join(added(product("a", 0, GATE), GATE + 2))).hasOnlyElementsOfType(Product.class);
  }

  @Test
  void adjacentMemoryIsApart() {
    assertThat(join(product("a", 0, INPUT), product("b", 1, INPUT + RESULT))).hasSize(1);
  }

  @Test
  void elementwiseOpsJoinTheirProducts() {
    for (long out : new long[] {OUT, GATE, UP}) {
      var steps = join(product("gate", 0, GATE), product("up", 1, UP), gated(GATE, UP, out));
      assertThat(steps).hasSize(1);
      assertThat(shares(steps.getFirst()))
          .containsExactly(
              new Share("gate", ROWS * INNER * 2),
              new Share("up", ROWS * INNER * 2),
              new Share("out", RESULT));
      assertThat(((Launch) steps.getFirst()).label()).isEqualTo("out");
      assertThat(((Launch) steps.getFirst()).blocks()).isEqualTo((int) ROWS / 16);
    }
  }

  /** The offsets of the memory that a launch touches beside the matrices. */
  private static List<Long> touched(Launch launch) {
    return launch.words().stream()
        .filter(Memory.class::isInstance)
        .map(word -> ((Memory) word).address())
        .filter(address -> address.arena() == ArenaKind.LOCAL)
        .map(Address::offset)
        .toList();
  }

  @Test
  void whatNothingElseReadsIsNotStored() {
    for (var read : List.of(List.of(GATE, UP), List.of(UP), List.<Long>of())) {
      var stored = new ArrayList<>(List.of(GATE, UP));
      stored.removeAll(read);
      for (long vectors : new long[] {VECTORS, 16}) {
        var lastReads =
            read.stream()
                .map(offset -> ref(offset, vectors))
                .collect(ImmutableSet.toImmutableSet());
        var fused = gated(GATE, UP, OUT, vectors, lastReads);
        var step =
            (vectors == VECTORS
                    ? join(product("gate", 0, GATE), product("up", 1, UP), fused)
                    : join(large("gate", 0, GATE), large("up", 1, UP), fused))
                .getFirst();
        var launch = step instanceof HopperLaunch both ? both.launch() : (Launch) step;
        stored.add(OUT);
        assertThat(touched(launch)).filteredOn(offset -> offset != X).hasSameElementsAs(stored);
        stored.remove(OUT);
      }
    }
  }

  /** The same in launches for all GPUs. */
  @Test
  void hopperGpusHaveAnotherKernelForLargeMatrices() {
    var fused = gated(GATE, UP, OUT, 16, ImmutableSet.of());
    var pair = (HopperLaunch) join(large("gate", 0, GATE), large("up", 1, UP), fused).getFirst();
    var otherwise = pair.otherwise().stream().collect(MoreCollectors.onlyElement());
    assertThat(shares(otherwise)).isEqualTo(pair.launch().shares()).hasSize(3);
    // Without what computes with both, one launch has both.
    assertThat(join(large("gate", 0, GATE), large("up", 1, UP)))
        .singleElement()
        .isInstanceOf(Launch.class);
  }

  /** Rows of the input that blocks read, and of each other's results, must be there still. */
  @ParameterizedTest
  @CsvSource({"0", "1048574", "1048578", "1097726", "2046", "2097154"})
  void elementwiseOpsThatOverwriteStayApart(long out) {
    var steps = join(product("gate", 0, GATE), product("up", 1, UP), gated(GATE, UP, out));
    assertThat(steps).hasSize(2);
    assertThat(shares(steps.getFirst())).hasSize(2);
  }

  @Test
  void elementwiseOpsOfPartsOfProductsStayApart() {
    assertThat(join(product("gate", 0, GATE), product("up", 1, UP), gated(GATE, UP + 2, OUT)))
        .hasSize(2);
  }

  /** A block has rows of two matrices at most. */
  @Test
  void elementwiseOpsOfThreeProductsStayApart() {
    var joining = new ProductJoining(0, CONSTANTS);
    joining.add(product("a", 0, GATE));
    joining.add(product("b", 1, UP));
    joining.add(product("c", 2, 4 << 20));
    joining.add(gated(GATE, UP, OUT));
    assertThat(joining.build()).hasSize(2);
  }
}
