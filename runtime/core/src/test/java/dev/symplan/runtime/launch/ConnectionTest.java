package dev.symplan.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(30)
class ConnectionTest {
  private final List<Frame> frames = new ArrayList<>();
  private final CompletableFuture<String> end = new CompletableFuture<>();
  private ServerSocket listener;
  private Socket near;
  private Socket far;

  @BeforeEach
  void connect() throws IOException {
    listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
    near = new Socket(InetAddress.getLoopbackAddress(), listener.getLocalPort());
    far = listener.accept();
  }

  @AfterEach
  void close() throws IOException {
    near.close();
    far.close();
    listener.close();
  }

  private Connection open(Duration silence) throws IOException {
    var connection =
        new Connection(
            near,
            new DataInputStream(near.getInputStream()),
            new DataOutputStream(near.getOutputStream()),
            silence,
            "test",
            frames::add,
            end::complete);
    connection.start();
    return connection;
  }

  private String end() throws Exception {
    return end.get(10, TimeUnit.SECONDS);
  }

  @Test
  void silenceIsTheEnd() throws Exception {
    open(Duration.ofMillis(200));
    assertThat(end()).isEqualTo("it has sent nothing for 200 ms");
  }

  @Test
  void whoHasNothingToSaySaysSo() throws Exception {
    open(Duration.ofSeconds(10));
    far.setSoTimeout(5000);
    assertThat(Frame.read(new DataInputStream(far.getInputStream())).kind())
        .isEqualTo(Frame.Kind.PING);
  }

  @Test
  void garbageIsTheEnd() throws Exception {
    open(Duration.ofSeconds(10));
    far.getOutputStream().write("GET / HTTP/1.1\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
    assertThat(end()).isEqualTo("its connection is lost");
    assertThat(frames).isEmpty();
    assertThat(near.isClosed()).isTrue();
  }

  @Test
  void framesComeInOrder() throws Exception {
    open(Duration.ofSeconds(10));
    var out = new DataOutputStream(far.getOutputStream());
    for (int i = 0; i < 100; i++) {
      Frame.of(Frame.Kind.VALUE, i, "key" + i, new byte[i]).write(out);
    }
    far.shutdownOutput();
    end();
    assertThat(frames).hasSize(100);
    assertThat(frames.get(99).number()).isEqualTo(99);
    assertThat(frames.get(99).key()).isEqualTo("key99");
    assertThat(frames.get(99).data()).hasSize(99);
  }

  @Test
  void aFrameThatSaysItIsHugeIsRefusedBeforeItIsRead() {
    var header = ByteBuffer.allocate(Integer.BYTES).putInt(Frame.MAX_BYTES + 1).array();
    assertThatThrownBy(() -> Frame.read(new DataInputStream(new ByteArrayInputStream(header))))
        .isInstanceOf(IOException.class)
        .hasMessageContaining("a frame of");
  }
}
