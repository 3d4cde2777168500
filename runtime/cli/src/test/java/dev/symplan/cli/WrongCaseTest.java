package dev.symplan.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Safetensors;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A case that is wrong in one way gives one error that names what is wrong, and writes nothing. */
class WrongCaseTest {
  private static final Path CASE =
      Path.of(System.getProperty("symplan.root", "../..")).resolve("samples/cases/sp_mlp");

  @TempDir private Path folder;

  @BeforeEach
  void copyTheCase() throws IOException {
    try (var files = Files.list(CASE)) {
      for (var file : files.toList()) {
        Files.copy(file, folder.resolve(String.valueOf(file.getFileName())));
      }
    }
  }

  private void change(String name, Consumer<HashMap<String, HostTensor>> change) {
    var tensors = new HashMap<String, HostTensor>();
    Safetensors.read(folder.resolve(name))
        .forEach(
            (key, tensor) -> {
              var copy = tensor.copyAs(tensor.type());
              tensors.put(key, copy);
            });
    change.accept(tensors);
    Safetensors.write(folder.resolve(name), ImmutableMap.copyOf(tensors));
  }

  private static HostTensor zeros(DType dtype, long... sizes) {
    return HostTensor.allocate(TensorType.contiguous(dtype, sizes));
  }

  private void replace(String name, String from, String to) throws IOException {
    var file = folder.resolve(name);
    var text = Files.readString(file);
    assertThat(text).contains(from);
    Files.writeString(file, text.replace(from, to));
  }

  private void fails(String... messages) {
    var outputs = folder.resolve("written");
    var result = Ran.run("run", folder, "--check", "--outputs", outputs);
    assertThat(result.err()).contains(messages).doesNotContain("\tat ", "Exception");
    assertThat(result.err().split("error", -1)).as(result.err()).hasSize(2);
    assertThat(result.code()).isEqualTo(1);
    assertThat(result.out()).isEmpty();
    assertThat(outputs).doesNotExist();
  }

  @Test
  void anInputIsMissing() {
    change("rank2.inputs.safetensors", tensors -> tensors.remove("in0"));
    fails("rank2.inputs.safetensors", "no tensor 'in0' was found for input");
  }

  @Test
  void anInputHasAnotherShape() {
    change("rank1.inputs.safetensors", tensors -> tensors.put("in0", zeros(DType.F32, 3, 3)));
    fails("rank1.inputs.safetensors", "tensor 'in0' is f32[3, 3], but input");
  }

  @Test
  void anInputHasAnotherElementType() {
    change(
        "rank1.inputs.safetensors",
        tensors ->
            tensors.computeIfPresent(
                "in0", (_, old) -> zeros(DType.BF16, old.type().sizes().toArray())));
    fails("rank1.inputs.safetensors", "tensor 'in0' is bf16[", "is f32[");
  }

  @Test
  void anOutputIsMissing() {
    change("rank3.outputs.safetensors", tensors -> tensors.remove("out0"));
    fails("rank3.outputs.safetensors", "no tensor 'out0' was found");
  }

  @Test
  void anOutputHasAnotherShape() {
    change("rank0.outputs.safetensors", tensors -> tensors.put("out0", zeros(DType.F32, 1)));
    fails("rank0.outputs.safetensors", "tensor 'out0' is f32[1]");
  }

  @Test
  void thePlanHasFewerRanks() {
    var result = Ran.run("run", CASE.resolveSibling("tp_mlp_bf16"), "--check", "--ranks", 3);
    assertThat(result.err())
        .contains("rank3.outputs.safetensors: error[bad-tensors]: the plan is for 3 ranks, but");
    assertThat(result.code()).isEqualTo(1);
    assertThat(result.out()).isEmpty();
  }

  @Test
  void anInputIsNotTheSameOnAllRanks() {
    var reduced = CASE.resolveSibling("allreduce_relu");
    var rows = List.of("run", reduced, "--check", "--sequence-parallel", "on");
    assertThat(Ran.run(rows.toArray()).code()).isZero();
    var result =
        Ran.run(Stream.concat(rows.stream(), Stream.of("--replicated", "arg0_1")).toArray());
    assertThat(result.err())
        .contains(
            "error[bad-tensors]: input 'arg0_1' differs between ranks 0 and 1",
            "the plan was made with --replicated arg0_1");
    assertThat(result.code()).isEqualTo(1);
  }

  @Test
  void aRankHasNoInputs() throws IOException {
    Files.delete(folder.resolve("rank1.inputs.safetensors"));
    fails("rank1.inputs.safetensors", "the file does not exist");
  }

  @Test
  void aFileIsCutOff() throws IOException {
    var file = folder.resolve("rank1.inputs.safetensors");
    var bytes = Files.readAllBytes(file);
    Files.write(file, Arrays.copyOf(bytes, bytes.length / 2));
    fails("rank1.inputs.safetensors", "truncated");
  }

  @Test
  void theGraphIsCutOff() throws IOException {
    var file = folder.resolve("graph.fx.txt");
    var text = Files.readString(file);
    Files.writeString(file, text.substring(0, text.indexOf("return")));
    fails("graph.fx.txt");
  }

  @Test
  void anAnnotationContradictsItsOp() throws IOException {
    replace("graph.fx.txt", "reduce_scatter_tensor: \"f32[", "reduce_scatter_tensor: \"f32[7");
    fails("graph.fx.txt", "is annotated f32[7", "annotation-mismatch");
  }

  @Test
  void anOpGetsWhatItCannotTake() throws IOException {
    replace("graph.fx.txt", "'sum', 4,", "'sum', 3,");
    fails("graph.fx.txt", "reduce_scatter_tensor");
  }

  @Test
  void theGroupsAreNoGroups() throws IOException {
    Files.writeString(folder.resolve("groups.json"), "{\"0\": [0, 1, 2, 9]}");
    fails("rank");
  }
}
