package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.data.Offset.offset;

import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.Lowering;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.text.GraphParser;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.machine.Target;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import dev.symplan.planner.plan.StreamKind;
import dev.symplan.runtime.failure.RunException;
import dev.symplan.runtime.tensor.SeededInputs;
import java.time.Duration;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.bytedeco.cuda.global.cudart;
import org.bytedeco.javacpp.BytePointer;
import org.bytedeco.javacpp.IntPointer;
import org.bytedeco.javacpp.SizeTPointer;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A rank that does not get on: the others say so in time, and another session works. */
@Tag("gpu")
@Timeout(120)
class FailuresOnGpuTest {
  private static final Duration TIMEOUT = Duration.ofSeconds(5);

  /** The memory that a session may leave, in bytes: libraries keep some for the next. */
  private static final long LEFT = 64L << 20;

  private static Plan plan(int ranks, Variant variant) {
    var members =
        IntStream.range(0, ranks).mapToObj(Integer::toString).collect(Collectors.joining(", "));
    var text =
        """
        graph version 1
        group g = [%s]
        graph stuck(x: f32[33554432]) {
          r = _c10d_functional::all_reduce(x, "sum", "g")
          o = _c10d_functional::wait_tensor(r)
          return o
        }
        """
            .formatted(members);
    return Compiler.forTarget(Target.H200_X4)
        .with(
            CompileOptions.DEFAULT
                .withRanks(ranks)
                .withVariants(ImmutableMap.of("all_reduce", variant)))
        .compile(GraphParser.parse(new SourceFile("stuck.graph", text)));
  }

  /** Keeps a rank's GPU waiting until it is let go. */
  private static final class Gate {
    private final IntPointer open = new IntPointer();

    Gate(CudaSession session, int rank) {
      var local = session.local(rank);
      var check = new Check(rank);
      local
          .thread()
          .start(
              () -> {
                check.runtime(
                    cudart.cudaHostAlloc(open, Integer.BYTES, cudart.cudaHostAllocMapped),
                    "cudaHostAlloc");
                open.put(0, 0);
                var mapped = new BytePointer();
                check.runtime(
                    cudart.cudaHostGetDevicePointer(mapped, open, 0), "cudaHostGetDevicePointer");
                check.driver(
                    cudart.cuStreamWaitValue32(
                        local.gpu().stream(StreamKind.COMPUTE), mapped.address(), 1, 0),
                    "cuStreamWaitValue32");
              });
      local.thread().join();
    }

    void open() {
      open.put(0, 1);
    }
  }

  private static long free() {
    try (var free = new SizeTPointer(1);
        var total = new SizeTPointer(1)) {
      new Check(0).runtime(cudart.cudaSetDevice(0), "cudaSetDevice");
      new Check(0).runtime(cudart.cudaMemGetInfo(free, total), "cudaMemGetInfo");
      return free.get();
    }
  }

  private static void fill(CudaSession session) {
    for (int rank = 0; rank < session.ranks(); rank++) {
      SeededInputs.fill(session.input(rank, 0).orElseThrow(), 1, rank, "x");
    }
  }

  private static double runRight(Plan plan) {
    try (var session = CudaSession.open(Lowering.lower(plan), TIMEOUT)) {
      fill(session);
      session.run();
      session.run();
      double expected = 0;
      for (int rank = 0; rank < session.ranks(); rank++) {
        expected += session.input(rank, 0).orElseThrow().get(7);
      }
      for (int rank = 0; rank < session.ranks(); rank++) {
        assertThat(session.output(rank, 0).orElseThrow().get(7)).isCloseTo(expected, offset(1e-4));
      }
      return expected;
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"TWO_SHOT", "ONE_SHOT", "NCCL"})
  void aStuckRankIsReportedAndLeavesNothing(Variant variant) {
    var plan = plan(Gpus.ranks(), variant);
    runRight(plan);
    long before = free();
    getStuck(plan);
    assertThat(free()).isGreaterThan(before - LEFT);
    runRight(plan);
  }

  /** NCCL keeps the windows of what is aborted. */
  @Test
  void aRankStuckInNcclsSymmetricKernelsIsReported() {
    var plan = plan(Gpus.ranks(), Variant.NCCL_SYMM);
    runRight(plan);
    getStuck(plan);
    runRight(plan);
  }

  private static void getStuck(Plan plan) {
    var session = CudaSession.open(Lowering.lower(plan), TIMEOUT);
    fill(session);
    session.run();
    var gate = new Gate(session, 1);
    long begin = System.nanoTime();
    assertThatThrownBy(session::run)
        .isInstanceOf(RunException.class)
        .hasMessageContaining("all_reduce 'r' (stuck.graph:4)")
        .hasMessageContaining("rank 1");
    var taken = Duration.ofNanos(System.nanoTime() - begin);
    assertThat(taken).isLessThan(TIMEOUT.plusSeconds(3));
    assertThatThrownBy(session::run).hasMessageContaining("the session ended when a run failed");
    gate.open();
    session.close();
    assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(TIMEOUT.plusSeconds(20));
  }
}
