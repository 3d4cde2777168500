package dev.symplan.ir.text;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpName;
import dev.symplan.ir.op.OpRegistry;
import org.junit.jupiter.api.Test;

class DeclarationsTest {

  private static OpRegistry read(String text) {
    return Declarations.read(new SourceFile("ops.txt", text), BuiltinOps.registry());
  }

  private static OpDef op(OpRegistry registry, String name) {
    return registry.find(OpName.parse(name)).orElseThrow();
  }

  @Test
  void aLineIsAnOpWithOrWithoutTheWord() {
    var registry =
        read(
            """
            # what our library has
            mine::pack_(Tensor(a!) out, Tensor x) -> ()
            op mine::exchange(Tensor x, str group) -> Tensor symm_mem(x)
            """);
    assertThat(op(registry, "mine::pack_").schema().mutates()).isTrue();
    assertThat(op(registry, "mine::exchange").symmMemArgs()).containsExactly("x");
    assertThat(registry.find(OpName.parse("aten::mm"))).isPresent();
    assertThat(BuiltinOps.registry().find(OpName.parse("mine::pack_"))).isEmpty();
  }

  @Test
  void errorsSayWhere() {
    assertThatThrownBy(() -> read("mine::a(Tensor x) -> ()\nmine::b(Tensr x) ->\n"))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining("ops.txt:2:");
    assertThatThrownBy(() -> read("graph g(x: f32[2]) {\n"))
        .hasMessageContaining("ops.txt:1:1")
        .hasMessageContaining("expected an op declaration, not 'graph'");
    assertThatThrownBy(() -> read("aten::mm(Tensor x) -> Tensor\n"))
        .hasMessageContaining("aten::mm is already defined, as another op");
    assertThatThrownBy(() -> read("op\n")).hasMessageContaining("expected a schema");
  }

  @Test
  void whatPyTorchListedGivesWayToWhatIsKnown() {
    var registry =
        Declarations.readCaptured(
            new SourceFile(
                "ops.txt",
                """
                fsdp::set_(Tensor(a!) tensor, Tensor data) -> ()
                aten::mm(Tensor x) -> Tensor
                mine::op(Tensor x) -> Tensor
                """),
            BuiltinOps.registry());
    assertThat(registry.find(OpName.parse("fsdp::set_"))).isEmpty();
    assertThat(op(registry, "aten::mm").schema().params()).hasSize(2);
    assertThat(registry.find(OpName.parse("mine::op"))).isPresent();
  }
}
