package dev.symplan.runtime.torch;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import dev.symplan.ir.diag.CompileException;
import dev.symplan.runtime.failure.RunException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * C functions for a process that has started this JVM: a table of their addresses, all 64 bits
 * wide.
 *
 * <pre>{@code
 * struct reply { char *text; int64_t bytes; };      // UTF-8; to be released
 * struct call { int64_t handle, count; struct reply reply; int64_t stream, addresses[]; };
 * struct table {
 *   int64_t version;                                // 3
 *   int64_t (*compile)(const char *request, int64_t bytes, struct reply *);
 *   int64_t (*describe)(int64_t handle, struct reply *);
 *   int64_t (*run)(struct call *);
 *   int64_t (*close)(int64_t handle, struct reply *);
 *   int64_t (*release)(char *text);
 *   int64_t (*leave)(struct reply *);
 * };
 * }</pre>
 *
 * <p>{@code compile} takes a {@link Request} in JSON and returns a handle, or 0; {@code describe}
 * replies with a {@link SignatureJson signature}. {@code run} takes the address of each input and
 * then of each output, where as many bytes are as the signature says; one argument, as each takes
 * time. {@code leave} signs off from the processes of other ranks, before this process ends. All
 * but {@code compile} return 0, or 1 if they fail. A function that fails replies with the reason;
 * without memory for it, the reply stays empty.
 *
 * <p>Any thread may call: the JVM attaches it.
 */
public final class Bridge {

  /** The version of the table that the caller expects. */
  private static final long VERSION = 3;

  /** The positions in a call. */
  private static final int HANDLE = 0;

  private static final int COUNT = 1;
  private static final int REPLY = 2;
  private static final int STREAM = 4;
  private static final int ADDRESSES = 5;

  private static final long OK = 0;
  private static final long FAILED = 1;
  private static final long NO_HANDLE = 0;

  /** No graph is larger. */
  private static final long MAX_REQUEST = 1L << 30;

  private static final Bridge ONLY = new Bridge();

  private final Map<Long, CompiledGraph> graphs = new ConcurrentHashMap<>();
  private final Map<Long, Arena> replies = new ConcurrentHashMap<>();
  private final Worlds worlds = new Worlds();
  private final AtomicLong handles = new AtomicLong();
  private final MemorySegment table;

  /** The work and result of a function; an exception becomes the reply. */
  @FunctionalInterface
  private interface Task {
    long run();
  }

  private Bridge() {
    table = Arena.global().allocate(JAVA_LONG, 7);
    table.setAtIndex(JAVA_LONG, 0, VERSION);
    put(1, "compile", ADDRESS, JAVA_LONG, ADDRESS);
    put(2, "describe", JAVA_LONG, ADDRESS);
    // An address as a plain number: no object is made for it in each run.
    put(3, "run", JAVA_LONG);
    put(4, "close", JAVA_LONG, ADDRESS);
    put(5, "release", ADDRESS);
    put(6, "leave", ADDRESS);
  }

  /** {@return the address of the table, which stays} */
  public static long table() {
    return ONLY.table.address();
  }

  /**
   * @param name of a method that is not private, as Error Prone would take such a one for unused
   */
  private void put(int index, String name, MemoryLayout... parameters) {
    var descriptor = FunctionDescriptor.of(JAVA_LONG, parameters);
    var stub =
        Linker.nativeLinker().upcallStub(method(name, descriptor), descriptor, Arena.global());
    table.setAtIndex(JAVA_LONG, index, stub.address());
  }

  private MethodHandle method(String name, FunctionDescriptor descriptor) {
    MethodType type = descriptor.toMethodType();
    try {
      return MethodHandles.lookup().bind(this, name, type);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(e);
    }
  }

  long compile(MemorySegment request, long bytes, MemorySegment reply) {
    return guarded(
        NO_HANDLE,
        reply,
        () -> {
          var graph = CompiledGraph.of(Request.parse(text(request, bytes)), worlds);
          long handle = handles.incrementAndGet();
          graphs.put(handle, graph);
          return handle;
        });
  }

