package dev.symplan.ir.op;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.ir.aten.BuiltinOps;
import dev.symplan.ir.op.CollectiveSpec.Role;
import java.util.List;
import org.junit.jupiter.api.Test;

class LibraryTest {
  private final OpRegistry registry = BuiltinOps.registry().child();
  private final Library lib = Library.in(registry, "my_lib");

  @Test
  void registersSymmetricArgumentsAndTakesThemBack() {
    lib.def("foo(Tensor input, str group_name) -> Tensor");
    var handle = lib.registerSymmMemArgs("foo", List.of("input"));
    assertThat(registry.get("my_lib::foo").symmMemArgs()).containsExactly("input");
    handle.close();
    handle.close();
    assertThat(registry.get("my_lib::foo").symmMemArgs()).isEmpty();
    assertThat(registry.get("my_lib::foo").collective()).isEmpty();
  }

  @Test
  void findsTheGroupByItsRoleNotItsName() {
    lib.def("one(Tensor input, str pg) -> Tensor");
    lib.registerSymmMemArgs("one", List.of("input"));
    assertThat(registry.get("my_lib::one").collective())
        .flatMap(CollectiveSpec::group)
        .contains("pg");

    lib.def("two(Tensor x, str mode, str where) -> Tensor");
    assertThatThrownBy(() -> lib.registerSymmMemArgs("two", List.of("x")))
        .hasMessageContaining("2 parameters of type str")
        .hasMessageContaining("one names its group");
    lib.registerGroup("two", "x", "where");
    lib.registerSymmMemArgs("two", List.of("x"));
    assertThat(registry.get("my_lib::two").collective())
        .flatMap(CollectiveSpec::group)
        .contains("where");
  }

  @Test
  void anOpWithoutAParameterForItsGroupIsForAllRanks() {
    lib.def("all(Tensor input, float x) -> Tensor");
    lib.registerSymmMemArgs("all", List.of("input"));
    assertThat(registry.get("my_lib::all").collective())
        .hasValueSatisfying(spec -> assertThat(spec.group()).isEmpty());

    lib.def("some(Tensor input, __torch__.torch.classes.c10d.ProcessGroup pg) -> Tensor");
    assertThatThrownBy(() -> lib.registerSymmMemArgs("some", List.of("input")))
        .hasMessageContaining("'pg' is of type")
        .hasMessageContaining("a group is named by a str");
  }

  @Test
  void registersSymmetricArgumentsOfAFunctionalCollective() {
    var functional = Library.in(registry, "_c10d_functional");
    var handle = functional.registerSymmMemArgs("all_reduce", List.of("input"));
    assertThat(registry.get("_c10d_functional::all_reduce").symmMemArgs()).containsExactly("input");
    assertThat(BuiltinOps.registry().get("_c10d_functional::all_reduce").symmMemArgs()).isEmpty();
    handle.close();
    assertThat(registry.get("_c10d_functional::all_reduce").symmMemArgs()).isEmpty();
  }

  @Test
  void acceptsListsOverloadsAndResults() {
    lib.def("many.ov(Tensor[] inputs, str group) -> (Tensor a, Tensor b)");
    lib.registerSymmMemArgs("many.ov", List.of("inputs"));
    lib.registerSymmMemResults("my_lib::many.ov", List.of("1", "a"));
    var def = registry.get("my_lib::many.ov");
    assertThat(def.symmMemArgs()).containsExactly("inputs");
    assertThat(def.symmMemResults()).containsExactly("1", "a");
  }

  @Test
  void checksNamesAgainstTheSchema() {
    lib.def("foo(Tensor input, int n, str group) -> Tensor");
    assertThatThrownBy(() -> lib.registerSymmMemArgs("foo", List.of("inptu")))
        .hasMessageContaining("no parameter 'inptu'");
    assertThatThrownBy(() -> lib.registerSymmMemArgs("foo", List.of("n")))
        .hasMessageContaining("only tensors can be in symmetric memory");
    assertThatThrownBy(() -> lib.registerSymmMemResults("foo", List.of("1")))
        .hasMessageContaining("no tensor result '1'");
    assertThatThrownBy(() -> lib.registerSymmMemArgs("foo", List.of()))
        .hasMessageContaining("nothing to register");
    assertThatThrownBy(() -> lib.registerSymmMemArgs("bar", List.of("input")))
        .hasMessageContaining("no op my_lib::bar");
    assertThatThrownBy(() -> lib.def("foo(Tensor input) -> Tensor"))
        .hasMessageContaining("already defined");
    assertThatThrownBy(() -> lib.def("broken(Tensor input")).isInstanceOf(RuntimeException.class);
    assertThat(registry.get("my_lib::foo").symmMemArgs()).isEmpty();
  }

  @Test
  void keepsLibrariesOfAChildToItself() {
    lib.def("foo(Tensor input) -> Tensor");
    assertThat(BuiltinOps.registry().find(OpName.parse("my_lib::foo"))).isEmpty();
    assertThat(registry.find(OpName.parse("aten::mm"))).isPresent();
  }

  @Test
  void registersTheBuiltInCollectivesAsAnyLibraryWould() {
    var def = BuiltinOps.registry().get("_c10d_functional::all_reduce");
    assertThat(def.collective())
        .hasValueSatisfying(
            spec -> {
              assertThat(spec.group()).contains("group_name");
              assertThat(spec.param(Role.REDUCE_OP)).isEqualTo("reduce_op");
            });
  }
}
