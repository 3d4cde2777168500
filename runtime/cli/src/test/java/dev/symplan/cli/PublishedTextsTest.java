package dev.symplan.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableMap;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import dev.symplan.runtime.tensor.HostTensor;
import dev.symplan.runtime.tensor.Safetensors;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Texts with what PyTorch's passes leave in graphs give the values that PyTorch would. */
class PublishedTextsTest {
  @TempDir private Path folder;

  private static HostTensor floats(double... values) {
    var tensor = HostTensor.allocate(TensorType.contiguous(DType.F32, values.length));
    for (int i = 0; i < values.length; i++) {
      tensor.memory().setAtIndex(ValueLayout.JAVA_FLOAT, i, (float) values[i]);
    }
    return tensor;
  }

  private static HostTensor integers(long... values) {
    var tensor = HostTensor.allocate(TensorType.contiguous(DType.I64, values.length, 1));
    for (int i = 0; i < values.length; i++) {
      tensor.memory().setAtIndex(ValueLayout.JAVA_LONG, i, values[i]);
    }
    return tensor;
  }

  private void write(String text) throws IOException {
    Files.writeString(folder.resolve("graph.fx.txt"), text);
  }

  private void tensors(String name, ImmutableMap<String, HostTensor> tensors) {
    Safetensors.write(folder.resolve(name + ".safetensors"), tensors);
  }

  private void agrees() {
    var ran = Ran.run("run", folder, "--check");
    assertThat(ran.code()).as(ran.said()).isZero();
  }

  @Test
  void functionalizedWritesLeaveTheOldValue() throws IOException {
    write(
        """
        class GraphModule(torch.nn.Module):
            def forward(self, x: "f32[3][1]cpu", y: "f32[2][1]cpu"):
                h = torch.ops.higher_order.auto_functionalized_v2(torch.ops.aten.copy_.default, src = y, \
        _self_base_index = 0, _self_size = (2,), _self_stride = (1,), _self_storage_offset = 1, _all_bases = [x])
                new: "f32[3][1]cpu" = h[1];  h = None
                e: "f32[2][1]cpu" = torch.ops.aten.full.default([2], 7, dtype = torch.float32)
                g = torch.ops.higher_order.auto_functionalized(torch.ops.aten.mul_.Tensor, self = e, other = y);  e = None
                product: "f32[2][1]cpu" = g[1];  g = None
                return (x, new, product)
        """);
    tensors("rank0.inputs", ImmutableMap.of("in0", floats(1, 2, 3), "in1", floats(-5, 6)));
    tensors(
        "rank0.outputs",
        ImmutableMap.of(
            "out0", floats(1, 2, 3), "out1", floats(1, -5, 6), "out2", floats(-35, 42)));
    agrees();
  }

  @Test
  void subgraphsAndScattersGiveTheirValues() throws IOException {
    write(
        """
        class GraphModule(torch.nn.Module):
            def forward(self, at: "i64[2, 1][1, 1]cpu", x: "f32[2][1]cpu"):
                s: "f32[2, 3][3, 1]cpu" = torch__inductor_fx_passes_post_grad_scatter_upon_const_tensor(\
        shape = [2, 3], background_val = 0.5, dtype = torch.float32, dim = 1, selector = at, val = -1.0)
                flat: "f32[6][1]cpu" = torch.ops.aten.view.default(s, [6])
                sub = self.sub
                i = torch.ops.higher_order.invoke_subgraph(sub, 'sub', x)
                a: "f32[2][1]cpu" = i[0];  i = None
                j = torch.ops.higher_order.invoke_subgraph(sub, 'sub', a);  sub = None
                b: "f32[2][1]cpu" = j[0];  j = None
                return (flat, b)
            class sub(torch.nn.Module):
                def forward(self, arg: "f32[2][1]cpu"):
                    mul: "f32[2][1]cpu" = torch.ops.aten.mul.Tensor(arg, arg)
                    return (mul,)
        """);
    tensors("rank0.inputs", ImmutableMap.of("in0", integers(2, 0), "in1", floats(2, 3)));
    tensors(
        "rank0.outputs",
        ImmutableMap.of("out0", floats(0.5, 0.5, -1, -1, 0.5, 0.5), "out1", floats(16, 81)));
    agrees();
  }

  @Test
  void constantsComeFromTheCase() throws IOException {
    write(
        """
        def forward(self, x: "f32[2][1]cpu"):
            _tensor_constant0 = self._tensor_constant0
            c: "f32[2][1]cpu" = torch.ops.aten.lift_fresh_copy.default(_tensor_constant0);  _tensor_constant0 = None
            a: "f32[2][1]cpu" = torch.ops.aten.add.Tensor(x, c)
            return (a,)
        """);
    tensors("rank0.inputs", ImmutableMap.of("in0", floats(1, 2)));
    tensors("rank0.outputs", ImmutableMap.of("out0", floats(11, 22)));
    var without = Ran.run("run", folder, "--check");
    assertThat(without.code()).isEqualTo(1);
    assertThat(without.err()).contains("no tensor 'in1' was found for input '_tensor_constant0'");
    tensors("constants", ImmutableMap.of("_tensor_constant0", floats(10, 20)));
    agrees();
    tensors("constants", ImmutableMap.of("_tensor_constant0", floats(10, 20, 30)));
    assertThat(Ran.run("run", folder).err()).contains("constants.safetensors", "but the input is");
  }

  @Test
  void inputsThatAreMadeUpFitTheirUse() throws IOException {
    var text = folder.resolve("g.txt");
    Files.writeString(
        text,
        """
        def forward(self, values: "f32[7][1]cpu", x: "f32[5, 4][4, 1]cpu", mask: "b8[5, 4][4, 1]cpu", at: "i64[9][1]cpu", table: "f32[2, 3][3, 1]cpu"):
            index_put: "f32[5, 4][4, 1]cpu" = torch.ops.aten.index_put.default(x, [mask], values)
            pick: "i64[9][1]cpu" = torch.ops.aten.clone.default(at)
            rows: "f32[9, 3][3, 1]cpu" = torch.ops.aten.embedding.default(table, pick)
            return (index_put, rows)
        """);
    var ran = Ran.run("run", text, "--ranks", "2");
    assertThat(ran.code()).as(ran.said()).isZero();
  }
}