  long describe(long handle, MemorySegment reply) {
    return guarded(
        FAILED,
        reply,
        () -> {
          write(reply, graph(handle).describe());
          return OK;
        });
  }

  long run(long call) {
    if (call <= 0) {
      return FAILED;
    }
    try {
      graph(word(call, HANDLE))
          .run(call + ADDRESSES * Long.BYTES, word(call, COUNT), word(call, STREAM));
      return OK;
    } catch (Throwable e) {
      return failed(FAILED, MemorySegment.ofAddress(call + REPLY * Long.BYTES), e);
    }
  }

  private static long word(long call, int index) {
    return CompiledGraph.MEMORY.get(JAVA_LONG, call + (long) index * Long.BYTES);
  }

  long close(long handle, MemorySegment reply) {
    return guarded(
        FAILED,
        reply,
        () -> {
          var graph = graph(handle);
          graphs.remove(handle);
          graph.close();
          return OK;
        });
  }

  long release(MemorySegment text) {
    var arena = replies.remove(text.address());
    if (arena == null) {
      return FAILED;
    }
    arena.close();
    return OK;
  }

  long leave(MemorySegment reply) {
    return guarded(
        FAILED,
        reply,
        () -> {
          worlds.close();
          return OK;
        });
  }

  private CompiledGraph graph(long handle) {
    var graph = graphs.get(handle);
    if (graph == null) {
      throw new IllegalArgumentException("no graph has the handle " + handle);
    }
    return graph;
  }

  private static String text(MemorySegment bytes, long count) {
    if (bytes.address() == 0 || count < 0 || count > MAX_REQUEST) {
      throw new IllegalArgumentException(
          "a request of %s bytes at 0x%s".formatted(count, Long.toHexString(bytes.address())));
    }
    try {
      return StandardCharsets.UTF_8
          .newDecoder()
          .decode(ByteBuffer.wrap(bytes.reinterpret(count).toArray(JAVA_BYTE)))
          .toString();
    } catch (CharacterCodingException e) {
      throw new IllegalArgumentException("the request is not UTF-8: " + e.getMessage(), e);
    }
  }

  /** An exception that left a function would end the process. */
  private long guarded(long failed, MemorySegment reply, Task task) {
    try {
      return task.run();
    } catch (Throwable e) {
      return failed(failed, reply, e);
    }
  }

  private long failed(long failed, MemorySegment reply, Throwable e) {
    try {
      write(reply, message(e));
    } catch (Throwable _) {
      // There is no memory for the text: the reply stays empty.
    }
    return failed;
  }

  private static String message(Throwable e) {
    return switch (e) {
      case CompileException wrong -> String.valueOf(wrong.getMessage());
      case RunException wrong -> String.valueOf(wrong.getMessage());
      case IllegalArgumentException wrong -> String.valueOf(wrong.getMessage());
      case OutOfMemoryError _ -> "out of memory: " + e.getMessage();
      default -> "internal error; please report it with the graph: " + trace(e);
    };
  }

  private static String trace(Throwable e) {
    var text = new StringWriter();
    e.printStackTrace(new PrintWriter(text));
    return text.toString();
  }

  private void write(MemorySegment reply, String text) {
    if (reply.address() == 0) {
      return;
    }
    var arena = Arena.ofShared();
    var bytes = text.getBytes(StandardCharsets.UTF_8);
    var memory = arena.allocate(bytes.length + 1L);
    MemorySegment.copy(bytes, 0, memory, JAVA_BYTE, 0, bytes.length);
    replies.put(memory.address(), arena);
    var fields = reply.reinterpret(2L * Long.BYTES);
    fields.setAtIndex(JAVA_LONG, 0, memory.address());
    fields.setAtIndex(JAVA_LONG, 1, bytes.length);
  }
}
