package dev.symplan.runtime.cuda;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableMap;
import dev.symplan.codegen.cuda.Kernel;
import dev.symplan.ir.testkit.Tools;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.function.UnaryOperator;
import java.util.regex.Pattern;

/** Generated kernels, compiled for this machine's processor by its C++ compiler. */
final class Emulation {
  private static final ImmutableList<String> COMPILER =
      ImmutableList.of("g++", "-std=c++17", "-Og", "-w", "-ffp-contract=off", "-fPIC");

  /** It takes half the time of the usual one, but not every machine has it. */
  private static final ImmutableList<String> LINKER =
      Tools.isInstalled("ld.gold") ? ImmutableList.of("-fuse-ld=gold") : ImmutableList.of();

  /** The folder of each prelude, compiled, since that takes longer than most kernels. */
  private static final ConcurrentMap<String, Path> PRELUDES = new ConcurrentHashMap<>();

  private Emulation() {}

  /**
   * {@return a library with a function {@code callN} for each kernel, which takes its words}
   *
   * <p>Skips the test where there is no compiler, and fails with what it says of a kernel.
   *
   * @param prelude the resources, {@code .hpp} and {@code .cpp}, that have what kernels need of
   *     CUDA, beside {@code cuda.hpp}
   * @param plain takes machine instructions out of a text, besides conversions
   */
  static SymbolLookup compile(String prelude, List<Kernel> kernels, UnaryOperator<String> plain) {
    Tools.assumeInstalled("g++");
    var text = new StringBuilder();
    for (int i = 0; i < kernels.size(); i++) {
      var kernel = plain.apply(text(kernels.get(i), i));
      text.append("namespace n%s {\n%s}\n".formatted(i, kernel));
      text.append(
          """
          extern "C" void call%1$s(const long long* words) {
            n%1$s::Args args;
            memcpy(&args, words, sizeof(args));
            n%1$s::kernel%1$s(args);
          }
          """
              .formatted(i));
      kernel
          .lines()
          .filter(line -> line.startsWith("#define "))
          .forEach(line -> text.append("#undef ").append(line.split(" ")[1]).append('\n'));
    }
    return Tools.inFolder(
        folder -> {
          var compiled = PRELUDES.computeIfAbsent(prelude, Emulation::prelude);
          Files.writeString(folder.resolve("kernels.cpp"), text);
          run(
              folder,
              "-include",
              compiled.resolve("prelude.hpp").toString(),
              "-shared",
              "-o",
              "kernels.so",
              "kernels.cpp",
              compiled.resolve("prelude.o").toString());
          return SymbolLookup.libraryLookup(folder.resolve("kernels.so"), Arena.global());
        });
  }

  private static Path prelude(String name) {
    try {
      var folder = Files.createTempDirectory("symplan-emulation");
      folder.toFile().deleteOnExit();
      for (var file : List.of("prelude.hpp", "prelude.hpp.gch", "prelude.cpp", "prelude.o")) {
        folder.resolve(file).toFile().deleteOnExit();
      }
      Files.writeString(
          folder.resolve("prelude.hpp"), resource("/cuda.hpp") + resource(name + ".hpp"));
      Files.writeString(folder.resolve("prelude.cpp"), resource(name + ".cpp"));
      // It is compiled once, and most of a kernel's time may be spent in it. The header that is
      // compiled next is for other options.
      run(folder, "-O2", "-include", "prelude.hpp", "-c", "-o", "prelude.o", "prelude.cpp");
      run(folder, "-x", "c++-header", "-o", "prelude.hpp.gch", "prelude.hpp");
      return folder;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void run(Path folder, String... words) throws IOException {
    Tools.run(
        folder, ImmutableList.<String>builder().addAll(COMPILER).addAll(LINKER).add(words).build());
  }

  private static String resource(String name) {
    try (var in = Emulation.class.getResourceAsStream(name)) {
      return new String(Objects.requireNonNull(in).readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** An instruction of a warp's tensor core; {@code emulation.hpp} has it as a function. */
  private static final Pattern MMA =
      Pattern.compile("asm volatile\\(\"mma\\.sync[^;]*\\.f32\\.(b?f16)\\.[^;]*;[^;]*;");

  private static final Pattern WGMMA =
      Pattern.compile(
          "asm volatile\\(\"wgmma\\.mma_async[^\"]*m64n(\\d+)k16\\.f32\\.(b?f16)\\.[^\"]*"
              + " ([01]), ([01]);\"[^;]*;");

  /** The instructions of Hopper's copy engine and barriers, and the functions for them. */
  private static final ImmutableMap<String, String> HOPPER =
      ImmutableMap.<String, String>builder()
          .put("createpolicy", "policy = 0;")
          .put("mbarrier\\.init", "emulation::init_barrier(barrier, arrivals);")
          .put("mbarrier\\.arrive\\.shared", "emulation::arrive(barrier, 0);")
          .put("mbarrier\\.arrive\\.expect_tx", "emulation::arrive(barrier, bytes);")
          .put("[^\"]*mbarrier\\.try_wait", "emulation::await(barrier, phase);")
          .put(
              "cp\\.async\\.bulk\\.tensor",
              "emulation::load(to, map, near, line, matrix, barrier);")
          .put("bar\\.sync", "emulation::meet_some(number, threads);")
          .put("barrier\\.cluster", "emulation::meet_cluster();")
          .put("mapa\\.", "there = emulation::in_block(at, block);")
          .put("ld\\.shared::cluster", "emulation::read_sums(to, from);")
          .put("fence\\.(?:proxy\\.async|mbarrier_init)", "")
          .put("wgmma\\.(?:fence|commit_group|wait_group)", "")
          .buildOrThrow();

  private static String withoutHopper(String text) {
    var plain =
        WGMMA
            .matcher(text)
            .replaceAll("emulation::multiply_boxes<emulation::$2>(sums, left, right, $1, $3, $4);");
    for (var entry : HOPPER.entrySet()) {
      plain =
          plain.replaceAll(
              "asm volatile\\(\"%s[^\"]*\"[^;]*;".formatted(entry.getKey()), entry.getValue());
    }
    return plain.replace(
        "extern __shared__ unsigned char dynamic[];",
        "unsigned char* const dynamic = emulation::dynamic[emulation::block()];");
  }

  /** Each under a name of its own, without the instructions that convert. */
  private static String text(Kernel kernel, int number) {
    return MMA.matcher(withoutHopper(kernel.text().replace(Kernel.ENTRY, "kernel" + number)))
        .replaceAll("multiply_$1(sums, a, b, c, d, e, f);")
        .replaceAll(
            "asm volatile\\(\"ldmatrix[^;]*trans[^;]*;[^;]*;", "read_matrices(to, from, true);")
        .replaceAll("asm volatile\\(\"ldmatrix[^;]*;[^;]*;", "read_matrices(to, from, false);")
        .replaceAll("asm volatile\\(\"cp\\.async\\.cg[^;]*;[^;]*;", "copy_chunk(to, from, bytes);")
        .replaceAll("asm volatile\\(\"cp\\.async\\.(commit|wait)_(group|all)[^;]*;[^;]*;", "")
        .replaceAll("asm volatile\\(\"ld\\.global\\.L1::[^;]*;[^;]*;", "to = *from;")
        .replace(
            "asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(value));",
            "bits = rounded_to_bf16(value);")
        .replace(
            "asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(power) : \"f\"(exponent));",
            "power = exp2f(exponent);")
        .replace(
            "asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(value) : \"h\"(bits));",
            "value = widened_f16(bits);")
        .replace(
            "asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(value));",
            "bits = rounded_to_f16(value);");
  }
}
