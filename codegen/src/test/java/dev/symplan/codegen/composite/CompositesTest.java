package dev.symplan.codegen.composite;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.Sets;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.expr.Expressions;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.ir.Value;
import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.Span;
import dev.symplan.ir.op.OpCall;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Calls are expanded into as few steps of as few dimensions as there can be. */
class CompositesTest {
  private static final Arg MASK =
      new Arg.Seq(ImmutableList.of(new Arg.Bool(true), new Arg.Bool(true), new Arg.Bool(true)));

  private static TensorType f32(long... sizes) {
    return TensorType.contiguous(DType.F32, sizes);
  }

  private static ImmutableList<Step> expand(String op, Object... args) {
    var def = BuiltinOps.registry().get(op);
    var given =
        Stream.of(args)
            .map(
                arg ->
                    switch (arg) {
                      case TensorType type -> new Arg.Ref(new Value(0, "", type, Span.NONE, false));
                      case Integer number -> new Arg.Int(number);
                      case Double number -> new Arg.Float(number);
                      default -> (Arg) arg;
                    })
            .collect(ImmutableList.toImmutableList());
    var results =
        def.infer(given).orElseThrow().stream()
            .map(
                result ->
                    result.type() instanceof TensorType type
                        ? Optional.of(type)
                        : Optional.<TensorType>empty())
            .collect(ImmutableList.toImmutableList());
    return Composites.expand(new OpCall(def, given), results);
  }

  @Test
  void haveAllValuesThatAreWritten() {
    var complex = ComplexNumbers.TABLE.keySet();
    assertThat(Composites.complexNames()).containsAll(complex);
    assertThat(Composites.names())
        .containsExactlyInAnyOrderElementsOf(Sets.union(Expressions.composites(), complex));
  }

  @Test
  void statisticsAndWeightsAreOfOneStepWhereTheirRowsAreTheSame() {
    var image = f32(4, 6, 5, 7);
    var channel = f32(6);
    var batch =
        expand(
            "aten::native_batch_norm_backward",
            image,
            image,
            channel,
            Arg.None.NONE,
            Arg.None.NONE,
            channel,
            channel,
            new Arg.Bool(true),
            1e-5,
            MASK);
    assertThat(batch).hasSize(1);
    assertThat(batch.getFirst().results()).hasSize(3);
    // Rows and columns of an image are one dimension.
    assertThat(batch.getFirst().sizes()).isEqualTo(ImmutableLongArray.of(4, 6, 35));
    assertThat(batch.getFirst().row()).containsExactly(0, 2);
    var groups =
        expand(
            "aten::native_group_norm_backward",
            image,
            image,
            f32(4, 3),
            f32(4, 3),
            channel,
            4,
            6,
            35,
            3,
            MASK);
    assertThat(groups).hasSize(2);
    assertThat(groups).extracting(step -> step.results().size()).containsExactly(1, 2);
  }

  @Test
  void whatIsNotReadIsNoOperand() {
    var steps =
        expand(
            "aten::nll_loss_forward",
            f32(8, 5),
            TensorType.contiguous(DType.I64, 8),
            Arg.None.NONE,
            1,
            -100);
    assertThat(steps).hasSize(1);
    assertThat(steps.getFirst().operands()).containsOnlyKeys("picked", "target");
    assertThat(steps.getFirst().sizes()).isEqualTo(ImmutableLongArray.of(8));
  }

  @Test
  void whatCannotBeSeenIsCopied() {
    var rows = f32(12, 8);
    var odd = f32(3, 4).withStrides(ImmutableLongArray.of(1, 3));
    var steps =
        expand(
            "aten::native_layer_norm_backward",
            rows,
            rows,
            new Arg.Seq(ImmutableList.of(new Arg.Int(8))),
            odd,
            f32(12, 1),
            Arg.None.NONE,
            Arg.None.NONE,
            MASK);
    assertThat(steps).allMatch(step -> step.operands().get("mean").copied());
    assertThat(steps).noneMatch(step -> step.operands().get("rstd").copied());
  }
}
