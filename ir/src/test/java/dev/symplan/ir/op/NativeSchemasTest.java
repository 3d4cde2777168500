package dev.symplan.ir.op;

import static org.assertj.core.api.Assertions.assertThat;

import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class NativeSchemasTest {

  private static String schema(String name) {
    return NativeSchemas.of(OpName.parse(name)).getFirst().toString();
  }

  @Test
  void everySchemaCanBeRead() {
    assertThat(NativeSchemas.names()).hasSizeGreaterThan(3_000);
    for (var name : NativeSchemas.names()) {
      for (var schema : NativeSchemas.of(OpName.parse(name))) {
        assertThat(schema.name()).hasToString(name);
      }
    }
  }

  @Test
  void whatPyTorchSaysOfAnOpIsTaken() {
    assertThat(schema("aten::_chunk_cat.out"))
        .isEqualTo(
            "aten::_chunk_cat.out(Tensor[] tensors, int dim, int num_chunks, *, Tensor(a!) out) ->"
                + " Tensor(a!)");
    assertThat(NativeSchemas.of(OpName.parse("mine::op"))).isEmpty();
    // They communicate, which a schema does not say.
    assertThat(NativeSchemas.of(OpName.parse("symm_mem::two_shot_all_reduce_"))).isEmpty();
  }

  @Test
  void numbersOfEnumerationsAreWhatPyTorchMeansByThem() {
    var contiguous = NativeSchemas.of(OpName.parse("aten::contiguous")).getFirst();
    assertThat(contiguous.params().getLast().defaultValue())
        .contains(new Arg.Symbol("contiguous_format"));
    var randint = NativeSchemas.of(OpName.parse("aten::randint")).getFirst();
    assertThat(randint.params().get(randint.indexOf("dtype")).defaultValue())
        .contains(new Arg.Dtype(DType.I64));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "aten::set_.source_Tensor",
        "aten::set_data",
        "aten::resize_",
        "aten::resize_as_",
        "aten::as_strided_",
        "aten::t_",
        "fsdp::set_",
        "inductor::resize_storage_bytes_",
        "inductor::accumulate_grad_",
      })
  void opsThatMoveTheirTensorsMayDoAnything(String name) {
    var schema = NativeSchemas.of(OpName.parse(name)).getFirst();
    assertThat(schema.isUnbounded()).isTrue();
    assertThat(schema.mutates()).isTrue();
    assertThat(schema.params().getFirst().alias().isAnything()).isTrue();
  }

  @Test
  void aTensorMayTakeOverTheStorageOfWhatItIsSetTo() {
    for (var name : new String[] {"aten::set_.source_Tensor", "aten::set_data", "fsdp::set_"}) {
      var params = NativeSchemas.of(OpName.parse(name)).getFirst().params();
      assertThat(params.get(1).alias().isAnything()).as(name).isTrue();
    }
  }

  @ParameterizedTest
  @CsvSource({
    "aten::dropout, input",
    "aten::atleast_1d, self",
    "aten::contiguous, self",
    "aten::flatten.using_ints, self",
    "aten::lift, self",
    "aten::einsum, tensors",
    "inductor::_reinterpret_tensor, self",
    "prims::view_of, a",
  })
  void resultsThatMayBeArgumentsShareAnAliasSetWithThem(String name, String param) {
    var schema = NativeSchemas.of(OpName.parse(name)).getFirst();
    var sets = schema.params().get(schema.indexOf(param)).alias().after();
    assertThat(sets).isNotEmpty().containsAll(schema.results().getFirst().alias().before());
    assertThat(schema.isUnbounded()).isFalse();
  }

  @Test
  void copyInOfFsdpHasTheSchemaOfEachVersion() {
    var schemas = NativeSchemas.of(OpName.parse("fsdp::all_gather_copy_in"));
    assertThat(schemas).hasSize(2);
    for (var schema : schemas) {
      assertThat(schema.results().get(0).alias().before())
          .isNotEmpty()
          .isEqualTo(schema.results().get(1).alias().before());
    }
    assertThat(schemas.get(1).params().get(1).alias().write()).isTrue();
  }

  @Test
  void runningStatisticsAreWritten() {
    for (var name :
        new String[] {"native_batch_norm", "cudnn_batch_norm", "batch_norm", "instance_norm"}) {
      var schema = NativeSchemas.of(OpName.parse("aten::" + name)).getFirst();
      assertThat(schema.params().get(schema.indexOf("running_mean")).alias().write()).isTrue();
      assertThat(schema.params().get(schema.indexOf("running_var")).alias().write()).isTrue();
    }
  }
}
