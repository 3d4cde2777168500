package dev.symplan.runtime.cuda.library;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.stream.Stream;

/**
 * A library that stays loaded for as long as the process runs, by the loader of C: that of Java
 * reports neither why it refuses one nor which file it took. Linux only.
 */
public final class SharedLibrary {

  /** Stands for the memory of a result in a call. */
  static final Object RESULT = new Object();

  /** The loader's own constants are the same in all C libraries of Linux. */
  private static final int RTLD_LAZY = 1;

  private static final int RTLD_DI_LINKMAP = 2;

  /** {@code struct link_map} begins with an address, then the name. */
  private static final long NAME = ValueLayout.ADDRESS.byteSize();

  private static final Linker LINKER = Linker.nativeLinker();
  private static final SymbolLookup C = LINKER.defaultLookup();

  private static final MethodHandle DLOPEN =
      c(
          "dlopen",
          FunctionDescriptor.of(ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.JAVA_INT));
  private static final MethodHandle DLSYM =
      c(
          "dlsym",
          FunctionDescriptor.of(ValueLayout.ADDRESS, ValueLayout.ADDRESS, ValueLayout.ADDRESS));
  private static final MethodHandle DLERROR =
      c("dlerror", FunctionDescriptor.of(ValueLayout.ADDRESS));
  private static final MethodHandle DLINFO =
      c(
          "dlinfo",
          FunctionDescriptor.of(
              ValueLayout.JAVA_INT,
              ValueLayout.ADDRESS,
              ValueLayout.JAVA_INT,
              ValueLayout.ADDRESS));

  private final String name;
  private final MemorySegment handle;

  private SharedLibrary(String name, MemorySegment handle) {
    this.name = name;
    this.handle = handle;
  }

  /** The result of an attempt to load a library. */
  sealed interface Outcome {}

  record Loaded(SharedLibrary library) implements Outcome {}

  /** The loader's own words. */
  record Refused(String why) implements Outcome {}

  private static MethodHandle c(String function, FunctionDescriptor descriptor) {
    return LINKER.downcallHandle(C.findOrThrow(function), descriptor);
  }

  /**
   * Loads a library.
   *
   * @param name a file with its folder, or a {@code SONAME} for the loader to look for
   */
  static Outcome load(String name) {
    try (var arena = Arena.ofConfined()) {
      var handle = (MemorySegment) DLOPEN.invokeExact(arena.allocateFrom(name), RTLD_LAZY);
      if (handle.address() != 0) {
        return new Loaded(new SharedLibrary(name, handle));
      }
      var error = (MemorySegment) DLERROR.invokeExact();
      return new Refused(error.address() == 0 ? "cannot be loaded" : string(error));
    } catch (Throwable e) {
      throw failed(e);
    }
  }

  /** {@return the file that was loaded, if the loader knows it} */
  String file() {
    try (var arena = Arena.ofConfined()) {
      var map = arena.allocate(ValueLayout.ADDRESS);
      int status = (int) DLINFO.invokeExact(handle, RTLD_DI_LINKMAP, map);
      if (status != 0) {
        return name;
      }
      var entry =
          map.get(ValueLayout.ADDRESS, 0).reinterpret(NAME + ValueLayout.ADDRESS.byteSize());
      var file = string(entry.get(ValueLayout.ADDRESS, NAME));
      return file.isEmpty() ? name : file;
    } catch (Throwable e) {
      throw failed(e);
    }
  }

  boolean has(String function) {
    return address(function).isPresent();
  }

  /** {@return a function that takes such arguments; empty if the library has none so named} */
  Optional<MethodHandle> function(String function, FunctionDescriptor descriptor) {
    return address(function).map(address -> LINKER.downcallHandle(address, descriptor));
  }

  /**
   * Calls a function that gives a status and takes what the layouts say.
   *
   * @throws IllegalStateException where the library has no such function
   */
  int call(String function, Object... arguments) {
    var layouts = new MemoryLayout[arguments.length];
    for (int i = 0; i < arguments.length; i++) {
      layouts[i] =
          switch (arguments[i]) {
            case Integer _ -> ValueLayout.JAVA_INT;
            case MemorySegment _ -> ValueLayout.ADDRESS;
            default -> throw new IllegalArgumentException(arguments[i] + " for " + function);
          };
    }
    var handle =
        function(function, FunctionDescriptor.of(ValueLayout.JAVA_INT, layouts))
            .orElseThrow(() -> new IllegalStateException(name + " has no " + function));
    try {
      return (int) handle.invokeWithArguments(arguments);
    } catch (Throwable e) {
      throw failed(e);
    }
  }

  /**
   * {@return the integer that a function writes; empty if there is no such function or it has an
   * error}
   *
   * @param arguments with {@link #RESULT} where the function takes a pointer to it
   */
  OptionalInt ask(String function, Object... arguments) {
    if (!has(function)) {
      return OptionalInt.empty();
    }
    try (var arena = Arena.ofConfined()) {
      var value = arena.allocate(ValueLayout.JAVA_INT);
      int status = call(function, Stream.of(arguments).map(a -> a == RESULT ? value : a).toArray());
      return status == 0 ? OptionalInt.of(value.get(ValueLayout.JAVA_INT, 0)) : OptionalInt.empty();
    }
  }

  /** {@return the result of a function without arguments, as a {@code size_t}} */
  long count(String function) {
    try {
      return (long)
          function(function, FunctionDescriptor.of(ValueLayout.JAVA_LONG))
              .orElseThrow()
              .invokeExact();
    } catch (Throwable e) {
      throw failed(e);
    }
  }

  private Optional<MemorySegment> address(String function) {
    try (var arena = Arena.ofConfined()) {
      var found = (MemorySegment) DLSYM.invokeExact(handle, arena.allocateFrom(function));
      return found.address() == 0 ? Optional.empty() : Optional.of(found);
    } catch (Throwable e) {
      throw failed(e);
    }
  }

  private static String string(MemorySegment text) {
    return text.reinterpret(Long.MAX_VALUE).getString(0);
  }

  /**
   * {@return the exception of a call through a handle, if it may be thrown on; errors are thrown
   * here}
   */
  public static RuntimeException failed(Throwable e) {
    if (e instanceof Error error) {
      throw error;
    }
    return e instanceof RuntimeException runtime ? runtime : new IllegalStateException(e);
  }
}
