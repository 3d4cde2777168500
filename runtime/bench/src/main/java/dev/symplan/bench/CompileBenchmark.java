package dev.symplan.bench;

import dev.symplan.planner.Compiler;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/** From the text of a graph to its verified plan, for eight ranks, in a warm JVM. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Fork(1)
@Warmup(iterations = 5, time = 2)
@Measurement(iterations = 5, time = 2)
public class CompileBenchmark {

  /** Below {@code -Dsymplan.shared}; the large graphs are not in the repository. */
  @Param({
    "cases/plan/tp_mlp_llama8b_decode128.0.fx.txt",
    "cases/plan/fsdp8_mlp_train_4l.0.fx.txt",
    "cases/plan/llama3_8b_tp8_prefill_32l.0.fx.txt"
  })
  public String graph = "";

  @Benchmark
  public Plan compile() {
    return Compiler.forDefaultTarget()
        .with(CompileOptions.DEFAULT.withRanks(8))
        .compile(Path.of(System.getProperty("symplan.shared", "../shared")).resolve(graph));
  }
}
