package dev.symplan.runtime.fuzz;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Arg;
import dev.symplan.ir.DType;
import dev.symplan.ir.TensorType;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

class SketchTest {
  /** The strides of one element in each row would let the rows of the other version overlap. */
  @Test
  void stridesMustFitTheSizesOfAllVersions() {
    var sketch = new Sketch(new SplittableRandom(1), 2);
    var types =
        List.of(TensorType.contiguous(DType.F32, 7, 1), TensorType.contiguous(DType.F32, 7, 6));
    var input = new Arg.Ref(sketch.input(types, Fill.ANY));
    var op = Sketch.op("prims::inductor_force_stride_order");
    assertThat(sketch.apply(op, ImmutableList.of(input, Call.list(1, 1)), true)).isEmpty();
    assertThat(sketch.apply(op, ImmutableList.of(input, Call.list(6, 1)), true)).isPresent();
  }
}
