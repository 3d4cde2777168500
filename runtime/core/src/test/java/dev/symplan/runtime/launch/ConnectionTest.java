package dev.symplan.runtime.launch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.DataOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
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

  private static Channel channel(Socket socket, String in, String out, Duration silence)
      throws IOException {
    return new Introduction(socket, Duration.ofSeconds(10))
        .channel(new Seal(ascii(in)), new Seal(ascii(out)), silence);
  }

  private void open(Duration silence) throws IOException {
    new Connection(
            channel(near, "from far", "from near", silence),
            silence,
            "test",
            frames::add,
            end::complete)
        .start();
  }

  private Channel far() throws IOException {
    return channel(far, "from near", "from far", Duration.ofSeconds(10));
  }

  private static byte[] ascii(String text) {
    return text.getBytes(StandardCharsets.US_ASCII);
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
    assertThat(far().read().kind()).isEqualTo(Frame.Kind.PING);
  }

  @Test
  void garbageIsTheEnd() throws Exception {
    open(Duration.ofSeconds(10));
    far.getOutputStream().write(ascii("GET / HTTP/1.1\r\n\r\n"));
    assertThat(end()).isEqualTo("its connection is lost");
    assertThat(frames).isEmpty();
    assertThat(near.isClosed()).isTrue();
  }

  @Test
  void framesComeInOrder() throws Exception {
    open(Duration.ofSeconds(10));
    var channel = far();
    for (int i = 0; i < 100; i++) {
      channel.write(Frame.of(Frame.Kind.VALUE, i, "key" + i, new byte[i]));
    }
    far.shutdownOutput();
    end();
    assertThat(frames).hasSize(100);
    assertThat(frames.get(99).number()).isEqualTo(99);
    assertThat(frames.get(99).key()).isEqualTo("key99");
    assertThat(frames.get(99).data()).hasSize(99);
  }

  /** The effect on the connection of a frame of these bytes, with this code behind it. */
  private void isNoFrame(byte[] bytes, byte[] code) throws Exception {
    open(Duration.ofSeconds(10));
    var out = new DataOutputStream(far.getOutputStream());
    out.writeInt(bytes.length);
    out.write(bytes);
    out.write(code);
    assertThat(end()).isEqualTo("its connection is lost");
    assertThat(frames).isEmpty();
  }

  private static byte[] frame() {
    return Frame.of(Frame.Kind.VALUE, 1, "key", new byte[5]).toBytes();
  }

  @Test
  void aFrameWithoutTheKeyIsTheEnd() throws Exception {
    isNoFrame(frame(), new Seal(ascii("another key")).next(frame()));
  }

  /** The bytes of a frame that this side has sent, as somebody between the two could. */
  @Test
  void aFrameThatIsSentBackIsTheEnd() throws Exception {
    isNoFrame(frame(), new Seal(ascii("from near")).next(frame()));
  }

  @Test
  void aChangedFrameIsTheEnd() throws Exception {
    var changed = frame();
    changed[changed.length - 1] = 1;
    isNoFrame(changed, new Seal(ascii("from far")).next(frame()));
  }

  @Test
  void aFrameThatComesTwiceIsTheEnd() throws Exception {
    open(Duration.ofSeconds(10));
    var out = new DataOutputStream(far.getOutputStream());
    var code = new Seal(ascii("from far")).next(frame());
    for (int i = 0; i < 2; i++) {
      out.writeInt(frame().length);
      out.write(frame());
      out.write(code);
    }
    assertThat(end()).isEqualTo("its connection is lost");
    assertThat(frames).hasSize(1);
  }

  @Test
  void aFrameThatSaysItIsHugeIsRefusedBeforeItIsRead() throws Exception {
    var channel = far();
    near.getOutputStream()
        .write(ByteBuffer.allocate(Integer.BYTES).putInt(Frame.MAX_BYTES + 1).array());
    assertThatThrownBy(channel::read)
        .isInstanceOf(IOException.class)
        .hasMessageContaining("a frame of");
  }

  /** A byte now and then gives no more time to say who one is. */
  @Test
  void anIntroductionEnds() throws Exception {
    var introduction = new Introduction(near, Duration.ofMillis(300));
    var drip =
        Thread.ofVirtual()
            .start(
                () -> {
                  try {
                    while (true) {
                      far.getOutputStream().write(1);
                      Thread.sleep(20);
                    }
                  } catch (IOException | InterruptedException _) {
                    // The end of the test.
                  }
                });
    assertThatThrownBy(() -> introduction.in().readNBytes(1_000_000))
        .isInstanceOf(SocketTimeoutException.class);
    drip.interrupt();
  }
}
