package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Lowering;
import dev.symplan.ir.MemorySpace;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.runtime.CallerMemory;
import dev.symplan.runtime.CallerMemory.Stretches;
import dev.symplan.runtime.SessionOptions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.bytedeco.cuda.cudart.CUstream_st;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.FloatPointer;
import org.bytedeco.javacpp.Pointer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Runs on memory and in streams of the caller. */
@Tag("gpu")
class CallerMemoryOnGpuTest {
  private static final int ELEMENTS = 64 * 64;
  private static final long BYTES = ELEMENTS * 4L;
  private static final Check CHECK = new Check(0);

  /**
   * A kernel, products with and without a bias, a copy, and a product of one group. Each f32 is a
   * bf16 of the same value behind a bf16 of 0.
   */
  private static final String TEXT =
      """
      graph version 1
      graph mixed(x: f32[64, 64], w: f32[64, 64], b: f32[64], h: bf16[64, 128],
                  v: bf16[1, 64, 128]) {
        y = aten::add.Tensor(x, x)
        p = aten::mm(y, w)
        q = aten::addmm(b, x, w)
        c = aten::clone(x)
        o = aten::full([1], 64, dtype=torch.int32)
        t = aten::permute(v, [0, 2, 1])
        g = aten::_grouped_mm(h, t, o, None, torch.float32)
        return y, p, q, c, g
      }
      """;

  private final List<Pointer> allocated = new ArrayList<>();

  @BeforeEach
  void requireGpu() {
    Gpus.require(1);
    CHECK.runtime(cudart.cudaSetDevice(0), "cudaSetDevice");
  }

  @AfterEach
  void free() {
    allocated.forEach(memory -> CHECK.runtime(cudart.cudaFree(memory), "cudaFree"));
  }

  private static CudaSession open(MemorySpace inputs, MemorySpace outputs) {
    return open(TEXT, inputs, outputs);
  }

  private static CudaSession open(String text, MemorySpace inputs, MemorySpace outputs) {
    var plan =
        Compiler.forDefaultTarget()
            .with(CompileOptions.DEFAULT.withInputs(inputs).withOutputs(outputs))
            .compile(GraphParser.parse(new SourceFile("test.graph", text)));
    return CudaSession.open(
        Lowering.lower(plan),
        SessionOptions.DEFAULT.withTimeout(Duration.ofSeconds(10)).withCallerMemory(true));
  }

  private Pointer tensor(float value) {
    var memory = new BytePointer();
    CHECK.runtime(cudart.cudaMalloc(memory, BYTES), "cudaMalloc");
    allocated.add(memory);
    var values = new float[ELEMENTS];
    Arrays.fill(values, value);
    try (var host = new FloatPointer(values)) {
      CHECK.runtime(
          cudart.cudaMemcpy(memory, host, BYTES, cudart.cudaMemcpyHostToDevice), "cudaMemcpy");
    }
    return memory;
  }

  private List<Pointer> inputs(float value) {
    return List.of(tensor(value), tensor(0.5f), tensor(3), tensor(value), tensor(0.5f));
  }

  private List<Pointer> outputs() {
    return Stream.generate(() -> tensor(0)).limit(5).toList();
  }

  private static float[] values(Pointer tensor) {
    var values = new float[ELEMENTS];
    try (var host = new FloatPointer(ELEMENTS)) {
      CHECK.runtime(
          cudart.cudaMemcpy(host, tensor, BYTES, cudart.cudaMemcpyDeviceToHost), "cudaMemcpy");
      host.get(values);
    }
    return values;
  }

  private static Stretches all(List<Pointer> tensors) {
    return new Stretches(
        ImmutableLongArray.copyOf(tensors.stream().mapToLong(Pointer::address)),
        ImmutableLongArray.copyOf(tensors.stream().mapToLong(_ -> BYTES)));
  }

  private void agrees(MemorySpace inputs, MemorySpace outputs) {
    var stream = new CUstream_st();
    CHECK.runtime(cudart.cudaStreamCreate(stream), "cudaStreamCreate");
    try (var session = open(inputs, outputs)) {
      var results = new ArrayList<List<Pointer>>();
      var first = new ArrayList<Float>();
      for (int run = 0; run < 24; run++) {
        // Twelve runs each on memory of their own, then each again.
        boolean again = run >= 12;
        var given = inputs(run + 1);
        var made = again ? results.get(run - 12) : outputs();
        session.bind(0, new CallerMemory(all(given), all(made)));
        session.runIn(run % 2 == 0 ? stream.address() : 0);
        if (again) {
          results.set(run - 12, made);
          first.set(run - 12, run + 1f);
        } else {
          results.add(made);
          first.add(run + 1f);
        }
      }
      CHECK.runtime(cudart.cudaStreamSynchronize(stream), "cudaStreamSynchronize");
      CHECK.runtime(cudart.cudaStreamSynchronize(null), "cudaStreamSynchronize");
      for (int run = 0; run < results.size(); run++) {
        float x = first.get(run);
        assertThat(values(results.get(run).get(0))).containsOnly(2 * x);
        assertThat(values(results.get(run).get(1))).containsOnly(64 * x);
        assertThat(values(results.get(run).get(2))).containsOnly(32 * x + 3);
        assertThat(values(results.get(run).get(3))).containsOnly(x);
        assertThat(values(results.get(run).get(4))).containsOnly(32 * x);
      }
    }
    CHECK.runtime(cudart.cudaStreamDestroy(stream), "cudaStreamDestroy");
  }

  @Test
  void readsAndWritesWhereTheCallerHasTensors() {
    agrees(MemorySpace.EXTERNAL, MemorySpace.EXTERNAL);
  }

  @Test
  void copiesWhatThePlanHasInArenas() {
    agrees(MemorySpace.LOCAL, MemorySpace.LOCAL);
  }

  @Test
  void copiesBackWhatOpsWrite() {
    var text =
        """
        graph version 1
        graph counts(x: f32[64, 64], y: f32[64, 64]) {
          a = aten::add_.Tensor(x, y)
          b = aten::mul.Tensor(x, y)
          return b
        }
        """;
    try (var session = open(text, MemorySpace.LOCAL, MemorySpace.LOCAL)) {
      var count = tensor(1);
      var step = tensor(10);
      var product = tensor(0);
      session.bind(0, new CallerMemory(all(List.of(count, step)), all(List.of(product))));
      for (int run = 1; run <= 3; run++) {
        session.run();
        assertThat(values(count)).containsOnly(1 + 10 * run);
        assertThat(values(step)).containsOnly(10);
        assertThat(values(product)).containsOnly(10 * (1 + 10 * run));
      }
    }
  }

  @Test
  void capturesAddressesThatComeAgain() {
    try (var session = open(MemorySpace.EXTERNAL, MemorySpace.EXTERNAL)) {
      var given = inputs(2);
      var made = outputs();
      for (int run = 0; run < 5; run++) {
        session.bind(0, new CallerMemory(all(given), all(made)));
        session.run();
        assertThat(values(made.get(1))).containsOnly(128);
        CHECK.runtime(cudart.cudaMemset(made.get(1), 0, BYTES), "cudaMemset");
      }
    }
  }

  @Test
  void needsMemoryBeforeTheFirstRun() {
    try (var session = open(MemorySpace.EXTERNAL, MemorySpace.EXTERNAL)) {
      assertThatThrownBy(session::run).isInstanceOf(IllegalStateException.class);
      assertThatThrownBy(() -> session.runIn(0)).isInstanceOf(IllegalStateException.class);
    }
  }
}
