package dev.symplan.ir.aten;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import com.google.common.collect.ImmutableSet;
import com.google.common.io.Resources;
import dev.symplan.ir.op.OpName;
import dev.symplan.ir.op.OpSpec;
import dev.symplan.ir.op.OpTrait;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class BuiltinOpsTest {

  static Stream<OpSpec> specs() {
    return BuiltinOps.all();
  }

  private static ImmutableSet<String> pytorch() throws IOException {
    return Resources.readLines(Resources.getResource("ops/schemas.txt"), StandardCharsets.UTF_8)
        .stream()
        .filter(line -> !line.startsWith("#"))
        .collect(ImmutableSet.toImmutableSet());
  }

  private static boolean isPyTorch(OpSpec spec) {
    var namespace = spec.name().namespace();
    return namespace.equals("aten") || namespace.equals("prims");
  }

  @Test
  void everyOpIsThereOnce() {
    assertThat(specs().map(OpSpec::name)).doesNotHaveDuplicates();
  }

  @ParameterizedTest
  @MethodSource("specs")
  void schemaPrintsAsItWasWritten(OpSpec spec) {
    assertThat(spec.resolve().schema().toString()).isEqualTo(spec.schemaText());
  }

  @Test
  void schemasArePyTorchs() throws IOException {
    assertThat(specs().filter(BuiltinOpsTest::isPyTorch).map(OpSpec::schemaText))
        .containsExactlyInAnyOrderElementsOf(pytorch());
  }

  @ParameterizedTest
  @MethodSource("specs")
  void everyOpHasARule(OpSpec spec) {
    if (needsAnnotation(spec)) {
      assertThat(spec.rule()).isEmpty();
      return;
    }
    assertThat(spec.rule()).isPresent();
    assertThat(spec.resolve().has(OpTrait.OPAQUE)).isFalse();
  }

  /** The size of the group, which no argument gives, decides the shape of their results. */
  static boolean needsAnnotation(OpSpec spec) {
    return spec.name().name().matches("_low_contention_.*|fused_.*");
  }

  /** An op that writes into an argument may not be dropped or run twice. */
  @ParameterizedTest
  @MethodSource("specs")
  void opsThatWriteHaveSideEffects(OpSpec spec) {
    var def = spec.resolve();
    if (def.schema().mutates() && def.collective().isEmpty()) {
      assertThat(def.has(OpTrait.SIDE_EFFECT)).isTrue();
    }
  }

  @Test
  void theRegistryHasThem() {
    assertThatCode(() -> BuiltinOps.registry().get("aten::mm")).doesNotThrowAnyException();
    assertThat(BuiltinOps.registry().overloads("aten::add"))
        .containsExactly(new OpName("aten", "add", "Scalar"), new OpName("aten", "add", "Tensor"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"aten::rand", "aten::native_dropout", "prims::inductor_seeds"})
  void opsThatDrawRandomNumbersAreNotRepeated(String name) {
    var def = BuiltinOps.registry().get(name);
    assertThat(def.has(OpTrait.SIDE_EFFECT)).isTrue();
    assertThat(def.has(OpTrait.CREATION)).isFalse();
  }
}
