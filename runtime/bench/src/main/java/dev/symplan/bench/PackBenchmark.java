package dev.symplan.bench;

import dev.symplan.ir.text.SourceReader;
import dev.symplan.planner.pack.PackOptions;
import dev.symplan.planner.pack.Packer;
import dev.symplan.planner.pack.Packing;
import dev.symplan.planner.pack.PackingCsv;
import dev.symplan.planner.pack.PackingProblem;
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
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/** Packs buffers of a CSV file that was read before, in a warm JVM. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MILLISECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class PackBenchmark {

  /** Below {@code -Dsymplan.shared}; they are not in the repository. */
  @Param({
    "A.1048576",
    "B.1048576",
    "C.1048576",
    "D.1048576",
    "E.1048576",
    "F.1048576",
    "gemma2_2b_keras_jax",
    "hlo_llama31_8b_bf16_1x8",
    "hlo_mixtral_8x7b_bf16_1x8",
    "iopddl-A_max",
    "iopddl-P_max"
  })
  public String instance = "";

  private PackingProblem problem = PackingProblem.builder().build();
  private PackOptions options = PackOptions.DEFAULT;

  /** Reads the file; minimalloc's instances are to fit into its capacity. */
  @Setup
  public void read() {
    var folder = Path.of(System.getProperty("symplan.shared", "../shared"), "cases", "packing");
    problem = PackingCsv.read(SourceReader.read(folder.resolve(instance + ".csv"))).problem();
    if (instance.endsWith(".1048576")) {
      options = PackOptions.THOROUGH.withCapacity(1_048_576);
    }
  }

  @Benchmark
  public Packing pack() {
    return Packer.pack(problem, options);
  }
}
