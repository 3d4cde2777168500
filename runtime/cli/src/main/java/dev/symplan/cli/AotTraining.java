package dev.symplan.cli;

import dev.symplan.cli.common.ExitCode;
import dev.symplan.runtime.Backend;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.classfile.ClassFile;
import java.lang.classfile.constantpool.ClassEntry;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.TreeSet;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;

/**
 * Runs typical commands in one process, so that the build can keep what the JVM learns from them in
 * its AOT cache.
 */
final class AotTraining {
  private AotTraining() {}

  /**
   * @param args the folder of the samples
   */
  public static void main(String[] args) throws IOException {
    var samples = Path.of(args[0]);
    var graph = samples.resolve("tp_mlp.graph").toString();
    var folder = Files.createTempDirectory("symplan-aot");
    var moe = samples.resolve("cases/plan/moe_ep8.0.fx.txt").toString();
    var plan = folder.resolve("plan.json").toString();
    var buffers = folder.resolve("buffers.csv");
    Files.writeString(buffers, "id,lower,upper,size\na,0,2,3\nb,1,3,2\nc,2,4,3\n");
    var commands =
        List.of(
            new String[] {"version"},
            new String[] {"--help"},
            new String[] {"compile", graph, "-o", plan},
            new String[] {"dump", plan},
            new String[] {"dump", graph, "--view", "summary,collectives,values,memory,schedule"},
            new String[] {"dump", plan, "--format", "json"},
            new String[] {"dump", plan, "--format", "csv"},
            new String[] {"dump", plan, "--format", "html"},
            new String[] {"dump", plan, "--view", "code"},
            new String[] {"explain", graph, "r"},
            new String[] {"diff", plan, plan},
            new String[] {"compile", moe, "-o", plan},
            new String[] {"dump", plan},
            new String[] {
              "dump", samples.resolve("cases/plan/fsdp8_mlp_train_4l.0.fx.txt").toString()
            },
            new String[] {"run", graph},
            new String[] {"run", samples.resolve("fsdp_layer.graph").toString()},
            new String[] {
              "compile", samples.resolve("cases/plan/fsdp8_mlp_train_4l.0.fx.txt").toString()
            },
            new String[] {"run", samples.resolve("cases/tp_mlp_bf16").toString(), "--check"},
            new String[] {"compile", samples.resolve("cases/jax_adam_block_step").toString()},
            new String[] {"pack", buffers.toString()},
            new String[] {"ops"});
    for (var backend : Backend.all().toList()) {
      loadClasses(backend.getClass());
    }
    var printed = new ByteArrayOutputStream();
    try (var out = new PrintStream(printed, false, StandardCharsets.UTF_8)) {
      for (var command : commands) {
        int code = Main.run(command, out, out);
        if (code != ExitCode.OK) {
          out.flush();
          System.err.println(printed.toString(StandardCharsets.UTF_8));
          System.err.println("symplan " + String.join(" ", command) + " gave " + code);
          System.exit(code);
        }
      }
    } finally {
      Files.deleteIfExists(Path.of(plan));
      Files.deleteIfExists(buffers);
      Files.deleteIfExists(folder);
    }
    // As Main does, so that the classes that the JVM loads for it are kept too.
    System.exit(ExitCode.OK);
  }

  /**
   * Loads the classes of a jar and those of its libraries that they name, and runs nothing: builds
   * need no GPU.
   *
   * @param one of the jar's classes
   */
  private static void loadClasses(Class<?> one) throws IOException {
    var names = new TreeSet<String>();
    var location = one.getProtectionDomain().getCodeSource().getLocation().toString();
    try (var jar = new ZipFile(Path.of(URI.create(location)).toFile())) {
      for (var entry : jar.stream().filter(file -> file.getName().endsWith(".class")).toList()) {
        for (var constant : ClassFile.of().parse(bytes(jar, entry)).constantPool()) {
          if (constant instanceof ClassEntry named && !named.asSymbol().isArray()) {
            names.add(named.asInternalName().replace('/', '.'));
          }
        }
      }
    }
    for (var name : names) {
      try {
        var _ = Class.forName(name, false, one.getClassLoader());
      } catch (ClassNotFoundException | NoClassDefFoundError _) {
        // An annotation, or what belongs to a library that is left out.
      }
    }
  }

  private static byte[] bytes(ZipFile jar, ZipEntry entry) throws IOException {
    try (var in = jar.getInputStream(entry)) {
      return in.readAllBytes();
    }
  }
}
