package dev.symplan.runtime.torch;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_FLOAT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.google.common.util.concurrent.Uninterruptibles;
import dev.symplan.ir.diag.DiagnosticCode;
import dev.symplan.ir.diag.SourceFile;
import dev.symplan.ir.json.Json;
import dev.symplan.ir.json.JsonErrors;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Calls the functions of the table as a C program would. */
@Timeout(60)
class BridgeTest {
  private static final String DOUBLED =
      """
      class GraphModule(torch.nn.Module):
          def forward(self, x: "f32[8, 4][4, 1]cpu", w: "f32[4, 4][4, 1]cpu"):
              add: "f32[8, 4][4, 1]cpu" = torch.ops.aten.add.Tensor(x, x)
              t: "f32[4, 4][1, 4]cpu" = torch.ops.aten.permute.default(w, [1, 0]);  w = None
              return (add, t, x, None)
      """;

  private static final String PICKED =
      """
      class GraphModule(torch.nn.Module):
          def forward(self, x: "f32[8, 4][4, 1]cpu", rows: "i64[1][1]cpu"):
              index: "f32[1, 4][4, 1]cpu" = torch.ops.aten.index.Tensor(x, [rows])
              return (index,)
      """;

  private final MemorySegment table = MemorySegment.ofAddress(Bridge.table()).reinterpret(7 * 8L);

  private final Arena arena = Arena.ofShared();
  private final MemorySegment reply = arena.allocate(16);

  private MethodHandle function(int index, MemoryLayout... parameters) {
    return Linker.nativeLinker()
        .downcallHandle(
            MemorySegment.ofAddress(table.getAtIndex(JAVA_LONG, index)),
            FunctionDescriptor.of(JAVA_LONG, parameters));
  }

  private long compile(String request) {
    return compile(request.getBytes(StandardCharsets.UTF_8));
  }

