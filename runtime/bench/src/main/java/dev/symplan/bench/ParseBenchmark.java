package dev.symplan.bench;

import dev.symplan.bench.TransformerGraph.Form;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.graph.Program;
import dev.symplan.planner.io.ProgramReader;
import dev.symplan.planner.options.CompileOptions;
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

/** From FX text in memory to a program, in a warm JVM of 4 GiB; the text's size is printed. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Fork(value = 1, jvmArgsAppend = "-Xmx4g")
@Warmup(iterations = 5, time = 5)
@Measurement(iterations = 5, time = 5)
public class ParseBenchmark {
  @Param({"10000", "100000", "1000000"})
  public int ops = 0;

  private SourceFile file = SourceFile.NONE;

  @Setup
  public void generate() {
    var graph = TransformerGraph.of(Form.TENSOR_PARALLEL, ops, 1).graphs().getFirst();
    file = new SourceFile("transformer.fx.txt", FxText.of(graph));
    System.out.printf("%s characters%n", file.text().length());
  }

  @Benchmark
  public Program read() {
    return ProgramReader.read(file, CompileOptions.DEFAULT.withRanks(8), _ -> {});
  }
}
