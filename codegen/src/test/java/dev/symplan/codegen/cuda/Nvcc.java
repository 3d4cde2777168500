package dev.symplan.codegen.cuda;

import com.google.common.collect.ImmutableList;
import dev.symplan.codegen.cuda.DeviceStep.Launch;
import dev.symplan.ir.testkit.Tools;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Compiles kernels for every architecture that they are meant for, where there is an nvcc. */
final class Nvcc {
  static final List<String> ALL = List.of("sm_80", "sm_90", "sm_100");

  /** Those that have the instructions of NVLink multicast. */
  static final List<String> FROM_HOPPER = List.of("sm_90", "sm_100");

  private Nvcc() {}

  /** Fails with what nvcc says; skips the test where there is none. */
  static void check(List<String> kernels) {
    compile(kernels, ALL, "-O0");
  }

  /**
   * {@return the PTX of each kernel for the first architecture; all are assembled, too}
   *
   * <p>Skips the test where there is no nvcc.
   */
  static ImmutableList<String> ptx(List<String> kernels, List<String> architectures) {
    var all = compile(kernels, architectures, "-O3");
    return IntStream.range(0, kernels.size())
        .mapToObj(
            i -> {
              int from = all.indexOf(".entry kernel" + i + "(");
              int to = all.indexOf(".visible .entry", from);
              return all.substring(from, to < 0 ? all.length() : to);
            })
        .collect(ImmutableList.toImmutableList());
  }

  /** Everything in one go for each architecture, as nvcc itself takes a second to begin. */
  private static String compile(
      List<String> kernels, List<String> architectures, String optimization) {
    Tools.assumeInstalled("nvcc");
    var text = new StringBuilder();
    for (int i = 0; i < kernels.size(); i++) {
      // Each in a namespace of its own, its macros undone after it.
      var kernel = kernels.get(i).replace("symplan_kernel", "kernel" + i);
      text.append("namespace n%s {\n%s}\n".formatted(i, kernel));
      kernel
          .lines()
          .filter(line -> line.startsWith("#define "))
          .forEach(line -> text.append("#undef ").append(line.split(" ")[1]).append('\n'));
    }
    return Tools.inFolder(
        folder -> {
          Files.writeString(folder.resolve("kernels.cu"), text);
          architectures.parallelStream()
              .forEach(architecture -> compile(folder, architecture, optimization));
          return Files.readString(folder.resolve(ptx(architectures.getFirst())));
        });
  }

  private static String ptx(String architecture) {
    return "kernels." + architecture + ".ptx";
  }

  /** To PTX, and that to machine code: what is in asm statements, only ptxas looks at. */
  private static void compile(Path folder, String architecture, String optimization) {
    var ptx = ptx(architecture);
    var target = "-arch=" + architecture;
    try {
      Tools.run(
          folder,
          List.of(
              "nvcc",
              target,
              "-std=c++17",
              "-Xcicc",
              optimization,
              "-ptx",
              "-o",
              ptx,
              "kernels.cu"));
      Tools.run(folder, List.of("ptxas", target, "-O0", "-o", ptx + ".cubin", ptx));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** {@return the texts of a program's kernels that are for Hopper GPUs alone, each once} */
  static Set<String> forHopperAlone(List<DeviceProgram> programs) {
    return texts(
        programs,
        step ->
            step instanceof DeviceStep.HopperLaunch both
                ? ImmutableList.of(both.launch())
                : ImmutableList.of());
  }

  /** {@return the texts of a program's other kernels, each once} */
  static Set<String> kernels(List<DeviceProgram> programs) {
    return texts(
        programs,
        step ->
            step instanceof DeviceStep.HopperLaunch both
                ? both.otherwise().stream()
                    .flatMap(other -> other.launches().stream())
                    .collect(ImmutableList.toImmutableList())
                : step.launches());
  }

  private static Set<String> texts(
      List<DeviceProgram> programs, Function<DeviceStep, ImmutableList<Launch>> launches) {
    return programs.stream()
        .flatMap(program -> program.steps().stream())
        .flatMap(step -> launches.apply(step).stream())
        .map(launch -> launch.kernel().text())
        .collect(Collectors.toCollection(LinkedHashSet::new));
  }
}
