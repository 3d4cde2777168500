package dev.symplan.bench;

import com.google.common.collect.ImmutableList;
import dev.symplan.bench.TransformerGraph.Form;
import dev.symplan.ir.Notes;
import dev.symplan.ir.graph.Program;
import dev.symplan.planner.Compiler;
import dev.symplan.planner.options.CompileOptions;
import dev.symplan.planner.plan.Plan;
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
 * From a graph in memory to its verified plan, for eight ranks, in a warm JVM of 4 GiB, with the
 * collector and object headers of the launcher.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Fork(
    value = 1,
    jvmArgsAppend = {"-Xmx4g", "-XX:+UseSerialGC", "-XX:+UseCompactObjectHeaders"})
@Warmup(iterations = 5, time = 5)
@Measurement(iterations = 5, time = 5)
public class ScaleBenchmark {
  @Param({"1000", "10000", "100000", "1000000"})
  public int ops = 0;

  @Param public Form form = Form.TENSOR_PARALLEL;

  private Program program =
      new Program(ImmutableList.of(), ImmutableList.of(), ImmutableList.of(), Notes.NONE);

  @Setup
  public void generate() {
    program = TransformerGraph.of(form, ops, 1);
  }

  @Benchmark
  public Plan compile() {
    return Compiler.forDefaultTarget().with(CompileOptions.DEFAULT.withRanks(8)).compile(program);
  }
}
