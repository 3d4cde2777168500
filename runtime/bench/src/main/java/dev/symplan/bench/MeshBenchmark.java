package dev.symplan.bench;

import com.google.common.collect.ImmutableList;
import dev.symplan.ir.Notes;
import dev.symplan.ir.graph.Program;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.io.PlanFile;
import dev.symplan.planner.machine.Target;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * From 16 graphs in memory to the text of their plan, in a warm JVM: as the stages of a pipeline of
 * all ranks, and as 16 programs alone.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Fork(value = 1, jvmArgsAppend = "-Xmx4g")
@Warmup(iterations = 5, time = 2)
@Measurement(iterations = 10, time = 2)
public class MeshBenchmark {
  private static final int STAGES = 16;

  /** Replicas of eight ranks: 1,024 ranks, and 16,384. */
  @Param({"8", "128"})
  public int data = 0;

  private Program together =
      new Program(ImmutableList.of(), ImmutableList.of(), ImmutableList.of(), Notes.NONE);
  private final List<Program> alone = new ArrayList<>();

  @Setup
  public void generate() {
    var pipeline = new PipelineProgram(STAGES, data, 8, 8, 1);
    together = pipeline.program();
    for (int stage = 0; stage < STAGES; stage++) {
      alone.add(pipeline.alone(stage));
    }
  }

  @Benchmark
  public int together() {
    return size(together);
  }

  @Benchmark
  public int alone() {
    return alone.stream().mapToInt(MeshBenchmark::size).sum();
  }

  private static int size(Program program) {
    return PlanFile.toJson(Compiler.forTarget(Target.H200_X8).compile(program)).length();
  }
}