  private long compile(byte[] request) {
    var bytes = arena.allocate(Math.max(1, request.length));
    MemorySegment.copy(request, 0, bytes, JAVA_BYTE, 0, request.length);
    try {
      return (long)
          function(1, ADDRESS, JAVA_LONG, ADDRESS).invokeExact(bytes, (long) request.length, reply);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private long describe(long handle) {
    try {
      return (long) function(2, JAVA_LONG, ADDRESS).invokeExact(handle, reply);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private long run(long handle, long... addresses) {
    return run(reply, handle, addresses);
  }

  private long run(MemorySegment answer, long handle, long... addresses) {
    var call = arena.allocate(JAVA_LONG, 5 + addresses.length);
    call.setAtIndex(JAVA_LONG, 0, handle);
    call.setAtIndex(JAVA_LONG, 1, addresses.length);
    MemorySegment.copy(addresses, 0, call, JAVA_LONG, 5 * 8, addresses.length);
    long failed = runAt(call.address());
    MemorySegment.copy(call, 2 * 8, answer, 0, 2 * 8);
    return failed;
  }

  private long runAt(long call) {
    try {
      return (long) function(3, JAVA_LONG).invokeExact(call);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private long close(long handle) {
    try {
      return (long) function(4, JAVA_LONG, ADDRESS).invokeExact(handle, reply);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  private long release(MemorySegment text) {
    try {
      return (long) function(5, ADDRESS).invokeExact(text);
    } catch (Throwable e) {
      throw new AssertionError(e);
    }
  }

  /** Takes the text of the reply, and releases it. */
  private String text() {
    return text(reply);
  }

  private String text(MemorySegment answer) {
    var address = MemorySegment.ofAddress(answer.getAtIndex(JAVA_LONG, 0));
    var bytes = address.reinterpret(answer.getAtIndex(JAVA_LONG, 1)).toArray(JAVA_BYTE);
    assertThat(release(address)).isZero();
    answer.fill((byte) 0);
    return new String(bytes, StandardCharsets.UTF_8);
  }

  private static String request(String graph, String backend) {
    return JsonNodeFactory.instance
        .objectNode()
        .put("name", "test.fx.txt")
        .put("text", graph)
        .put("backend", backend)
        .toString();
  }

  private MemorySegment tensor(int elements, float first) {
    var tensor = arena.allocate(elements * 4L, 64);
    for (int i = 0; i < elements; i++) {
      tensor.setAtIndex(JAVA_FLOAT, i, first + i);
    }
    return tensor;
  }

  private static long[] addresses(MemorySegment... tensors) {
    return Stream.of(tensors).mapToLong(MemorySegment::address).toArray();
  }

  private static final MemorySegment NONE = MemorySegment.NULL;

  @Test
  void hasAVersion() {
    assertThat(table.getAtIndex(JAVA_LONG, 0)).isEqualTo(3);
  }

  @Test
  void runsAGraph() {
    long handle = compile(request(DOUBLED, "host"));
    assertThat(handle).isPositive();
    var input = tensor(32, 5);
    for (int i = 0; i < 3; i++) {
      var output = tensor(32, 0);
      assertThat(run(handle, addresses(input, tensor(16, 0), output, NONE, NONE, NONE))).isZero();
      assertThat(output.getAtIndex(JAVA_FLOAT, 31)).isEqualTo(72);
    }
    assertThat(close(handle)).isZero();
    assertThat(close(handle)).isEqualTo(1);
    assertThat(text()).isEqualTo("no graph has the handle " + handle);
  }

  @Test
  void describesAGraph() {
    long handle = compile(request(DOUBLED, "host"));
    assertThat(describe(handle)).isZero();
    var json = Json.parse(new SourceFile("reply", text()), new JsonErrors(DiagnosticCode.SYNTAX));
    assertThat(json.get("alignment").integer()).isEqualTo(16);
    assertThat(json.get("inputs").items())
        .extracting(slot -> slot.get("use").text())
        .containsExactly("direct", "direct");
    var outputs = json.get("outputs").items();
    assertThat(outputs)
        .extracting(slot -> slot.get("use").text())
        .containsExactly("direct", "input", "input", "nothing");
    assertThat(outputs.get(0).get("dtype").text()).isEqualTo("float32");
    assertThat(outputs.get(0).get("bytes").integer()).isEqualTo(128);
    assertThat(outputs.get(1).get("of").integer()).isEqualTo(1);
    assertThat(outputs.get(1).get("strides").list(Json::integer)).containsExactly(1L, 4L);
    close(handle);
  }

  @Test
  void refusesMemoryThatDoesNotFit() {
    long handle = compile(request(DOUBLED, "host"));
    var input = tensor(32, 5);
    var weight = tensor(16, 0);
    assertThat(run(handle, addresses(input, weight, input.asSlice(4), NONE, NONE, NONE)))
        .isEqualTo(1);
    assertThat(text()).startsWith("output 0 of rank 0: the address 0x").contains("16 bytes");
    assertThat(run(handle, addresses(input, weight, tensor(32, 0)))).isEqualTo(1);
    assertThat(text()).isEqualTo("addresses of 3 of 6 inputs and outputs");
    assertThat(run(handle, addresses(input, NONE, tensor(32, 0), NONE, NONE, NONE))).isEqualTo(1);
    assertThat(text()).isEqualTo("input 'w' of rank 0: the address is 0");
    assertThat(run(handle)).isEqualTo(1);
    assertThat(text()).startsWith("addresses of 0 of 6");
    assertThat(run(77_777)).isEqualTo(1);
    assertThat(text()).isEqualTo("no graph has the handle 77777");
    // A refused call has changed nothing.
    var output = tensor(32, 0);
    assertThat(run(handle, addresses(input, weight, output, NONE, NONE, NONE))).isZero();
    assertThat(output.getAtIndex(JAVA_FLOAT, 0)).isEqualTo(10);
    close(handle);
  }

  @Test
  void repliesWithWhatIsWrongInARequest() {
    assertThat(compile("{")).isZero();
    assertThat(text()).startsWith("<request>:1:");
    assertThat(compile(new byte[] {(byte) 0xC3, '('})).isZero();
    assertThat(text()).startsWith("the request is not UTF-8");
    assertThat(compile("{\"name\": \"x\"}")).isZero();
    assertThat(text()).contains("text");
    assertThat(compile(request("no graph", "host"))).isZero();
    assertThat(text()).startsWith("test.fx.txt: error[syntax]: the text contains no graph");
    assertThat(compile(request(DOUBLED, "tpu"))).isZero();
    assertThat(text()).startsWith("unknown backend 'tpu'; choose from [");
    assertThat(compile(request(DOUBLED, "host").replace("}", ",\"what\":1}"))).isZero();
    assertThat(text()).contains("what");
  }

  @Test
  void namesTheOpThatCannotRun() {
    var graph =
        """
        class GraphModule(torch.nn.Module):
            def forward(self, x: "f32[4, 4][4, 1]cpu"):
                made: "f32[4, 4][4, 1]cpu" = torch.ops.mine.made.default(x)
                return (made,)
        """;
    assertThat(compile(request(graph, "host"))).isZero();
    assertThat(text())
        .isEqualTo(
            "mine::made has no host implementation: 'made' (test.fx.txt:3) can be planned, but"
                + " not run here");
  }

  @Test
  void goesOnAfterARunThatFailed() {
    long handle = compile(request(PICKED, "host"));
    var rows = arena.allocate(64, 64);
    var output = tensor(4, 0);
    for (int i = 0; i < 2; i++) {
      rows.setAtIndex(JAVA_LONG, 0, 8);
      var addresses = addresses(tensor(32, 0), rows.asSlice(0, 8), output);
      assertThat(run(handle, addresses)).isEqualTo(1);
      assertThat(text()).contains("aten::index.Tensor 'index'").contains("8");
      rows.setAtIndex(JAVA_LONG, 0, 7);
      assertThat(run(handle, addresses)).isZero();
      assertThat(output.getAtIndex(JAVA_FLOAT, 3)).isEqualTo(31);
    }
    close(handle);
  }

  @Test
  void writesThePage(@TempDir Path folder) throws Exception {
    var file = folder.resolve("page.html");
    var path = JsonNodeFactory.instance.textNode(file.toString()).toString();
    var request = request(DOUBLED, "host").replace("{\"name\"", "{\"page\":" + path + ",\"name\"");
    long handle = compile(request);
    assertThat(handle).isPositive();
    assertThat(Files.readString(file)).contains("<html");
    close(handle);
    assertThat(compile(request.replace("page.html", "no/such/page.html"))).isZero();
    assertThat(text()).contains("page.html");
  }

  @Test
  void anyThreadMayCall() throws Exception {
    long handle = compile(request(DOUBLED, "host"));
    try (var threads = Executors.newFixedThreadPool(4)) {
      var done = new ArrayList<Future<Float>>();
      for (int thread = 0; thread < 4; thread++) {
        float first = thread;
        done.add(
            threads.submit(
                () -> {
                  var answer = arena.allocate(16);
                  var input = tensor(32, first);
                  var output = tensor(32, 0);
                  for (int i = 0; i < 200; i++) {
                    var addresses = addresses(input, tensor(16, 0), output, NONE, NONE, NONE);
                    assertThat(run(answer, handle, addresses)).isZero();
                    assertThat(output.getAtIndex(JAVA_FLOAT, 0)).isEqualTo(2 * first);
                    assertThat(run(answer, handle, addresses(input))).isEqualTo(1);
                    assertThat(text(answer)).startsWith("addresses of 1 of 6");
                  }
                  return output.getAtIndex(JAVA_FLOAT, 31);
                }));
      }
      for (int thread = 0; thread < 4; thread++) {
        assertThat(Uninterruptibles.getUninterruptibly(done.get(thread)))
            .isEqualTo(2f * (thread + 31));
      }
    }
    close(handle);
  }

  @Test
  void needsNoReply() {
    assertThat(runAt(0)).isEqualTo(1);
    assertThat(release(reply)).isEqualTo(1);
    assertThat(List.of(compile(new byte[0]))).containsExactly(0L);
    assertThat(text()).isNotEmpty();
  }
}
