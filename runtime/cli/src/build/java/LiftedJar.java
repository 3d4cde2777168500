import static java.lang.classfile.ClassFile.JAVA_6_VERSION;
import static java.lang.classfile.ClassFile.JAVA_8_VERSION;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.lang.classfile.ClassFile;
import java.lang.classfile.ClassFile.ClassHierarchyResolverOption;
import java.lang.classfile.ClassFile.StackMapsOption;
import java.lang.classfile.ClassFileVersion;
import java.lang.classfile.ClassHierarchyResolver;
import java.lang.classfile.ClassTransform;
import java.lang.classfile.CodeBuilder;
import java.lang.constant.ClassDesc;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;

/**
 * Writes the classes of a jar anew as class files of Java 8 where they are older than those of Java
 * 6: these have no stack maps, without which the JVM keeps no class in its AOT cache.
 */
final class LiftedJar {
  private LiftedJar() {}

  /**
   * @param args the jar, which is replaced
   */
  public static void main(String[] args) throws IOException {
    var file = Path.of(args[0]);
    // Not a temporary file, which nobody else could read.
    var lifted = file.resolveSibling(file.getFileName() + ".lifted");
    try (var jar = new ZipFile(file.toFile());
        var out = new ZipOutputStream(Files.newOutputStream(lifted))) {
      var classes =
          ClassFile.of(
              StackMapsOption.GENERATE_STACK_MAPS,
              ClassHierarchyResolverOption.of(
                  ClassHierarchyResolver.ofResourceParsing(name -> find(jar, name))
                      .orElse(ClassHierarchyResolver.defaultResolver())));
      for (var entry : jar.stream().toList()) {
        var bytes = jar.getInputStream(entry).readAllBytes();
        out.putNextEntry(new ZipEntry(entry.getName()));
        out.write(entry.getName().endsWith(".class") ? lift(classes, bytes) : bytes);
      }
    }
    Files.delete(file);
    Files.move(lifted, file);
  }

  private static byte[] lift(ClassFile classes, byte[] bytes) {
    var old = classes.parse(bytes);
    if (old.majorVersion() >= JAVA_6_VERSION) {
      return bytes;
    }
    // Code that passes through a transform gets stack maps, also where nothing in it changes.
    var code = ClassTransform.transformingMethodBodies(CodeBuilder::with);
    ClassTransform version =
        (builder, element) ->
            builder.with(
                element instanceof ClassFileVersion
                    ? ClassFileVersion.of(JAVA_8_VERSION, 0)
                    : element);
    return classes.transformClass(old, version.andThen(code));
  }

  /** {@return a class of the jar; null, for the JDK's own resolver, where there is none} */
  private static InputStream find(ZipFile jar, ClassDesc name) {
    var descriptor = name.descriptorString();
    var entry = jar.getEntry(descriptor.substring(1, descriptor.length() - 1) + ".class");
    try {
      return entry == null ? null : jar.getInputStream(entry);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
