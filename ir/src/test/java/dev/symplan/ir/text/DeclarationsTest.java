package dev.symplan.ir.text;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.diag.CompileException;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.op.CollectiveSpec.Role;
import dev.symplan.ir.op.OpDef;
import dev.symplan.ir.op.OpName;
import dev.symplan.ir.op.OpRegistry;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

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
  void oneLineDeclaresACollective() {
    var registry =
        read(
            """
            mine::sum_(Tensor(a!) t, str pg) -> ()  collective(all_reduce) algorithm(two_shot)
            mine::gather(Tensor shard, int dim, int world_size) -> Tensor  collective(all_gather)
            """);

    var sum = op(registry, "mine::sum_").collective().orElseThrow();
    assertThat(sum.kind()).isEqualTo(Kind.ALL_REDUCE);
    assertThat(sum.operand()).isEqualTo("t");
    assertThat(sum.group()).contains("pg");
    assertThat(sum.foreign().orElseThrow().algorithm()).contains("two_shot");
    var gather = op(registry, "mine::gather").collective().orElseThrow();
    assertThat(gather.operand()).isEqualTo("shard");
    assertThat(gather.group()).isEmpty();
    assertThat(gather.param(Role.DIM)).isEqualTo("dim");
    assertThat(gather.param(Role.GROUP_SIZE)).isEqualTo("world_size");
  }

  @Test
  void declarationsAddDemandsToFunctionalCollectives() {
    var registry =
        read(
            "_c10d_functional::all_reduce(Tensor input, str reduce_op, str group_name) -> Tensor "
                + " symm_mem(input)");

    var reduce = op(registry, "_c10d_functional::all_reduce");
    assertThat(reduce.symmMemArgs()).containsExactly("input");
    assertThat(reduce.rule()).isPresent();
    assertThat(op(BuiltinOps.registry(), "_c10d_functional::all_reduce").symmMemArgs()).isEmpty();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "mine::f(Tensor x) -> Tensor  collective(allreduce)|'allreduce' is not a kind of"
            + " collective",
        "mine::f(Tensor x) -> Tensor  collective(all_reduce, all_gather)|an op has one collective",
        "mine::f(Tensor x) -> Tensor  algorithm(nccl)|only a collective has an algorithm",
        "mine::f(Tensor x, str a, str b) -> Tensor  collective(all_reduce)|2 parameters of type"
            + " str, and one names its group",
        "mine::f(Tensor x, str? pg) -> Tensor  collective(all_reduce)|'pg' is of type str?; a group"
            + " is named by a str",
        "mine::f(int n) -> Tensor  collective(all_reduce)|takes no tensor that its ranks"
            + " could exchange",
        "mine::f(Tensor x, int group) -> Tensor  symm_mem(x)|'group' is of type int; a group is"
            + " named by a str",
        "mine::f(Tensor x) -> Tensor  collective(broadcast)|no parameter is the root of the"
            + " broadcast",
        "aten::relu(Tensor self) -> Tensor  symm_mem(self)|already defined, as another op",
      })
  void refusesCollectives(String declaration, String message) {
    assertThatThrownBy(() -> read(declaration + "\n"))
        .isInstanceOf(CompileException.class)
        .hasMessageContaining(message);
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
